/* SPDX-License-Identifier: Apache-2.0
 * The choice of kernels and layouts: one entry per instruction, one layout per slot that
 * all its users take, one component per state.
 */
#ifndef DAVIT_PLAN_CHOOSE_H
#define DAVIT_PLAN_CHOOSE_H

#include "plan/program.h"

/* Fill the chosen fields of draft->plan's slots and of @program. Errors: OP_MISSING, each
 * followed by a note per candidate that says why it was not taken. Deterministic. */
int32_t davit_choose(DavitDraft *draft, DavitProgram *program);

/* Without a program: stored layouts, nothing chosen. */
void davit_choose_nothing(DavitDraft *draft);

#endif
