/* SPDX-License-Identifier: Apache-2.0
 * Opening and planning a model, and making a large one. */
#include "exec/test_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <glib/gstdio.h>

void test_load_clear(TestLoad *m)
{
    davit_plan_free(m->plan);
    if (!m->shared) {
        davit_settings_free(m->settings);
        davit_checkpoint_free(m->checkpoint);
        davit_registry_free(m->registry);
    }
    davit_report_free(m->report);
}

TestLoad test_load_again(const TestLoad *open, const DavitPlanOptions *options)
{
    TestLoad m = *open;
    m.shared = true;
    m.report = davit_report_new();
    m.plan = davit_plan_make(m.registry, m.checkpoint, m.settings, options, m.report);
    return m;
}

TestLoad test_load_open(const char *path, const DavitPlanOptions *options)
{
    const DavitRegistryOptions where = {.builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true};
    TestLoad m = {.report = davit_report_new()};
    m.registry = davit_registry_open(&where, m.report);
    m.checkpoint = davit_checkpoint_open(m.registry, path, DAVIT_RUN, m.report);
    if (m.checkpoint)
        m.settings = davit_settings_open(m.checkpoint, m.report);
    if (m.settings)
        m.plan = davit_plan_make(m.registry, m.checkpoint, m.settings, options, m.report);
    return m;
}

bool test_load_says(const DavitReport *report, uint32_t code)
{
    for (size_t i = 0; i < davit_report_count(report); i++)
        if (davit_report_get(report, i)->code == code)
            return true;
    return false;
}

/* ---- a large model of zeros, sparse on disk ---- */

typedef struct Header {
    GString *json;
    uint64_t at;
} Header;

static void add_tensor(Header *h, const char *name, uint64_t rows, uint64_t cols)
{
    const uint64_t n = rows * MAX(cols, 1) * 2;
    g_string_append_printf(h->json, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%" G_GUINT64_FORMAT,
                           h->json->len > 1 ? "," : "", name, rows);
    if (cols)
        g_string_append_printf(h->json, ",%" G_GUINT64_FORMAT, cols);
    g_string_append_printf(h->json,
                           "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}",
                           h->at, h->at + n);
    h->at += n;
}

char *test_large_model(uint64_t vocab)
{
    static const char *const mats[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                       "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                       "mlp.down_proj"};
    char *dir = g_dir_make_tmp("davit-load-XXXXXX", NULL);
    g_autofree char *config = g_build_filename(dir, "config.json", NULL);
    g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
    g_autofree char *text = g_strdup_printf(
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":64,"
        "\"intermediate_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
        "\"vocab_size\":%" G_GUINT64_FORMAT ",\"tie_word_embeddings\":true,"
        "\"rms_norm_eps\":1e-5,\"max_position_embeddings\":128,\"rope_theta\":10000.0}",
        vocab);
    Header h = {.json = g_string_new("{")};
    add_tensor(&h, "model.embed_tokens.weight", vocab, 64);
    add_tensor(&h, "model.norm.weight", 64, 0);
    add_tensor(&h, "model.layers.0.input_layernorm.weight", 64, 0);
    add_tensor(&h, "model.layers.0.post_attention_layernorm.weight", 64, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(mats); i++) {
        g_autofree char *name = g_strdup_printf("model.layers.0.%s.weight", mats[i]);
        add_tensor(&h, name, 64, 64);
    }
    g_string_append_c(h.json, '}');
    while (h.json->len % 8)
        g_string_append_c(h.json, ' ');
    const uint64_t n = h.json->len;
    const int fd = g_open(file, O_CREAT | O_WRONLY, 0600);
    g_assert_true(g_file_set_contents(config, text, -1, NULL));
    g_assert_cmpint(write(fd, &n, 8), ==, 8);
    g_assert_cmpint(write(fd, h.json->str, n), ==, (gssize)n);
    g_assert_cmpint(ftruncate(fd, (off_t)(8 + n + h.at)), ==, 0);
    close(fd);
    g_string_free(h.json, TRUE);
    return dir;
}

void test_model_remove(char *dir)
{
    g_autofree char *config = g_build_filename(dir, "config.json", NULL);
    g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
    g_unlink(config);
    g_unlink(file);
    g_rmdir(dir);
    g_free(dir);
}
