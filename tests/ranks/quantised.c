/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/quantised.h"

#include <string.h>

#include <glib.h>

#define H  256u /* model width */
#define Q  512u /* heads times their width */
#define KV 128u
#define I  512u
#define V  96u
#define L  2u
#define F32 0u

typedef struct Tensor {
    char name[40];
    uint32_t n_rows, n_cols; /* n_rows 0 = a vector, float32 */
} Tensor;

static void put_u32(GByteArray *out, uint32_t v)
{
    v = GUINT32_TO_LE(v);
    g_byte_array_append(out, (const uint8_t *)&v, sizeof v);
}

static void put_u64(GByteArray *out, uint64_t v)
{
    v = GUINT64_TO_LE(v);
    g_byte_array_append(out, (const uint8_t *)&v, sizeof v);
}

static void put_text(GByteArray *out, const char *text)
{
    put_u64(out, strlen(text));
    g_byte_array_append(out, (const uint8_t *)text, (guint)strlen(text));
}

static void put_key(GByteArray *out, const char *key, uint32_t value)
{
    put_text(out, key);
    put_u32(out, 4); /* uint32 */
    put_u32(out, value);
}

static void put_float(GByteArray *out, const char *key, float value)
{
    put_text(out, key);
    put_u32(out, 6);
    g_byte_array_append(out, (const uint8_t *)&value, sizeof value);
}

static void put_keys(GByteArray *out)
{
    put_text(out, "general.architecture");
    put_u32(out, 8);
    put_text(out, "llama");
    put_key(out, "llama.block_count", L);
    put_key(out, "llama.embedding_length", H);
    put_key(out, "llama.feed_forward_length", I);
    put_key(out, "llama.attention.head_count", 8);
    put_key(out, "llama.attention.head_count_kv", 2);
    put_key(out, "llama.attention.key_length", Q / 8);
    put_key(out, "llama.attention.value_length", Q / 8);
    put_key(out, "llama.context_length", 512);
    put_key(out, "llama.vocab_size", V);
    put_key(out, "llama.rope.dimension_count", Q / 8);
    put_float(out, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    put_float(out, "llama.rope.freq_base", 10000.0f);
}
#define N_KEYS 13u

static GArray *tensors(void)
{
    static const struct {
        const char *name;
        uint32_t n_rows, n_cols;
    } layer[] = {{"attn_norm", 0, H}, {"attn_q", Q, H},  {"attn_k", KV, H},
                 {"attn_v", KV, H},   {"attn_output", H, Q}, {"ffn_norm", 0, H},
                 {"ffn_gate", I, H},  {"ffn_up", I, H},  {"ffn_down", H, I}};
    GArray *list = g_array_new(FALSE, TRUE, sizeof(Tensor));
    Tensor t = {"token_embd.weight", V, H};

    g_array_append_val(list, t);
    for (uint32_t i = 0; i < L; i++)
        for (size_t k = 0; k < G_N_ELEMENTS(layer); k++) {
            t = (Tensor){.n_rows = layer[k].n_rows, .n_cols = layer[k].n_cols};
            g_snprintf(t.name, sizeof t.name, "blk.%u.%s.weight", i, layer[k].name);
            g_array_append_val(list, t);
        }
    t = (Tensor){"output_norm.weight", 0, H};
    g_array_append_val(list, t);
    t = (Tensor){"output.weight", V, H};
    g_array_append_val(list, t);
    return list;
}

static uint64_t bytes_of(const Tensor *t, const Blocks *b)
{
    return t->n_rows == 0 ? t->n_cols * sizeof(float)
                          : (uint64_t)t->n_rows * t->n_cols / b->elems * b->bytes;
}

static void put_values(GByteArray *out, const Tensor *t, const Blocks *b, GRand *rand)
{
    for (uint32_t i = 0; t->n_rows == 0 && i < t->n_cols; i++) {
        const float one = (float)g_rand_double_range(rand, 0.5, 1.5);
        g_byte_array_append(out, (const uint8_t *)&one, sizeof one);
    }
    for (uint64_t n = (uint64_t)t->n_rows * t->n_cols / b->elems; n > 0; n--) {
        uint8_t block[256];
        for (uint32_t i = 0; i < b->bytes; i++)
            block[i] = (uint8_t)g_rand_int_range(rand, 0, 256);
        for (uint32_t i = 0; i < b->n_scales; i++) {
            block[2 * i] = (uint8_t)b->scale;
            block[2 * i + 1] = (uint8_t)(b->scale >> 8);
        }
        g_byte_array_append(out, block, b->bytes);
    }
}

static void pad(GByteArray *out)
{
    while (out->len % 32)
        g_byte_array_append(out, (const uint8_t *)"", 1);
}

void quantised_write(const char *path, const Blocks *b)
{
    GByteArray *out = g_byte_array_new();
    g_autoptr(GArray) list = tensors();
    g_autoptr(GRand) rand = g_rand_new_with_seed(b->type + 1);
    uint64_t off = 0;

    g_byte_array_append(out, (const uint8_t *)"GGUF", 4);
    put_u32(out, 3);
    put_u64(out, list->len);
    put_u64(out, N_KEYS);
    put_keys(out);
    for (guint i = 0; i < list->len; i++) {
        const Tensor *t = &g_array_index(list, Tensor, i);
        put_text(out, t->name);
        put_u32(out, t->n_rows ? 2 : 1);
        put_u64(out, t->n_cols);
        if (t->n_rows)
            put_u64(out, t->n_rows);
        put_u32(out, t->n_rows ? b->type : F32);
        put_u64(out, off);
        off += (bytes_of(t, b) + 31) / 32 * 32;
    }
    pad(out);
    for (guint i = 0; i < list->len; i++) {
        put_values(out, &g_array_index(list, Tensor, i), b, rand);
        pad(out);
    }
    g_assert_true(g_file_set_contents(path, (const char *)out->data, (gssize)out->len, NULL));
    g_byte_array_unref(out);
}
