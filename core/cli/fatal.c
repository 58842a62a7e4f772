/* SPDX-License-Identifier: Apache-2.0
 * A fatal signal says whose code was running before the process dies of it: async-signal-safe,
 * write(2) and reading the marker of the thread that crashed. And small memory that GLib cannot have,
 * for which it would stop the program, ends it as any failure does. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/sanitizer.h"
#include "cli/command.h"
#include "plugin/running.h"

#define STACK_BYTES 32768 /* a stack of its own: the ordinary one may be used up */

static void put(const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        const ssize_t done = write(STDERR_FILENO, text, n);
        if (done <= 0)
            return;
        text += done;
        n -= (size_t)done;
    }
}

static const char *name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV (bad memory access)";
    case SIGBUS:
        return "SIGBUS (bad memory access)";
    case SIGILL:
        return "SIGILL (instruction that this processor lacks)";
    case SIGFPE:
        return "SIGFPE (arithmetic)";
    default:
        return "SIGABRT (gave up)";
    }
}

static void on_fatal(int number)
{
    const DavitRunning running = davit_running_get();
    put("\ndavit: error: ");
    put(name_of(number));
    if (running.who) {
        put(" in plugin code: ");
        put(running.who);
        put(" (");
        put(running.what ? running.what : "?");
        put("); `davit plugin disable ");
        put(running.who);
        put("` goes on without it\n");
    } else {
        put(" outside plugin code: please report it\n");
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* Weights, states and whatever a file decided are asked for and may be refused (style 6); this is
 * the rest. */
static void on_log(const char *domain, GLogLevelFlags level, const char *message, void *data)
{
    if (!(level & G_LOG_LEVEL_ERROR) || !strstr(message, "failed to allocate")) {
        g_log_default_handler(domain, level, message, data);
        return;
    }
    put("davit: error: memory: no memory is left for the program itself: ");
    put(message);
    put("; raise the limit (ulimit -v, ulimit -d, the cgroup's), or end other programs\n");
    _exit(DAVIT_EXIT_FAILED);
}

void davit_fatal_install(void)
{
    static char stack[STACK_BYTES];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK | SA_RESETHAND};
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

    if (DAVIT_SANITIZED)
        return;
    g_log_set_default_handler(on_log, NULL);
    sigemptyset(&action.sa_mask);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        sigaction(signals[i], &action, NULL);
}
