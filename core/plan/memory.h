/* SPDX-License-Identifier: Apache-2.0
 * Memory of a step: placement of a program's values in one block, by the time they live, and what
 * all of it comes to (step_memory.c).
 */
#ifndef DAVIT_PLAN_MEMORY_H
#define DAVIT_PLAN_MEMORY_H

#include "plan/plan.h"

/* A block of values: whose, for how many tokens and logit rows, each at a multiple of @align. */
typedef struct DavitMemoryFor {
    uint32_t device; /* DavitValue.device */
    uint64_t max_tokens, max_rows, align;
} DavitMemoryFor;

/* Offsets of all values of a device. Two that live at the same time never overlap.
 * @out_off: (filled) [program->n_values], those of other devices stay. Returns: bytes in all,
 * UINT64_MAX on overflow. */
uint64_t davit_memory_place(const DavitProgram *program, const DavitMemoryFor *what,
                            uint64_t *out_off);

/* What computing takes of one device beside weights, in bytes. */
typedef struct DavitStepMemory {
    uint64_t value_bytes;   /* davit_memory_place */
    uint64_t scratch_bytes; /* of kernels, shared and by worker */
    uint64_t array_bytes;   /* of the batch; the host has them always */
    uint64_t state_bytes;   /* keys and values and the like, of the whole context */
    uint64_t staging_bytes; /* host: values on their way from one device to another */
    uint64_t logit_bytes;   /* host: logits that a device has computed */
} DavitStepMemory;

/* values, scratch, arrays, staging and logits: what a step allocates. */
uint64_t davit_step_memory_sum(const DavitStepMemory *memory);

/* How many elements of 4 bytes the arrays of a batch take; each array starts at a multiple of 16.
 * @out_off: (filled) element at which each of DAVIT_BATCH_ARRAYS starts. */
#define DAVIT_BATCH_ARRAYS 11
uint64_t davit_batch_elems(uint64_t max_tokens, uint64_t max_seqs, uint64_t max_blocks,
                           uint64_t max_rows, uint64_t out_off[DAVIT_BATCH_ARRAYS]);

/* Sizes of steps as the executor takes them for one sequence of @ctx tokens, @max_tokens at a
 * time and one logit row, on @n_workers threads. @out: (filled) [plan->n_devices]. False on
 * overflow. @plan has a program. */
bool davit_step_memory(const DavitPlan *plan, uint64_t max_tokens, uint64_t ctx,
                       unsigned n_workers, DavitStepMemory *out);

#endif
