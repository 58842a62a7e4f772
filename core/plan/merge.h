/* SPDX-License-Identifier: Apache-2.0
 * Plans of one model on several devices: which device takes what, and all of it as one plan.
 */
#ifndef DAVIT_PLAN_MERGE_H
#define DAVIT_PLAN_MERGE_H

#include "plan/draft.h"

/* Fill @devices ([n], plans of the whole model on each, none the host's) in order with what each
 * may take (@budgets, bytes): embedding and tied head first, then layers, then the other globals;
 * a device that has no room for the next piece takes no more. What is left is the host's.
 * Returns: (owned) [host->n_slots] interned homes. */
const char **davit_fill_devices(const DavitPlan *host, DavitPlan *const *devices, size_t n,
                                const uint64_t *budgets, const DavitPlanOptions *options);

/* Give @plans[0] the slots and calls of the plans that are on their homes' devices, and sums that
 * are of all. All plans are of one model and have the same homes. */
void davit_plan_merge(DavitPlan *const *plans, size_t n);

/* Fill plan->placed and ctx. @plans [n] as above, @plans[0] = @plan. */
void davit_placed_fill(DavitPlan *plan, DavitPlan *const *plans, size_t n,
                       const DavitPlanOptions *options);

/* States and steps on the device of @plan, whose placed is filled. */
uint64_t davit_placed_beside(DavitPlan *plan);

/* Note @budget (0 = none) for @device, and refuse where @plan takes more: MEMORY_SHORT with the
 * bytes and the first slot without room. The host's own is davit_place_budget's. */
void davit_placed_budget(DavitPlan *plan, const char *device, uint64_t budget,
                         DavitReport *report);

#endif
