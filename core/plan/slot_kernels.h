/* SPDX-License-Identifier: Apache-2.0
 * Which kernels read a slot.
 */
#ifndef DAVIT_PLAN_SLOT_KERNELS_H
#define DAVIT_PLAN_SLOT_KERNELS_H

#include "plan/plan.h"

/* (owned GPtrArray of GPtrArray of borrowed names) For each slot of @plan the names of the
 * kernel entries that read it, each once, in the order of the program. */
GPtrArray *davit_slot_kernels(const DavitPlan *plan);

#endif
