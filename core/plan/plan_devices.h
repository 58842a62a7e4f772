/* SPDX-License-Identifier: Apache-2.0
 * The devices of one plan, and what of its weights lies on each.
 */
#ifndef DAVIT_PLAN_PLAN_DEVICES_H
#define DAVIT_PLAN_PLAN_DEVICES_H

#include "plan/draft.h"

/* Give @plan, which has no devices yet, the host: DAVIT_ON_HOST, and plan->device. */
void davit_plan_host_add(DavitPlan *plan);

/* Append @device, whose sums are made anew. Returns: its index. */
uint32_t davit_plan_device_add(DavitPlan *plan, const DavitPlanDevice *device);

/* (borrowed) The device that a draft is made for: its last. */
static inline const DavitPlanDevice *davit_draft_device(const DavitDraft *draft)
{
    return &draft->plan->devices[draft->plan->n_devices - 1];
}

/* (borrowed) Where @slot's memory is. */
static inline const DavitPlanDevice *davit_device_of_slot(const DavitPlan *plan,
                                                          const DavitSlot *slot)
{
    return &plan->devices[slot->device];
}

/* Slots, calls, values, states and tables: all on the last device of @plan. */
void davit_plan_settle(DavitPlan *plan);

/* Sums over slots and tables, of all and by device, and the window of a load (piece.h). */
void davit_plan_sums(DavitPlan *plan, uint64_t window_limit, unsigned n_lanes);

#endif
