/* SPDX-License-Identifier: Apache-2.0
 * Kernel entries that a choice considered, and why each was not taken.
 */
#ifndef DAVIT_PLAN_CANDIDATES_H
#define DAVIT_PLAN_CANDIDATES_H

#include "plan/entry.h"

/* Stored layouts of the matrices of @instr, added to @out with commas between them. */
void davit_instr_layouts(const DavitChooser *chooser, const DavitInstr *instr, GString *out);

/* After the choice: every entry of every op into the list that the plan's options ask for (none:
 * nothing), once per op, layouts and (by_shape) shape; alike ones are counted. */
void davit_candidates_tell(DavitChooser *chooser);

/* One note for each reason why entries of @list, those of its op, do not compute @instr. */
void davit_candidates_note(DavitChooser *c, const DavitInstr *instr, const GArray *list,
                           DavitReport *report);

#endif
