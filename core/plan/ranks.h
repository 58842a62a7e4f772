/* SPDX-License-Identifier: Apache-2.0
 * Tensor parallel: what the recorded forward lacks so that all ranks get the whole result.
 */
#ifndef DAVIT_PLAN_RANKS_H
#define DAVIT_PLAN_RANKS_H

#include "plan/draft.h"

/* Ops that core adds and runs itself (exec/collective.h); no plugin has them.
 * all_reduce: in y; out y (the same value): the sum over all ranks, in ascending order.
 * all_gather: in x [R, this rank's columns]; out y [R, width]: the columns of all ranks. */
#define DAVIT_OP_ALL_REDUCE "all_reduce/1"
#define DAVIT_OP_ALL_GATHER "all_gather/1"

bool davit_is_rank_op(const char *op);

typedef struct DavitGatherAttr {
    uint64_t struct_size;
    uint64_t share; /* columns of every rank but the last, which has the rest */
} DavitGatherAttr;

/* Follow the cuts of draft's slots through @program, which was recorded with them: add a sum
 * after what reads a matrix cut by columns, rows of a vocabulary or experts, and a gather after
 * a head; tell embeddings and experts which part is this rank's; leave a bias that all would add
 * to rank 0. An op over a cut axis without a rule is refused by name. */
int32_t davit_ranks_complete(DavitDraft *draft, DavitProgram *program, const char *who);

#endif
