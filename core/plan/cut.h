/* SPDX-License-Identifier: Apache-2.0
 * Tensor parallel: the part of every slot that one of several ranks holds.
 */
#ifndef DAVIT_PLAN_CUT_H
#define DAVIT_PLAN_CUT_H

#include "plan/slot.h"

/* Cut draft->slots for options->rank of options->tp, by the axis in the slot table: rows in
 * units (heads) where outputs are shared out, columns where inputs are, vocabulary rows, experts.
 * Heads of keys and values that are fewer than the ranks are held by several. After coverage:
 * whether all bytes are taken is a question of the whole model. Errors: CONFIG_UNSUPPORTED, or
 * QUANT_PARAMS where it is the layout's, per kind of slot that cannot be cut, with the numbers and
 * the counts that work. Of one process: only rows of matrices that are fused on disk. */
void davit_cut_slots(DavitDraft *draft);

#endif
