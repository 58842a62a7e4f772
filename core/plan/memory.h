/* SPDX-License-Identifier: Apache-2.0
 * Memory of a step: placement of a program's values in one block, by the time they live, and what
 * all of it comes to (step_memory.c).
 */
#ifndef DAVIT_PLAN_MEMORY_H
#define DAVIT_PLAN_MEMORY_H

#include "plan/plan.h"

/* Offsets of all values for @max_tokens tokens and @max_rows logit rows, each a multiple of
 * @align. Two values that live at the same time never overlap.
 * @out_off: (filled) [program->n_values]. Returns: bytes in all, 0 on overflow. */
uint64_t davit_memory_place(const DavitProgram *program, uint64_t max_tokens,
                            uint64_t max_rows, uint64_t align, uint64_t *out_off);

/* What computing takes beside weights, in bytes. */
typedef struct DavitStepMemory {
    uint64_t value_bytes;   /* davit_memory_place */
    uint64_t scratch_bytes; /* of kernels, shared and by worker */
    uint64_t array_bytes;   /* of the batch */
    uint64_t state_bytes;   /* keys and values and the like, of the whole context */
} DavitStepMemory;

/* How many elements of 4 bytes the arrays of a batch take; each array starts at a multiple of 16.
 * @out_off: (filled) element at which each of DAVIT_BATCH_ARRAYS starts. */
#define DAVIT_BATCH_ARRAYS 11
uint64_t davit_batch_elems(uint64_t max_tokens, uint64_t max_seqs, uint64_t max_blocks,
                           uint64_t max_rows, uint64_t out_off[DAVIT_BATCH_ARRAYS]);

/* Sizes of steps as the executor takes them for one sequence of @ctx tokens, @max_tokens at a
 * time and one logit row, on @n_workers threads. False on overflow. @plan has a program. */
bool davit_step_memory(const DavitPlan *plan, uint64_t max_tokens, uint64_t ctx,
                       unsigned n_workers, DavitStepMemory *out);

#endif
