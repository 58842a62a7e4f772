/* SPDX-License-Identifier: Apache-2.0
 * Blocks of IQ4_NL, TQ2_0, MXFP4, NVFP4 and Q2_0, as ggml-quants reads them: codes of each element,
 * one scale per group. They pack in the file's size; the others are in the SDK's reference. */
#include "gguf_more.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/bytes.h>
#include <davit/help/ref.h>

#define MOST_ELEMS 256

typedef struct Type {
    const char *name; /* dtype and layout */
    uint32_t elems, bytes, group;
    void (*codes)(const uint8_t *block, uint8_t *out); /* elems codes */
    float (*scale)(const uint8_t *block, uint64_t group);
    uint32_t head, head_bytes; /* where a block's numbers lie, 1, 2 or 4 bytes */
    uint32_t bits, kind, scale_type;
    float zero;
} Type;

static float half_at(const uint8_t *p)
{
    return davit_ref_f16_to_f32(davit_bytes_u16le(p));
}

/* ---- codes ---- */

/* Byte j holds elements j and j + n/2 of @n, a multiple of 16: eight bytes at a time. */
static inline void halves(const uint8_t *qs, uint32_t n, uint8_t *out)
{
    for (uint32_t j = 0; j < n / 2; j += 8) {
        uint64_t both, low, high;

        memcpy(&both, qs + j, sizeof both);
        low = both & 0x0f0f0f0f0f0f0f0full;
        high = both >> 4 & 0x0f0f0f0f0f0f0f0full;
        memcpy(out + j, &low, sizeof low);
        memcpy(out + j + n / 2, &high, sizeof high);
    }
}

static void iq4_nl_codes(const uint8_t *b, uint8_t *out)
{
    halves(b + 2, 32, out);
}

static void mxfp4_codes(const uint8_t *b, uint8_t *out)
{
    halves(b + 1, 32, out);
}

static void nvfp4_codes(const uint8_t *b, uint8_t *out)
{
    for (uint32_t k = 0; k < 4; k++)
        halves(b + 4 + 8 * k, 16, out + 16 * k);
}

static void tq2_0_codes(const uint8_t *b, uint8_t *out)
{
    for (uint32_t i = 0; i < 64; i += 8) { /* eight bytes at a time: 32 of each 128 elements a field */
        uint64_t all;

        memcpy(&all, b + i, sizeof all);
        for (uint32_t part = 0; part < 4; part++) {
            const uint64_t field = all >> 2 * part & 0x0303030303030303ull;

            memcpy(out + i / 32 * 128 + part * 32 + i % 32, &field, sizeof field);
        }
    }
}

static void q2_0_codes(const uint8_t *b, uint8_t *out)
{
    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 0; j < 4; j++)
            out[4 * i + j] = b[2 + i] >> 2 * j & 3;
}

/* ---- scales ---- */

static float first_half(const uint8_t *b, uint64_t group)
{
    (void)group;
    return half_at(b);
}

static float mxfp4_scale(const uint8_t *b, uint64_t group)
{
    (void)group;
    return davit_q_e8m0(b[0]);
}

/* E4M3 without sign; ggml reads 0x7F as 0, and 0xFF as a number like the others. */
static float nvfp4_scale(const uint8_t *b, uint64_t k)
{
    if (b[k] == 0x7f)
        return 0.0f;
    return b[k] == 0xff ? 480.0f : davit_q_e4m3(b[k] & 0x7f);
}

static float tq2_0_scale(const uint8_t *b, uint64_t group)
{
    (void)group;
    return half_at(b + 64);
}

#define UINT DAVIT_CODE_UINT
static const Type types[] = {
    {"iq4_nl/1", 32, 18, 32, iq4_nl_codes, first_half, 0, 2, 4, DAVIT_CODE_IQ4, DAVIT_SCALE_F16, 0},
    {"tq2_0/1", 256, 66, 256, tq2_0_codes, tq2_0_scale, 64, 2, 2, UINT, DAVIT_SCALE_F16, 1},
    {"gguf.mxfp4/1", 32, 17, 32, mxfp4_codes, mxfp4_scale, 0, 1, 4, DAVIT_CODE_E2M1, DAVIT_SCALE_E8M0, 0},
    {"gguf.nvfp4/1", 64, 36, 16, nvfp4_codes, nvfp4_scale, 0, 4, 4, DAVIT_CODE_E2M1, DAVIT_SCALE_E4M3, 0},
    {"q2_0/1", 64, 18, 64, q2_0_codes, first_half, 0, 2, 2, UINT, DAVIT_SCALE_F16, 1},
};

#define N_TYPES (sizeof types / sizeof *types)

enum { HAS_FACTOR, TYPE }; /* params; TYPE: place in types, from 0 on */

static const Type *type_of(const char *name)
{
    for (size_t i = 0; i < N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

/* Of a module that passed check; asked for every scale. */
static const Type *type_at(const davit_quant_desc *d)
{
    return &types[d->params[TYPE] % N_TYPES];
}

/* ---- check ---- */

static const char *weight_name(const davit_quant_module *m)
{
    return davit_q_has(m, "weight", NULL) ? "weight" : "";
}

int gguf_more_is(const davit_quant_module *m)
{
    for (uint64_t i = 0; i < m->n_parts; i++)
        if (strcmp(m->parts[i]->suffix, weight_name(m)) == 0)
            return type_of(m->parts[i]->dtype) != NULL;
    return 0;
}

int gguf_more_has(const davit_quant_desc *d)
{
    return type_of(d->layout) != NULL;
}

/* NVFP4's float32 for the whole tensor, or for each expert; absent = 1. */
static void read_factor(davit_q_check *c, const Type *type)
{
    const davit_tensor_info *s = davit_q_find(c, "scale");
    uint64_t n_bytes = 0;
    const uint8_t *p;
    float value;

    if (!s)
        return;
    if (type->scale_type != DAVIT_SCALE_E4M3) {
        davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_ORPHAN, s->name, type->name, "scale",
                     "this type has no such tensor");
        return;
    }
    c->desc->params[HAS_FACTOR] = davit_q_product(s, 0, s->rank) == c->desc->n_experts;
    if (!c->desc->params[HAS_FACTOR] || !davit_q_need(c, "scale", "f32/1")) {
        davit_q_one_number(c, s);
        return;
    }
    p = davit_q_peek(c, "scale", &n_bytes);
    for (uint64_t e = 0; p && e < n_bytes / 4; e++) {
        value = davit_q_scale(p, DAVIT_SCALE_F32, e);
        if (!isfinite(value) || value <= 0) {
            davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_SCALE_VALUE, s->name,
                         "a finite number above 0", "another",
                         "the global scale of a weight cannot be this");
            return;
        }
    }
    davit_q_part(c, "global_scale", s, 0);
}

int32_t gguf_more_check(const davit_quant_module *module, davit_quant_desc *out,
                        const davit_sink *sink)
{
    const davit_tensor_info *w;
    const Type *type;
    davit_q_check c;
    uint64_t row;

    davit_q_begin(&c, module, "gguf/1", out, sink);
    w = davit_q_need(&c, weight_name(module), NULL);
    type = w ? type_of(w->dtype) : NULL;
    if (!type)
        return DAVIT_QUANT_OTHER;
    out->layout = type->name;
    out->params[TYPE] = (uint64_t)(type - types);
    davit_q_activations(&c);
    if (w->rank < 2 || w->rank > 3 || !davit_q_product(w, 0, w->rank) ||
        w->shape[w->rank - 1] % type->elems) {
        char want[64];

        snprintf(want, sizeof want, "matrices of rows of %u elements", type->elems);
        davit_q_fail(&c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name, want,
                     "another shape", "the tensor is not whole blocks of its type");
        return davit_q_end(&c);
    }
    out->n_experts = w->rank == 3 ? w->shape[0] : 1;
    out->n_rows = w->shape[w->rank - 2];
    out->n_cols = w->shape[w->rank - 1];
    row = out->n_cols / type->elems * type->bytes;
    if (w->n_bytes / row != out->n_experts * out->n_rows || w->n_bytes % row)
        davit_q_fail_count(&c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name,
                           "bytes that follow from shape and type", w->n_bytes, "bytes",
                           "the tensor's bytes do not fit its shape");
    out->col_unit = type->elems;
    davit_q_part(&c, "weight", w, row);
    read_factor(&c, type);
    out->codes = (davit_quant_codes){.group = type->group,
                                     .bits = type->bits,
                                     .kind = type->kind,
                                     .scale_type = type->scale_type,
                                     .zero_type = DAVIT_ZERO_CONST,
                                     .zero = type->zero};
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static const uint8_t *block_of(const davit_quant_tile *t, const Type *type, uint64_t row,
                               uint64_t col)
{
    const davit_quant_desc *d = t->desc;

    return t->parts[0].ptr + (t->expert * d->n_rows + row) * d->parts[0].row_bytes +
           col / type->elems * type->bytes;
}

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const Type *type = type_at(t->desc);
    const uint8_t *p = block_of(t, type, row, col);
    uint64_t from = col % type->elems;
    uint8_t block[MOST_ELEMS];

    for (uint64_t i = 0, m; i < n; i += m, p += type->bytes, from = 0) {
        m = n - i < type->elems - from ? n - i : type->elems - from;
        if (m == type->elems) {
            type->codes(p, out + i);
        } else {
            type->codes(p, block);
            memcpy(out + i, block + from, m);
        }
    }
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const Type *type = type_at(t->desc);
    const uint64_t each = type->elems / type->group;

    return type->scale(block_of(t, type, row, group * type->group), group % each);
}

#define SIDE 64u /* numbers that are read together, whole blocks of them */

/* Numbers of @n blocks from @p on, side by side. */
static void gather(const Type *type, const uint8_t *p, uint64_t n, uint8_t *out)
{
    const uint64_t step = type->bytes;

    p += type->head;
    if (type->head_bytes == 1)
        for (uint64_t i = 0; i < n; i++)
            out[i] = p[i * step];
    else if (type->head_bytes == 2)
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + 2 * i, p + i * step, 2);
    else
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + 4 * i, p + i * step, 4);
}

/* nvfp4_scale of each; a loop that compilers make vectors of. @heads is changed. */
static void unsigned_e4m3(uint8_t *heads, uint64_t n, float *out)
{
    uint8_t largest[SIDE];

    for (uint64_t i = 0; i < n; i++) {
        largest[i] = heads[i] == 0xff;
        heads[i] = (heads[i] & 0x7f) == 0x7f ? 0 : heads[i] & 0x7f;
    }
    davit_q_numbers(heads, DAVIT_SCALE_E4M3, n, out);
    for (uint64_t i = 0; i < n; i++)
        out[i] = largest[i] ? 480.0f : out[i];
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const Type *type = type_at(t->desc);
    const uint64_t each = type->elems / type->group, size = type->head_bytes / each;
    uint8_t heads[2 * SIDE];
    (void)zeros;

    for (uint64_t r = 0; r < t->n_rows; r++)
        for (uint64_t i = 0, m; i < n; i += m) {
            const uint64_t first = (group + i) % each;

            m = n - i < SIDE - first ? n - i : SIDE - first;
            gather(type, block_of(t, type, t->row + r, (group + i) * type->group),
                   (first + m + each - 1) / each, heads);
            if (type->scale_type == DAVIT_SCALE_E4M3)
                unsigned_e4m3(heads + first, m, out + r * n + i);
            else
                davit_q_numbers(heads + first * size, type->scale_type, m, out + r * n + i);
        }
}

static float factor(const davit_quant_tile *t, uint32_t *out_divide)
{
    *out_divide = 0;
    return t->desc->n_parts < 2 ? 1.0f
                                : davit_q_scale(t->parts[1].ptr, DAVIT_SCALE_F32,
                                                t->desc->n_experts > 1 ? t->expert : 0);
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    const Type *type = type_at(d);

    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .factor = type->scale_type == DAVIT_SCALE_E4M3 ? factor : NULL,
                          .group = type->group,
                          .scales = scales};
}

void gguf_more_decode(const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);

    davit_q_decode(&view, tile, out);
}

/* Scales of these types may be negative and 0; none may be NaN or infinite. */
int32_t gguf_more_verify(const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = view_of(tile->desc);

    return davit_q_verify_finite(&view, tile, sink);
}
