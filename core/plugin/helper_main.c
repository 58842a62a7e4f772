/* SPDX-License-Identifier: Apache-2.0
 * The program davit-probe: looks at one plugin in a process of its own (helper.h). Started by
 * davit only:
 *   davit-probe FILE own|foreign [TEST SEED REPEAT [SAMPLE...]]
 */
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "check/suite.h"
#include "plugin/helper.h"

#define RESULT_FD 3

static void limit(int what, rlim_t n)
{
    const struct rlimit r = {n, n};

    setrlimit(what, &r); /* a limit that is lower already stays */
}

/* A plugin that runs away takes this process down and nothing else. */
static void set_limits(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, 30);
    if (!DAVIT_SANITIZED)
        limit(RLIMIT_DATA, (rlim_t)16 << 30);
}

int main(int argc, char **argv)
{
    bool is_own;

    if (argc < 3)
        return 2;
    is_own = strcmp(argv[2], "own") == 0;
    set_limits();
    if (chdir("/") != 0)
        return 2;
    /* no destructors of the plugin */
    _exit(davit_helper_serve(RESULT_FD, argv[1], is_own,
                             argc > 3 ? (const char *const *)argv + 3 : NULL, check_run));
}
