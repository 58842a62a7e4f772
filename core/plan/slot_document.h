/* SPDX-License-Identifier: Apache-2.0
 * The slots of a plan as JSON: most of a plan's document, so they are written as they go.
 */
#ifndef DAVIT_PLAN_SLOT_DOCUMENT_H
#define DAVIT_PLAN_SLOT_DOCUMENT_H

#include "base/json_write.h"
#include "plan/plan.h"

/* All slots that are present as one array under @key. @with_sources: also what each reads from
 * which file, a row for every tensor of the checkpoint. */
void davit_plan_write_slots(const DavitPlan *plan, bool with_sources, DavitJsonWriter *w,
                            const char *key);

#endif
