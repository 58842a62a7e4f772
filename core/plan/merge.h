/* SPDX-License-Identifier: Apache-2.0
 * Plans of one model on several devices: which device takes what, and all of it as one plan.
 */
#ifndef DAVIT_PLAN_MERGE_H
#define DAVIT_PLAN_MERGE_H

#include "plan/draft.h"

/* Devices that are to be filled. A piece is a layer, the embedding with a tied head, or the other
 * globals. */
typedef struct DavitFill {
    DavitPlan *const *devices; /* [n] plans of the whole model on each, none the host's */
    const uint64_t *budgets;   /* [n] bytes that each may take */
    const size_t *most;        /* [n] pieces that each may take */
    size_t *taken;             /* (filled) [n] pieces that each has got */
    size_t n;
} DavitFill;

/* Fill devices in order: embedding and tied head first, then layers, then the other globals; a
 * device that has no room for the next piece takes no more. What is left is the host's. What
 * values take that cross is not reckoned with: it depends on what is where.
 * Returns: (owned) [host->n_slots] interned homes. */
const char **davit_fill_devices(const DavitPlan *host, const DavitFill *fill,
                                const DavitPlanOptions *options);

/* Make @plans[0] the plan over the devices of all [n], each a plan of the one model on one device
 * and with the same homes: its slots, calls, states and tables are those of the plan for their
 * device, crossings are added, sums made anew. Errors: those of davit_cross_devices. */
int32_t davit_plan_merge(DavitPlan *const *plans, size_t n, const DavitPlanOptions *options,
                         DavitReport *report);

/* Fill plan->placed and ctx: a row for each device of @plan. */
void davit_placed_fill(DavitPlan *plan, const DavitPlanOptions *options);

/* States and steps on the host; all that @device takes. @plan's placed is filled. */
uint64_t davit_placed_beside(DavitPlan *plan);
uint64_t davit_placed_need(DavitPlan *plan, const char *device);

/* Note @budget (0 = none) for @device, and refuse where @plan takes more: MEMORY_SHORT with the
 * bytes and the first slot without room. The host's own is davit_place_budget's. */
void davit_placed_budget(DavitPlan *plan, const char *device, uint64_t budget,
                         DavitReport *report);

#endif
