/* SPDX-License-Identifier: Apache-2.0
 * Group kernels of the 32-input layouts Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 (bit layout: GGUF,
 * ggml's block types), AVX2. Interleaved blocks: d[8], m[8] if there is one, qh word if
 * there is one with bit w of byte b = fifth bit of input 4w+b, then the words of qs.
 */
#include "linear_layouts.h"

#include "linear_tile.h"

/* Word w of a nibble block: inputs 0..15 in the low halves, 16..31 in the high ones. */
TILE_INLINE __m256i nibble_word(const uint8_t *qs, int w)
{
    const __m256i v = load_words(qs + 32 * (w & 3));

    return _mm256_and_si256(w < 4 ? v : _mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}

/* Bit w of each byte of qh, moved to bit 4. */
TILE_INLINE __m256i fifth_bit(const uint8_t *qh, int w)
{
    const __m256i v = load_words(qh);

    return _mm256_and_si256(w < 4 ? _mm256_slli_epi16(v, 4 - w)
                                  : _mm256_srli_epi16(v, w - 4),
                            _mm256_set1_epi8(16));
}

TILE_INLINE __m256i code_4(const uint8_t *qs, int b, int w)
{
    (void)b;
    return nibble_word(qs, w);
}

TILE_INLINE __m256i code_5(const uint8_t *qh, int b, int w)
{
    (void)b;
    return _mm256_or_si256(nibble_word(qh + 32, w), fifth_bit(qh, w));
}

/* One tile of an unsigned layout. @zero > 0: value = d * (code - zero); else d * code +
 * m. */
TILE_INLINE void tile_unsigned(int n, float *out, const uint8_t *group, size_t n_blocks,
                               const cpu_xblock *x, size_t x_stride, int resume,
                               tile_code_fn *code, int flush, float zero,
                               size_t block_bytes)
{
    __m256 acc[TILE_MAX];

    start(n, out, resume, acc);
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * block_bytes, x++) {
        const __m256 d = load_halves(group);
        const __m256 m =
            zero > 0 ? _mm256_mul_ps(d, _mm256_set1_ps(-zero)) : load_halves(group + 16);
        __m256i isum[TILE_MAX];

        prefetch_ahead(n, group, CPU_GROUP * block_bytes);
        dot_block(n, code, group + (zero > 0 ? 16 : 32), 0, flush, x, x_stride, isum);
        add_block_min(n, acc, isum, d, m, x, x_stride);
    }
    store(n, out, acc);
}

TILE_INLINE void tile_q4_0(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    tile_unsigned(n, out, group, n_blocks, x, x_stride, resume, code_4, 8, 8.0f, 18);
}

TILE_INLINE void tile_q4_1(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    tile_unsigned(n, out, group, n_blocks, x, x_stride, resume, code_4, 8, 0.0f, 20);
}

TILE_INLINE void tile_q5_0(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    tile_unsigned(n, out, group, n_blocks, x, x_stride, resume, code_5, 4, 16.0f, 22);
}

TILE_INLINE void tile_q5_1(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    tile_unsigned(n, out, group, n_blocks, x, x_stride, resume, code_5, 4, 0.0f, 24);
}

/* Signed codes. */
TILE_INLINE void tile_q8_0(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    __m256 acc[TILE_MAX];

    start(n, out, resume, acc);
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * 34, x++) {
        __m256i isum[TILE_MAX];

        prefetch_ahead(n, group, CPU_GROUP * 34);
        dot_signed(n, group + 16, 0, x, x_stride, isum);
        for (int c = 0; c < n; c++)
            acc[c] = add_block(acc[c], isum[c], load_halves(group), x + c * x_stride);
    }
    store(n, out, acc);
}

void cpu_dot_q4_0(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q4_0, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q4_1(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q4_1, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q5_0(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q5_0, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q5_1(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q5_1, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q8_0(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q8_0, out, group, n_blocks, x, x_stride, n_tokens, resume);
}
