/* SPDX-License-Identifier: Apache-2.0
 * Stored rows of the layouts with codebooks, of IQ4_XS, TQ1_0 and Q1_0 to float32, AVX2; bit-equal to
 * the SDK's decoder (sdk/src/ref/dequant_iq.c), eight elements at a time. What a block or group has
 * once is read once, by hand: for the compiler a store to out may change the row. */
#include "linear_dequant.h"

#include <davit/help/iq.h>

/* Four bits of a byte, the low half first. */
TILE_INLINE uint32_t nibble(const uint8_t *p, uint32_t i)
{
    return (uint32_t)p[i / 2] >> 4 * (i % 2) & 15;
}

/* Eight signs from seven bits: the last one makes their number even. */
TILE_INLINE uint32_t even_signs(uint32_t seven)
{
    return seven | (uint32_t)__builtin_parity(seven) << 7;
}

/* Bit i of @signs at the top of element i. */
TILE_INLINE __m256 signs_of(uint32_t signs)
{
    const __m256i up = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i all = _mm256_sllv_epi32(_mm256_set1_epi32((int)signs), up);

    return _mm256_castsi256_ps(_mm256_and_si256(all, _mm256_set1_epi32((int)0x80000000u)));
}

/* Element i of @table for field i of @fields, fields @bits wide of which three or fewer count. */
TILE_INLINE __m256 looked_up(uint32_t fields, int bits, __m256 table)
{
    const __m256i down = bits == 2 ? _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14)
                                   : _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i at = _mm256_srlv_epi32(_mm256_set1_epi32((int)fields), down);

    return _mm256_permutevar8x32_ps(table,
                                    _mm256_and_si256(at, _mm256_set1_epi32(bits == 2 ? 3 : 7)));
}

TILE_INLINE void put(float *out, __m256 values, uint32_t signs, float scale)
{
    _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_set1_ps(scale),
                                        _mm256_xor_ps(values, signs_of(signs))));
}

/* ---- IQ2 ---- */

TILE_INLINE __m256 iq2_sizes(void)
{
    return _mm256_setr_ps(8, 25, 43, 0, 8, 25, 43, 0);
}

void cpu_dequant_iq2_xxs(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 66, out += 256) {
        const float d = half_at(row);

        for (int g = 0; g < 8; g++) {
            const uint8_t *p = row + 2 + 8 * g;
            const uint32_t word = u32_at(p + 4);
            const float scale = d * (0.5f + (float)(int)(word >> 28)) * 0.25f;

            for (int j = 0; j < 4; j++)
                put(out + 32 * g + 8 * j, looked_up(davit_iq2_xxs_grid[p[j]], 2, iq2_sizes()),
                    even_signs(word >> 7 * j & 127), scale);
        }
    }
}

void cpu_dequant_iq2_xs(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 74, out += 256) {
        const float d = half_at(row);

        for (uint32_t k = 0; k < 16; k++) {
            const uint32_t q = u32_at(row + 2 + 4 * k);
            const float scale = d * (0.5f + (float)(int)nibble(row + 66, k)) * 0.25f;

            put(out + 16 * k, looked_up(davit_iq2_xs_grid[q & 511], 2, iq2_sizes()),
                even_signs(q >> 9 & 127), scale);
            put(out + 16 * k + 8, looked_up(davit_iq2_xs_grid[q >> 16 & 511], 2, iq2_sizes()),
                even_signs(q >> 25), scale);
        }
    }
}

void cpu_dequant_iq2_s(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 82, out += 256) {
        const float d = half_at(row);

        for (uint32_t k = 0; k < 16; k++) {
            const float scale = d * (0.5f + (float)(int)nibble(row + 74, k)) * 0.25f;

            for (uint32_t j = 2 * k; j < 2 * k + 2; j++) {
                const uint32_t high = (uint32_t)row[66 + j / 4] >> 2 * (j % 4) & 3;

                put(out + 8 * j, looked_up(davit_iq2_s_grid[row[2 + j] | high << 8], 2, iq2_sizes()),
                    row[34 + j], scale);
            }
        }
    }
}

/* ---- IQ3: two points of four ---- */

void cpu_dequant_iq3_xxs(float *out, const uint8_t *row, size_t n_blocks)
{
    const __m256 sizes = _mm256_setr_ps(4, 12, 20, 28, 36, 44, 52, 62);

    for (size_t b = 0; b < n_blocks; b++, row += 98, out += 256) {
        const float d = half_at(row);

        for (int g = 0; g < 8; g++) {
            const uint8_t *q = row + 2 + 8 * g;
            const uint32_t word = u32_at(row + 66 + 4 * g);
            const float scale = d * (0.5f + (float)(int)(word >> 28)) * 0.5f;

            for (int j = 0; j < 4; j++) {
                const uint32_t two = davit_iq3_xxs_grid[q[2 * j]] |
                                     (uint32_t)davit_iq3_xxs_grid[q[2 * j + 1]] << 16;

                put(out + 32 * g + 8 * j, looked_up(two, 4, sizes),
                    even_signs(word >> 7 * j & 127), scale);
            }
        }
    }
}

void cpu_dequant_iq3_s(float *out, const uint8_t *row, size_t n_blocks)
{
    const __m256 sizes = _mm256_setr_ps(1, 3, 5, 7, 9, 11, 13, 15);

    for (size_t b = 0; b < n_blocks; b++, row += 110, out += 256) {
        const float d = half_at(row);

        for (uint32_t g = 0; g < 8; g++) {
            const float scale = d * (float)(int)(1 + 2 * nibble(row + 106, g));
            const uint32_t high = row[66 + g];

            for (uint32_t j = 0; j < 4; j++) {
                const uint8_t *q = row + 2 + 8 * g + 2 * j;
                const uint32_t p0 = davit_iq3_s_grid[q[0] | (high >> 2 * j & 1) << 8];
                const uint32_t p1 = davit_iq3_s_grid[q[1] | (high >> (2 * j + 1) & 1) << 8];

                put(out + 32 * g + 8 * j, looked_up(p0 | p1 << 16, 4, sizes),
                    row[74 + 4 * g + j], scale);
            }
        }
    }
}

/* ---- IQ1: -1, 0 or 1 in eighths, and an eighth to or fro ---- */

/* @minus: 0 or 1, which no branch predicts. */
TILE_INLINE void put_iq1(float *out, uint32_t point, uint32_t minus, float scale)
{
    static const float eighth[] = {1, -1};
    const __m256 whole = _mm256_setr_ps(-8, 0, 8, 16, -8, 0, 8, 16);

    put(out, _mm256_add_ps(looked_up(point, 2, whole), _mm256_broadcast_ss(&eighth[minus])), 0,
        scale);
}

void cpu_dequant_iq1_s(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 50, out += 256) {
        const float d = half_at(row);

        for (uint32_t g = 0; g < 8; g++) {
            const uint32_t h = u16_at(row + 34 + 2 * g);
            const float scale = d * (float)(int)(2 * (h >> 12 & 7) + 1) * 0.125f;

            for (uint32_t j = 0; j < 4; j++)
                put_iq1(out + 32 * g + 8 * j,
                        davit_iq1_grid[row[2 + 4 * g + j] | (h >> 3 * j & 7) << 8], h >> 15, scale);
        }
    }
}

void cpu_dequant_iq1_m(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 56, out += 256) {
        const uint8_t *s = row + 48;
        /* the upper nibble of each of four words */
        const uint8_t bits[2] = {(uint8_t)(s[1] >> 4 | (s[3] & 0xf0)),
                                 (uint8_t)(s[5] >> 4 | (s[7] & 0xf0))};
        const float d = half_at(bits);

        for (uint32_t k = 0; k < 16; k++) {
            const uint32_t three = u16_at(s + k / 4 * 2) >> 3 * (k % 4) & 7, h = row[32 + k];
            const float scale = d * (float)(int)(2 * three + 1) * 0.125f;

            put_iq1(out + 16 * k, davit_iq1_grid[row[2 * k] | (h & 7) << 8], h >> 3 & 1, scale);
            put_iq1(out + 16 * k + 8, davit_iq1_grid[row[2 * k + 1] | (h >> 4 & 7) << 8], h >> 7,
                    scale);
        }
    }
}

/* ---- IQ4_XS, Q1_0, TQ1_0 ---- */

void cpu_dequant_iq4_xs(float *out, const uint8_t *row, size_t n_blocks)
{
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));

    for (size_t b = 0; b < n_blocks; b++, row += 136, out += 256) {
        const uint32_t highs = u16_at(row + 2);
        const float d = half_at(row);

        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t scale = nibble(row + 4, k) | (highs >> 2 * k & 3) << 4;
            const __m128i v = _mm_loadu_si128((const void *)(row + 8 + 16 * k));
            const __m256i both = _mm256_set_m128i(_mm_srli_epi16(v, 4), v);

            put_signed(out + 32 * k,
                       _mm256_shuffle_epi8(table, _mm256_and_si256(both, _mm256_set1_epi8(15))),
                       d * (float)((int)scale - 32));
        }
    }
}

void cpu_dequant_q1_0(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 18, out += 128) {
        const float d = half_at(row);

        for (int j = 0; j < 16; j++)
            put(out + 8 * j, _mm256_set1_ps(1), ~(uint32_t)row[2 + j], d);
    }
}

/* Five digits of 32 bytes, five of 16, four of 4: digit after digit. */
void cpu_dequant_tq1_0(float *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += 54, out += 256) {
        const float d = half_at(row + 52);
        __m256i v = _mm256_loadu_si256((const void *)row);
        __m128i x = _mm_loadu_si128((const void *)(row + 32));
        const __m128i h0 = _mm_cvtsi32_si128((int)u32_at(row + 48)), h1 = times3_half(h0);
        const __m128i h2 = times3_half(h1), h3 = times3_half(h2);

        for (int n = 0; n < 5; n++, v = times3(v))
            put_signed(out + 32 * n, top_trits(v), d);
        for (int n = 0; n < 4; n += 2) {
            const __m128i next = times3_half(x);

            put_signed(out + 160 + 16 * n, top_trits(_mm256_set_m128i(next, x)), d);
            x = times3_half(next);
        }
        const __m128i h = _mm_unpacklo_epi64(_mm_unpacklo_epi32(h0, h1), _mm_unpacklo_epi32(h2, h3));
        put_signed(out + 224, top_trits(_mm256_set_m128i(h, x)), d);
    }
}
