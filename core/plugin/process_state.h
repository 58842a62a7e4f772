/* SPDX-License-Identifier: Apache-2.0
 * Gate 6: what plugin code may not change behind our back, seen before and after it runs:
 * floating-point control, signal handlers, umask, locale, working directory, threads.
 */
#ifndef DAVIT_PLUGIN_PROCESS_STATE_H
#define DAVIT_PLUGIN_PROCESS_STATE_H

#include "base/report.h"

typedef struct DavitProcessState DavitProcessState;

/* Returns: (owned) the state of the process and of the calling thread. */
DavitProcessState *davit_process_state_take(void);

/* Compare with now, put back what can be put back (all but threads), and add a warning
 * side-effect for each difference, with @who (component or file) and @stage.
 * Returns: number of differences. [the thread that took it] */
size_t davit_process_state_restore(const DavitProcessState *before, const char *who,
                                   const char *stage, DavitReport *report);
void davit_process_state_free(DavitProcessState *state); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitProcessState, davit_process_state_free)

#endif
