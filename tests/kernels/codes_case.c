/* SPDX-License-Identifier: Apache-2.0
 * Canonical arithmetic as spec and quant.h state it, written apart from the kernels' own. */
#include "kernels/codes_case.h"

#include <math.h>
#include <string.h>

const davit_pack *codes_case_pack(const davit_kernels_iface *iface)
{
    for (size_t i = 0; iface->packs[i]; i++)
        if (iface->packs[i]->forms & DAVIT_FORM_CODES)
            return iface->packs[i];
    g_assert_not_reached();
}

davit_quant_codes codes_case_random(Rig *rig, uint64_t n_cols, uint64_t unit)
{
    const bool integer = unit == 32;
    static const uint32_t width[] = {0, 4, 8, 8, 4, 4, 4};
    static const uint32_t wide[] = {2, 3, 4, 8};
    davit_quant_codes c = {.zero = 0.5f * (float)rig_between(rig, 0, 16)};

    c.kind = integer ? DAVIT_CODE_UINT : (uint32_t)rig_between(rig, 0, DAVIT_CODE_IQ4);
    c.bits = width[c.kind] ? width[c.kind] : (uint32_t)rig_between(rig, 1, 8);
    if (integer)
        c.bits = wide[rig_between(rig, 0, 3)];
    c.scale_type = (uint32_t)rig_between(rig, 0, DAVIT_SCALE_E4M3);
    c.zero_type = c.kind ? DAVIT_ZERO_CONST : (uint32_t)rig_between(rig, 0, DAVIT_MIN_F16);
    c.group = rig_between(rig, 0, 1) ? unit * rig_between(rig, 1, MAX(n_cols / unit, 1)) : 0;
    c.scale_rows = rig_between(rig, 0, 2) ? 1 : 16;
    return c;
}

davit_quant_codes codes_case_plain(Rig *rig)
{
    davit_quant_codes c = {.kind = DAVIT_CODE_PLAIN,
                           .scale_type = (uint32_t)rig_between(rig, 0, DAVIT_SCALE_BF16)};

    c.bits = c.scale_type == DAVIT_SCALE_F32 ? 32 : 16;
    return c;
}

/* ---- numbers ---- */

static float bf16_of(float f)
{
    uint16_t half[2];

    memcpy(half, &f, sizeof half);
    half[0] = 0; /* little-endian: the low half */
    memcpy(&f, half, sizeof f);
    return f;
}

static float random_scale(Rig *rig, uint32_t type, float *out_raw, float factor, bool divide)
{
    float s = 0.01f * (1.0f + fabsf(rig_normal(rig)));
    int e;

    switch (type) {
    case DAVIT_SCALE_F16:
        s = davit_ref_f16_to_f32(davit_ref_f32_to_f16(s));
        break;
    case DAVIT_SCALE_BF16:
        s = bf16_of(s);
        break;
    case DAVIT_SCALE_E8M0:
        s = ldexpf(1.0f, (int)rig_between(rig, 0, 12) - 10);
        break;
    case DAVIT_SCALE_E4M3: /* least, subnormal and normal ones */
        e = (int)rig_between(rig, 0, 15);
        s = e == 0 ? (float)rig_between(rig, 0, 7) * 0x1p-9f
                   : (1.0f + (float)rig_between(rig, 0, e == 15 ? 6 : 7) / 8) * ldexpf(1.0f, e - 7);
        *out_raw = s;
        return divide ? s / factor : s * factor;
    default:
        break;
    }
    *out_raw = s;
    return s;
}

static float random_zero(Rig *rig, const davit_quant_codes *c)
{
    const uint64_t top = (1u << MIN(c->bits, 8)) - 1;

    switch (c->zero_type) {
    case DAVIT_ZERO_CONST:
        return c->zero;
    case DAVIT_ZERO_U4:
        return (float)rig_between(rig, 0, MIN(top, 15));
    case DAVIT_ZERO_U4_1:
        return (float)(rig_between(rig, 0, MIN(top, 15)) + 1);
    case DAVIT_ZERO_U8:
        return (float)rig_between(rig, 0, top);
    case DAVIT_ZERO_U8_1:
        return (float)(rig_between(rig, 0, top) + 1);
    case DAVIT_MIN_F16:
        return davit_ref_f16_to_f32(davit_ref_f32_to_f16(0.05f * rig_normal(rig)));
    case DAVIT_MIN_F32:
        return 0.05f * rig_normal(rig);
    default:
        return (float)top * (float)g_rand_double(rig->rand);
    }
}

/* OCP 8-bit floats: sign, exponent of @ebits, mantissa. */
static float small_float(uint32_t code, int ebits)
{
    const int mbits = 7 - ebits, bias = (1 << (ebits - 1)) - 1;
    const int e = (int)(code >> mbits & ((1u << ebits) - 1));
    const float m = (float)(code & ((1u << mbits) - 1)) / (float)(1 << mbits);
    const float v = e ? ldexpf(1.0f + m, e - bias) : ldexpf(m, 1 - bias);

    return code & 0x80 ? -v : v;
}

static float value_of(const davit_quant_codes *c, uint32_t code, float scale, float zero)
{
    static const float e2m1[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    static const float nf4[16] = {
        -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
        -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
        0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
        0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};
    static const float fp4[8] = {0.0f,        0.005208333333f, 0.66666667f, 1.0f,
                                 0.33333333f, 0.5f,            0.16666667f, 0.25f};
    static const float iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

    switch (c->kind) {
    case DAVIT_CODE_E2M1:
        return scale * (code & 8 ? -e2m1[code & 7] : e2m1[code & 7]);
    case DAVIT_CODE_E4M3:
        return scale * small_float(code, 4);
    case DAVIT_CODE_E5M2:
        return scale * small_float(code, 5);
    case DAVIT_CODE_NF4:
        return scale * nf4[code];
    case DAVIT_CODE_FP4:
        return scale * (code & 8 ? -fp4[code & 7] : fp4[code & 7]);
    case DAVIT_CODE_IQ4:
        return scale * iq4[code];
    default:
        if (c->zero_type >= DAVIT_MIN_F32)
            return scale * (float)code + zero;
        return scale * ((float)code - zero);
    }
}

/* A code that occurs: no NaN, no infinity. */
static uint8_t random_code(Rig *rig, const davit_quant_codes *c)
{
    const uint8_t code = (uint8_t)(g_rand_int(rig->rand) & ((1u << c->bits) - 1));

    if (c->kind == DAVIT_CODE_E4M3 && (code & 0x7f) == 0x7f)
        return 0x7e;
    if (c->kind == DAVIT_CODE_E5M2 && (code & 0x7f) >= 0x7c)
        return (uint8_t)(code & 0x83);
    return code;
}

/* ---- matrices ---- */

void codes_case_map(Rig *rig, davit_quant_codes *what, uint64_t n_cols)
{
    what->flags = DAVIT_CODES_MAP;
    if (what->group && rig_between(rig, 0, 1))
        what->n_cols = what->group * ((n_cols - 1) / what->group + 1 + rig_between(rig, 0, 3));
}

void codes_case_factors(davit_quant_codes *what)
{
    what->flags |= DAVIT_CODES_FACTORS;
}

/* Of @C code columns, those past the @K inputs have none. */
static uint32_t *random_map(Rig *rig, uint64_t K, uint64_t C)
{
    uint32_t *map = rig_memory(rig, C * sizeof *map + K * sizeof(float), 0);

    for (uint64_t j = 0; j < C; j++)
        map[j] = j < K ? (uint32_t)j : DAVIT_CODES_NONE;
    for (uint64_t j = C - 1; j > 0; j--) {
        const uint64_t i = rig_between(rig, 0, j);
        const uint32_t swap = map[i];
        map[i] = map[j];
        map[j] = swap;
    }
    return map;
}

/* Factors of @K inputs, where @c has them, at @out: signs, and some that are a power of two. */
static float *random_factors(Rig *rig, const davit_quant_codes *c, uint64_t K, float *out)
{
    if (!(c->flags & DAVIT_CODES_FACTORS))
        return NULL;
    for (uint64_t k = 0; k < K; k++)
        out[k] = rig_between(rig, 0, 3) ? 0.2f + fabsf(rig_normal(rig)) : -0.5f;
    return out;
}

/* Random rows into @out (codes, scales, zeros) and their values. */
static void fill_rows(Rig *rig, const davit_quant_codes *c, uint64_t n_rows, uint64_t K,
                      davit_quant_out *out, float *values)
{
    const uint64_t C = out->stride, group = c->group ? c->group : C, G = (C + group - 1) / group;

    for (uint64_t r = 0; r < n_rows; r++)
        for (uint64_t g = 0; g < G; g++) {
            const uint64_t i = r * G + g;
            float scale, raw;

            scale = random_scale(rig, c->scale_type, &raw, out->factor, out->divide);
            out->scales[i] = raw;
            out->zeros[i] = random_zero(rig, c);
            if (c->scale_rows > 1 && r % c->scale_rows) { /* shared with the row before */
                out->scales[i] = out->scales[i - G];
                out->zeros[i] = out->zeros[i - G];
                scale = c->scale_type != DAVIT_SCALE_E4M3 ? out->scales[i]
                        : out->divide                     ? out->scales[i] / out->factor
                                                          : out->scales[i] * out->factor;
            }
            for (uint64_t k = g * group; k < MIN(C, (g + 1) * group); k++) {
                const uint32_t col = out->cols ? out->cols[k] : (uint32_t)k;
                const uint8_t code = random_code(rig, c);
                out->codes[r * out->stride + k] = code;
                if (col != DAVIT_CODES_NONE)
                    values[r * K + col] = value_of(c, code, scale, out->zeros[i]) *
                                          (out->factors ? out->factors[col] : 1.0f);
            }
        }
}

/* Random rows of plain values: what a pack gets and what they are is the same. */
static void fill_plain(Rig *rig, const davit_quant_codes *c, uint64_t n, davit_quant_out *out,
                       float *values)
{
    for (uint64_t i = 0; i < n; i++) {
        float raw;

        values[i] = random_scale(rig, c->scale_type, &raw, 1.0f, false);
        values[i] = rig_between(rig, 0, 1) ? values[i] : -values[i];
    }
    out->form = DAVIT_FORM_F32;
    out->values = values;
}

static uint8_t *pack_rows(Rig *rig, const davit_pack *pack, const davit_weight *w,
                          const davit_quant_out *out, uint64_t n_rows, uint64_t G)
{
    const uint64_t bytes = pack->block_bytes(NULL, w->n_cols, w->params);
    const uint64_t n_blocks = (n_rows + pack->row_block - 1) / pack->row_block;
    uint8_t *dst = rig_memory(rig, n_blocks * bytes, rig_between(rig, 0, 1) * 64);
    uint8_t *fast = rig_memory(rig, bytes, 0);

    g_assert_cmpuint(bytes, >, 0);
    for (uint64_t r = 0, i = 0; r < n_rows; r += pack->row_block, i++) {
        davit_quant_out part = *out;

        if (out->values)
            part.values += r * out->stride;
        part.codes += r * out->stride;
        part.scales += r * G;
        part.zeros += r * G;
        memset(dst + i * bytes, 0, bytes);
        pack->pack(NULL, w, NULL, &part, MIN(pack->row_block, n_rows - r), dst + i * bytes);
        memset(fast, 0, bytes); /* the version for this processor writes the same */
        pack->pack(rig_instance("davit-kernels-cpu.so"), w, NULL, &part,
                   MIN(pack->row_block, n_rows - r), fast);
        g_assert_cmpint(memcmp(fast, dst + i * bytes, bytes), ==, 0);
    }
    return dst;
}

const float *codes_case_weight(Rig *rig, uint32_t slot, const davit_pack *pack,
                               const davit_quant_codes *what, uint64_t E, uint64_t N, uint64_t K)
{
    const uint64_t C = what->n_cols ? what->n_cols : K;
    const uint64_t group = what->group ? what->group : C, G = (C + group - 1) / group;
    davit_segment *segments = rig_memory(rig, E * N * sizeof *segments, 0);
    float *values = rig_memory(rig, E * N * K * sizeof *values, 0);
    uint32_t *map = what->flags & DAVIT_CODES_MAP ? random_map(rig, K, C) : NULL;
    float *part1 = map ? (float *)(void *)(map + C) : rig_memory(rig, K * sizeof(float), 0);
    float *factors = random_factors(rig, what, K, part1);
    davit_weight *w = &rig->weights[slot];
    const uint64_t unit = what->scale_rows > 1 ? what->scale_rows : 1;
    const uint32_t divide = (uint32_t)rig_between(rig, 0, 1);
    /* where scales of SCALE_E4M3 are divided one by one; a 256th of codes of 8 bits has no room for it */
    const bool far = what->kind != DAVIT_CODE_E4M3 && rig_between(rig, 0, 3) == 0;
    const davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, factors),
                                 .form = DAVIT_FORM_CODES,
                                 .stride = C,
                                 .codes = rig_memory(rig, N * C, 0),
                                 .scales = rig_memory(rig, N * G * sizeof(float), 0),
                                 .zeros = rig_memory(rig, N * G * sizeof(float), 0),
                                 .group = group,
                                 .cols = map,
                                 .factor = !far ? 0.37f : divide ? 0x1.8p+101f : 0x1.8p-101f,
                                 .divide = divide,
                                 .factors = factors};
    uint64_t n = 0;

    *w = (davit_weight){.layout = pack->layout, .n_experts = E, .n_rows = N, .n_cols = K};
    memcpy(w->params, what, sizeof *what);
    rig->call.weight[slot] = w;
    rig->call.n_weights = MAX(rig->call.n_weights, slot + 1);
    for (uint64_t e = 0; e < E; e++)
        for (uint64_t row = 0, rows; row < N; row += rows) {
            const uint64_t some = unit * rig_between(rig, 1, MAX(N / unit, 1));
            davit_quant_out part = out;

            rows = MIN(N - row, some);
            if (what->kind == DAVIT_CODE_PLAIN)
                fill_plain(rig, what, rows * K, &part, values + (e * N + row) * K);
            else
                fill_rows(rig, what, rows, K, &part, values + (e * N + row) * K);
            segments[n++] =
                (davit_segment){.expert = e,
                                .row = row,
                                .n_rows = rows,
                                .n_parts = map || factors ? 2 : 1,
                                .part = {pack_rows(rig, pack, w, &part, rows, G),
                                         map ? (uint8_t *)map : (uint8_t *)factors}};
        }
    w->n_segments = n;
    w->segments = segments;
    return values;
}

/* ---- bounds ---- */

/* Input @j times its factor, as float32: what is put into planes. */
static float scaled(const float *x, const float *factors, uint64_t j)
{
    return factors ? x[j] * factors[j] : x[j];
}

void codes_case_missed(const float *x, const uint32_t *map, const float *factors, uint64_t n_codes,
                       double *out)
{
    for (uint64_t b = 0; b < n_codes; b += 32) {
        float big = 0.0f;

        for (uint64_t j = b; j < b + 32; j++)
            if (!map || map[j] != DAVIT_CODES_NONE)
                big = fmaxf(big, fabsf(scaled(x, factors, map ? map[j] : j)));
        for (uint64_t j = b; j < b + 32; j++)
            if (!map || map[j] != DAVIT_CODES_NONE)
                out[map ? map[j] : j] = (double)big * (1.0 / 64516 + 0x1p-22) /
                                        (factors ? fabs((double)factors[map ? map[j] : j]) : 1.0);
    }
}
