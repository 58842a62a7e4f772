/* SPDX-License-Identifier: Apache-2.0
 * Inside of DavitKv, for the step runner.
 */
#ifndef DAVIT_EXEC_KV_H
#define DAVIT_EXEC_KV_H

#include "exec/arena.h"
#include "exec/device.h"
#include "exec/exec.h"

struct DavitKv {
    const DavitPlan *plan;    /* (borrowed) */
    uint64_t n_blocks;
    uint64_t bytes_per_block; /* over all states */
    davit_state *states;      /* [program->n_states] each in the memory of its device */
    DavitArena *arenas;       /* [n_states] of those on the host */
    DavitExecDevice *devices; /* (owned) of the plan */
};

#endif
