/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plan/coverage.h"
#include "plan/table.h"

/* H = 4, everything else is unknown. */
static bool lookup(void *ctx, const char *sym, int64_t *out)
{
    (void)ctx;
    if (strcmp(sym, "H") != 0)
        return false;
    *out = 4;
    return true;
}

static const DavitScope scope = {lookup, NULL};

static DavitWindow window_of(uint64_t n_rows, uint64_t n_cols)
{
    return (DavitWindow){.n_experts = 1, .n_rows = n_rows, .n_cols = n_cols};
}

/* Parse one source, apply it, return the status. */
static int32_t apply(const char *text, DavitWindow *w, DavitReport *report)
{
    g_autoptr(GArray) specs = davit_sources_parse(text, '#', "slot", report);

    if (!specs)
        return DAVIT_E_USAGE;
    return davit_source_apply(&g_array_index(specs, DavitSourceSpec, 0), &scope, "slot",
                              w, report);
}

static void alternatives_keep_their_order(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GArray) specs = davit_sources_parse(
        "self_attn.q_proj | self_attn.qkv#rows(0, max(H,2))#perm(2)|sinks!", '#', "slot",
        report);
    const DavitSourceSpec *spec;

    g_assert_nonnull(specs);
    g_assert_cmpuint(specs->len, ==, 3);
    spec = &g_array_index(specs, DavitSourceSpec, 0);
    g_assert_cmpstr(spec->name, ==, "self_attn.q_proj");
    g_assert_cmpuint(spec->n_transforms, ==, 0);
    spec = &g_array_index(specs, DavitSourceSpec, 1);
    g_assert_cmpstr(spec->name, ==, "self_attn.qkv");
    g_assert_cmpuint(spec->n_transforms, ==, 2);
    g_assert_cmpstr(spec->transforms[0].args, ==, "0, max(H,2)");
    g_assert_false(davit_source_only_perm(spec));
    g_assert_cmpstr(g_array_index(specs, DavitSourceSpec, 2).name, ==, "sinks");
}

static void bad_sources_are_refused(void)
{
    static const char *const bad[] = {
        "a#rows(1)", "a#turn", "a#rows",  "a#half(0,1,2)", "",         "a||b",
        "a#",        "e.*.w",  "a#stack", "e.*.*#stack",   "a#perm()", "a#T(1"};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(DavitReport) report = davit_report_new();

        g_assert_null(davit_sources_parse(bad[i], '#', "slot", report));
        g_assert_cmpuint(davit_report_count(report), ==, 1);
        g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, "slot");
    }
}

static void windows_follow_transforms(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitWindow w = window_of(12, 4);

    g_assert_cmpint(apply("a#rows(H,2*H)#half(1)", &w, report), ==, DAVIT_OK);
    g_assert_cmpuint(w.row, ==, 8);
    g_assert_cmpuint(w.n_rows, ==, 4);

    w = window_of(4, 12);
    g_assert_cmpint(apply("a#T#rows(H,H)#add1", &w, report), ==, DAVIT_OK);
    g_assert_cmpuint(w.row, ==, 4);
    g_assert_cmpuint(w.n_rows, ==, 4);
    g_assert_cmpuint(w.n_cols, ==, 4);
    g_assert_cmpuint(w.value_ops, ==, DAVIT_VALUE_TRANSPOSE | DAVIT_VALUE_ADD1);

    w = window_of(12, 4); /* of a quantised module: outputs, inputs */
    w.oriented = true;
    g_assert_cmpint(apply("a#T#rows(H,H)", &w, report), ==, DAVIT_OK);
    g_assert_cmpuint(w.row, ==, 4);
    g_assert_cmpuint(w.n_cols, ==, 4);
    g_assert_cmpuint(w.value_ops, ==, 0);

    w = window_of(8, 4);
    g_assert_cmpint(apply("a#perm(2)", &w, report), ==, DAVIT_OK);
    g_assert_cmpuint(w.perm_heads, ==, 2);
    g_assert_cmpuint(davit_report_count(report), ==, 0);
}

static void windows_outside_are_refused(void)
{
    static const struct {
        const char *text, *code;
    } bad[] = {
        {"a#rows(8,5)", "shape-mismatch"},
        {"a#rows(0,0)", "shape-mismatch"},
        {"a#rows(0-1,2)", "shape-mismatch"},
        {"a#rows(0,3)#half(0)", "shape-mismatch"},
        {"a#perm(5)", "shape-mismatch"},
        {"a#perm(0)", "shape-mismatch"},
        {"a#half(2)", "forward-absent"},
        {"a#rows(0,4)#T", "forward-absent"},
        {"a#perm(2)#rows(0,4)", "forward-absent"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        DavitWindow w = window_of(12, 4);

        g_assert_cmpint(apply(bad[i].text, &w, report), <, 0);
        g_assert_cmpstr(davit_code_name(davit_report_get(report, 0)->code), ==,
                        bad[i].code);
    }
}

static void faults_of_a_table_are_told_together(void)
{
    static const davit_slot_row rows[] = {
        {"a", "G", NULL, "4", "a", NULL, "rep", "norm", 0, 0},
        {"b", "X", NULL, "4", "b", NULL, "rep", "norm", 0, 0},
        {"c", "L", NULL, "4", "c#turn", NULL, "rep", "norm", 0, 0},
        {"d", "L", NULL, "4", "d", NULL, "rep", "vector", 0, 0},
        {.id = NULL},
    };
    const davit_arch_iface arch = {.slots = rows, .slot_stride = sizeof rows[0]};
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_null(davit_table_read(&arch, false, report));
    g_assert_cmpuint(davit_report_count(report), ==, 3);
    g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, "b");
    g_assert_cmpstr(davit_report_get(report, 1)->subject, ==, "c");
    g_assert_cmpstr(davit_report_get(report, 2)->subject, ==, "d");
}

static void distance_counts_changes(void)
{
    g_assert_cmpuint(davit_name_distance("q_proj", "q_proj", 9), ==, 0);
    g_assert_cmpuint(davit_name_distance("q_proj", "k_proj", 9), ==, 1);
    g_assert_cmpuint(davit_name_distance("", "abc", 9), ==, 3);
    g_assert_cmpuint(davit_name_distance("kitten", "sitting", 9), ==, 3);
    g_assert_cmpuint(davit_name_distance("abcdefgh", "zyxwvuts", 4), ==, 4);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/transform/alternatives_keep_their_order",
                    alternatives_keep_their_order);
    g_test_add_func("/transform/bad_sources_are_refused", bad_sources_are_refused);
    g_test_add_func("/transform/windows_follow_transforms", windows_follow_transforms);
    g_test_add_func("/transform/windows_outside_are_refused",
                    windows_outside_are_refused);
    g_test_add_func("/transform/faults_of_a_table_are_told_together",
                    faults_of_a_table_are_told_together);
    g_test_add_func("/transform/distance_counts_changes", distance_counts_changes);
    return g_test_run();
}
