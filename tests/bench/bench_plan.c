/* SPDX-License-Identifier: Apache-2.0
 * What opening and planning one model take in a process, step by step: the first time, where
 * plugins are loaded and memory is fresh, and the least of the later ones.
 *
 *   build/release/test/bench_plan MODEL [ROUNDS]
 *
 * Each figure is wall time, processor time of the thread (which a busy machine leaves nearly
 * alone) and minor page faults. plan_many.py --keep DIR writes a model of 20,000 tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "plan/plan.h"

typedef struct Cost {
    double wall_ms, cpu_ms;
    long faults;
} Cost;

static double ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static Cost now(void)
{
    struct rusage use;

    getrusage(RUSAGE_THREAD, &use);
    return (Cost){ms_of(CLOCK_MONOTONIC), ms_of(CLOCK_THREAD_CPUTIME_ID), use.ru_minflt};
}

static Cost since(Cost start)
{
    const Cost end = now();

    return (Cost){end.wall_ms - start.wall_ms, end.cpu_ms - start.cpu_ms,
                  end.faults - start.faults};
}

enum { REGISTRY, OPEN, SETTINGS, PLAN, FREE, N_STEPS };
static const char *const names[N_STEPS] = {"list of plugins", "open", "settings", "plan", "free"};

static void fail(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        g_autofree char *text = davit_record_sentence(davit_report_get(report, i));

        fprintf(stderr, "%s\n", text);
    }
    exit(1);
}

static void once(const char *path, Cost out[N_STEPS])
{
    const DavitRegistryOptions where = {.builtin_dir = DAVIT_PLUGIN_DIR};
    const DavitPlanOptions options = {.purposes = DAVIT_RUN};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitPlan *plan;
    Cost start = now();

    registry = davit_registry_open(&where, report);
    out[REGISTRY] = since(start);
    start = now();
    checkpoint = davit_checkpoint_open(registry, path, DAVIT_RUN, report);
    out[OPEN] = since(start);
    if (!checkpoint)
        fail(report);
    start = now();
    settings = davit_settings_open(checkpoint, report);
    out[SETTINGS] = since(start);
    if (!settings)
        fail(report);
    start = now();
    plan = davit_plan_make(registry, checkpoint, settings, &options, report);
    out[PLAN] = since(start);
    if (!plan)
        fail(report);
    start = now();
    davit_plan_free(plan);
    davit_settings_free(settings);
    davit_checkpoint_free(checkpoint);
    out[FREE] = since(start);
    davit_registry_free(registry);
}

static void keep_least(Cost *least, const Cost *one)
{
    least->wall_ms = MIN(least->wall_ms, one->wall_ms);
    least->cpu_ms = MIN(least->cpu_ms, one->cpu_ms);
    least->faults = MIN(least->faults, one->faults);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[2]) : 20;
    Cost first[N_STEPS], least[N_STEPS];

    if (argc < 2 || rounds < 1) {
        fprintf(stderr, "usage: bench_plan MODEL [ROUNDS]\n");
        return 2;
    }
    once(argv[1], first);
    for (int i = 0; i < rounds; i++) {
        Cost one[N_STEPS];

        once(argv[1], one);
        for (int s = 0; s < N_STEPS; s++) {
            if (i == 0)
                least[s] = one[s];
            keep_least(&least[s], &one[s]);
        }
    }
    printf("%-16s %30s %30s\n", "", "first: wall, cpu ms, faults", "least: wall, cpu ms, faults");
    for (int s = 0; s < N_STEPS; s++)
        printf("%-16s %12.2f %9.2f %7ld %12.2f %9.2f %7ld\n", names[s], first[s].wall_ms,
               first[s].cpu_ms, first[s].faults, least[s].wall_ms, least[s].cpu_ms,
               least[s].faults);
    return 0;
}
