/* SPDX-License-Identifier: Apache-2.0
 * Group kernels of the 256-input layouts with a scale and a minimum per 32 inputs, Q4_K and
 * Q5_K, AVX2. Interleaved superblock: d[8], dmin[8], three words of 6-bit scales, for Q5_K
 * eight words of qh, 32 words of qs.
 */
#include "linear_layouts.h"

#include "linear_tile.h"

/* Block b: nibbles of half (b & 1) of the 32 bytes b / 2. */
TILE_INLINE __m256i nibble_word(const uint8_t *qs, int b, int w)
{
    const __m256i v = load_words(qs + 32 * (8 * (b >> 1) + w));

    return _mm256_and_si256(b & 1 ? _mm256_srli_epi16(v, 4) : v, _mm256_set1_epi8(15));
}

TILE_INLINE __m256i code_q4_k(const uint8_t *qs, int b, int w)
{
    return nibble_word(qs, b, w);
}

/* Fifth bit: bit b of byte w of qh. */
TILE_INLINE __m256i code_q5_k(const uint8_t *qh, int b, int w)
{
    const __m256i v = load_words(qh + 32 * w);
    const __m256i h = b < 4 ? _mm256_slli_epi16(v, 4 - b) : _mm256_srli_epi16(v, b - 4);

    return _mm256_or_si256(nibble_word(qh + 256, b, w),
                           _mm256_and_si256(h, _mm256_set1_epi8(16)));
}

/* 6-bit scales and minima of the eight blocks (K-scale packing of GGUF), byte j of a word
 * belongs to block j or j + 4. */
typedef struct k_scales {
    __m256i sc_mn[3];
} k_scales;

TILE_INLINE __m256 k_scale(const k_scales *k, int b)
{
    const int s = 8 * (b & 3);
    const __m256i six = _mm256_set1_epi32(63);
    __m256i v = _mm256_and_si256(_mm256_srli_epi32(k->sc_mn[0], s), six);

    if (b >= 4) {
        const __m256i lo = _mm256_srli_epi32(k->sc_mn[2], s);
        const __m256i hi = _mm256_srli_epi32(k->sc_mn[0], s + 2);

        v = _mm256_or_si256(_mm256_and_si256(lo, _mm256_set1_epi32(15)),
                            _mm256_and_si256(hi, _mm256_set1_epi32(48)));
    }
    return _mm256_cvtepi32_ps(v);
}

TILE_INLINE __m256 k_min(const k_scales *k, int b)
{
    const int s = 8 * (b & 3);
    const __m256i six = _mm256_set1_epi32(63);
    __m256i v = _mm256_and_si256(_mm256_srli_epi32(k->sc_mn[1], s), six);

    if (b >= 4) {
        const __m256i lo = _mm256_srli_epi32(k->sc_mn[2], s + 4);
        const __m256i hi = _mm256_srli_epi32(k->sc_mn[1], s + 2);

        v = _mm256_or_si256(_mm256_and_si256(lo, _mm256_set1_epi32(15)),
                            _mm256_and_si256(hi, _mm256_set1_epi32(48)));
    }
    return _mm256_cvtepi32_ps(v);
}

TILE_INLINE void tile_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                        const cpu_xblock *x, size_t x_stride, tile_code_fn *code, int flush,
                        size_t block_bytes)
{
    __m256 acc[TILE_MAX];

    for (int c = 0; c < n; c++)
        acc[c] = _mm256_setzero_ps();
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * block_bytes, x += 8) {
        const __m256 d = load_halves(group);
        const __m256 neg = _mm256_sub_ps(_mm256_setzero_ps(), load_halves(group + 16));
        const k_scales k = {
            {load_words(group + 32), load_words(group + 64), load_words(group + 96)}};

        for (int b = 0; b < 8; b++) {
            const __m256 scale = _mm256_mul_ps(d, k_scale(&k, b));
            const __m256 min = _mm256_mul_ps(neg, k_min(&k, b));
            __m256i isum[TILE_MAX];

            dot_block(n, code, group + 128, b, flush, x + b, x_stride, isum);
            for (int c = 0; c < n; c++) {
                acc[c] = add_block(acc[c], isum[c], scale, x + b + c * x_stride);
                acc[c] = add_offset(acc[c], min, x + b + c * x_stride);
            }
        }
    }
    for (int c = 0; c < n; c++)
        _mm256_storeu_ps(out + c * CPU_GROUP, acc[c]);
}

TILE_INLINE void tile_q4_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride)
{
    tile_k(n, out, group, n_blocks, x, x_stride, code_q4_k, 8, 144);
}

TILE_INLINE void tile_q5_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride)
{
    tile_k(n, out, group, n_blocks, x, x_stride, code_q5_k, 4, 176);
}

void cpu_dot_q4_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens)
{
    for_tiles(tile_q4_k, out, group, n_blocks, x, x_stride, n_tokens);
}

void cpu_dot_q5_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens)
{
    for_tiles(tile_q5_k, out, group, n_blocks, x, x_stride, n_tokens);
}
