/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a module: names, dtypes and shapes of its tensors, settings, payload. What the
 * linked quant plugin accepts is decoded from buffers of exactly the tensors' sizes. */
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <davit/help/bytes.h>
#include <davit/help/quant.h>

#include "fuzz/fuzz.h"

#define MAX_FUZZ_PARTS 5
#define MOST_VALUES    4096

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello, const davit_sink *sink);

typedef struct Input {
    const uint8_t *at, *end;
} Input;

static uint8_t next(Input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static const char *const suffixes[] = {
    "weight", "", "qweight", "weight_packed", "blocks", "_blocks", "scales", "weight_scale",
    "weight_scale_inv", "scale", "_scale", "_scale_inv", "_scales", "qzeros", "g_idx",
    "weight_shape", "weight_zero_point", "weight_g_idx", "weight_scale_2",
    "weight_global_scale", "input_scale", "pre_quant_scale"};
static const struct {
    const char *name;
    uint64_t elems, bytes;
} dtypes[] = {{"f32/1", 1, 4},      {"f16/1", 1, 2},     {"bf16/1", 1, 2},
              {"i32/1", 1, 4},      {"i64/1", 1, 8},     {"u8/1", 1, 1},
              {"i8/1", 1, 1},       {"f8_e4m3/1", 1, 1}, {"f8_e5m2/1", 1, 1},
              {"f8_e8m0/1", 1, 1},  {"f4/1", 2, 1},      {"iq4_nl/1", 32, 18},
              {"iq4_xs/1", 256, 136}, {"tq1_0/1", 256, 54}, {"tq2_0/1", 256, 66},
              {"gguf.mxfp4/1", 32, 17}, {"gguf.nvfp4/1", 64, 36}, {"q1_0/1", 128, 18},
              {"q2_0/1", 64, 18}};
/* Suffix and dtype of the parts of real layouts, as indices into the two lists above: random
 * names alone would hardly ever meet. */
static const uint8_t layouts[][MAX_FUZZ_PARTS][2] = {
    {{2, 3}, {6, 1}, {13, 3}, {14, 3}, {20, 0}},  /* gptq, awq */
    {{3, 3}, {7, 2}, {15, 4}, {16, 3}, {17, 3}},  /* pack-quantized */
    {{0, 7}, {8, 0}, {20, 0}, {7, 5}, {9, 9}},    /* fp8 */
    {{0, 6}, {7, 0}, {16, 6}, {9, 9}, {20, 0}},   /* int8 */
    {{0, 5}, {7, 7}, {18, 0}, {20, 0}, {21, 0}},  /* nvfp4 */
    {{3, 5}, {7, 7}, {19, 0}, {20, 0}, {7, 5}},   /* nvfp4, mxfp4 of compressed-tensors */
    {{5, 5}, {12, 5}, {4, 5}, {6, 5}, {20, 0}},   /* mxfp4 */
    {{0, 5}, {7, 0}, {20, 0}, {21, 0}, {18, 0}},  /* modelopt int4 */
    {{0, 11}, {9, 0}, {20, 0}, {0, 16}, {0, 13}}, /* gguf */
};
static const uint64_t sizes[] = {1,  2,  3,  4,  7,   8,   16,  24,  32,      33,
                                 48, 64, 96, 128, 256, 512, 0, 1ull << 40, UINT64_MAX};
static const char *const formats[] = {NULL, "gptq", "gptq_v2", "gptq_p", "marlin", "gemv", "other"};

typedef struct Fuzzed {
    davit_tensor_info info[MAX_FUZZ_PARTS];
    davit_quant_part_in part[MAX_FUZZ_PARTS];
    const davit_quant_part_in *parts[MAX_FUZZ_PARTS];
    uint8_t *bytes[MAX_FUZZ_PARTS]; /* NULL = too large to hold */
    uint64_t n;
} Fuzzed;

static void add_part(Fuzzed *m, const uint8_t layout[2], Input *in)
{
    davit_tensor_info *t = &m->info[m->n];
    const uint8_t other = next(in); /* mostly the layout's own */
    const size_t type = other < 0xe0 ? layout[1] : next(in) % G_N_ELEMENTS(dtypes);
    const size_t name = other < 0xd0 ? layout[0] : next(in) % G_N_ELEMENTS(suffixes);

    *t = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                             .name = suffixes[name],
                             .dtype = dtypes[type].name,
                             .rank = other & 1 ? 2 : next(in) % 6};
    for (uint32_t i = 0; i < t->rank; i++)
        t->shape[i] = sizes[next(in) % G_N_ELEMENTS(sizes)];
    /* what the format checks before a plugin sees the tensor */
    if (davit_bytes_of_shape(t->shape, t->rank, dtypes[type].elems, dtypes[type].bytes,
                             &t->n_bytes) != DAVIT_SHAPE_OK)
        return;
    m->part[m->n] = (davit_quant_part_in){DAVIT_END(davit_quant_part_in, reserved), t->name, t,
                                          t->dtype, t->rank, 0};
    m->parts[m->n] = &m->part[m->n];
    m->bytes[m->n] = t->n_bytes <= 65536 ? malloc(t->n_bytes ? t->n_bytes : 1) : NULL;
    for (uint64_t i = 0; m->bytes[m->n] && i < t->n_bytes; i++)
        m->bytes[m->n][i] = in->at < in->end ? in->at[i % (uint64_t)(in->end - in->at)] : 0;
    m->n++;
}

static const uint8_t *peek(void *ctx, uint64_t part, uint64_t *out_bytes)
{
    const Fuzzed *m = ctx;

    if (part >= m->n || !m->bytes[part])
        return NULL;
    *out_bytes = m->info[part].n_bytes;
    return m->bytes[part];
}

static void ignore(void *ctx, const davit_refusal *r)
{
    (void)ctx;
    g_assert_nonnull(r->message);
}

static void decode(const davit_quant_iface *iface, const Fuzzed *m, const davit_quant_desc *d,
                   const davit_sink *sink)
{
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    uint64_t rows;
    davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                             .desc = d,
                             .parts = parts};

    for (uint32_t p = 0; p < d->n_parts; p++) {
        g_assert_cmpuint(d->parts[p].index, <, m->n);
        if (!m->bytes[d->parts[p].index])
            return;
        parts[p] = (davit_quant_bytes){m->bytes[d->parts[p].index],
                                       m->info[d->parts[p].index].n_bytes};
    }
    g_assert_true(d->n_experts && d->n_rows && d->n_cols);
    if (d->n_cols > MOST_VALUES)
        return;
    rows = MIN(d->n_rows, MOST_VALUES / d->n_cols);
    tile.expert = d->n_experts - 1;
    tile.row = d->n_rows - rows; /* the last rows: where a buffer would end */
    tile.n_rows = rows;
    tile.n_cols = d->n_cols;
    if (iface->verify(NULL, &tile, sink))
        return;
    float *values = malloc(rows * d->n_cols * sizeof *values);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = values,
                           .stride = d->n_cols};
    iface->decode(NULL, &tile, &out);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const davit_quant_iface *iface;
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), NULL, ignore};
    Input in = {data, data + size};
    Fuzzed m = {0};
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    const davit_quant_settings settings = {
        .struct_size = DAVIT_END(davit_quant_settings, ambiguous),
        .source = next(&in) & 1 ? "fuzz" : NULL,
        .format = formats[next(&in) % G_N_ELEMENTS(formats)],
        .bits = next(&in) % 10,
        .group = (int64_t)sizes[next(&in) % 12] - 2,
        .block_rows = next(&in) % 65,
        .block_cols = next(&in) % 65,
        .symmetric = next(&in) % 3 - 1,
        .act_order = next(&in) % 3 - 1,
        .allow = next(&in) % 32};
    const uint64_t n = 1 + next(&in) % MAX_FUZZ_PARTS;
    const size_t layout = next(&in) % G_N_ELEMENTS(layouts);

    if (!iface)
        iface = davit_plugin_entry_v1(NULL, NULL)->components[0]->iface;
    for (uint64_t i = 0; i < n; i++)
        add_part(&m, layouts[layout][i], &in);
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                       .name = "m",
                                       .parts = m.parts,
                                       .n_parts = m.n,
                                       .settings = &settings,
                                       .peek = peek,
                                       .peek_ctx = &m};
    iface->claim(NULL, &module, &verdict, &sink);
    if (verdict.verdict == DAVIT_ACCEPT && iface->check(NULL, &module, &desc, &sink) == DAVIT_OK)
        decode(iface, &m, &desc, &sink);
    for (uint64_t i = 0; i < m.n; i++)
        free(m.bytes[i]);
    return 0;
}
