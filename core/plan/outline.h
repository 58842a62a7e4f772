/* SPDX-License-Identifier: Apache-2.0
 * What a model is made of when there is no checkpoint: slots and states from settings.
 */
#ifndef DAVIT_PLAN_OUTLINE_H
#define DAVIT_PLAN_OUTLINE_H

#include "plan/plan.h"

/* Slots with their shapes as if every one that is required were there and every optional
 * one absent (but for those that only one kind of file has); a tied head is absent, too. No sources, bytes, layouts or kernels; program
 * is recorded for its states and is NULL for an architecture that is declared only.
 * Returns: (owned) or NULL with records; plan->checkpoint is NULL. @settings must outlive
 * it. */
DavitPlan *davit_plan_outline(DavitRegistry *registry, const DavitSettings *settings,
                              DavitReport *report);

#endif
