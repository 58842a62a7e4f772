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
        davit_modules_find(m->registry, m->checkpoint, m->settings, m->report);
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/module/companions_join_their_module", companions_join_their_module);
    g_test_add_func("/module/own_parameters_stay_alone", own_parameters_stay_alone);
    g_test_add_func("/module/unread_layouts_are_told_once_with_their_number",
                    unread_layouts_are_told_once_with_their_number);
    return g_test_run();
}
