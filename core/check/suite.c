/* SPDX-License-Identifier: Apache-2.0
 * Which test runs, and what all of them use. */
#include "check/suite.h"

#include "plugin/load.h"
#include "plugin/policy.h"
#include "plugin/running.h"

#define CHECK_ROW(name, what) {#name, check_##name},
static const struct {
    const char *name;
    void (*run)(Check *check);
} tests[] = {DAVIT_CHECKS(CHECK_ROW)};
#undef CHECK_ROW

void check_run(const char *const *words, DavitPluginFile *file, DavitReport *report,
               bool *out_skipped)
{
    static const char *const no_samples[] = {NULL};
    const size_t n = g_strv_length((char **)(uintptr_t)words);
    const uint64_t index = g_ascii_strtoull(words[0], NULL, 10);
    Check check = {.file = file, .report = report, .seed = 1, .repeat = 1, .samples = no_samples};

    if (index >= G_N_ELEMENTS(tests))
        return;
    if (n >= 3) {
        check.seed = g_ascii_strtoull(words[1], NULL, 10);
        check.repeat = (unsigned)MAX(g_ascii_strtoull(words[2], NULL, 10), 1);
        check.samples = words + 3;
    }
    check_step(&check, tests[index].name);
    tests[index].run(&check);
    *out_skipped = !check.looked;
}

void check_fail(Check *check, const char *who, const char *subject, const char *expected,
                const char *found, const char *message)
{
    if (++check->n_findings > CHECK_MAX_FINDINGS)
        return;
    davit_report_add(check->report,
                     &(DavitFinding){.code = DAVIT_R_CONTRACT_BROKEN,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "check",
                                     .who = who ? who : check->who,
                                     .subject = subject,
                                     .expected = expected,
                                     .found = found,
                                     .message = message,
                                     .hint = "mend the plugin; the rule is in the header "
                                             "of its kind in davit/"});
}

void check_each(Check *check, DavitKind kind,
                void (*look)(Check *check, DavitComponent *component))
{
    const GPtrArray *all = check->file->load->components;

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (!davit_component_usable(c) || (kind != DAVIT_N_KINDS && c->kind != kind) ||
            davit_load_component(c))
            continue;
        check->looked = true;
        check->who = c->id;
        check->subject = NULL;
        look(check, c);
    }
    check->who = NULL;
}

void check_step(const Check *check, const char *what)
{
    davit_running_set(check->who ? check->who : check->file->bundle_id, what);
}

void check_noise(uint8_t *bytes, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

/* ---- the test library ---- */

static void on_fail(void *ctx, const char *what)
{
    Check *check = ctx;

    check_fail(check, NULL, check->subject, NULL, what,
               "the interface's contract does not hold; `--seed` and `--repeat` try other "
               "inputs");
}

/* Long runs are no hang: the step is said again, twice a second. */
static void on_round(void *ctx)
{
    Check *check = ctx;
    const int64_t now = g_get_monotonic_time();

    if (now - check->said < G_USEC_PER_SEC / 2)
        return;
    check->said = now;
    check_step(check, davit_running_get().what);
}

davit_test *check_library(Check *check, DavitComponent *c, void *self)
{
    davit_test *t = test_adopt(&c->load->desc, self, check->seed);

    t->on_fail = on_fail;
    t->on_round = on_round;
    t->ctx = check;
    return t;
}

char **check_claimed(const DavitComponent *c, const char *key)
{
    g_autofree char *values = davit_build_fact(c->capability, key);

    return g_strsplit(values ? values : "", "|", -1);
}
