/* SPDX-License-Identifier: Apache-2.0
 * Worker threads with a spinning barrier. GLib's own pool costs tens of microseconds a
 * dispatch; a step of a small model has hundreds of phases of a few microseconds each.
 * Every wait spins for a bounded number of turns and then sleeps, so an idle or oversubscribed
 * machine is not burnt. */
#include "exec/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SPIN_TURNS 4000u /* about 100 us here: longer than the gap between two phases */
#define CHUNKS_PER_WORKER 4u
#define MAX_THREADS 256u

typedef struct Gate {
    GMutex lock;
    GCond cond;
    atomic_uint generation; /* changes when the gate opens */
    atomic_uint sleepers;
} Gate;

struct DavitPool {
    unsigned n_threads;  /* workers incl. the caller */
    unsigned spin_turns; /* 0 when there are more threads than CPUs: a spinner would only keep
                          * the one it waits for from running */
    bool stop;           /* written before start.generation changes */
    void (*job)(void *ctx, unsigned worker);
    void *ctx;
    Gate start;          /* opens for a new job */
    Gate meet;           /* barrier inside a job */
    atomic_uint arrived;
    _Atomic uint64_t next[3]; /* next task, by phase modulo 3 */
    GThread **threads;   /* [n_threads - 1] */
};

typedef struct WorkerStart {
    DavitPool *pool;
    unsigned worker;
} WorkerStart;

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void gate_init(Gate *gate)
{
    g_mutex_init(&gate->lock);
    g_cond_init(&gate->cond);
}

static void gate_clear(Gate *gate)
{
    g_mutex_clear(&gate->lock);
    g_cond_clear(&gate->cond);
}

/* The order (generation, then sleepers) here and (sleepers, then generation) in gate_wait,
 * both sequentially consistent, is what makes a lost wake-up impossible. */
static void gate_open(Gate *gate)
{
    atomic_fetch_add(&gate->generation, 1);
    if (atomic_load(&gate->sleepers) > 0) {
        g_mutex_lock(&gate->lock);
        g_cond_broadcast(&gate->cond);
        g_mutex_unlock(&gate->lock);
    }
}

static void gate_wait(Gate *gate, unsigned seen, unsigned spin_turns)
{
    for (unsigned i = 0; i < spin_turns; i++) {
        if (atomic_load_explicit(&gate->generation, memory_order_acquire) != seen)
            return;
        relax();
    }
    g_mutex_lock(&gate->lock);
    atomic_fetch_add(&gate->sleepers, 1);
    while (atomic_load(&gate->generation) == seen)
        g_cond_wait(&gate->cond, &gate->lock);
    atomic_fetch_sub(&gate->sleepers, 1);
    g_mutex_unlock(&gate->lock);
}

void davit_pool_barrier(DavitPool *pool)
{
    if (pool->n_threads == 1)
        return;
    const unsigned seen = atomic_load_explicit(&pool->meet.generation, memory_order_acquire);
    if (atomic_fetch_add(&pool->arrived, 1) + 1 == pool->n_threads) {
        atomic_store(&pool->arrived, 0);
        gate_open(&pool->meet);
        return;
    }
    gate_wait(&pool->meet, seen, pool->spin_turns);
}

bool davit_pool_take(DavitPool *pool, uint64_t phase, uint64_t n_tasks, uint64_t *first,
                     uint64_t *count)
{
    _Atomic uint64_t *next = &pool->next[phase % 3];
    const uint64_t parts = (uint64_t)pool->n_threads * CHUNKS_PER_WORKER;
    const uint64_t chunk = pool->n_threads == 1 ? n_tasks : (n_tasks + parts - 1) / parts;
    const uint64_t at =
        chunk == 0 ? 0 : atomic_fetch_add_explicit(next, chunk, memory_order_relaxed);
    if (at >= n_tasks) {
        /* Nobody touches the counter of the next phase now: its last user met us at two
         * barriers since. Several workers may write the same zero. */
        atomic_store_explicit(&pool->next[(phase + 1) % 3], 0, memory_order_relaxed);
        return false;
    }
    *first = at;
    *count = n_tasks - at < chunk ? n_tasks - at : chunk;
    return true;
}

static void *worker_main(void *data)
{
    WorkerStart *start = data;
    DavitPool *pool = start->pool;
    const unsigned worker = start->worker;
    g_free(start);

    unsigned seen = 0; /* the generation at creation */
    for (;;) {
        gate_wait(&pool->start, seen, pool->spin_turns);
        seen++;
        if (pool->stop)
            return NULL;
        pool->job(pool->ctx, worker);
        davit_pool_barrier(pool);
    }
}

void davit_pool_run(DavitPool *pool, void (*job)(void *ctx, unsigned worker), void *ctx)
{
    for (size_t i = 0; i < G_N_ELEMENTS(pool->next); i++)
        atomic_store(&pool->next[i], 0);
    pool->job = job;
    pool->ctx = ctx;
    if (pool->n_threads > 1)
        gate_open(&pool->start);
    job(ctx, 0);
    davit_pool_barrier(pool); /* every worker has left the job */
}

/* Whole CPUs of the cgroup v2 quota, or UINT_MAX without one. */
static unsigned quota_cpus(void)
{
    g_autofree char *text = NULL;
    unsigned long long quota = 0, period = 0;
    if (!g_file_get_contents("/sys/fs/cgroup/cpu.max", &text, NULL, NULL))
        return UINT_MAX;
    if (sscanf(text, "%llu %llu", &quota, &period) != 2 || period == 0)
        return UINT_MAX; /* "max ..." */
    const unsigned long long cpus = (quota + period - 1) / period;
    return cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : (unsigned)cpus;
}

unsigned davit_pool_cpus(void)
{
    cpu_set_t set;
    unsigned n = g_get_num_processors();
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = (unsigned)CPU_COUNT(&set);
    const unsigned quota = quota_cpus();
    n = n < quota ? n : quota;
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

DavitPool *davit_pool_new(unsigned n_threads)
{
    DavitPool *pool = g_new0(DavitPool, 1);
    if (n_threads == 0)
        n_threads = davit_pool_cpus();
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    gate_init(&pool->start);
    gate_init(&pool->meet);
    pool->spin_turns = n_threads <= davit_pool_cpus() ? SPIN_TURNS : 0;
    pool->threads = g_new0(GThread *, n_threads);
    pool->n_threads = 1;
    for (unsigned w = 1; w < n_threads; w++) {
        WorkerStart *start = g_new(WorkerStart, 1);
        *start = (WorkerStart){.pool = pool, .worker = w};
        GThread *thread = g_thread_try_new("davit-worker", worker_main, start, NULL);
        if (!thread) {
            g_free(start);
            break;
        }
        pool->threads[w - 1] = thread;
        pool->n_threads = w + 1; /* no job runs yet, so workers have not looked */
    }
    return pool;
}

void davit_pool_free(DavitPool *pool)
{
    if (!pool)
        return;
    pool->stop = true;
    gate_open(&pool->start);
    for (unsigned w = 1; w < pool->n_threads; w++)
        g_thread_join(pool->threads[w - 1]);
    gate_clear(&pool->start);
    gate_clear(&pool->meet);
    g_free(pool->threads);
    g_free(pool);
}

unsigned davit_pool_threads(const DavitPool *pool)
{
    return pool->n_threads;
}
