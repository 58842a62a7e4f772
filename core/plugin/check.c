/* SPDX-License-Identifier: Apache-2.0
 * The conformance suite, the parent's side: a helper for each test. */
#include "plugin/check.h"

#include "plugin/helper.h"

#define CHECK_ROW(name, what) {#name, what},
static const struct {
    const char *name, *what;
} tests[] = {DAVIT_CHECKS(CHECK_ROW)};
#undef CHECK_ROW

static void result_free(void *p)
{
    DavitCheckResult *r = p;

    davit_report_free(r->records);
    g_free(r);
}

/* (owned) what the helper is told: number of the test, seed, repeat, samples. */
static GPtrArray *words_of(size_t test, const DavitCheckOptions *options)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(words, g_strdup_printf("%zu", test));
    g_ptr_array_add(words, g_strdup_printf("%" G_GUINT64_FORMAT, options->seed));
    g_ptr_array_add(words, g_strdup_printf("%u", options->repeat));
    for (size_t i = 0; options->samples && options->samples[i]; i++)
        g_ptr_array_add(words, g_canonicalize_filename(options->samples[i], NULL));
    g_ptr_array_add(words, NULL);
    return words;
}

GPtrArray *davit_check_file(DavitRegistry *registry, DavitPluginFile *file,
                            const DavitCheckOptions *options, DavitReport *report)
{
    GPtrArray *results;
    bool loads = true;

    if (!registry->helper) {
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                                 .status = DAVIT_E_IO,
                                                 .stage = "probe-helper",
                                                 .subject = "davit-probe",
                                                 .expected = "the helper beside libdavit",
                                                 .found = "nothing",
                                                 .message = "there is no probe helper to "
                                                            "run the tests in",
                                                 .hint = "install davit as a whole"});
        return NULL;
    }
    results = g_ptr_array_new_with_free_func(result_free);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        DavitCheckResult *r = g_new0(DavitCheckResult, 1);
        g_autoptr(GPtrArray) words = words_of(i, options);

        r->test = tests[i].name;
        r->what = tests[i].what;
        r->records = davit_report_new();
        if (loads)
            davit_helper_test(file, (const char *const *)words->pdata, r->records,
                              &r->skipped);
        else
            r->skipped = true; /* what does not load cannot be tested further */
        r->passed = !davit_report_failed(r->records);
        loads = loads && (i > 0 || r->passed);
        g_ptr_array_add(results, r);
    }
    return results;
}
