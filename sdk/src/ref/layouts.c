/* SPDX-License-Identifier: Apache-2.0
 * Table of the stored layouts, and values from codes. Block rules: GGUF's ggml-quants. */
#include "ref.h"

/* value = scale * (code - zero): two roundings at most, as GGUF's reference has them. */
static void values_from(ref_codes_fn *read, const uint8_t *src, uint64_t n_blocks,
                        const davit_ref_layout *layout, float *out)
{
    uint8_t codes[DAVIT_REF_MAX_BLOCK];
    float scales[DAVIT_REF_MAX_BLOCK / 16], zeros[DAVIT_REF_MAX_BLOCK / 16];

    for (uint64_t b = 0; b < n_blocks; b++) {
        read(src + b * layout->block_bytes, 1, codes, scales, zeros);
        for (uint32_t i = 0; i < layout->block_elems; i++) {
            const float scale = scales[i / layout->group], zero = zeros[i / layout->group];
            const float code = (float)codes[i];
            out[b * layout->block_elems + i] =
                layout->has_min ? scale * code + zero : scale * (code - zero);
        }
    }
}

enum { F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K,
       IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ4_XS, TQ1_0, Q1_0, N_LAYOUTS };
static const davit_ref_layout layouts[N_LAYOUTS];

#define DECODE_FROM_CODES(name, index)                                                    \
    static void name##_decode(const uint8_t *src, uint64_t n_blocks, float *out)          \
    {                                                                                     \
        values_from(ref_##name##_codes, src, n_blocks, &layouts[index], out);             \
    }
DECODE_FROM_CODES(q4_0, Q4_0)
DECODE_FROM_CODES(q4_1, Q4_1)
DECODE_FROM_CODES(q5_0, Q5_0)
DECODE_FROM_CODES(q5_1, Q5_1)
DECODE_FROM_CODES(q8_0, Q8_0)
DECODE_FROM_CODES(q2_k, Q2_K)
DECODE_FROM_CODES(q3_k, Q3_K)
DECODE_FROM_CODES(q4_k, Q4_K)
DECODE_FROM_CODES(q5_k, Q5_K)
DECODE_FROM_CODES(q6_k, Q6_K)
DECODE_FROM_CODES(iq1_s, IQ1_S)
DECODE_FROM_CODES(iq1_m, IQ1_M)
DECODE_FROM_CODES(iq2_xxs, IQ2_XXS)
DECODE_FROM_CODES(iq2_xs, IQ2_XS)
DECODE_FROM_CODES(iq2_s, IQ2_S)
DECODE_FROM_CODES(iq3_xxs, IQ3_XXS)
DECODE_FROM_CODES(iq3_s, IQ3_S)
DECODE_FROM_CODES(iq4_xs, IQ4_XS)
DECODE_FROM_CODES(tq1_0, TQ1_0)
DECODE_FROM_CODES(q1_0, Q1_0)

#define NONE UINT32_MAX
#define PLAIN(id, bytes)                                                                  \
    {#id "/1", 1, bytes, ref_##id##_decode, NULL, 0, 0, {NONE, NONE}}
#define BLOCK(id, elems, bytes, group, min, half0, half1)                                 \
    {#id "/1", elems, bytes, id##_decode, ref_##id##_codes, group, min, {half0, half1}}

static const davit_ref_layout layouts[N_LAYOUTS] = {
    [F32] = PLAIN(f32, 4),
    [F16] = PLAIN(f16, 2),
    [BF16] = PLAIN(bf16, 2),
    [Q4_0] = BLOCK(q4_0, 32, 18, 32, 0, 0, NONE),
    [Q4_1] = BLOCK(q4_1, 32, 20, 32, 1, 0, 2),
    [Q5_0] = BLOCK(q5_0, 32, 22, 32, 0, 0, NONE),
    [Q5_1] = BLOCK(q5_1, 32, 24, 32, 1, 0, 2),
    [Q8_0] = BLOCK(q8_0, 32, 34, 32, 0, 0, NONE),
    [Q2_K] = BLOCK(q2_k, 256, 84, 16, 1, 80, 82),
    [Q3_K] = BLOCK(q3_k, 256, 110, 16, 0, 108, NONE),
    [Q4_K] = BLOCK(q4_k, 256, 144, 32, 1, 0, 2),
    [Q5_K] = BLOCK(q5_k, 256, 176, 32, 1, 0, 2),
    [Q6_K] = BLOCK(q6_k, 256, 210, 16, 0, 208, NONE),
    [IQ1_S] = BLOCK(iq1_s, 256, 50, 32, 0, 0, NONE),
    [IQ1_M] = BLOCK(iq1_m, 256, 56, 16, 0, NONE, NONE), /* in the upper nibbles of its scales */
    [IQ2_XXS] = BLOCK(iq2_xxs, 256, 66, 32, 0, 0, NONE),
    [IQ2_XS] = BLOCK(iq2_xs, 256, 74, 16, 0, 0, NONE),
    [IQ2_S] = BLOCK(iq2_s, 256, 82, 16, 0, 0, NONE),
    [IQ3_XXS] = BLOCK(iq3_xxs, 256, 98, 32, 0, 0, NONE),
    [IQ3_S] = BLOCK(iq3_s, 256, 110, 32, 0, 0, NONE),
    [IQ4_XS] = BLOCK(iq4_xs, 256, 136, 32, 0, 0, NONE),
    [TQ1_0] = BLOCK(tq1_0, 256, 54, 256, 0, 52, NONE),
    [Q1_0] = BLOCK(q1_0, 128, 18, 128, 0, 0, NONE),
};

const davit_ref_layout *davit_ref_layout_get(uint64_t index)
{
    return index < N_LAYOUTS ? &layouts[index] : NULL;
}

const davit_ref_layout *davit_ref_layout_find(const char *name)
{
    for (uint64_t i = 0; name && i < N_LAYOUTS; i++)
        if (strcmp(layouts[i].name, name) == 0)
            return &layouts[i];
    return NULL;
}

uint64_t davit_ref_row_bytes(const davit_ref_layout *layout, uint64_t n_cols)
{
    return n_cols / layout->block_elems * layout->block_bytes;
}
