/* SPDX-License-Identifier: Apache-2.0
 * Inside of DavitStep: what its files share. step.c: life and the run; step_calls.c: arrays, call
 * records, memory; step_legs.c: legs on the host and on devices; crossing.c: what crosses before
 * a leg.
 */
#ifndef DAVIT_EXEC_STEP_H
#define DAVIT_EXEC_STEP_H

#include "exec/ahead.h"
#include "exec/arena.h"
#include "exec/device.h"
#include "exec/exec.h"
#include "plan/cross.h"
#include "plan/memory.h"

/* A device's part of a step. Addresses are fixed: calls may be recorded into a graph. */
typedef struct DavitStepDevice {
    DavitExecDevice *exec;        /* (borrowed) */
    DavitArena values, scratch;   /* host */
    void *value_mem, *scratch_mem, *array_mem; /* (owned) a device's */
    uint8_t *value_base;
    uint8_t *scratch_base;        /* shared part, then the workers' */
    uint64_t shared_bytes, worker_bytes;
    davit_batch batch;            /* what its kernels see */
    bool has_calls;
    /* within a run */
    bool is_busy;       /* something was enqueued and not waited for */
    bool reads_host;    /* ... that reads values of the host */
    bool reads_staging; /* ... that reads the staging memory */
    const char *doing;  /* (borrowed) the leg that it is on */
} DavitStepDevice;

struct DavitStep {
    const DavitPlan *plan;
    const DavitWeights *weights;
    bool drops;        /* layers are given back after they ran */
    bool *drops_layer; /* (owned) [n_layers] which */
    DavitAhead *ahead; /* (owned) reads layers that drop; NULL = none */
    DavitKv *kv;
    DavitPool *pool;
    DavitComm *comm;   /* NULL = one process */
    uint64_t max_tokens, max_rows, max_seqs, max_ctx, max_blocks;
    DavitExecDevice *exec;    /* (owned) with queues */
    DavitStepDevice *devices; /* (owned) [plan->n_devices] */
    GArray *legs;             /* (owned) DavitLeg */
    char **leg_text;          /* (owned) [legs->len] "layers 3 to 5", for records */
    const davit_kernel_entry **entries; /* [n_instrs] the plan's, or the core's own; NULL: a
                                         * crossing */
    uint64_t *value_off; /* [n_values] in the values of its device */
    davit_call *calls;   /* [n_instrs] */
    davit_work *work;    /* [n_instrs] of this step; a crossing has none */
    /* batch arrays, host side */
    DavitStepInput input;
    int32_t *arrays; /* one allocation behind input's pointers */
    uint64_t array_off[DAVIT_BATCH_ARRAYS]; /* elements from arrays */
    uint64_t n_elems;
    DavitArena staging;  /* values on their way from device to device */
    float *host_logits;  /* [max_rows, vocab] of a device; NULL = they are made on the host */
    uint64_t vocab;
    DavitStepStats stats;
};

/* ---- step_calls.c ---- */

/* Arrays, calls, memory of values and scratch. All other fields are set. */
int32_t davit_step_prepare(DavitStep *step, DavitReport *report);
/* Counts of the input: rows of values, phases and tasks. */
void davit_step_size(DavitStep *step);

/* Where a value lies, on its device. */
static inline uint8_t *davit_step_value(const DavitStep *step, int32_t value)
{
    const uint32_t device = step->plan->program->values[value].device;
    return step->devices[device].value_base + step->value_off[value];
}

/* ---- step_legs.c ---- */

/* All of the program; logits of a device are in host_logits. Nothing is under way when it
 * returns. Errors: a lost device. */
int32_t davit_step_legs(DavitStep *step, DavitReport *report);
/* Wait for @device, if it is busy. */
int32_t davit_step_wait(DavitStepDevice *device, DavitReport *report);

/* ---- crossing.c ---- */

/* Bring what @leg's calls read to its device, and have what they overwrite read before. */
int32_t davit_step_cross(DavitStep *step, const DavitLeg *leg, DavitReport *report);

#endif
