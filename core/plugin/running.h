/* SPDX-License-Identifier: Apache-2.0
 * Which plugin code runs on this thread now. A fatal signal names it (core/cli/fatal.c), and
 * the probe helper tells its parent each step with it.
 */
#ifndef DAVIT_PLUGIN_RUNNING_H
#define DAVIT_PLUGIN_RUNNING_H

/* Both texts borrowed: component or bundle id, and what it does ("dlopen" "entry" "probe" or
 * the name of an op). NULL = no plugin code. */
typedef struct DavitRunning {
    const char *who;
    const char *what;
} DavitRunning;

/* Returns: what was set before; give it back with davit_running_back. [any thread] */
DavitRunning davit_running_set(const char *who, const char *what);
void davit_running_back(DavitRunning before);
/* [any thread, also a signal handler of that thread] */
DavitRunning davit_running_get(void);

/* Call @watch at every davit_running_set from now on; NULL ends it. For the helper program,
 * which has one thread. */
void davit_running_watch(void (*watch)(const char *who, const char *what));

#endif
