/* SPDX-License-Identifier: Apache-2.0
 * Stored rows of the 256-input layouts to float32, AVX2; bit-equal to the SDK's decoder,
 * which rounds d * scale and dmin * min first (no contraction).
 */
#include "linear_dequant.h"

TILE_INLINE __m256i low_bits(__m256i v, int shift, char mask)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, shift), _mm256_set1_epi8(mask));
}

/* Bit @b of each byte, moved to bit @to. */
TILE_INLINE __m256i one_bit(__m256i v, int b, int to)
{
    const __m256i moved =
        b < to ? _mm256_slli_epi16(v, to - b) : _mm256_srli_epi16(v, b - to);

    return _mm256_and_si256(moved, _mm256_set1_epi8((char)(1 << to)));
}

void cpu_dequant_q2_k(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 84, out += 256) {
        const float d = half_at(row + 80), dmin = half_at(row + 82);

        TILE_UNROLL
        for (int b = 0; b < 8; b++) {
            const __m256i v = load_words(row + 16 + 32 * (b >> 2));
            const uint8_t s0 = row[2 * b], s1 = row[2 * b + 1];
            const float scale[2] = {d * (float)(s0 & 15), d * (float)(s1 & 15)};
            const float min[2] = {-(dmin * (float)(s0 >> 4)), -(dmin * (float)(s1 >> 4))};

            put_min_halves(out + 32 * b, low_bits(v, 2 * (b & 3), 3), scale, min);
        }
    }
}

/* 6-bit scale of 16 inputs, less 32. */
static float q3_scale(const uint8_t *s12, int g)
{
    const int low = g < 8 ? s12[g] & 15 : s12[g - 8] >> 4;
    const int high = s12[8 + (g & 3)] >> 2 * (g >> 2) & 3;

    return (float)((low | high << 4) - 32);
}

void cpu_dequant_q3_k(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 110, out += 256) {
        const float d = half_at(row + 108);
        const __m256i hm = load_words(row);

        TILE_UNROLL
        for (int b = 0; b < 8; b++) {
            const __m256i v = load_words(row + 32 + 32 * (b >> 2));
            const __m256i q =
                _mm256_or_si256(low_bits(v, 2 * (b & 3), 3), one_bit(hm, b, 2));

            put_signed_halves(out + 32 * b, _mm256_sub_epi8(q, _mm256_set1_epi8(4)),
                              d * q3_scale(row + 96, 2 * b),
                              d * q3_scale(row + 96, 2 * b + 1));
        }
    }
}

/* 6-bit scale and minimum of block @b out of p[12]. */
static void k_scale_min(const uint8_t *p, int b, float *out_scale, float *out_min)
{
    int scale = p[b] & 63, min = p[b + 4] & 63;

    if (b >= 4) {
        scale = (p[b + 4] & 15) | p[b - 4] >> 6 << 4;
        min = p[b + 4] >> 4 | p[b] >> 6 << 4;
    }
    *out_scale = (float)scale;
    *out_min = (float)min;
}

void cpu_dequant_q4_k(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 144, out += 256) {
        const float d = half_at(row), dmin = half_at(row + 2);

        TILE_UNROLL
        for (int b = 0; b < 8; b++) {
            const __m256i v = load_words(row + 16 + 32 * (b >> 1));
            float scale, min;

            k_scale_min(row + 4, b, &scale, &min);
            put_min(out + 32 * b, low_bits(v, 4 * (b & 1), 15), d * scale, -(dmin * min));
        }
    }
}

void cpu_dequant_q5_k(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 176, out += 256) {
        const float d = half_at(row), dmin = half_at(row + 2);
        const __m256i qh = load_words(row + 16);

        TILE_UNROLL
        for (int b = 0; b < 8; b++) {
            const __m256i v = load_words(row + 48 + 32 * (b >> 1));
            const __m256i q =
                _mm256_or_si256(low_bits(v, 4 * (b & 1), 15), one_bit(qh, b, 4));
            float scale, min;

            k_scale_min(row + 4, b, &scale, &min);
            put_min(out + 32 * b, q, d * scale, -(dmin * min));
        }
    }
}

void cpu_dequant_q6_k(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, row += 210, out += 256) {
        const float d = half_at(row + 208);

        TILE_UNROLL
        for (int b = 0; b < 8; b++) {
            const int h = b >> 2, g = b & 3;
            const __m256i lo = load_words(row + 64 * h + 32 * (g & 1));
            const __m256i hi = low_bits(load_words(row + 128 + 32 * h), 2 * g, 3);
            const __m256i q = _mm256_or_si256(low_bits(lo, g < 2 ? 0 : 4, 15),
                                              _mm256_slli_epi16(hi, 4));

            put_signed_halves(out + 32 * b, _mm256_sub_epi8(q, _mm256_set1_epi8(32)),
                              d * (float)(int8_t)row[192 + 2 * b],
                              d * (float)(int8_t)row[193 + 2 * b]);
        }
    }
}
