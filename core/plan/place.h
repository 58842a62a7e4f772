/* SPDX-License-Identifier: Apache-2.0
 * A budget of host memory for weights (`--memory cpu=SIZE`): what is kept, what stays on disk.
 *
 * First everything is kept. Where that is too much, packed copies are given up for the stored
 * bytes; then slots of layers that kernels use in place stay on disk: their pages come as a
 * layer runs and are given back after it. What cannot be met is refused with the shortfall.
 */
#ifndef DAVIT_PLAN_PLACE_H
#define DAVIT_PLAN_PLACE_H

#include "plan/draft.h"

/* Set way, resident_bytes of draft->plan by its budget. Errors: MEMORY_SHORT with the bytes
 * short and the first slot without room. */
void davit_place(DavitDraft *draft);

/* davit_plan_draft, and once more without packed copies if those are what does not fit. */
DavitPlan *davit_place_plan(const DavitToolbox *tools, const DavitCheckpoint *checkpoint,
                            const DavitSettings *settings,
                            const DavitPlanOptions *options, DavitReport *report);

#endif
