/* SPDX-License-Identifier: Apache-2.0
 * Which architecture a checkpoint fits, whatever its settings call it.
 */
#ifndef DAVIT_PLAN_FITS_H
#define DAVIT_PLAN_FITS_H

#include "plan/plan.h"

/* (borrowed, registry) The first arch component besides the one that the settings name whose slots
 * the checkpoint fills without a finding; NULL if there is none. Headers only; says nothing. */
DavitComponent *davit_plan_other_fit(DavitRegistry *registry, const DavitCheckpoint *checkpoint,
                                     const DavitSettings *settings);

#endif
