/* SPDX-License-Identifier: Apache-2.0
 * Inside of DavitPool for the step runner: all workers run one job in lockstep.
 *
 * A job is a function that every worker enters once; inside it workers meet at barriers and
 * share out the tasks of a phase. One wake-up per step, not per op.
 */
#ifndef DAVIT_EXEC_POOL_H
#define DAVIT_EXEC_POOL_H

#include "exec/exec.h"

/* Run @job on every worker, the caller being worker 0; returns when all have left it.
 * [one thread at a time] */
void davit_pool_run(DavitPool *pool, void (*job)(void *ctx, unsigned worker), void *ctx);

/* Within a job: wait until every worker is here. All writes before are seen after. */
void davit_pool_barrier(DavitPool *pool);

/* Within a job: take tasks of phase number @phase (counted 0, 1, 2 ... since the job began,
 * the same on all workers). Fills [*first, *first + *count) and returns true, or false when
 * none is left. A barrier must lie between two phases. */
bool davit_pool_take(DavitPool *pool, uint64_t phase, uint64_t n_tasks, uint64_t *first,
                     uint64_t *count);

/* CPUs that this process may use: affinity mask, clamped by the cgroup's quota; >= 1. */
unsigned davit_pool_cpus(void);

#endif
