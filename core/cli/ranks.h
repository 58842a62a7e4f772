/* SPDX-License-Identifier: Apache-2.0
 * --tp: ranks as processes. `--tp N` alone starts the others, which get the same command line;
 * `--rank R --comm PLACE` is for ranks that somebody else starts.
 */
#ifndef DAVIT_CLI_RANKS_H
#define DAVIT_CLI_RANKS_H

#include "cli/command.h"
#include "engine/libdavit.h"

/* clang-format off */
/* Rows of a flag table. */
#define DAVIT_RANK_FLAGS                                                                 \
    {"tp", 0, DAVIT_FLAG_COUNT, "N",                                                     \
     "tensor parallel: N processes, each with a part of the model", NULL, "1", false},   \
    {"rank", 0, DAVIT_FLAG_COUNT, "R",                                                   \
     "be this rank of --tp; with --comm, for ranks that are started one by one", NULL,   \
     NULL, false},                                                                       \
    {"comm", 0, DAVIT_FLAG_TEXT, "PLACE",                                                \
     "where the ranks meet: shm:NAME, on one machine", NULL, NULL, false}
/* clang-format on */

typedef struct DavitRanks DavitRanks;

/* The flags above, checked. 0, or an exit code with a record. */
int davit_ranks_check(DavitCall *call);
/* Is this process a rank past the first? It answers nothing. */
bool davit_ranks_follows(const DavitCall *call);

/* (owned) What the flags ask for, put into @params; call->report outlives it. */
DavitRanks *davit_ranks_new(DavitCall *call, davit_model_params *params);
/* Rank 0, after the model was freed: wait for the ranks that were started, end those that do not
 * end, and where @failed say what became of each. NULL is fine. */
void davit_ranks_end(DavitRanks *ranks, bool failed);

#endif
