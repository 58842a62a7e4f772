/* SPDX-License-Identifier: Apache-2.0
 * Loading a model for a command, with progress; shared by run and eval.
 */
#ifndef DAVIT_CLI_RUN_H
#define DAVIT_CLI_RUN_H

#include "cli/command.h"
#include "cli/ranks.h"
#include "engine/libdavit.h"

/* Load @model with the flags of the command line (activations, layout, kv-dtype, tie, ...).
 * @no_tokenizer: as in davit_model_params.
 * Findings go to call->report. Returns: a status; *out_model (owned). *out_ranks (owned) also on
 * failure: end them after the model. */
int davit_call_load(DavitCall *call, const char *model, unsigned no_tokenizer,
                    davit_model **out_model, DavitRanks **out_ranks);
/* Serve rank 0 with @model: the whole work of a rank past the first. Returns an exit code. */
int davit_call_follow(DavitCall *call, davit_model *model);
/* Copy @records (taken, may be NULL) into the report. */
void davit_call_take_records(DavitCall *call, davit_records *records);
/* Read a file or "-" (stdin); NULL with a record. (owned) */
char *davit_call_read_file(DavitCall *call, const char *path, size_t *out_len);
/* Set by the first Ctrl-C. */
bool davit_interrupted(void);
/* Check --speculative-config and --offload-config. Returns an exit code. (documents.c) */
int davit_call_documents(DavitCall *call);
void davit_catch_interrupt(void);
/* Forget it: the answer that it stopped is over. */
void davit_interrupt_clear(void);

#endif
