/* SPDX-License-Identifier: Apache-2.0
 * A host table that watches what a plugin does with it. */
#ifndef DAVIT_CHECK_HOST_H
#define DAVIT_CHECK_HOST_H

#include <davit/plugin.h>
#include <glib.h>
#include <stdbool.h>

typedef struct CheckHost {
    davit_host table;   /* hand &table to the plugin */
    uint64_t poison[8]; /* behind it: what a later host's longer table looks like */
    GMutex lock;
    GHashTable *live;   /* memory that was handed out and not given back */
    uint64_t n_allocs;  /* calls of alloc */
    uint64_t fail_at;   /* this call gives NULL; 0 = none */
    uint64_t n_foreign; /* calls of free with memory that is not the host's, or not any more */
    bool no_suites;
} CheckHost;

/* In place: the table holds the address of @host. */
void check_host_init(CheckHost *host);
/* Gives back what the plugin did not. */
void check_host_clear(CheckHost *host);

#endif
