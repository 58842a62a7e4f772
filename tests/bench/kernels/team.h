/* SPDX-License-Identifier: Apache-2.0
 * A team of threads for benchmarks that meets at spinning barriers, as the engine's pool
 * does.
 */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include <stdint.h>

typedef struct BenchTeam BenchTeam;

BenchTeam *bench_team_new(unsigned n_threads);
void bench_team_free(BenchTeam *team);
/* @job on every thread (the caller is worker 0); returns when all have left it. */
void bench_team_run(BenchTeam *team, void (*job)(void *ctx, unsigned worker), void *ctx);
/* Within a job. */
void bench_team_barrier(BenchTeam *team);
unsigned bench_team_size(const BenchTeam *team);

/* Monotonic time, or the processor time of this process. */
double bench_clock_s(int cpu_time);
/* Best of a few passes over memory larger than the caches, all threads. */
double bench_read_gbps(BenchTeam *team);

#endif
