/* SPDX-License-Identifier: Apache-2.0
 * Scales of packed float codes for eight rows, in row order: what codes_float_avx2.c and
 * codes_float_avx512.c share. Included by files built with -mavx2 -mfma -mf16c at least. */
#ifndef CPU_CODES_FLOAT_SCALES_H
#define CPU_CODES_FLOAT_SCALES_H

#include "codes_avx2.h"

#define CPU_CODES_HALF 16 /* columns; groups are multiples of it, or the whole row */

/* Scales that change every 16 or 32 columns have code of their own, a constant where it is used. */
enum { SCALE_ANY, SCALE_E8M0, SCALE_E4M3, SCALE_E4M3_BY };

/* What the scales of a block are read with. SCALE_E4M3 and SCALE_E4M3_BY: 1/256 of them as half floats: one bit
 * further down, a code of E4M3 is that. */
typedef struct scales {
    const uint8_t *at; /* of group 0 */
    __m256 times;      /* 256 times the factor, or its reciprocal */
    __m256 factor;     /* SCALE_E4M3_BY: 1/256 of it */
} scales;

TILE_INLINE __m256 divided(__m256 quotient, __m256 scale, __m256 factor, __m256 reciprocal)
{
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, factor, scale), reciprocal, quotient);
}

/* How scales e4m3 * factor or e4m3 / factor are made without a division for each: times the reciprocal, or
 * that and a step which mends its rounding, where either gives what a division gives. Scales have eight
 * mantissas, and between these bounds of the factor all results are normal numbers, so that eight tell. */
TILE_INLINE int e4m3_type(const uint8_t *block)
{
    const __m256 m = _mm256_setr_ps(1, 1.125f, 1.25f, 1.375f, 1.5f, 1.625f, 1.75f, 1.875f);
    uint32_t bits;

    memcpy(&bits, block, sizeof bits);
    if (bits >> 23 < 27 || bits >> 23 > 227) /* 2^-100 to 2^101, above 0 */
        return SCALE_ANY;
    if (!block[4])
        return SCALE_E4M3;
    const __m256 factor = _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
    const __m256 reciprocal = _mm256_div_ps(_mm256_set1_ps(1), factor), want = _mm256_div_ps(m, factor);
    const __m256 near = _mm256_mul_ps(m, reciprocal);
    if (_mm256_movemask_ps(_mm256_cmp_ps(near, want, _CMP_NEQ_UQ)) == 0)
        return SCALE_E4M3;
    return _mm256_movemask_ps(_mm256_cmp_ps(divided(near, m, factor, reciprocal), want, _CMP_NEQ_UQ)) == 0
               ? SCALE_E4M3_BY
               : SCALE_ANY;
}

TILE_INLINE scales scales_of(int type, const cpu_codes *c, const uint8_t *block)
{
    scales s = {.at = block + c->scale_off, .times = _mm256_setzero_ps(), .factor = _mm256_setzero_ps()};
    float factor;

    if (type != SCALE_E4M3 && type != SCALE_E4M3_BY)
        return s;
    memcpy(&factor, block, sizeof factor);
    s.times = _mm256_set1_ps(256.0f * (block[4] ? 1.0f / factor : factor));
    s.factor = _mm256_set1_ps(factor / 256.0f);
    return s;
}

/* How the scales of a block are made; for kinds but E4M3. */
TILE_INLINE int scale_type_of(const cpu_codes *c, const uint8_t *block)
{
    if (c->n_shared != CPU_GROUP) /* one for all rows */
        return SCALE_ANY;
    if (c->what.scale_type == DAVIT_SCALE_E8M0)
        return SCALE_E8M0;
    return c->what.scale_type == DAVIT_SCALE_E4M3 ? e4m3_type(block) : SCALE_ANY;
}

/* Scales of group @g. */
TILE_STEP __m256 row_scales(int type, const cpu_codes *c, const uint8_t *block, const scales *s,
                            uint64_t g)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(s->at + g * CPU_GROUP));

    if (type == SCALE_E8M0) {
        const __m256i v = _mm256_cvtepu8_epi32(bytes); /* 0 is 2^-127, a subnormal number */
        const __m256i least = _mm256_srli_epi32(_mm256_cmpeq_epi32(v, _mm256_setzero_si256()), 31);
        return _mm256_castsi256_ps(
            _mm256_or_si256(_mm256_slli_epi32(v, 23), _mm256_slli_epi32(least, 22)));
    }
    if (type == SCALE_E4M3 || type == SCALE_E4M3_BY) {
        const __m128i high = _mm_unpacklo_epi8(_mm_setzero_si128(), bytes);
        const __m128i half = _mm_and_si128(_mm_srai_epi16(high, 1), _mm_set1_epi16((short)0xbf80u));
        const __m256 part = _mm256_cvtph_ps(half), scale = _mm256_mul_ps(part, s->times);
        return type == SCALE_E4M3_BY ? divided(scale, part, s->factor, s->times) : scale;
    }
    return codes_scales(c, block, g);
}

#endif
