/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as config.json, as generation_config.json, and as the keys of a
 * GGUF, bound to a table with every type of row; whatever binds is read in full. The
 * value of the key "expr" is evaluated as an expression. Registered in
 * tests/fuzz/CMakeLists.txt. */
#include <math.h>
#include <string.h>

#include <davit/help/decoder.h>
#include <davit/help/rope.h>

#include "config/expr.h"
#include "config/settings_private.h"
#include "config/tree.h"
#include "fuzz/fuzz.h"

/* The sizes of DAVIT_CONFIG_SIZES, but few layers: what holds for each of them is evaluated for
 * each, and an input should take microseconds. */
static const davit_config_row rows[] = {
    {"V", "int", "vocab_size", "vocab_size", "32000", NULL, "1..2147483647"},
    {"H", "int", "hidden_size|dim|n_embd", "embedding_length", "mistral:4096, ", NULL,
     "1..1048576"},
    {"I", "int", "intermediate_size|hidden_dim", "feed_forward_length", "gguf:7, 64", NULL,
     "1..16777216"},
    {"L", "int", "num_hidden_layers|n_layers|n_layer", "block_count", "2", NULL, "1..12"},
    {"nh", "int", "num_attention_heads|n_heads|n_head", "attention.head_count", "4", NULL,
     "1..65536"},
    DAVIT_CONFIG_HEADS("mistral:8, nh", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("10000", "2048"),
    {"theta_local", "float",
     "rope_parameters.sliding_attention.rope_theta|rope_local_base_freq",
     "rope.freq_base_swa", "theta", NULL, NULL},
    {"partial", "float", "partial_rotary_factor|rotary_pct", NULL, "0.5", NULL, NULL},
    DAVIT_CONFIG_TIE("gemma3_text:1, 0"),
    DAVIT_CONFIG_ACT("silu"),
    {"pattern", "int", "sliding_window_pattern", NULL, "6", NULL, "1.."},
    DAVIT_CONFIG_WINDOW("mistral:4096, 0", "=window > 0 && (i + 1) % pattern != 0"),
    {"E", "int", "num_experts|num_local_experts", "expert_count", "0", "0", "0..65536"},
    {"k", "int", "num_experts_per_tok", "expert_used_count", "min(E, 2)", NULL, "0..E"},
    {"dense", "layers", "mlp_only_layers", NULL, "0", NULL, NULL},
    {"scales", "float*", "layer_scales", "layer_scales", "eps", NULL, "0..hd"},
    DAVIT_CONFIG_END,
};
static const davit_arch_iface arch = {.config = rows, .config_stride = sizeof rows[0]};

static void read_rope(const davit_config *config, const char *layer_type)
{
    davit_rope_spec spec = {.struct_size = sizeof spec};
    float table[DAVIT_ROPE_MAX_PAIRS];
    int64_t hd = 0;

    davit_config_suite_get()->rope(config, layer_type, &spec);
    if (spec.type == DAVIT_ROPE_NONE || !davit_config_get_int(config, "hd", -1, &hd))
        return;
    g_assert_true(isfinite(spec.theta) && spec.theta > 1 && spec.factor > 0);
    for (uint32_t v = 0; v < 2; v++)
        davit_rope_inv_freq(&spec, (uint64_t)hd, v, table);
    (void)davit_rope_attention(&spec);
}

static void read_all(const davit_config *config)
{
    g_autoptr(DavitReport) report = davit_report_new();
    DavitConfigScope at = {config, 0};
    int64_t layers = 0;
    bool given;

    g_assert_true(davit_config_get_int(config, "L", -1, &layers));
    for (size_t n = 0; rows[n].sym; n++) {
        int64_t v;

        (void)davit_config_lookup(&at, rows[n].sym, &v);
        (void)davit_config_get_int(config, rows[n].sym, layers - 1, &v);
    }
    read_rope(config, "");
    read_rope(config, "full_attention");
    read_rope(config, "sliding_attention");
    (void)davit_config_tied(config, &given);
    (void)davit_config_check_unread(config, report);
    davit_config_report_assumed(config, report);
}

static void bind_and_read(DavitSettings *settings, DavitReport *report)
{
    g_autoptr(davit_config) config = NULL;
    DavitGenerationDefaults sampling;
    size_t n_eos;

    if (!settings) {
        g_assert_true(davit_report_failed(report));
        return;
    }
    g_assert_false(davit_report_failed(report));
    (void)davit_settings_eos_ids(settings, &n_eos);
    (void)davit_settings_quantization(settings);
    davit_settings_generation(settings, &sampling);
    config = davit_config_bind(settings, &arch, report);
    g_assert_cmpint(config == NULL, ==, davit_report_failed(report));
    if (config)
        read_all(config);
}

static bool no_symbol(void *ctx, const char *sym, int64_t *out)
{
    (void)ctx;
    *out = (int64_t)strlen(sym);
    return sym[0] != 'x';
}

static void evaluate(const json_t *value)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitScope scope = {no_symbol, NULL};
    const char *text = json_string_value(value);
    int64_t out[4];

    if (text)
        g_assert_cmpint(davit_expr_list(text, &scope, "fuzz", out, 4, report) < 0, ==,
                        davit_report_failed(report));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    g_autoptr(DavitReport) as_config = davit_report_new();
    g_autoptr(DavitReport) as_generation = davit_report_new();
    g_autoptr(DavitReport) as_keys = davit_report_new();
    g_autoptr(DavitSettings) config =
        davit_settings_parse(text, size, NULL, 0, "config.json", as_config);
    g_autoptr(DavitSettings) generation =
        davit_settings_parse("{}", 2, text, size, "config.json", as_generation);
    json_t *keys = davit_tree_parse(text, size, "m.gguf", as_keys);

    bind_and_read(config, as_config);
    if (!generation)
        g_assert_true(davit_report_failed(as_generation));
    if (keys) {
        g_autoptr(DavitSettings) gguf = NULL;

        evaluate(json_object_get(keys, "expr"));
        gguf = davit_settings_from_keys(keys, "m.gguf", as_keys);
        bind_and_read(gguf, as_keys);
    }
    return 0;
}
