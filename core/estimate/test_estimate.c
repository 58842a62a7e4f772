/* SPDX-License-Identifier: Apache-2.0
 * Estimates from configs alone against transformers' own parameter counts
 * (tests/golden/estimate), and from golden checkpoints against their own files. */
#include <stdio.h>
#include <string.h>

#include <glib.h>
#include <jansson.h>

#include "checkpoint/checkpoint.h"
#include "estimate/estimate.h"
#include "plan/outline.h"

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models"

static DavitRegistry *registry;

/* ---- configs ---- */

typedef struct Model {
    DavitSettings *settings;
    DavitPlan *plan;
} Model;

static void model_clear(Model *m)
{
    davit_plan_free(m->plan);
    davit_settings_free(m->settings);
}

static bool outline(const char *config, Model *out, DavitReport *report)
{
    *out = (Model){.settings = davit_settings_parse(config, strlen(config), NULL, 0,
                                                    "config.json", report)};
    if (out->settings)
        out->plan = davit_plan_outline(registry, out->settings, report);
    return out->plan != NULL;
}

/* Is the only thing said that nobody takes this architecture? */
static bool is_unknown(const DavitReport *report)
{
    const DavitRecord *r = davit_report_first_error(report, 0);

    return r && r->code == DAVIT_R_ALL_DECLINED;
}

/* 1 compared, 0 passed over because no plugin has the architecture. */
static unsigned compare_row(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    char *config = json_dumps(json_object_get(row, "config"), 0);
    const DavitEstimateOptions options = {0};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitEstimate e;
    Model m;

    if (!outline(config, &m, report)) {
        if (!is_unknown(report))
            g_test_message("%s: %s", name, davit_report_first_error(report, 0)->message);
        g_assert_true(is_unknown(report));
        model_clear(&m);
        free(config);
        return 0;
    }
    davit_estimate(m.plan, &options, &e);
    if (e.n_params != (uint64_t)json_integer_value(json_object_get(row, "parameters")))
        g_test_message("%s differs", name);
    g_assert_cmpuint(e.n_params, ==,
                     (uint64_t)json_integer_value(json_object_get(row, "parameters")));
    g_assert_cmpuint(e.parts[0].n_params, ==,
                     (uint64_t)json_integer_value(json_object_get(row, "embedding")));
    g_assert_cmpuint(e.n_active, <=, e.n_params);
    model_clear(&m);
    free(config);
    return 1;
}

static void counts_of_transformers(void)
{
    json_t *rows =
        json_load_file(DAVIT_SOURCE_DIR "/tests/golden/estimate/estimate.json", 0, NULL);
    unsigned n = 0;
    const json_t *row;
    size_t i;

    g_assert_true(json_is_array(rows));
    json_array_foreach(rows, i, row)
    {
        n += compare_row(row);
    }
    g_test_message("%u of %zu configs compared", n, json_array_size(rows));
    g_assert_cmpuint(n, >=, 40);
    json_decref(rows);
}

/* ---- states and tables, by hand ---- */

#define TINY                                                                             \
    "{\"architectures\":[\"Gemma3ForCausalLM\"],\"model_type\":\"gemma3_text\","         \
    "\"vocab_size\":64,\"hidden_size\":8,\"intermediate_size\":16,"                      \
    "\"num_hidden_layers\":6,\"num_attention_heads\":4,\"num_key_value_heads\":2,"       \
    "\"head_dim\":4,\"sliding_window\":16,\"max_position_embeddings\":128}"

static void windows_keep_less(void)
{
    const DavitEstimateOptions options = {.context = 100, .n_sequences = 3, .kv_bytes = 1};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitEstimate e;
    Model m;

    g_assert_true(outline(TINY, &m, report));
    davit_estimate(m.plan, &options, &e);
    g_assert_cmpuint(e.n_states, ==, 2); /* five windowed layers, one whole */
    g_assert_cmpstr(e.states[0].kind, ==, "window");
    g_assert_cmpuint(e.states[0].n_layers, ==, 5);
    g_assert_cmpuint(e.states[0].token_bytes, ==, 5 * 2 * (4 + 4));
    g_assert_cmpuint(e.states[0].sequence_bytes, ==, 5 * 2 * (4 + 4) * 16);
    g_assert_cmpstr(e.states[1].kind, ==, "attention");
    g_assert_cmpuint(e.states[1].sequence_bytes, ==, 2 * (4 + 4) * 100);
    g_assert_cmpuint(e.state_bytes, ==, 3 * (5 * 16 * 16 + 16 * 100));
    g_assert_cmpuint(e.memory_bytes, ==, e.n_bytes + e.state_bytes);
    g_assert_cmpuint(e.n_bytes, ==, 2 * e.n_params); /* no dtype stated: bfloat16 */
    g_assert_true(e.tied && !e.from_checkpoint);
    model_clear(&m);
}

static void ranks_share(void)
{
    const DavitEstimateOptions options = {.context = 10, .kv_bytes = 2};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitEstimate e;
    Model m;

    g_assert_true(outline(TINY, &m, report));
    davit_estimate(m.plan, &options, &e);
    g_assert_cmpuint(e.ranks[0].weight_bytes, ==, e.n_bytes);
    g_assert_cmpuint(e.ranks[0].state_bytes, ==, e.state_bytes);
    g_assert_null(e.ranks[1].obstacle);
    g_assert_cmpuint(e.ranks[1].weight_bytes, <, e.n_bytes * 6 / 10);
    g_assert_cmpuint(e.ranks[1].state_bytes, ==, e.state_bytes / 2);
    g_assert_null(e.ranks[2].obstacle); /* four ranks, each key head twice */
    g_assert_cmpuint(e.ranks[2].state_bytes, ==, e.state_bytes / 2);
    g_assert_nonnull(e.ranks[3].obstacle); /* eight ranks, four heads */
    model_clear(&m);
}

/* Absurd sizes saturate; nothing wraps, nothing is allocated. */
static void absurd_sizes_saturate(void)
{
    static const char config[] =
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
        "\"vocab_size\":2147483647,\"hidden_size\":1048576,"
        "\"intermediate_size\":16777216,\"num_hidden_layers\":9999,"
        "\"num_attention_heads\":65536,\"max_position_embeddings\":4294967296}";
    const DavitEstimateOptions options = {
        .context = UINT64_MAX, .n_sequences = UINT64_MAX, .kv_bytes = 4};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitEstimate e;
    Model m;

    g_assert_true(outline(config, &m, report));
    davit_estimate(m.plan, &options, &e);
    g_assert_true(e.state_bytes == UINT64_MAX && e.memory_bytes == UINT64_MAX);
    g_assert_cmpuint(e.n_params, >, 1ull << 57);
    model_clear(&m);
}

static void too_many_layers(void)
{
    static const char config[] = "{\"architectures\":[\"LlamaForCausalLM\"],"
                                 "\"model_type\":\"llama\",\"num_hidden_layers\":20000}";
    g_autoptr(DavitReport) report = davit_report_new();
    Model m;

    g_assert_false(outline(config, &m, report));
    g_assert_cmpuint(davit_report_first_error(report, 0)->code, ==,
                     DAVIT_R_CONFIG_INVALID);
    model_clear(&m);
}

/* ---- checkpoints ---- */

/* What the headers say and what the config says must be one. */
static void checkpoint_agrees(gconstpointer data)
{
    g_autofree char *path = g_build_filename(MODELS, data, NULL);
    const DavitPlanOptions plan_options = {.purposes = DAVIT_MAP};
    const DavitEstimateOptions options = {.context = 64};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(registry, path, DAVIT_INSPECT, report);
    g_autoptr(DavitSettings) settings = davit_settings_open(c, report);
    g_autoptr(DavitPlan) plan =
        davit_plan_make(registry, c, settings, &plan_options, report);
    g_autoptr(DavitPlan) alone = davit_plan_outline(registry, settings, report);
    DavitEstimate stored, stated;

    davit_estimate(plan, &options, &stored);
    davit_estimate(alone, &options, &stated);
    g_assert_true(stored.from_checkpoint);
    g_assert_cmpuint(stored.n_bytes + stored.unused_bytes, ==,
                     davit_checkpoint_n_bytes(c));
    g_assert_cmpuint(stored.n_params, ==, stated.n_params);
    g_assert_cmpuint(stored.n_active, ==, stated.n_active);
    for (size_t i = 0; i < DAVIT_ESTIMATE_PARTS; i++)
        g_assert_cmpuint(stored.parts[i].n_params, ==, stated.parts[i].n_params);
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"llama_mini", "llama_tied", "qwen2", "qwen3",
                                         "qwen3_moe", "gemma3", "gguf_qwen3"};
    const DavitRegistryOptions options = {.builtin_dir = DAVIT_PLUGIN_DIR};
    g_autoptr(DavitReport) report = davit_report_new();
    int status;

    registry = davit_registry_open(&options, report);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/estimate/counts_of_transformers", counts_of_transformers);
    g_test_add_func("/estimate/windows_keep_less", windows_keep_less);
    g_test_add_func("/estimate/ranks_share", ranks_share);
    g_test_add_func("/estimate/absurd_sizes_saturate", absurd_sizes_saturate);
    g_test_add_func("/estimate/too_many_layers", too_many_layers);
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *name = g_strdup_printf("/estimate/checkpoint/%s", models[i]);

        g_test_add_data_func(name, models[i], checkpoint_agrees);
    }
    status = g_test_run();
    davit_registry_free(registry);
    return status;
}
