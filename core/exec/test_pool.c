/* SPDX-License-Identifier: Apache-2.0
 * Every task of every phase runs exactly once, phases do not overlap, jobs can follow. */
#include "exec/pool.h"

#include <stdatomic.h>

#define PHASES 200
#define TASKS 37

typedef struct Job {
    DavitPool *pool;
    atomic_int runs[PHASES][TASKS];
    atomic_int done_in_phase[PHASES];
    atomic_int early;
} Job;

static void job_phases(void *ctx, unsigned worker)
{
    (void)worker;
    Job *job = ctx;
    uint64_t first, count;
    for (uint64_t p = 0; p < PHASES; p++) {
        const uint64_t n = p % 3 == 1 ? 0 : p % 5 == 0 ? 1 : TASKS; /* empty phases too */
        while (davit_pool_take(job->pool, p, n, &first, &count)) {
            for (uint64_t t = first; t < first + count; t++) {
                atomic_fetch_add(&job->runs[p][t], 1);
                atomic_fetch_add(&job->done_in_phase[p], 1);
                if (p > 0 && (p - 1) % 3 != 1 &&
                    atomic_load(&job->done_in_phase[p - 1]) != ((p - 1) % 5 == 0 ? 1 : TASKS))
                    atomic_fetch_add(&job->early, 1);
            }
        }
        davit_pool_barrier(job->pool);
    }
}

static void test_phases(void)
{
    for (unsigned n_threads = 1; n_threads <= 5; n_threads++) {
        g_autoptr(DavitPool) pool = davit_pool_new(n_threads);
        g_assert_cmpuint(davit_pool_threads(pool), ==, n_threads);
        for (int repeat = 0; repeat < 20; repeat++) {
            g_autofree Job *job = g_new0(Job, 1);
            job->pool = pool;
            davit_pool_run(pool, job_phases, job);
            for (int p = 0; p < PHASES; p++)
                for (int t = 0; t < (p % 3 == 1 ? 0 : p % 5 == 0 ? 1 : TASKS); t++)
                    g_assert_cmpint(atomic_load(&job->runs[p][t]), ==, 1);
            g_assert_cmpint(atomic_load(&job->early), ==, 0);
        }
    }
}

static void test_idle_pool_ends(void)
{
    for (int i = 0; i < 50; i++) {
        g_autoptr(DavitPool) pool = davit_pool_new(3);
        (void)pool;
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pool/phases-run-once-in-order", test_phases);
    g_test_add_func("/pool/idle-pool-ends", test_idle_pool_ends);
    return g_test_run();
}
