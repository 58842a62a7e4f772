/* SPDX-License-Identifier: Apache-2.0
 * The marker is two words of static thread storage: a signal handler may read it, and a
 * kernel call may set it. */
#include "plugin/running.h"

#include <stddef.h>

static __thread DavitRunning now __attribute__((tls_model("initial-exec")));
static void (*watcher)(const char *who, const char *what);

DavitRunning davit_running_set(const char *who, const char *what)
{
    const DavitRunning before = now;

    now = (DavitRunning){who, what};
    if (watcher)
        watcher(who, what);
    return before;
}

void davit_running_back(DavitRunning before)
{
    now = before;
}

DavitRunning davit_running_get(void)
{
    return now;
}

void davit_running_watch(void (*watch)(const char *who, const char *what))
{
    watcher = watch;
}
