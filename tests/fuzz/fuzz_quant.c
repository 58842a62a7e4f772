/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a module: names, dtypes and shapes of its tensors, settings, payload. What the
 * linked quant plugin accepts is decoded from buffers of exactly the tensors' sizes. */
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <davit/help/quant.h>

#include "fuzz/fuzz.h"
#include "fuzz/quant_parts.h"

#define MOST_VALUES 4096

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello, const davit_sink *sink);

static const char *const producers[] = {NULL, "0.9.0", "0.17.1"};
static const char *const formats[] = {NULL, "gptq", "gptq_v2", "gptq_p", "marlin", "gemv", "other"};

typedef struct Fuzzed {
    davit_tensor_info info[FUZZ_PARTS];
    davit_quant_part_in part[FUZZ_PARTS];
    const davit_quant_part_in *parts[FUZZ_PARTS];
    uint8_t *bytes[FUZZ_PARTS]; /* NULL = too large to hold */
    uint64_t n;
} Fuzzed;

/* Values that random bytes would hardly be: sizes for the stored shape, small numbers and -1 for
 * the order of groups. */
static void make_plausible(const davit_tensor_info *t, uint8_t *bytes, FuzzInput *in)
{
    const uint64_t each = strcmp(t->dtype, "i64/1") == 0 ? 8 : 4;
    const int shape = strcmp(t->name, "weight_shape") == 0;

    if (!shape && strcmp(t->name, "g_idx") != 0 && strcmp(t->name, "weight_g_idx") != 0)
        return;
    for (uint64_t at = 0; at + each <= t->n_bytes; at += each) {
        const uint64_t value = shape               ? fuzz_size(in)
                               : bytes[at] == 0xff ? UINT64_MAX
                                                   : bytes[at] % 9;

        for (uint64_t i = 0; i < each; i++)
            bytes[at + i] = (uint8_t)(value >> 8 * i);
    }
}

static void add_part(Fuzzed *m, uint8_t layout, uint32_t part, FuzzInput *in)
{
    davit_tensor_info *t = &m->info[m->n];

    if (!fuzz_part(in, layout, part, t))
        return;
    m->part[m->n] = (davit_quant_part_in){DAVIT_END(davit_quant_part_in, reserved), t->name, t,
                                          t->dtype, t->rank, 0};
    m->parts[m->n] = &m->part[m->n];
    m->bytes[m->n] = t->n_bytes <= 65536 ? malloc(t->n_bytes ? t->n_bytes : 1) : NULL;
    if (m->bytes[m->n]) {
        fuzz_fill(in, m->bytes[m->n], t->n_bytes);
        make_plausible(t, m->bytes[m->n], in);
    }
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
    /* what the core blames on a plugin (plan/claim.c) */
    g_assert_true(d->n_experts && d->n_rows && d->n_cols && d->n_parts);
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
    FuzzInput in = {data, data + size};
    Fuzzed m = {0};
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    const uint8_t has_source = fuzz_byte(&in), writer = fuzz_byte(&in);
    const davit_quant_settings settings = {
        .struct_size = DAVIT_END(davit_quant_settings, ambiguous),
        .source = has_source & 1 ? "fuzz" : NULL,
        .format = formats[writer % G_N_ELEMENTS(formats)],
        .producer = producers[writer / G_N_ELEMENTS(formats) % G_N_ELEMENTS(producers)],
        .bits = fuzz_byte(&in) % 10,
        .group = (int64_t)fuzz_small_size(&in) - 2,
        .block_rows = fuzz_byte(&in) % 65,
        .block_cols = fuzz_byte(&in) % 65,
        .symmetric = fuzz_byte(&in) % 3 - 1,
        .act_order = fuzz_byte(&in) % 3 - 1,
        .allow = fuzz_byte(&in) % 32};
    const uint32_t n = 1 + fuzz_byte(&in) % FUZZ_PARTS;
    const uint8_t layout = fuzz_byte(&in);

    if (!iface)
        iface = davit_plugin_entry_v1(NULL, NULL)->components[0]->iface;
    for (uint32_t i = 0; i < n; i++)
        add_part(&m, layout, i, &in);
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
