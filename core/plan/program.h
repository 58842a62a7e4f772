/* SPDX-License-Identifier: Apache-2.0
 * A recorded program: memory, liveness of values, and what must hold whoever recorded it.
 */
#ifndef DAVIT_PLAN_PROGRAM_H
#define DAVIT_PLAN_PROGRAM_H

#include "plan/draft.h"

void davit_program_free(DavitProgram *program); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitProgram, davit_program_free)

/* Set first and last of every value and check the program: every value is written before
 * it is read, known ops have the operands of davit/ops.h, the output is [R, vocab]
 * float32
 * (@vocab 0 = any). All findings are reported. */
int32_t davit_program_finish(DavitProgram *program, uint64_t vocab, const char *who,
                             DavitReport *report);

#endif
