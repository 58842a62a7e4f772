/* SPDX-License-Identifier: Apache-2.0
 * Speed of linear/1 per layout, number of tokens and activation mode, beside the read
 * speed of memory and, where the build found it, ggml on the same bytes in the same run.
 *
 *   bench_linear [--threads N] [--layouts q4_k,q8_0] [--tokens 1,4,16] [--rows N] [--cols
 * K]
 *                [--cpu-time]
 *
 * Enough copies of the matrix are cycled that T = 1 reads memory, not a cache. Candidates
 * take turns; figures are of the median round, "best" is the shortest. GB/s: stored
 * weight bytes per time; Gop/s: 2 N K T. --cpu-time counts the processor time of the
 * whole process instead of wall time: for one thread on a machine that others use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "kernels/linear_case.h"
#include "rival.h"
#include "team.h"

#define MAX_COPIES 64
#define N_ROUNDS   9
#define COLD_BYTES ((uint64_t)96 << 20)

typedef struct Candidate {
    const char *label;
    const char *entry; /* NULL = ggml */
    int packed;        /* for ggml: its repacked buffer */
} Candidate;

static const Candidate candidates[] = {
    {"int8 stored", "linear int8 avx2", 0},
    {"int8 packed", "linear int8 avx2 packed", 1},
    {"f32", "linear f32 avx2 blocks", 0},
    {"f32", "linear f32 avx2 dense", 0},
    {"ggml", NULL, 0},
    {"ggml repack", NULL, 1},
};
#define N_CANDIDATES G_N_ELEMENTS(candidates)

static int n_threads = 2;
static char *layouts_arg, *tokens_arg;
static gboolean cpu_time;
static int rows_arg = 2048, cols_arg = 5632;

static const GOptionEntry options[] = {
    {"threads", 0, 0, G_OPTION_ARG_INT, &n_threads, "threads", "N"},
    {"layouts", 0, 0, G_OPTION_ARG_STRING, &layouts_arg, "names without /1, by comma",
     "LIST"},
    {"tokens", 0, 0, G_OPTION_ARG_STRING, &tokens_arg, "values of T, by comma", "LIST"},
    {"rows", 0, 0, G_OPTION_ARG_INT, &rows_arg, "output rows", "N"},
    {"cols", 0, 0, G_OPTION_ARG_INT, &cols_arg, "inputs, a multiple of 256", "K"},
    {"cpu-time", 0, 0, G_OPTION_ARG_NONE, &cpu_time, "processor time, not wall time",
     NULL},
    G_OPTION_ENTRY_NULL,
};

/* ---- one candidate ---- */

typedef struct Runner {
    LinearCase *cases[MAX_COPIES]; /* (borrowed) */
    CaseCall calls[MAX_COPIES];
    unsigned n;
    BenchRival *rival; /* instead of calls */
    BenchTeam *team;
    double times[N_ROUNDS];
} Runner;

/* Tasks of each phase in equal shares. */
static void run_calls(void *ctx, unsigned worker)
{
    Runner *r = ctx;
    const unsigned size = bench_team_size(r->team);

    for (unsigned i = 0; i < r->n; i++)
        for (uint32_t phase = 0; phase < r->calls[i].work.n_phases; phase++) {
            const uint64_t n = r->calls[i].work.n_tasks[phase];
            const uint64_t from = n * worker / size, to = n * (worker + 1) / size;

            if (to > from)
                r->calls[i].entry->run(&r->calls[i].call, phase, from, to - from, worker,
                                       NULL);
            bench_team_barrier(r->team);
        }
}

static void run_once(Runner *r)
{
    if (r->rival)
        bench_rival_run(r->rival);
    else
        bench_team_run(r->team, run_calls, r);
}

static Runner *runner_new(const Candidate *what, LinearCase *const *cases,
                          unsigned n_copies, BenchTeam *team)
{
    const davit_kernel_entry *entry = what->entry ? linear_case_entry(what->entry) : NULL;
    LinearCase *c = cases[0];
    g_autofree char *pattern = g_strdup_printf("|%s|", c->layout->name);
    g_autofree char *takes = g_strdup_printf("|%s|", entry ? entry->layouts : "");
    Runner *r;

    if (entry && !what->packed && !strstr(takes, pattern))
        return NULL;
    if (entry && what->packed && !linear_case_pack(c->layout->name))
        return NULL;
    r = g_new0(Runner, 1);
    r->team = team;
    r->n = n_copies;
    for (unsigned i = 0; entry && i < n_copies; i++) {
        const CaseRun run = {.use_packed = what->packed, .n_tokens = c->n_tokens};

        if (what->packed)
            linear_case_pack_all(cases[i], linear_case_pack(c->layout->name));
        linear_case_prepare(cases[i], entry, &run, &r->calls[i]);
    }
    if (!entry)
        r->rival =
            bench_rival_new(c->layout->name, c->rows, c->n_rows, c->n_cols, c->x,
                            c->n_tokens, n_copies, (unsigned)n_threads, what->packed);
    if (entry || r->rival)
        return r;
    g_free(r);
    return NULL;
}

static void runner_free(Runner *r)
{
    for (unsigned i = 0; r && !r->rival && i < r->n; i++)
        linear_case_finish(&r->calls[i]);
    if (r)
        bench_rival_free(r->rival);
    g_free(r);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- one line ---- */

static void measure(const davit_ref_layout *layout, uint64_t n_tokens, BenchTeam *team)
{
    const uint64_t N = (uint64_t)rows_arg, K = (uint64_t)cols_arg;
    const double bytes = (double)(N * davit_ref_row_bytes(layout, K));
    unsigned n_copies = (unsigned)CLAMP((double)COLD_BYTES / bytes / (double)n_tokens,
                                        1.0, (double)MAX_COPIES);
    LinearCase *cases[MAX_COPIES];
    Runner *runners[N_CANDIDATES];

    for (unsigned i = 0; i < n_copies; i++) {
        cases[i] = linear_case_new(layout, N, K, i ? 1 : n_tokens, 0, CASE_RANDOM);
        if (i == 0)
            continue;
        g_free(cases[i]->x);
        cases[i]->x = g_memdup2(cases[0]->x, n_tokens * K * sizeof(float));
        cases[i]->n_tokens = n_tokens;
    }
    for (size_t i = 0; i < N_CANDIDATES; i++)
        runners[i] = runner_new(&candidates[i], cases, n_copies, team);
    for (int round = -1; round < N_ROUNDS; round++)
        for (size_t i = 0; i < N_CANDIDATES; i++) {
            const double t = bench_clock_s(cpu_time);

            if (!runners[i])
                continue;
            run_once(runners[i]);
            if (round >= 0)
                runners[i]->times[round] = (bench_clock_s(cpu_time) - t) / n_copies;
        }
    for (size_t i = 0; i < N_CANDIDATES; i++) {
        double t;

        if (!runners[i])
            continue;
        qsort(runners[i]->times, N_ROUNDS, sizeof(double), compare_doubles);
        t = runners[i]->times[N_ROUNDS / 2];
        printf("%-8s T=%-4u %-12s %9.3f ms %7.2f GB/s %8.1f Gop/s   best %9.3f ms\n",
               layout->name, (unsigned)n_tokens, candidates[i].label, t * 1e3,
               bytes / t / 1e9, 2.0 * (double)(N * K * n_tokens) / t / 1e9,
               runners[i]->times[0] * 1e3);
        runner_free(runners[i]);
    }
    for (unsigned i = 0; i < n_copies; i++)
        linear_case_free(cases[i]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = NULL, tokens = NULL;
    BenchTeam *team;

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return 2;
    }
    if (n_threads < 1 || n_threads > CASE_WORKERS || rows_arg < 1 || cols_arg < 256) {
        fprintf(stderr, "threads: 1..%d, rows: 1.., cols: 256..\n", CASE_WORKERS);
        return 2;
    }
    g_random_set_seed(1);
    g_test_init(&argc, &argv, NULL);
    names =
        g_strsplit(layouts_arg ? layouts_arg : "q4_0,q4_1,q8_0,q4_k,q6_k,bf16", ",", 0);
    tokens = g_strsplit(tokens_arg ? tokens_arg : "1,4,16,128,512", ",", 0);
    team = bench_team_new((unsigned)n_threads);
    printf("threads %d, N %d, K %d, read %.1f GB/s\n", n_threads, rows_arg, cols_arg,
           bench_read_gbps(team));
    for (char **name = names; *name; name++) {
        g_autofree char *full = g_strconcat(*name, "/1", NULL);
        const davit_ref_layout *layout = davit_ref_layout_find(full);

        for (char **t = tokens; layout && *t; t++)
            measure(layout, g_ascii_strtoull(*t, NULL, 10), team);
    }
    printf("read %.1f GB/s\n", bench_read_gbps(team));
    bench_team_free(team);
    return 0;
}
