/* SPDX-License-Identifier: Apache-2.0
 * Group kernels of the 256-input layouts with a scale and a minimum per 32 inputs, Q4_K
 * and Q5_K, AVX2. Interleaved superblock: d[8], dmin[8], three words of 6-bit scales, for
 * Q5_K eight words of qh, 32 words of qs.
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

/* Fifth bit: bit b of the byte in word w of qh. */
TILE_INLINE __m256i code_q5_k(const uint8_t *qh, int b, int w)
{
    const __m256i bits =
        _mm256_srl_epi16(load_words(qh + 32 * w), _mm_cvtsi32_si128(b & ~1));
    const __m256i h = _mm256_slli_epi16(bits, b & 1 ? 3 : 4);

    return _mm256_or_si256(nibble_word(qh + 256, b, w),
                           _mm256_and_si256(h, _mm256_set1_epi8(16)));
}

/* 6-bit numbers of eight blocks: @first words hold those of blocks 0..3 in the low bits
 * of their bytes and the top two bits of blocks 4..7; @nibble of @rest words the low four
 * bits. */
TILE_INLINE void unpack_six(__m256 out[8], __m256i first, __m256i rest, int nibble,
                            __m256 unit)
{
    TILE_UNROLL
    for (int j = 0; j < 4; j++) {
        const __m256i lo =
            _mm256_and_si256(_mm256_srli_epi32(first, 8 * j), _mm256_set1_epi32(63));
        const __m256i low4 = _mm256_and_si256(_mm256_srli_epi32(rest, 8 * j + 4 * nibble),
                                              _mm256_set1_epi32(15));
        const __m256i top2 =
            _mm256_and_si256(_mm256_srli_epi32(first, 8 * j + 2), _mm256_set1_epi32(48));

        out[j] = _mm256_mul_ps(unit, _mm256_cvtepi32_ps(lo));
        out[j + 4] = _mm256_mul_ps(unit, _mm256_cvtepi32_ps(_mm256_or_si256(low4, top2)));
    }
}

/* Loops over pairs of blocks are kept; low and high nibbles of the same bytes unrolled.
 */
TILE_INLINE void tile_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                        const cpu_xblock *x, size_t x_stride, int resume,
                        tile_code_fn *code, int flush, size_t block_bytes)
{
    __m256 acc[TILE_MAX], scale[8], min[8];

    start(n, out, resume, acc);
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * block_bytes, x += 8) {
        const __m256 neg = _mm256_sub_ps(_mm256_setzero_ps(), load_halves(group + 16));
        const __m256i rest = load_words(group + 96);

        prefetch_ahead(n, group, CPU_GROUP * block_bytes);
        unpack_six(scale, load_words(group + 32), rest, 0, load_halves(group));
        unpack_six(min, load_words(group + 64), rest, 1, neg);
        for (int pair = 0; pair < 8; pair += 2) {
            TILE_UNROLL
            for (int b = pair; b < pair + 2; b++) {
                __m256i isum[TILE_MAX];

                dot_block(n, code, group + 128, b, flush, x + b, x_stride, isum);
                add_block_min(n, acc, isum, scale[b], min[b], x + b, x_stride);
            }
        }
    }
    store(n, out, acc);
}

TILE_INLINE void tile_q4_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    tile_k(n, out, group, n_blocks, x, x_stride, resume, code_q4_k, 8, 144);
}

TILE_INLINE void tile_q5_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    tile_k(n, out, group, n_blocks, x, x_stride, resume, code_q5_k, 4, 176);
}

void cpu_dot_q4_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q4_k, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q5_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q5_k, out, group, n_blocks, x, x_stride, n_tokens, resume);
}
