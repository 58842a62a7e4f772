/* SPDX-License-Identifier: Apache-2.0
 * Memory that this process may still take, and whether a plan fits into it.
 */
#ifndef DAVIT_EXEC_BUDGET_H
#define DAVIT_EXEC_BUDGET_H

#include "exec/exec.h"

/* Bytes of private memory that may still be taken: the least of MemAvailable, the memory
 * limits of the cgroups this process is in (v1 and v2; cached file pages count as free) and
 * RLIMIT_DATA. *out_limit (static) names the one that binds. */
uint64_t davit_budget_free(const char **out_limit);

/* MEMORY_SHORT with the shortfall and the first slot that does not fit, before anything is
 * taken, when the plan's peak on the host is above what is free. */
int32_t davit_budget_check(const DavitPlan *plan, DavitReport *report);

#endif
