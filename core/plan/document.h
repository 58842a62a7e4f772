/* SPDX-License-Identifier: Apache-2.0
 * A plan as one JSON document: what `davit plan --json` prints, and what its text and --diff
 * are made from.
 */
#ifndef DAVIT_PLAN_DOCUMENT_H
#define DAVIT_PLAN_DOCUMENT_H

#include <jansson.h>

#include "plan/plan.h"

typedef struct DavitDocumentOptions {
    bool with_slots;  /* "slots" are there without their "sources"; false: null, and
                       * slot_document.h writes them with all they have */
    double read_gb_s; /* speed of the disk for predicted seconds, 1e9 bytes a second; 0 = nominal */
} DavitDocumentOptions;

/* (owned) The document; its fields are described in README.md of this folder. @report: the
 * findings of the plan, from which missing, unexpected and mismatched are listed. */
json_t *davit_plan_document(const DavitPlan *plan, const DavitReport *report,
                            const DavitDocumentOptions *options);

/* (owned) Array of what each device takes; empty without a placement. (placed_json.c) */
json_t *davit_placed_json(const DavitPlan *plan);

/* (owned) Array of the legs of the program: a device, its layers in a row, and what crosses to it
 * before them. Empty where nothing would run. (legs_json.c) */
json_t *davit_legs_json(const DavitPlan *plan);

#endif
