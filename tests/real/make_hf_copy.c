/* SPDX-License-Identifier: Apache-2.0
 * Writes a Hugging Face directory (config, tokenizer.json, safetensors) from SmolLM2's GGUF, so
 * that one real model is tested in both forms. Only for Llama-like GGUF with a GPT-2 vocabulary.
 *   make_hf_copy MODEL.gguf OUT-DIR f32|bf16|sharded */
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>

#include "checkpoint/checkpoint.h"
#include "plan/plan.h"

typedef struct Out {
    char *name;        /* Hugging Face tensor name */
    const DavitModule *module;
    uint64_t perm_heads;
} Out;

typedef struct Copy {
    const DavitCheckpoint *ckpt;
    DavitReport *report;
    const char *dir;
    bool bf16;
} Copy;

static int64_t integer(const Copy *c, const char *key)
{
    int64_t n = 0;
    const davit_kv *kv = davit_checkpoint_find_key(c->ckpt, key);
    g_assert_nonnull(kv);
    g_assert_true(davit_kv_i64(kv, 0, &n));
    return n;
}

static double number(const Copy *c, const char *key)
{
    double x = 0;
    const davit_kv *kv = davit_checkpoint_find_key(c->ckpt, key);
    g_assert_nonnull(kv);
    g_assert_true(davit_kv_f64(kv, 0, &x));
    return x;
}

/* ---- tensors ---- */

static char *hf_name(const char *gguf)
{
    static const char *const layer[][2] = {{"attn_norm", "input_layernorm"},
                                           {"attn_q", "self_attn.q_proj"},
                                           {"attn_k", "self_attn.k_proj"},
                                           {"attn_v", "self_attn.v_proj"},
                                           {"attn_output", "self_attn.o_proj"},
                                           {"ffn_norm", "post_attention_layernorm"},
                                           {"ffn_gate", "mlp.gate_proj"},
                                           {"ffn_up", "mlp.up_proj"},
                                           {"ffn_down", "mlp.down_proj"}};
    int i;
    char part[32];
    if (strcmp(gguf, "token_embd") == 0)
        return g_strdup("model.embed_tokens.weight");
    if (strcmp(gguf, "output_norm") == 0)
        return g_strdup("model.norm.weight");
    if (sscanf(gguf, "blk.%d.%31s", &i, part) == 2)
        for (size_t k = 0; k < G_N_ELEMENTS(layer); k++)
            if (strcmp(part, layer[k][0]) == 0)
                return g_strdup_printf("model.layers.%d.%s.weight", i, layer[k][1]);
    return NULL;
}

static uint16_t to_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16); /* to nearest, ties to even */
}

/* Stored row of Hugging Face row @row (the converter's order undone). */
static uint64_t gguf_row(const Out *o, uint64_t row)
{
    if (o->perm_heads == 0)
        return row;
    const uint64_t d = o->module->desc->n_rows / o->perm_heads, r = row % d;
    return row / d * d + 2 * (r % (d / 2)) + r / (d / 2);
}

static void write_rows(const Copy *c, const Out *o, FILE *file)
{
    const davit_quant_desc *d = o->module->desc;
    g_autofree float *row = g_new(float, d->n_cols);
    g_autofree uint16_t *half = g_new(uint16_t, d->n_cols);
    for (uint64_t r = 0; r < d->n_rows; r++) {
        g_assert_cmpint(davit_module_decode(o->module, c->ckpt, 0, gguf_row(o, r), 1, row,
                                            c->report), ==, 0);
        for (uint64_t k = 0; k < d->n_cols; k++)
            half[k] = to_bf16(row[k]);
        const size_t size = c->bf16 ? 2 : 4;
        const void *data = c->bf16 ? (const void *)half : (const void *)row;
        g_assert_cmpuint(fwrite(data, size, d->n_cols, file), ==, d->n_cols);
    }
}

static void write_safetensors(const Copy *c, const char *name, const Out *outs, size_t n)
{
    g_autoptr(GString) head = g_string_new("{");
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const davit_quant_desc *d = outs[i].module->desc;
        const uint64_t bytes = d->n_rows * d->n_cols * (c->bf16 ? 2 : 4);
        g_string_append_printf(head, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%" G_GUINT64_FORMAT,
                               i ? "," : "", outs[i].name, c->bf16 ? "BF16" : "F32", d->n_rows);
        if (d->n_cols > 1)
            g_string_append_printf(head, ",%" G_GUINT64_FORMAT, d->n_cols);
        g_string_append_printf(head, "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
                               "]}", at, at + bytes);
        at += bytes;
    }
    g_string_append_c(head, '}');
    while (head->len % 8)
        g_string_append_c(head, ' ');
    g_autofree char *path = g_build_filename(c->dir, name, NULL);
    FILE *file = fopen(path, "wb");
    g_assert_nonnull(file);
    const uint64_t len = head->len; /* little-endian machines only, like the core's tests */
    fwrite(&len, 8, 1, file);
    fwrite(head->str, 1, head->len, file);
    for (size_t i = 0; i < n; i++)
        write_rows(c, &outs[i], file);
    g_assert_cmpint(fclose(file), ==, 0);
}

static void write_sharded(const Copy *c, const Out *outs, size_t n)
{
    enum { SHARDS = 3 };
    json_t *map = json_object();
    for (size_t s = 0; s < SHARDS; s++) {
        const size_t from = n * s / SHARDS, to = n * (s + 1) / SHARDS;
        g_autofree char *name = g_strdup_printf("model-%05zu-of-%05d.safetensors", s + 1, SHARDS);
        write_safetensors(c, name, outs + from, to - from);
        for (size_t i = from; i < to; i++)
            json_object_set_new(map, outs[i].name, json_string(name));
    }
    json_t *index = json_pack("{s:{}, s:o}", "metadata", "weight_map", map);
    g_autofree char *path = g_build_filename(c->dir, "model.safetensors.index.json", NULL);
    g_assert_cmpint(json_dump_file(index, path, 0), ==, 0);
    json_decref(index);
}

/* ---- config and tokenizer ---- */

static void write_config(const Copy *c)
{
    const int64_t vocab = (int64_t)davit_checkpoint_find(c->ckpt, "token_embd.weight")->shape[0];
    json_t *config = json_pack(
        "{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:s, s:s, s:I, s:I}",
        "architectures", "LlamaForCausalLM", "model_type", "llama", "vocab_size", (json_int_t)vocab,
        "hidden_size", (json_int_t)integer(c, "llama.embedding_length"), "intermediate_size",
        (json_int_t)integer(c, "llama.feed_forward_length"), "num_hidden_layers",
        (json_int_t)integer(c, "llama.block_count"), "num_attention_heads",
        (json_int_t)integer(c, "llama.attention.head_count"), "num_key_value_heads",
        (json_int_t)integer(c, "llama.attention.head_count_kv"), "max_position_embeddings",
        (json_int_t)integer(c, "llama.context_length"), "rms_norm_eps",
        number(c, "llama.attention.layer_norm_rms_epsilon"), "rope_theta",
        number(c, "llama.rope.freq_base"), "tie_word_embeddings", 1, "hidden_act", "silu",
        "torch_dtype", c->bf16 ? "bfloat16" : "float32", "bos_token_id", (json_int_t)1,
        "eos_token_id", (json_int_t)2);
    g_autofree char *path = g_build_filename(c->dir, "config.json", NULL);
    g_assert_cmpint(json_dump_file(config, path, JSON_INDENT(1)), ==, 0);
    json_decref(config);
}

static json_t *span_string(davit_span s)
{
    return json_stringn(s.ptr, s.len);
}

static void write_tokenizer(const Copy *c)
{
    json_t *vocab = json_object(), *merges = json_array(), *added = json_array();
    const davit_kv *types = davit_checkpoint_find_key(c->ckpt, "tokenizer.ggml.token_type");
    DavitKvCursor tokens =
        davit_kv_strings(davit_checkpoint_find_key(c->ckpt, "tokenizer.ggml.tokens"));
    DavitKvCursor pairs =
        davit_kv_strings(davit_checkpoint_find_key(c->ckpt, "tokenizer.ggml.merges"));
    davit_span s;
    for (json_int_t id = 0; davit_kv_next(&tokens, &s); id++) {
        int64_t type = 0;
        g_autofree char *text = g_strndup(s.ptr, s.len);
        json_object_set_new(vocab, text, json_integer(id));
        davit_kv_i64(types, (uint64_t)id, &type);
        if (type == 3) /* control */
            json_array_append_new(added, json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id,
                                                   "content", text, "single_word", 0, "lstrip", 0,
                                                   "rstrip", 0, "normalized", 0, "special", 1));
    }
    while (davit_kv_next(&pairs, &s))
        json_array_append_new(merges, span_string(s));
    json_t *doc = json_pack(
        "{s:s, s:o, s:n, s:{s:s, s:[{s:s, s:b}, {s:s, s:b, s:b, s:b}]}, s:n, s:{s:s},"
        " s:{s:s, s:o, s:o}}",
        "version", "1.0", "added_tokens", added, "normalizer", "pre_tokenizer", "type", "Sequence",
        "pretokenizers", "type", "Digits", "individual_digits", 1, "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1, "post_processor", "decoder", "type",
        "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges", merges);
    g_assert_nonnull(doc);
    g_autofree char *path = g_build_filename(c->dir, "tokenizer.json", NULL);
    g_assert_cmpint(json_dump_file(doc, path, 0), ==, 0);
    json_decref(doc);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: make_hf_copy MODEL.gguf OUT-DIR f32|bf16|sharded\n");
        return 2;
    }
    if (!g_file_test(argv[1], G_FILE_TEST_EXISTS)) {
        fprintf(stderr, "skipped: %s is missing (scripts/fetch-models.sh fetches it)\n", argv[1]);
        return 77;
    }
    g_mkdir_with_parents(argv[2], 0777);
    g_autoptr(DavitReport) report = davit_report_new();
    const DavitRegistryOptions where = {.builtin_dir = DAVIT_PLUGIN_DIR};
    g_autoptr(DavitRegistry) registry = davit_registry_open(&where, report);
    g_autoptr(DavitCheckpoint) ckpt =
        davit_checkpoint_open(registry, argv[1], DAVIT_INSPECT, report);
    g_assert_nonnull(ckpt);
    g_autoptr(DavitModules) modules = davit_modules_find(registry, ckpt, NULL, 0, report);
    const Copy copy = {.ckpt = ckpt,
                       .report = report,
                       .dir = argv[2],
                       .bf16 = strcmp(argv[3], "bf16") == 0};
    g_autofree Out *outs = g_new0(Out, modules->len);
    size_t n = 0;
    for (size_t i = 0; i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];
        Out o = {.name = hf_name(m->name), .module = m};
        if (!o.name || !m->quant)
            continue;
        if (g_str_has_suffix(m->name, "attn_q"))
            o.perm_heads = (uint64_t)integer(&copy, "llama.attention.head_count");
        if (g_str_has_suffix(m->name, "attn_k"))
            o.perm_heads = (uint64_t)integer(&copy, "llama.attention.head_count_kv");
        outs[n++] = o;
    }
    if (strcmp(argv[3], "sharded") == 0)
        write_sharded(&copy, outs, n);
    else
        write_safetensors(&copy, "model.safetensors", outs, n);
    write_config(&copy);
    write_tokenizer(&copy);
    for (size_t i = 0; i < n; i++)
        g_free(outs[i].name);
    return 0;
}
