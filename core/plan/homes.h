/* SPDX-License-Identifier: Apache-2.0
 * Where each slot lives: by a device map, or as davit_spread_plan decided.
 *
 * What may not be split: the parts of a module, the experts of a slot, a tied head and its
 * embedding, and a layer between two devices that compute, for its residual sum is in one place.
 * Disk is no such device: what lies there is read by the host's kernels.
 */
#ifndef DAVIT_PLAN_HOMES_H
#define DAVIT_PLAN_HOMES_H

#include "plan/device_map.h"
#include "plan/draft.h"

/* Set home of every slot of draft->plan by draft->tools->map or ->homes; without both nothing is
 * done. Errors: USAGE for names that the model does not have and slots that no entry covers,
 * AMBIGUOUS for what would be split; all of them. */
void davit_homes_set(DavitDraft *draft);

/* Is @home the disk? NULL is not. */
bool davit_home_is_disk(const char *home);
/* The device that computes with what lies at @home: "cpu" for the disk. Interned, NULL for NULL. */
const char *davit_home_device(const char *home);

/* Devices that compute at each layer of @plan, and of its globals last: [n_layers + 1], interned.
 * (owned) */
const char **davit_homes_of_layers(const DavitPlan *plan);

#endif
