/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plan/module.h"
#include "plan/test_model.h"

static const char *const any_config =
    "{\"architectures\":[\"Nobody\"],\"model_type\":\"none\"}";

/* Modules of @m as "name/n_parts ..." in table order. */
static char *modules_text(TestModel *m)
{
    g_autoptr(DavitModuleTable) table =
        davit_module_table_new(m->checkpoint, m->tools.quants, NULL, NULL);
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < davit_module_table_count(table); i++) {
        const DavitModule *module = davit_module_table_at(table, i);

        g_string_append_printf(text, "%s%s/%u", i ? " " : "", module->name,
                               module->n_parts);
    }
    return g_string_free(text, FALSE);
}

static void check_grouping(const TestTensor *tensors, size_t n, const char *want)
{
    g_autoptr(TestModel) m = test_model_new(any_config, tensors, n);
    g_autofree char *found = modules_text(m);

    g_assert_cmpstr(found, ==, want);
}

static void companions_join_their_module(void)
{
    static const TestTensor awq[] = {
        {"a.bias", "F16", 1, {4}},       {"a.g_idx", "F16", 1, {4}},
        {"a.qweight", "F16", 2, {4, 4}}, {"a.qzeros", "F16", 2, {4, 4}},
        {"a.scales", "F16", 2, {4, 4}},
    };
    static const TestTensor fp8[] = {
        {"b.weight", "U8", 2, {4, 4}},         {"b.weight_scale_inv", "F32", 2, {1, 1}},
        {"c.weight", "U8", 2, {4, 4}},         {"c.weight.absmax", "F32", 1, {1}},
        {"c.weight.quant_map", "F32", 1, {1}},
    };
    static const TestTensor stacked[] = {
        {"e.gate_up_proj", "U8", 3, {2, 4, 4}},
        {"e.gate_up_proj_scale_inv", "F32", 3, {2, 1, 1}},
        {"f.down_proj_bias", "F32", 2, {2, 4}},
        {"f.down_proj_blocks", "U8", 4, {2, 4, 1, 4}},
        {"f.down_proj_scales", "U8", 3, {2, 4, 1}},
    };

    check_grouping(awq, G_N_ELEMENTS(awq), "a.bias/1 a/4");
    check_grouping(fp8, G_N_ELEMENTS(fp8), "b/2 c/3");
    check_grouping(stacked, G_N_ELEMENTS(stacked),
                   "e.gate_up_proj/2 f.down_proj_bias/1 f.down_proj/2");
}

/* Parameters of architectures that are called like companions stay alone. */
static void own_parameters_stay_alone(void)
{
    static const TestTensor own[] = {
        {"attn.A_log", "F32", 1, {4}},
        {"attn.scale", "F32", 1, {4}},
        {"attn.sinks", "F32", 1, {4}},
        {"gate.e_score_correction_bias", "F32", 1, {4}},
        {"gate.weight", "F32", 2, {4, 4}},
        {"lone.scales", "F32", 1, {4}},
        {"lone_blocks", "F32", 1, {4}},
    };

    check_grouping(
        own, G_N_ELEMENTS(own),
        "attn.A_log/1 attn.scale/1 attn.sinks/1 gate.e_score_correction_bias/1 gate/1 "
        "lone.scales/1 lone_blocks/1");
}

static void unread_layouts_are_told_once_with_their_number(void)
{
    static const TestTensor awq[] = {
        {"a.qweight", "F16", 2, {4, 4}}, {"a.scales", "F16", 2, {4, 4}},
        {"b.qweight", "F16", 2, {4, 4}}, {"b.scales", "F16", 2, {4, 4}},
        {"c.weight", "F32", 2, {4, 4}},
    };
    g_autoptr(TestModel) m = test_model_new(any_config, awq, G_N_ELEMENTS(awq));
    g_autoptr(DavitModules) modules =
        davit_modules_find(m->registry, m->checkpoint, m->settings, 0, m->report);
    const DavitRecord *r = test_find(m, "quant-unknown", "a");

    g_assert_cmpuint(modules->len, ==, 3);
    g_assert_null(modules->at[0].quant);
    g_assert_nonnull(modules->at[2].quant);
    g_assert_false(davit_report_failed(m->report));
    g_assert_cmpint(r->severity, ==, DAVIT_WARNING);
    g_assert_null(test_find(m, "quant-unknown", "b"));
    r = davit_report_get(m->report, davit_report_count(m->report) - 1);
    g_assert_cmpstr(r->found, ==, "2 modules");
}

/* ---- series ---- */

/* Every module of @m's table is found by its name, and an absent number is not. */
static void check_found(TestModel *m, const char *absent)
{
    g_autoptr(DavitModuleTable) table =
        davit_module_table_new(m->checkpoint, m->tools.quants, NULL, NULL);

    for (size_t i = 0; i < davit_module_table_count(table); i++) {
        const DavitModule *module = davit_module_table_at(table, i);

        g_assert_cmpuint(module->name_len, ==, strlen(module->name));
        g_assert_true(davit_module_table_find(table, module->name, module->name_len) == module);
        for (uint32_t p = 0; p < module->n_parts; p++)
            g_assert_true(g_str_has_prefix(
                davit_checkpoint_tensor(m->checkpoint, module->tensor[p])->name, module->name));
    }
    g_assert_null(davit_module_table_find(table, absent, strlen(absent)));
}

/* The index of each module that a run knows. */
static char *run_text(TestModel *m, const char *head, const char *tail, uint64_t n)
{
    g_autoptr(DavitModuleTable) table =
        davit_module_table_new(m->checkpoint, m->tools.quants, NULL, NULL);
    g_autofree uint32_t *run = davit_module_table_run(table, head, strlen(head), tail, n);
    GString *text = g_string_new(run ? NULL : "none");

    for (uint64_t i = 0; run && i < n; i++)
        g_string_append_printf(text, "%s%s", i ? " " : "",
                               run[i] == UINT32_MAX ? "-"
                                                    : davit_module_table_at(table, run[i])->name);
    return g_string_free(text, FALSE);
}

static void blocks_of_numbers_are_found_by_reckoning(void)
{
    g_autoptr(GArray) tensors = g_array_new(FALSE, TRUE, sizeof(TestTensor));
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(TestModel) m = NULL;
    g_autofree char *run = NULL;

    for (unsigned layer = 0; layer < 12; layer++)
        for (unsigned e = 0; e < 12; e++)
            for (unsigned p = 0; p < 3; p++) {
                static const char *const parts[] = {"down.qweight", "down.scales", "up.weight"};
                TestTensor t = {.dtype = "F16", .rank = 2, .shape = {4, 4}};

                g_ptr_array_add(names, g_strdup_printf("m.%u.x.%u.%s", layer, e, parts[p]));
                t.name = g_ptr_array_index(names, names->len - 1);
                g_array_append_val(tensors, t);
            }
    m = test_model_new(any_config, (const TestTensor *)(const void *)tensors->data, tensors->len);
    check_found(m, "m.11.x.12.up");
    run = run_text(m, "m.10.x.", ".up", 11);
    g_assert_cmpstr(run, ==,
                    "m.10.x.0.up m.10.x.1.up m.10.x.2.up m.10.x.3.up m.10.x.4.up m.10.x.5.up "
                    "m.10.x.6.up m.10.x.7.up m.10.x.8.up m.10.x.9.up m.10.x.10.up");
}

/* Blocks that differ in one name, lack one, have one more, or whose numbers are written otherwise. */
static void unequal_blocks_stand_alone(void)
{
    static const TestTensor odd[] = {
        {"m.0.a.weight", "F16", 2, {4, 4}},  {"m.0.b.weight", "F16", 2, {4, 4}},
        {"m.00.a.weight", "F16", 2, {4, 4}}, {"m.00.b.weight", "F16", 2, {4, 4}},
        {"m.1.a.weight", "F16", 2, {4, 4}},  {"m.1.b.weight", "F16", 2, {4, 4}},
        {"m.10.a.weight", "F16", 2, {4, 4}}, {"m.2.a.weight", "F16", 2, {4, 4}},
        {"m.2.b.weight", "F16", 2, {4, 4}},  {"m.2.c.weight", "F16", 2, {4, 4}},
        {"m.3.a.weight", "F16", 2, {4, 4}},  {"m.3.c.weight", "F16", 2, {4, 4}},
        {"m.4.a.weight", "F16", 2, {4, 4}},  {"m.4.c.weight", "F16", 2, {4, 4}},
        {"n.5", "F16", 2, {4, 4}},           {"n.6", "F16", 2, {4, 4}},
        {"n.6x.a", "F16", 2, {4, 4}},
    };
    g_autoptr(TestModel) m = test_model_new(any_config, odd, G_N_ELEMENTS(odd));
    g_autofree char *run = run_text(m, "m.", ".a", 6);
    g_autofree char *none = run_text(m, "n.", ".a", 6);

    check_found(m, "m.3.b");
    g_assert_cmpstr(run, ==, "- - - m.3.a m.4.a -");
    g_assert_cmpstr(none, ==, "none");
    check_grouping(odd, G_N_ELEMENTS(odd),
                   "m.0.a/1 m.0.b/1 m.00.a/1 m.00.b/1 m.1.a/1 m.1.b/1 m.10.a/1 m.2.a/1 m.2.b/1 "
                   "m.2.c/1 m.3.a/1 m.3.c/1 m.4.a/1 m.4.c/1 n.5/1 n.6/1 n.6x.a/1");
}

/* A part of "e.1" stands behind "e.10": no series may take the block for whole. */
static void parts_behind_other_numbers_join(void)
{
    static const TestTensor apart[] = {
        {"e.1.weight", "U8", 2, {4, 4}},       {"e.10.weight", "U8", 2, {4, 4}},
        {"e.10_scale_inv", "F32", 2, {1, 1}},  {"e.1_scale_inv", "F32", 2, {1, 1}},
        {"e.2.weight", "U8", 2, {4, 4}},       {"e.3.weight", "U8", 2, {4, 4}},
        {"f.weight", "U8", 2, {4, 4}},         {"f.weight.1.absmax", "F32", 1, {1}},
        {"f.weight.2.absmax", "F32", 1, {1}},
    };
    g_autoptr(TestModel) m = test_model_new(any_config, apart, G_N_ELEMENTS(apart));

    check_found(m, "e.4");
    check_grouping(apart, G_N_ELEMENTS(apart),
                   "e.1/1 e.10/1 e.10_scale_inv/1 e.1_scale_inv/1 e.2/1 e.3/1 f/3");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/module/blocks_of_numbers_are_found_by_reckoning",
                    blocks_of_numbers_are_found_by_reckoning);
    g_test_add_func("/module/unequal_blocks_stand_alone", unequal_blocks_stand_alone);
    g_test_add_func("/module/parts_behind_other_numbers_join", parts_behind_other_numbers_join);
    g_test_add_func("/module/companions_join_their_module", companions_join_their_module);
    g_test_add_func("/module/own_parameters_stay_alone", own_parameters_stay_alone);
    g_test_add_func("/module/unread_layouts_are_told_once_with_their_number",
                    unread_layouts_are_told_once_with_their_number);
    return g_test_run();
}
