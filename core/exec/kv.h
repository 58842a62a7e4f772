/* SPDX-License-Identifier: Apache-2.0
 * Inside of DavitKv, for the step runner.
 */
#ifndef DAVIT_EXEC_KV_H
#define DAVIT_EXEC_KV_H

#include "exec/arena.h"
#include "exec/exec.h"

struct DavitKv {
    const DavitPlan *plan;   /* (borrowed) */
    uint64_t n_blocks;
    uint64_t bytes_per_block; /* over all states */
    davit_state *states;     /* [program->n_states] */
    DavitArena *arenas;      /* [n_states] host only */
    const davit_device_iface *device; /* NULL = host memory */
    void *device_self;
};

#endif
