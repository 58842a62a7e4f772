/* SPDX-License-Identifier: Apache-2.0
 * Running the helper program: what it wrote, what the plugin printed, how it ended.
 */
#ifndef DAVIT_PLUGIN_HELPER_SPAWN_H
#define DAVIT_PLUGIN_HELPER_SPAWN_H

#include <stdbool.h>

#include <glib.h>

typedef struct DavitHelperRun {
    GString *lines;  /* of the result pipe, without those of steps */
    GString *output; /* what the plugin printed, cut */
    char *what;      /* last step */
    char *who;       /* whose step it was; "" = the file's */
    int status;      /* of waitpid */
    bool timed_out;  /* killed by us */
    bool lost;       /* the status is not known */
    unsigned step_s; /* seconds that a step was given */
    double t_ms;
} DavitHelperRun;

/* @argv[0] is the program. Returns: errno-like 0, or why it could not be started. */
int davit_helper_spawn(char *const *argv, unsigned step_s, DavitHelperRun *run);
void davit_helper_run_clear(DavitHelperRun *run);

#endif
