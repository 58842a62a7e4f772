/* SPDX-License-Identifier: Apache-2.0 */
#include "team.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#define READ_BYTES ((size_t)256 << 20)

struct BenchTeam {
    unsigned n;
    GThread **threads; /* [n], 0 unused */
    void (*job)(void *ctx, unsigned worker);
    void *ctx;
    atomic_uint round, arrived, generation;
    atomic_int quit;
};

typedef struct Member {
    BenchTeam *team;
    unsigned worker;
} Member;

void bench_team_barrier(BenchTeam *team)
{
    const unsigned generation = atomic_load(&team->generation);

    if (atomic_fetch_add(&team->arrived, 1) + 1 == team->n) {
        atomic_store(&team->arrived, 0);
        atomic_fetch_add(&team->generation, 1);
        return;
    }
    for (unsigned spins = 0; atomic_load(&team->generation) == generation; spins++)
        if (spins > 20000)
            g_thread_yield();
}

static gpointer work(gpointer data)
{
    g_autofree Member *me = data;
    BenchTeam *team = me->team;

    for (unsigned round = 1;; round++) {
        for (unsigned spins = 0; atomic_load(&team->round) < round; spins++)
            if (spins > 20000)
                g_thread_yield();
        if (atomic_load(&team->quit))
            return NULL;
        team->job(team->ctx, me->worker);
        bench_team_barrier(team);
    }
}

BenchTeam *bench_team_new(unsigned n_threads)
{
    BenchTeam *team = g_new0(BenchTeam, 1);

    team->n = n_threads;
    team->threads = g_new0(GThread *, n_threads);
    for (unsigned i = 1; i < n_threads; i++) {
        Member *member = g_new(Member, 1);

        *member = (Member){team, i};
        team->threads[i] = g_thread_new("bench", work, member);
    }
    return team;
}

void bench_team_run(BenchTeam *team, void (*job)(void *ctx, unsigned worker), void *ctx)
{
    team->job = job;
    team->ctx = ctx;
    atomic_fetch_add(&team->round, 1);
    job(ctx, 0);
    bench_team_barrier(team);
}

void bench_team_free(BenchTeam *team)
{
    atomic_store(&team->quit, 1);
    atomic_fetch_add(&team->round, 1);
    for (unsigned i = 1; i < team->n; i++)
        g_thread_join(team->threads[i]);
    g_free(team->threads);
    g_free(team);
}

unsigned bench_team_size(const BenchTeam *team)
{
    return team->n;
}

double bench_clock_s(int cpu_time)
{
    struct timespec t;

    clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct Reading {
    const uint64_t *words;
    size_t n_each;
    uint64_t sum[64];
} Reading;

static void read_part(void *ctx, unsigned worker)
{
    Reading *r = ctx;
    const uint64_t *p = r->words + worker * r->n_each;
    uint64_t s[8] = {0};

    for (size_t i = 0; i + 8 <= r->n_each; i += 8)
        for (int j = 0; j < 8; j++)
            s[j] += p[i + j];
    for (int j = 0; j < 8; j++)
        r->sum[worker] += s[j];
}

double bench_read_gbps(BenchTeam *team)
{
    g_autofree uint64_t *words = g_malloc(READ_BYTES);
    Reading r = {.words = words, .n_each = READ_BYTES / sizeof *words / team->n};
    double best = 0.0;

    memset(words, 1, READ_BYTES);
    for (int i = 0; i < 5; i++) {
        const double t = bench_clock_s(0);

        bench_team_run(team, read_part, &r);
        best = MAX(best, (double)READ_BYTES / (bench_clock_s(0) - t) / 1e9);
    }
    return best;
}
