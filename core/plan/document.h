/* SPDX-License-Identifier: Apache-2.0
 * A plan as one JSON document: what `davit plan --json` prints, what its text and --diff are
 * made from, and what the plan's hash is taken over.
 */
#ifndef DAVIT_PLAN_DOCUMENT_H
#define DAVIT_PLAN_DOCUMENT_H

#include <jansson.h>

#include "plan/plan.h"

/* (owned) The document; its fields are described in README.md of this folder. @report: the
 * findings of the plan, from which missing, unexpected and mismatched are listed. */
json_t *davit_plan_document(const DavitPlan *plan, const DavitReport *report);

/* (owned, g_free) SHA-256 in hex over everything that says what will be loaded and how: slots,
 * their sources in files, layouts, kernels, bytes; not where the files lie. Equal plans have
 * equal hashes. */
char *davit_plan_hash(const DavitPlan *plan);

/* (owned) Array of what each device takes; empty without a placement. (placed_json.c) */
json_t *davit_placed_json(const DavitPlan *plan);

#endif
