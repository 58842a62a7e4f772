/* SPDX-License-Identifier: Apache-2.0
 * kv_append and attn: every entry against the reference, and to the bit for any chunk, block
 * size, neighbour in the batch, and split of tasks. */
#include <math.h>
#include <string.h>

#include <davit/help/quant.h>

#include "kernels/rig.h"

#define ROUNDS 12
#define LONG_ROUNDS 4
/* Both sides read the same stored keys and values, also in float16. Values are N(0,1), and
 * their weighted mean may cancel to little. */
#define TOLERANCE 3e-6
#define FLOOR 1e-6

static const davit_kernels_iface *iface;

/* One sequence's whole input, and the settings. */
typedef struct World {
    davit_attn_attr attr;
    const char *dtype;
    float k_scale, v_scale; /* of f8_e4m3/1 */
    float k_each[2], v_each[2]; /* of the heads, 0 = the ones above */
    uint64_t n_tokens;
    float *q, *k, *v; /* [n_tokens, heads * dim] */
    float *sinks;     /* NULL = none */
    uint8_t *tree;    /* [n_tokens, n_tokens], for one step only; NULL = causal */
} World;

typedef struct Way {
    const davit_kernel_entry *append, *attn; /* NULL = reference */
    uint64_t chunk;        /* tokens per step; 0 = all */
    uint64_t block_tokens; /* 0 = whole */
    bool neighbour;        /* another sequence comes first in every step */
    RigSplit split;
} Way;

/* A step's arrays: @n tokens of the sequence from @start on, after those of the neighbour. */
static void set_batch(Rig *rig, const World *w, const Way *way, uint64_t start, uint64_t n)
{
    const uint64_t S = way->neighbour ? 2 : 1, beside = way->neighbour ? 3 : 0, T = beside + n;
    const uint64_t bt = way->block_tokens ? way->block_tokens : w->n_tokens + 64;
    const uint64_t max_blocks = (w->n_tokens + 64 + bt - 1) / bt;
    int32_t *ints = rig_memory(rig, (4 * T + 3 * S + 1 + S * max_blocks) * sizeof *ints, 0);
    int32_t *seq = ints, *qs = seq + T, *ctx = qs + S + 1, *table = ctx + S;
    uint64_t at = 0;

    for (uint64_t t = 0; t < T; t++)
        seq[t] = t < beside ? 0 : (int32_t)S - 1;
    for (uint64_t s = 0; s < S; s++) {
        const bool other = S == 2 && s == 0;
        qs[s] = (int32_t)at;
        ctx[s] = other ? 3 : (int32_t)(start + n);
        at += other ? beside : n;
        /* blocks in descending order, the two sequences in turns */
        for (uint64_t b = 0; b < max_blocks; b++)
            table[s * max_blocks + b] = (int32_t)((max_blocks - 1 - b) * S + s);
    }
    qs[S] = (int32_t)T;
    rig->batch = (davit_batch){.struct_size = DAVIT_END(davit_batch, tree_mask),
                               .n_tokens = T, .n_seqs = S, .n_rows = T,
                               .block_tokens = bt, .max_blocks = max_blocks,
                               .seq = seq, .query_start = qs, .ctx_len = ctx,
                               .block_table = table, .tree_mask = w->tree};
}

static void set_state(Rig *rig, const World *w, const Way *way)
{
    const uint64_t bt = way->block_tokens ? way->block_tokens : w->n_tokens + 64;
    const uint64_t n_blocks = 2 * ((w->n_tokens + 64 + bt - 1) / bt);

    rig->spec = (davit_state_spec){.struct_size = DAVIT_END(davit_state_spec, v_scales),
                                   .kind = DAVIT_STATE_KV,
                                   .n_heads = w->attr.n_kv_heads,
                                   .k_dim = w->attr.k_dim,
                                   .v_dim = w->attr.v_dim,
                                   .dtype = w->dtype,
                                   .k_scale = w->k_scale,
                                   .v_scale = w->v_scale,
                                   .k_scales = w->k_each[0] > 0 ? w->k_each : NULL,
                                   .v_scales = w->v_each[0] > 0 ? w->v_each : NULL};
    rig->state.spec = &rig->spec;
    rig->state.block_bytes = way->attn ? iface->state_size(NULL, &rig->spec, bt, NULL)
                                       : davit_ref_state_size(&rig->spec, bt, NULL);
    rig->state.base = rig_memory(rig, n_blocks * rig->state.block_bytes, 0);
    memset(rig->state.base, 0xff, n_blocks * rig->state.block_bytes); /* NaN where unwritten */
    rig->call.state = &rig->state;
}

static davit_value value_of(Rig *rig, const float *src, uint64_t beside, uint64_t start,
                            uint64_t n, uint64_t width)
{
    float *data = rig_memory(rig, (beside + n) * width * sizeof *data, 0);

    for (uint64_t i = 0; i < beside * width; i++)
        data[i] = 0.25f * (float)(i % 7) - 0.5f;
    if (src)
        memcpy(data + beside * width, src + start * width, n * width * sizeof *data);
    return (davit_value){data, beside + n, width, "f32/1"};
}

static void run_either(Rig *rig, const davit_kernel_entry *entry, const Way *way, uint64_t ctx)
{
    if (entry)
        rig_run(rig, entry, way->split, ctx);
    else
        rig_run_reference(rig);
}

static void step(Rig *rig, const World *w, const Way *way, uint64_t start, uint64_t n, float *out)
{
    const uint64_t nkv = w->attr.n_kv_heads, nh = w->attr.n_heads;
    const uint64_t beside = way->neighbour ? 3 : 0, o_width = nh * w->attr.v_dim;
    davit_none_attr none = {DAVIT_END(davit_none_attr, struct_size)};

    set_batch(rig, w, way, start, n);
    rig->call.op = DAVIT_OP_KV_APPEND;
    rig->call.attr = &none;
    rig->call.n_in = 2;
    rig->call.n_out = rig->call.n_weights = 0;
    rig->call.weight[0] = NULL;
    rig->call.in[0] = value_of(rig, w->k, beside, start, n, nkv * w->attr.k_dim);
    rig->call.in[1] = value_of(rig, w->v, beside, start, n, nkv * w->attr.v_dim);
    run_either(rig, way->append, way, start + n);

    rig->call.op = DAVIT_OP_ATTN;
    rig->call.attr = &w->attr;
    rig->call.n_in = rig->call.n_out = 1;
    rig->call.in[0] = value_of(rig, w->q, beside, start, n, nh * w->attr.k_dim);
    rig->call.out[0] = value_of(rig, NULL, beside, start, n, o_width);
    if (w->sinks)
        memcpy(rig_vector(rig, 0, nh), w->sinks, nh * sizeof(float));
    run_either(rig, way->attn, way, start + n);
    memcpy(out + start * o_width, (float *)rig->call.out[0].data + beside * o_width,
           n * o_width * sizeof *out);
}

/* (owned) [n_tokens, nh * v_dim] */
static float *run_world(const World *w, Way way)
{
    g_autoptr(Rig) rig = rig_new(DAVIT_OP_ATTN, &w->attr);
    float *out = g_new0(float, w->n_tokens * w->attr.n_heads * w->attr.v_dim);
    const uint64_t chunk = way.chunk ? way.chunk : w->n_tokens;

    set_state(rig, w, &way);
    for (uint64_t start = 0; start < w->n_tokens; start += chunk)
        step(rig, w, &way, start, MIN(chunk, w->n_tokens - start), out);
    return out;
}

static float *random_rows(Rig *rig, uint64_t n)
{
    float *data = g_new(float, n);

    for (uint64_t i = 0; i < n; i++)
        data[i] = rig_normal(rig);
    return data;
}

static World random_world(Rig *rig, uint64_t max_tokens)
{
    static const char *const dtypes[] = {"f32/1", "f16/1", "f8_e4m3/1"};
    const uint64_t max_dim = max_tokens > 100 ? 30 : 70; /* the scalar entries are slow */
    const uint64_t nkv = rig_between(rig, 1, 2), nh = nkv * rig_between(rig, 1, 4);
    const uint64_t dk = rig_between(rig, 1, max_dim);
    const uint64_t dv = rig_between(rig, 0, 1) ? dk : rig_between(rig, 1, max_dim);
    World w = {.attr = {.struct_size = DAVIT_END(davit_attn_attr, softcap),
                        .n_heads = nh, .n_kv_heads = nkv, .k_dim = dk, .v_dim = dv,
                        .window = rig_between(rig, 0, 2) ? 0 : rig_between(rig, 1, 300),
                        .scale = 0.3f,
                        .softcap = rig_between(rig, 0, 2) ? 0.0f : 2.0f},
               .dtype = dtypes[rig_between(rig, 0, 2)],
               .k_scale = rig_between(rig, 0, 1) ? 0.0f : 0.013f,
               .v_scale = rig_between(rig, 0, 1) ? 0.0f : 0.004f, /* 1.8 at most: some saturate */
               .n_tokens = rig_between(rig, 1, max_tokens)};

    for (int h = 0; h < 2 && rig_between(rig, 0, 1); h++) {
        w.k_each[h] = h ? 0.021f : 0.009f;
        w.v_each[h] = h ? 0.005f : 0.011f;
    }
    w.q = random_rows(rig, w.n_tokens * nh * dk);
    w.k = random_rows(rig, w.n_tokens * nkv * dk);
    w.v = random_rows(rig, w.n_tokens * nkv * dv);
    w.sinks = rig_between(rig, 0, 2) ? NULL : random_rows(rig, nh);
    g_test_message("nh %" G_GUINT64_FORMAT " nkv %" G_GUINT64_FORMAT " dk %" G_GUINT64_FORMAT
                   " dv %" G_GUINT64_FORMAT " T %" G_GUINT64_FORMAT " window %" G_GUINT64_FORMAT
                   " cap %g %s%s",
                   nh, nkv, dk, dv, w.n_tokens, w.attr.window, (double)w.attr.softcap, w.dtype,
                   w.sinks ? " sinks" : "");
    return w;
}

static void clear_world(World *w)
{
    g_free(w->q);
    g_free(w->k);
    g_free(w->v);
    g_free(w->sinks);
    g_free(w->tree);
}

static const davit_kernel_entry *const *next_entry(const davit_kernel_entry *const *e,
                                                   const char *op)
{
    while (*e && (strcmp((*e)->op, op) != 0 || !rig_can_run(*e)))
        e++;
    return e;
}

static void compare_entry(const World *w, const davit_kernel_entry *append,
                          const davit_kernel_entry *attn, const float *expected)
{
    const uint64_t width = w->attr.n_heads * w->attr.v_dim, n = w->n_tokens * width;
    const Way ways[] = {
        {append, attn, 1, 16, false, {0}},
        {append, attn, 7, 1, true, {1, true, 3}},
        {append, attn, 64, 16, true, {2, false, 2}},
        {append, attn, 0, 0, false, {5, true, 2}},
        {append, attn, 33, 24, false, {0}},
    };
    g_autofree float *whole = run_world(w, (Way){append, attn, 0, 16, false, {0}});

    rig_compare(attn->name, whole, expected, w->n_tokens, width, TOLERANCE, FLOOR);
    for (size_t i = 0; !w->tree && i < G_N_ELEMENTS(ways); i++) {
        g_autofree float *other = run_world(w, ways[i]);
        rig_same(attn->name, other, whole, n);
    }
}

static void compare_world(const World *w)
{
    g_autofree float *expected = run_world(w, (Way){.block_tokens = 16});
    const davit_kernel_entry *const *a, *const *b;

    for (a = next_entry(iface->entries, DAVIT_OP_KV_APPEND); *a;
         a = next_entry(a + 1, DAVIT_OP_KV_APPEND))
        for (b = next_entry(iface->entries, DAVIT_OP_ATTN); *b;
             b = next_entry(b + 1, DAVIT_OP_ATTN))
            compare_entry(w, *a, *b, expected);
}

static void test_random(const void *data)
{
    const int rounds = GPOINTER_TO_UINT(data) > 100 ? LONG_ROUNDS : ROUNDS;

    for (int round = 0; round < rounds; round++) {
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_ATTN, NULL);
        World w = random_world(rig, GPOINTER_TO_UINT(data));
        compare_world(&w);
        clear_world(&w);
    }
}

static void test_tree(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_ATTN, NULL);
        World w = random_world(rig, 40);
        w.tree = g_new0(uint8_t, w.n_tokens * w.n_tokens);
        for (uint64_t i = 0; i < w.n_tokens * w.n_tokens; i++)
            w.tree[i] = i / w.n_tokens == i % w.n_tokens || rig_between(rig, 0, 1);
        w.attr.window = 0;
        compare_world(&w);
        clear_world(&w);
    }
}

/* The code nearest to @v, ties to the even one: by looking at all of them. */
static uint8_t nearest_code(float v)
{
    const double size = fabs((double)v);
    uint8_t best = 0;

    for (uint8_t c = 1; c < 0x7f; c++) {
        const double d = fabs((double)davit_q_e4m3(c) - size);
        const double least = fabs((double)davit_q_e4m3(best) - size);
        if (d < least || (d == least && !(c & 1)))
            best = c;
    }
    return (uint8_t)(best | (signbit(v) ? 0x80 : 0));
}

static void fp8_rounds_otherwise(void)
{
    g_autoptr(Rig) rig = rig_new(DAVIT_OP_ATTN, NULL);

    for (unsigned c = 0; c < 256; c++) {
        const float v = davit_q_e4m3((uint8_t)c);
        const float next = davit_q_e4m3((uint8_t)((c & 0x7f) < 0x7e ? c + 1 : c));

        if (isnan(v)) {
            g_assert_cmpuint(davit_ref_f32_to_e4m3(v) & 0x7f, ==, 0x7f);
            continue;
        }
        g_assert_cmpuint(davit_ref_f32_to_e4m3(v), ==, c);
        g_assert_cmpuint(davit_ref_f32_to_e4m3((v + next) / 2), ==, nearest_code((v + next) / 2));
    }
    for (int i = 0; i < 2000; i++) {
        const float v = ldexpf(rig_normal(rig), (int)rig_between(rig, 0, 24) - 14);
        g_assert_cmpuint(davit_ref_f32_to_e4m3(v), ==, nearest_code(v));
    }
    g_assert_cmpuint(davit_ref_f32_to_e4m3(INFINITY), ==, 0x7e);
    g_assert_cmpuint(davit_ref_f32_to_e4m3(-1e30f), ==, 0xfe);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    iface = rig_plugin("davit-kernels-cpu.so");
    g_test_add_data_func("/kernels/attn/short", GUINT_TO_POINTER(40), test_random);
    g_test_add_data_func("/kernels/attn/spans", GUINT_TO_POINTER(600), test_random);
    g_test_add_func("/kernels/attn/tree_mask", test_tree);
    g_test_add_func("/kernels/attn/fp8_rounds_otherwise", fp8_rounds_otherwise);
    return g_test_run();
}
