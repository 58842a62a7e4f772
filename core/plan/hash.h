/* SPDX-License-Identifier: Apache-2.0
 * The name of a plan: equal plans have equal hashes.
 */
#ifndef DAVIT_PLAN_HASH_H
#define DAVIT_PLAN_HASH_H

#include "plan/plan.h"

/* (owned, g_free) SHA-256 in hex over everything that says what will be loaded and how: slots,
 * their sources in files, layouts, kernels, bytes; not where the files lie. */
char *davit_plan_hash(const DavitPlan *plan);

#endif
