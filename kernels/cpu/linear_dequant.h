/* SPDX-License-Identifier: Apache-2.0
 * Steps that the AVX2 decoders share: pieces of blocks, 32 codes in a vector to 32
 * float32 values. Included by files built with -mavx2 only.
 */
#ifndef CPU_LINEAR_DEQUANT_H
#define CPU_LINEAR_DEQUANT_H

#include "linear_layouts.h"
#include "linear_tile.h"

TILE_INLINE float half_at(const uint8_t *p)
{
    uint16_t h;

    memcpy(&h, p, sizeof h);
    return _cvtsh_ss(h);
}

TILE_INLINE uint32_t u16_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

TILE_INLINE uint32_t u32_at(const uint8_t *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof word);
    return word;
}

/* Bytes 8i .. 8i+7 of @q, sign-extended, as floats. */
TILE_INLINE __m256 signed_eight(__m256i q, int i)
{
    const __m128i half =
        i < 2 ? _mm256_castsi256_si128(q) : _mm256_extracti128_si256(q, 1);

    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(i & 1 ? _mm_srli_si128(half, 8) : half));
}

/* out = scale[i] * q, scale[0] for the first 16 codes and scale[1] for the rest. */
TILE_INLINE void put_signed_halves(float *out, __m256i q, float scale0, float scale1)
{
    for (int i = 0; i < 4; i++) {
        const __m256 scale = _mm256_set1_ps(i < 2 ? scale0 : scale1);

        _mm256_storeu_ps(out + 8 * i, _mm256_mul_ps(scale, signed_eight(q, i)));
    }
}

TILE_INLINE void put_signed(float *out, __m256i q, float scale)
{
    put_signed_halves(out, q, scale, scale);
}

/* out = scale * q + min, two roundings. */
TILE_INLINE void put_min_halves(float *out, __m256i q, const float scale[2],
                                const float min[2])
{
    for (int i = 0; i < 4; i++) {
        const __m256 s = _mm256_set1_ps(scale[i >> 1]), m = _mm256_set1_ps(min[i >> 1]);

        _mm256_storeu_ps(out + 8 * i,
                         _mm256_add_ps(_mm256_mul_ps(s, signed_eight(q, i)), m));
    }
}

TILE_INLINE void put_min(float *out, __m256i q, float scale, float min)
{
    put_min_halves(out, q, (const float[2]){scale, scale}, (const float[2]){min, min});
}

#endif
