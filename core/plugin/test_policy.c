/* SPDX-License-Identifier: Apache-2.0
 * Versions, kinds, loader errors: the parts that need no plugin. */
#include "plugin/policy.h"

#include <davit/help/records.h>

#include "plugin/dl_error.h"
#include "plugin/host.h"
#include "plugin/kinds.h"

static void versions_follow_semver(void)
{
    /* ascending; the last example is SemVer's own */
    static const char *const order[] = {
        "",           "nonsense",     "0.9",           "1.0.0-alpha", "1.0.0-alpha.1",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",  "1.0.0",
        "1.2.9",      "1.10.0",       "2.0.0",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(order); j++) {
            const int got = davit_version_compare(order[i], order[j]);

            if ((got > 0) != (i > j) || (got < 0) != (i < j))
                g_error("'%s' against '%s': %d", order[i], order[j], got);
        }
    }
    g_assert_cmpint(davit_version_compare("1.0.0+a", "1.0.0+b"), ==, 0);
    g_assert_cmpint(davit_version_compare(NULL, NULL), ==, 0);
}

static bool fits(DavitKind kind, uint32_t major, uint32_t minor, uint32_t min_minor)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const bool ok =
        !davit_kind_check(kind, major, minor, min_minor, "x", "policy", report);

    g_assert_cmpint(davit_report_count(report), ==, ok ? 0 : 1);
    if (!ok)
        g_assert_cmpuint(davit_report_get(report, 0)->code, ==, DAVIT_R_KIND_VERSION);
    return ok;
}

static void kind_versions_fit_or_not(void)
{
    g_assert_true(fits(DAVIT_KIND_ID_FORMAT, 1, 0, 0));
    g_assert_true(
        fits(DAVIT_KIND_ID_FORMAT, 1, 7, 0)); /* newer, lives with older hosts */
    g_assert_false(fits(DAVIT_KIND_ID_FORMAT, 1, 7, 7));
    g_assert_false(fits(DAVIT_KIND_ID_FORMAT, 2, 0, 0));
    g_assert_false(fits(DAVIT_KIND_ID_FORMAT, 0, 0, 0));
    g_assert_true(
        fits(DAVIT_KIND_ID_QUANT, 0, davit_kind_info(DAVIT_KIND_ID_QUANT)->minor, 0));
    g_assert_false(fits(DAVIT_KIND_ID_QUANT, 0, 77, 0));
    g_assert_false(fits(DAVIT_KIND_ID_QUANT, 1, 0, 0));
}

static void kinds_have_their_numbers(void)
{
    DavitKind kind;

    for (size_t i = 0; i < DAVIT_N_KINDS; i++) {
        const DavitKindInfo *info = davit_kind_info((DavitKind)i);

        g_assert_true(davit_kind_find(info->name, &kind));
        g_assert_cmpint(kind, ==, i);
        g_assert_cmpuint(info->oldest_end, <=, info->size);
        for (size_t j = 0; info->required[j].name; j++)
            g_assert_cmpuint(info->required[j].off, <, info->oldest_end);
    }
    g_assert_false(davit_kind_find("vision-encoder", &kind));
}

static void build_facts_are_found(void)
{
    g_autofree char *arch = davit_build_fact(DAVIT_BUILD_TAG, "bits");
    g_autofree char *none = davit_build_fact(DAVIT_BUILD_TAG, "it");
    g_autofree char *null = davit_build_fact(NULL, "bits");

    g_assert_cmpstr(arch, ==, "64");
    g_assert_null(none);
    g_assert_null(null);
}

static void expect_dl(const char *text, const char *code, const char *subject)
{
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_cmpint(davit_dl_error("/p/x.so", text, report), ==, DAVIT_E_UNSUPPORTED);
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    g_assert_cmpstr(davit_code_name(davit_report_get(report, 0)->code), ==, code);
    g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, subject);
}

static void loader_errors_are_understood(void)
{
    expect_dl("/p/x.so: undefined symbol: foo", "undefined-symbol", "foo");
    expect_dl("/p/x.so: undefined symbol: bar, version V1", "undefined-symbol", "bar");
    expect_dl("liby.so.1: cannot open shared object file: No such file or directory",
              "missing-dep", "liby.so.1");
    expect_dl("/p/x.so: cannot open shared object file: Permission denied",
              "dlopen-failed", "/p/x.so");
    expect_dl("/lib/libc.so.6: version `GLIBC_2.99' not found (required by /p/x.so)",
              "missing-dep", "GLIBC_2.99");
    expect_dl("/p/x.so: cannot allocate memory in static TLS block", "static-tls",
              "/p/x.so");
    expect_dl("/p/x.so: something new", "dlopen-failed", "/p/x.so");
    expect_dl(NULL, "dlopen-failed", "/p/x.so");
}

static void host_gives_suites_by_name_and_version(void)
{
    const davit_host *host = davit_host_table();
    void *p;

    g_assert_nonnull(host->suite(host->ctx, "cpu", 1, 0));
    g_assert_null(host->suite(host->ctx, "cpu", 1, 1));
    g_assert_null(host->suite(host->ctx, "cpu", 2, 0));
    g_assert_null(host->suite(host->ctx, "cpu-draft", 1, 0));
    g_assert_null(host->suite(host->ctx, NULL, 1, 0));
    p = host->alloc(host->ctx, 100, 256);
    g_assert_cmpuint((uintptr_t)p % 256, ==, 0);
    host->free(host->ctx, p);
    host->free(host->ctx, NULL);
    g_assert_null(host->alloc(host->ctx, 8, 24));
    g_assert_null(host->alloc(host->ctx, SIZE_MAX, 8));
    g_assert_cmpint(host->cancelled(host->ctx), ==, 0);
    davit_host_set_cancelled(true);
    g_assert_cmpint(host->cancelled(host->ctx), ==, 1);
    davit_host_set_cancelled(false);
    host->log(host->ctx, 0, NULL, NULL);
    host->log(host->ctx, 99, "org.x", "text\x1b");
}

static void absent_suite_is_named(void)
{
    const davit_create_in in = {.struct_size = sizeof in,
                                .host = davit_host_table(),
                                .component = "org.example.x"};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitSink sink;
    const DavitRecord *r;

    davit_sink_init(&sink, report, in.component, "create");
    g_assert_true(davit_need_suite(&in, "cpu", 1, 0, &sink.abi) == davit_cpu_suite_get());
    g_assert_null(davit_need_suite(&in, "cpu", 1, 7, &sink.abi));
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    r = davit_report_get(report, 0);
    g_assert_cmpuint(r->code, ==, DAVIT_R_HOST_TOO_OLD);
    g_assert_cmpstr(r->expected, ==, "suite cpu 1.7");
    g_assert_cmpstr(r->subject, ==, "org.example.x");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/policy/versions", versions_follow_semver);
    g_test_add_func("/policy/kind_versions", kind_versions_fit_or_not);
    g_test_add_func("/policy/kinds", kinds_have_their_numbers);
    g_test_add_func("/policy/build_facts", build_facts_are_found);
    g_test_add_func("/policy/loader_errors", loader_errors_are_understood);
    g_test_add_func("/policy/host", host_gives_suites_by_name_and_version);
    g_test_add_func("/policy/need_suite", absent_suite_is_named);
    return g_test_run();
}
