/* SPDX-License-Identifier: Apache-2.0
 * Kernel entries against the SDK's reference. */
#include "call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the tasks of a phase are given out. */
typedef struct split {
    uint64_t chunk; /* tasks per call of run, 0 = all at once */
    int reverse;    /* last chunk first */
    uint32_t workers;
} split;

static uint64_t out_count(const test_call *c)
{
    return c->call.out[0].n_rows * c->call.out[0].width;
}

static void run_phase(test_call *c, const davit_kernel_entry *entry, uint32_t phase, uint64_t n,
                      split s)
{
    const uint64_t chunk = s.chunk ? s.chunk : n ? n : 1, n_chunks = (n + chunk - 1) / chunk;

    for (uint64_t i = 0; i < n_chunks; i++) {
        const uint64_t first = (s.reverse ? n_chunks - 1 - i : i) * chunk;
        const uint64_t count = n - first < chunk ? n - first : chunk;

        entry->run(&c->call, phase, first, count, (uint32_t)(i % s.workers), NULL);
    }
}

static void run_entry(test_call *c, const davit_kernel_entry *entry, split s)
{
    davit_work work = {.struct_size = DAVIT_END(davit_work, n_tasks)};
    void *self = c->call.self;

    if (entry->size)
        entry->size(self, &c->call, c->batch.n_tokens, c->batch.n_rows, c->batch.n_tokens, &work);
    else
        work.n_phases = 1, work.n_tasks[0] = c->call.out[0].n_rows;
    if (!test_expect(c->t, work.n_phases >= 1 && work.n_phases <= DAVIT_MAX_PHASES,
                     "%s: %llu phases", entry->name, (unsigned long long)work.n_phases))
        return;
    c->call.worker_bytes = (work.worker_bytes + 63) / 64 * 64;
    c->call.scratch = test_call_memory(c, work.scratch_bytes, 0);
    c->call.worker_scratch = test_call_memory(c, c->call.worker_bytes * s.workers, 0);
    for (uint32_t phase = 0; phase < work.n_phases; phase++)
        run_phase(c, entry, phase, work.n_tasks[phase], s);
}

/* Each row within tol of its largest expected value, at least floor. */
static void compare_rows(test_call *c, const char *name, const float *expected, double tol,
                         double floor)
{
    const float *got = c->call.out[0].data;
    const uint64_t width = c->call.out[0].width;

    for (uint64_t r = 0; r < c->call.out[0].n_rows; r++) {
        double largest = 0;

        for (uint64_t i = 0; i < width; i++)
            largest = fmax(largest, fabs((double)expected[r * width + i]));
        for (uint64_t i = 0; i < width; i++) {
            const double x = (double)got[r * width + i], y = (double)expected[r * width + i];

            if (!(fabs(x - y) <= tol * largest + floor)) {
                test_expect(c->t, 0,
                            "%s: row %llu, column %llu is %.9g, the reference %.9g "
                            "(largest of the row %.9g)",
                            name, (unsigned long long)r, (unsigned long long)i, x, y, largest);
                return;
            }
        }
    }
    test_expect(c->t, 1, "%s", name);
}

/* The reference's answer; the call's output is afterwards what it was before. (owned) */
static float *reference(test_call *c, const float *before)
{
    const uint64_t bytes = out_count(c) * sizeof(float);
    float *expected = test_alloc(bytes);
    void *work = test_alloc(davit_ref_work_bytes(&c->call) + 8);

    davit_ref_run(&c->call, 0, davit_ref_rows(&c->call), work);
    memcpy(expected, c->call.out[0].data, bytes);
    memcpy(c->call.out[0].data, before, bytes);
    free(work);
    return expected;
}

/* Returns 1 if the entry took the call. */
static int try_call(test_call *c, const davit_kernel_entry *entry, double tol, double floor)
{
    static const split splits[] = {{0, 0, 1}, {1, 1, 3}, {3, 0, 2}};
    const uint64_t bytes = out_count(c) * sizeof(float), before = c->t->records.n;
    float *start = test_alloc(bytes), *first = test_alloc(bytes), *expected;
    int taken = 1;

    memcpy(start, c->call.out[0].data, bytes);
    if (entry->check && entry->check(c->call.self, &c->call, &c->t->sink)) {
        test_expect(c->t, c->t->records.n > before, "%s: check refuses without a record",
                    entry->name);
        taken = 0;
        goto done;
    }
    expected = reference(c, start);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        memcpy(c->call.out[0].data, start, bytes);
        run_entry(c, entry, splits[i]);
        test_expect(c->t, test_call_guards_hold(c), "%s writes outside its arrays", entry->name);
        if (i == 0) {
            memcpy(first, c->call.out[0].data, bytes);
            compare_rows(c, entry->name, expected, tol, floor);
        } else {
            test_expect(c->t, memcmp(first, c->call.out[0].data, bytes) == 0,
                        "%s: other bits when its tasks are split", entry->name);
        }
    }
    free(expected);
done:
    free(start);
    free(first);
    return taken;
}

/* Layout @n of the entry's list that the reference knows, "f32/1" where it takes none. */
static const davit_ref_layout *layout_of(const davit_kernel_entry *entry, uint64_t n)
{
    const char *at = entry->layouts ? entry->layouts : "f32/1";
    char name[64];

    for (uint64_t known = 0; *at;) {
        const size_t len = strcspn(at, "|");

        if (len < sizeof name) {
            memcpy(name, at, len);
            name[len] = '\0';
            if (davit_ref_layout_find(name) && known++ == n)
                return davit_ref_layout_find(name);
        }
        at += len + (at[len] == '|');
    }
    return NULL;
}

void test_entry_values(davit_test *t, const davit_kernel_entry *entry, uint64_t rounds,
                       double tol, double floor)
{
    uint64_t taken = 0, n_layouts = 0;
    test_call *c = test_alloc(sizeof *c);

    while (layout_of(entry, n_layouts))
        n_layouts++;
    for (uint64_t r = 0; r < rounds && n_layouts; r++) {
        test_round(t);
        memset(c, 0, sizeof *c);
        c->t = t;
        if (!test_expect(t, test_call_fill(c, entry->op, layout_of(entry, r % n_layouts)),
                         "%s: no cases for op %s", entry->name, entry->op))
            break;
        taken += (uint64_t)try_call(c, entry, tol, floor);
        test_call_free(c);
    }
    test_expect(t, taken > 0, "%s took none of %llu calls", entry->name,
                (unsigned long long)rounds);
    free(c);
}

void davit_test_kernels(davit_test *t, const char *name, uint64_t rounds, double tol,
                        double floor)
{
    const davit_kernels_iface *iface = davit_test_iface(t);
    const davit_host *host = test_host();
    const davit_cpu_suite *cpu = host->suite(host->ctx, "cpu", 1, 0);
    uint64_t found = 0;

    for (uint64_t i = 0; iface && iface->entries[i]; i++) {
        const davit_kernel_entry *entry = iface->entries[i];
        const int here = (entry->cpu & ~cpu->features(host->ctx)) == 0;

        if (name && strcmp(entry->name, name) != 0)
            continue;
        found += here;
        if (here)
            test_entry_values(t, entry, rounds, tol, floor);
    }
    test_expect(t, found > 0, "no entry '%s' that this CPU can run", name ? name : "(any)");
}
