/* SPDX-License-Identifier: Apache-2.0
 * Reading the packed layout of codes.h: where things lie, and the scalar definition of a row.
 * Baseline code. */
#include "codes.h"

#include <string.h>

#include <davit/help/records.h>
#include <davit/help/ref.h>

static size_t scale_width(uint32_t type)
{
    return type == DAVIT_SCALE_F32                               ? 4
           : type == DAVIT_SCALE_F16 || type == DAVIT_SCALE_BF16 ? 2
                                                                 : 1;
}

/* Bytes of @n zeros side by side. */
static size_t zeros_width(uint32_t type, size_t n)
{
    switch (type) {
    case DAVIT_ZERO_CONST:
        return 0;
    case DAVIT_ZERO_U4:
    case DAVIT_ZERO_U4_1:
        return (n + 1) / 2;
    case DAVIT_ZERO_U8:
        return n;
    case DAVIT_ZERO_U8_1:
        return n;
    case DAVIT_MIN_F16:
        return 2 * n;
    default:
        return 4 * n;
    }
}

/* The rest of init for plain values, whose numbers are all that a block has. */
static int init_plain(cpu_codes *out, cpu_codes *c)
{
    const uint32_t bits = c->what.scale_type == DAVIT_SCALE_F32 ? 32 : 16;

    c->group = c->n_cols;
    c->n_groups = 0;
    if (c->what.bits != bits || c->what.scale_type > DAVIT_SCALE_BF16 ||
        __builtin_mul_overflow(c->n_cols, bits, &c->block_bytes)) /* eight rows of bits / 8 */
        return 0;
    *out = *c;
    return 1;
}

int cpu_codes_init(cpu_codes *out, uint64_t n_cols, const uint64_t params[8])
{
    cpu_codes c = {.n_cols = n_cols};
    uint64_t bits, heads;

    *out = c;
    memcpy(&c.what, params, sizeof c.what);
    if (c.what.n_cols)
        c.n_cols = n_cols = c.what.n_cols;
    c.group = c.what.group == 0 || c.what.group > n_cols ? n_cols : c.what.group;
    if (c.what.kind == DAVIT_CODE_PLAIN && n_cols && !c.what.flags)
        return init_plain(out, &c);
    if (c.what.bits < 1 || c.what.bits > 8 || n_cols == 0 ||
        c.what.flags & ~(DAVIT_CODES_MAP | DAVIT_CODES_FACTORS))
        return 0;
    c.n_groups = cpu_ceil_div(n_cols, c.group);
    c.n_shared = c.what.scale_rows && c.what.scale_rows % CPU_GROUP == 0 ? 1 : CPU_GROUP;
    c.scale_bytes = scale_width(c.what.scale_type) * c.n_shared;
    c.zero_bytes = zeros_width(c.what.zero_type, c.n_shared);
    c.scale_off = c.what.scale_type == DAVIT_SCALE_E4M3 ? 8 : 0;
    if (__builtin_mul_overflow(cpu_ceil_div(n_cols, CPU_XBLOCK) * CPU_XBLOCK, c.what.bits, &bits) ||
        __builtin_mul_overflow(c.n_groups, c.scale_bytes + c.zero_bytes, &heads) ||
        __builtin_add_overflow(bits, heads + 8, &heads))
        return 0;
    c.zero_off = c.scale_off + c.n_groups * c.scale_bytes;
    c.code_off = c.zero_off + c.n_groups * c.zero_bytes;
    c.block_bytes = c.code_off + bits; /* eight rows of n bits a column */
    *out = c;
    return 1;
}

const cpu_codes *cpu_codes_at(const davit_weight *w, uint64_t expert, uint64_t row,
                              const cpu_codes *all, cpu_codes *own)
{
    const davit_segment *s = cpu_segment_find(w, expert, row);
    uint64_t params[8] = {0};

    if (s->n_parts < 3)
        return all;
    memcpy(params, s->part[2], sizeof(davit_quant_codes));
    cpu_codes_init(own, w->n_cols, params);
    return own;
}

const uint8_t *cpu_codes_block(const cpu_codes *c, const davit_weight *w, uint64_t expert,
                               uint64_t row, uint64_t *out_lane, uint64_t *out_n)
{
    const davit_segment *s = cpu_segment_find(w, expert, row);
    const uint64_t rel = row - s->row;

    *out_lane = rel % CPU_GROUP;
    *out_n = cpu_min(CPU_GROUP - *out_lane, s->n_rows - rel);
    return s->part[0] + rel / CPU_GROUP * c->block_bytes;
}

const uint32_t *cpu_codes_map(const cpu_codes *c, const davit_weight *w, uint64_t expert)
{
    if (!(c->what.flags & DAVIT_CODES_MAP))
        return NULL;
    return (const uint32_t *)(const void *)cpu_segment_find(w, expert, 0)->part[1];
}

const float *cpu_codes_factors(const cpu_codes *c, const davit_weight *w, uint64_t expert)
{
    const uint64_t n_map = c->what.flags & DAVIT_CODES_MAP ? c->n_cols * sizeof(uint32_t) : 0;

    if (!(c->what.flags & DAVIT_CODES_FACTORS))
        return NULL;
    return (const float *)(const void *)(cpu_segment_find(w, expert, 0)->part[1] + n_map);
}

/* ---- numbers ---- */

static float from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Sign at the top, exponent and mantissa moved under float32's; @unit repairs the bias. */
static float small_float(uint8_t code, int shift, float unit)
{
    const uint32_t sign = (uint32_t)(code & 0x80) << 24;

    return from_bits(sign | (uint32_t)(code & 0x7f) << shift) * unit;
}

#define E4M3_UNIT 0x1p120f /* biases 127 and 7 */
#define E5M2_UNIT 0x1p112f /* 127 and 15 */

const float *cpu_codes_table(uint32_t kind)
{
    static const float e2m1[16] = {0,  .5f,  1,  1.5f,  2,  3,  4,  6,
                                   -0.0f, -.5f, -1, -1.5f, -2, -3, -4, -6};
    /* bitsandbytes: quantiles of the normal distribution (QLoRA, appendix E) */
    static const float nf4[16] = {
        -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
        -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
        0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
        0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
        0.7229568362236023f, 1.0f};
    /* bitsandbytes fp4: magnitudes 0 .0052 .667 1 .333 .5 .167 .25, sign in bit 3 */
    static const float fp4[16] = {
        0.0f,  0.005208333333f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,
        0.16666667f, 0.25f, -0.0f, -0.005208333333f, -0.66666667f, -1.0f,
        -0.33333333f, -0.5f, -0.16666667f, -0.25f};
    static const float iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

    return kind == DAVIT_CODE_E2M1  ? e2m1
           : kind == DAVIT_CODE_NF4 ? nf4
           : kind == DAVIT_CODE_FP4 ? fp4
           : kind == DAVIT_CODE_IQ4 ? iq4
                                    : NULL;
}

float cpu_codes_scale(const cpu_codes *c, const uint8_t *block, uint64_t lane, uint64_t g)
{
    const uint8_t *at = block + c->scale_off + g * c->scale_bytes;
    const uint64_t i = c->n_shared == 1 ? 0 : lane;
    uint32_t word;
    uint16_t half;
    float factor, scale;

    memcpy(&half, at + (c->scale_bytes / c->n_shared == 2 ? 2 * i : 0),
           c->scale_bytes / c->n_shared == 2 ? 2 : 0);
    switch (c->what.scale_type) {
    case DAVIT_SCALE_F16:
        return davit_ref_f16_to_f32(half);
    case DAVIT_SCALE_BF16:
        return from_bits((uint32_t)half << 16);
    case DAVIT_SCALE_E8M0:
        return from_bits(at[i] ? (uint32_t)at[i] << 23 : 0x00400000u);
    case DAVIT_SCALE_E4M3:
        memcpy(&factor, block, sizeof factor);
        memcpy(&word, block + 4, sizeof word);
        scale = small_float(at[i], 20, E4M3_UNIT);
        return word ? scale / factor : scale * factor;
    default:
        memcpy(&scale, at + 4 * i, sizeof scale);
        return scale;
    }
}

float cpu_codes_zero(const cpu_codes *c, const uint8_t *block, uint64_t lane, uint64_t g)
{
    const uint8_t *at = block + c->zero_off + g * c->zero_bytes;
    const uint64_t i = c->n_shared == 1 ? 0 : lane;
    uint16_t half;
    float f;

    switch (c->what.zero_type) {
    case DAVIT_ZERO_CONST:
        return c->what.zero;
    case DAVIT_ZERO_U4:
        return (float)(at[i / 2] >> (i & 1) * 4 & 15);
    case DAVIT_ZERO_U4_1:
        return (float)((at[i / 2] >> (i & 1) * 4 & 15) + 1);
    case DAVIT_ZERO_U8:
        return (float)at[i];
    case DAVIT_ZERO_U8_1:
        return (float)(at[i] + 1);
    case DAVIT_MIN_F16:
        memcpy(&half, at + 2 * i, sizeof half);
        return davit_ref_f16_to_f32(half);
    default:
        memcpy(&f, at + 4 * i, sizeof f);
        return f;
    }
}

float cpu_codes_plain(const cpu_codes *c, const uint8_t *block, uint64_t lane, uint64_t k)
{
    const uint64_t i = k * CPU_GROUP + lane;
    uint16_t half;
    float f;

    if (c->what.bits == 32) {
        memcpy(&f, block + 4 * i, sizeof f);
        return f;
    }
    memcpy(&half, block + 2 * i, sizeof half);
    return c->what.scale_type == DAVIT_SCALE_F16 ? davit_ref_f16_to_f32(half)
                                                 : from_bits((uint32_t)half << 16);
}

/* Code of column @col (0..31) of row @lane in the 32 columns at @codes. */
static uint32_t code_at(const cpu_codes *c, const uint8_t *codes, uint64_t lane, uint64_t col)
{
    const uint32_t bits = c->what.bits;
    const uint64_t j = cpu_codes_byte(c, col % 4);
    uint32_t code = 0, done = 0;

    for (uint32_t width = 8; width > 0; width /= 2) { /* planes, widest first */
        const uint64_t words = width, w = col / 4;

        if (!(bits & width))
            continue;
        const uint8_t byte = codes[(w % words * CPU_GROUP + lane) * 4 + j];
        code |= (uint32_t)(byte >> (w / words * width) & ((1u << width) - 1)) << done;
        codes += 32 * width;
        done += width;
    }
    return code;
}

static float value_of(const cpu_codes *c, uint32_t code, float scale, float zero)
{
    const float *table = cpu_codes_table(c->what.kind);

    if (table)
        return scale * table[code];
    if (c->what.kind == DAVIT_CODE_E4M3)
        return scale * small_float((uint8_t)code, 20, E4M3_UNIT);
    if (c->what.kind == DAVIT_CODE_E5M2)
        return scale * small_float((uint8_t)code, 21, E5M2_UNIT);
    if (c->what.zero_type >= DAVIT_MIN_F32)
        return scale * (float)code + zero;
    return scale * ((float)code - zero);
}

void cpu_codes_row(const cpu_codes *c, const uint8_t *block, uint64_t lane, float *out)
{
    const uint8_t *codes = block + c->code_off;
    float scale = 0, zero = 0;

    for (uint64_t k = 0; c->what.kind == DAVIT_CODE_PLAIN && k < c->n_cols; k++)
        out[k] = cpu_codes_plain(c, block, lane, k);
    if (c->what.kind == DAVIT_CODE_PLAIN)
        return;
    for (uint64_t k = 0; k < c->n_cols; k++) {
        if (k % c->group == 0) {
            scale = cpu_codes_scale(c, block, lane, k / c->group);
            zero = cpu_codes_zero(c, block, lane, k / c->group);
        }
        out[k] = value_of(c, code_at(c, codes + k / 32 * 32 * c->what.bits, lane, k % 32), scale,
                          zero);
    }
}

int32_t cpu_codes_check(void *self, const davit_call *call, const davit_sink *sink)
{
    davit_call plain = *call;
    davit_weight weight[DAVIT_MAX_WEIGHTS];
    cpu_codes c;

    for (uint32_t i = 0; i < call->n_weights; i++) {
        const davit_weight *w = call->weight[i];
        if (!w || !w->layout || strcmp(w->layout, CPU_CODES_LAYOUT) != 0)
            continue;
        if (!cpu_codes_init(&c, w->n_cols, w->params))
            return davit_say(sink, DAVIT_E_UNSUPPORTED,
                             &(davit_refusal){
                                 .code = DAVIT_R_OP_MISSING,
                                 .subject = call->op,
                                 .expected = "codes of 1 to 8 bits, or plain values",
                                 .message = "these codes are not packed by this component",
                             });
        weight[i] = *w; /* the reference knows no packed name; sizes are what it checks */
        weight[i].layout = "f32/1";
        plain.weight[i] = &weight[i];
    }
    return cpu_check(self, &plain, sink);
}

int cpu_codes_fit_avx2(const cpu_codes *c)
{
    return c->group % 16 == 0 || c->group == c->n_cols;
}

int32_t cpu_codes_check_avx2(void *self, const davit_call *call, const davit_sink *sink)
{
    const int32_t status = cpu_codes_check(self, call, sink);
    cpu_codes c;

    for (uint32_t i = 0; i < call->n_weights && !status; i++) {
        const davit_weight *w = call->weight[i];

        if (!w || !w->layout || strcmp(w->layout, CPU_CODES_LAYOUT) != 0)
            continue;
        cpu_codes_init(&c, w->n_cols, w->params);
        if (!cpu_codes_fit_avx2(&c))
            return davit_say(sink, DAVIT_E_UNSUPPORTED,
                             &(davit_refusal){
                                 .code = DAVIT_R_OP_MISSING,
                                 .subject = call->op,
                                 .expected = "groups of a multiple of 16 columns",
                                 .message = "these groups are computed by the scalar entry only",
                             });
    }
    return status;
}

int cpu_codes_fit_int8(const cpu_codes *c)
{
    const uint32_t bits = c->what.bits;
    const int is_width = (bits >= 2 && bits <= 4) || bits == 8; /* codes_int8_avx2.c */

    return c->what.kind == DAVIT_CODE_UINT && is_width && c->n_cols % CPU_XBLOCK == 0 &&
           c->group % CPU_XBLOCK == 0;
}

int32_t cpu_refuse_int8(const davit_call *call, const davit_sink *sink)
{
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){
                         .code = DAVIT_R_OP_MISSING,
                         .subject = call->op,
                         .expected = "integer codes of 2, 3, 4 or 8 bits, groups and rows of a multiple of 32",
                         .message = "these codes are not multiplied with 8-bit activations",
                     });
}
