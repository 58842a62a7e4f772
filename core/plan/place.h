/* SPDX-License-Identifier: Apache-2.0
 * A budget of host memory for weights (`--memory cpu=SIZE`): what is kept, what stays on disk.
 *
 * First everything is kept. Where that is too much, packed copies are given up for the stored
 * bytes; then layers stay on disk, the last ones first and no more than it takes: the pages of
 * slots that kernels use in place come as a layer runs and are given back after it. What cannot
 * be met is refused with the shortfall. With a device map the file's word is kept, and a budget
 * only checks it.
 */
#ifndef DAVIT_PLAN_PLACE_H
#define DAVIT_PLAN_PLACE_H

#include "plan/draft.h"

/* Set way, resident_bytes, ctx and beside_bytes of draft->plan by its homes and budget. Errors:
 * MEMORY_SHORT with the bytes short and the first slot without room; FLAG_UNSUPPORTED for
 * matrices that a device map leaves on disk and that have to be made. */
void davit_place(DavitDraft *draft);

/* The same for @plan alone, by @memory_bytes of the host of which @beside_bytes are not for
 * weights; slots that live on another device do not count. */
void davit_place_budget(DavitPlan *plan, uint64_t memory_bytes, uint64_t beside_bytes,
                        DavitReport *report);

/* davit_plan_draft, and once more without packed copies if those are what does not fit. */
DavitPlan *davit_place_plan(const DavitToolbox *tools, const DavitCheckpoint *checkpoint,
                            const DavitSettings *settings,
                            const DavitPlanOptions *options, DavitReport *report);

/* Does @options leave the placement to the program? */
bool davit_place_is_auto(const DavitPlanOptions *options);
/* Context and tokens at a time that a placement reckons with. */
uint64_t davit_place_ctx(const DavitPlan *plan, const DavitPlanOptions *options);
uint64_t davit_place_chunk(uint64_t ctx, const DavitPlanOptions *options);

#endif
