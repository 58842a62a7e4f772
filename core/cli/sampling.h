/* SPDX-License-Identifier: Apache-2.0
 * Flags of sampling: --temperature, --top-p, --top-k, --min-p, penalties, --seed, --sampling.
 */
#ifndef DAVIT_CLI_SAMPLING_H
#define DAVIT_CLI_SAMPLING_H

#include "cli/command.h"
#include "engine/libdavit.h"

/* Their ranges. Returns an exit code, 0 = all are right. */
int davit_sampling_check(DavitCall *call);
void davit_sampling_from_flags(const DavitCall *call, davit_request_params *params);
/* After the flags: with --sampling model what @model's files say and no flag does; else a note
 * where they ask for more than greedy. */
void davit_sampling_from_model(DavitCall *call, const davit_model *model,
                               davit_request_params *params);

#endif
