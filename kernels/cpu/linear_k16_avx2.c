/* SPDX-License-Identifier: Apache-2.0
 * Group kernels of the 256-input layouts with an integer scale per 16 inputs, Q2_K Q3_K
 * Q6_K, AVX2. The int16 partial sums of each half block are multiplied by its scale while
 * they are widened, so a block of 32 needs one float step.
 *
 * Interleaved superblocks (words of 8 rows, 32 bytes each):
 *   Q2_K  d[8] dmin[8] sc*4 qs*16      Q3_K  d[8] s12*3 hm*8 qs*16
 *   Q6_K  d[8] sc*4 ql*32 qh*16
 */
#include "linear_layouts.h"

#include "linear_tile.h"

/* A block's two scales are a "pair": (s0, s1) as int16 in each row's lane. */

/* Bytes 2(b&1) and 2(b&1)+1 of each lane as two int16; @high puts them into the upper
 * byte (for sign extension), else they are zero-extended. */
TILE_INLINE __m256i byte_pair(__m256i words, int b, int high)
{
    const char p = b & 1 ? 2 : 0;
    const char z = -128;
    const __m128i zero_ext = _mm_setr_epi8(p, z, p + 1, z, p + 4, z, p + 5, z, p + 8, z,
                                           p + 9, z, p + 12, z, p + 13, z);
    const __m128i sign_ext = _mm_setr_epi8(z, p, z, p + 1, z, p + 4, z, p + 5, z, p + 8,
                                           z, p + 9, z, p + 12, z, p + 13);

    return _mm256_shuffle_epi8(words,
                               _mm256_broadcastsi128_si256(high ? sign_ext : zero_ext));
}

#if !defined(CPU_VNNI)
/* (s0, s0) or (s1, s1) per row. */
TILE_INLINE __m256i half_scale(__m256i pair, int half)
{
    const __m256i up = _mm256_slli_epi32(pair, 16);
    const __m256i down = _mm256_srli_epi32(pair, 16);

    return half ? _mm256_blend_epi16(pair, down, 0x55)
                : _mm256_blend_epi16(pair, up, 0xaa);
}
#endif

#if defined(CPU_VNNI)
/* As below; the sum of half a block is multiplied when it is complete. */
TILE_INLINE void dot_halves(int n, tile_code_fn *code, const uint8_t *sb, int b,
                            int flush, __m256i pair, const cpu_xblock *x, size_t x_stride,
                            __m256i isum[TILE_MAX])
{
    (void)flush;
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w0 = 0; w0 < 8; w0 += 4) {
        const __m256i up = w0 ? pair : _mm256_slli_epi32(pair, 16);
        const __m256i s = _mm256_srai_epi32(up, 16);
        __m256i part[TILE_MAX];

        for (int c = 0; c < n; c++)
            part[c] = _mm256_setzero_si256();
        TILE_UNROLL
        for (int w = w0; w < w0 + 4; w++) {
            const __m256i u = code(sb, b, w);

            for (int c = 0; c < n; c++)
                part[c] = add_products(part[c], u, bcast_word(x[c * x_stride].q + 4 * w));
        }
        for (int c = 0; c < n; c++)
            isum[c] = _mm256_add_epi32(isum[c], _mm256_mullo_epi32(part[c], s));
    }
}
#else
/* isum[c] = s0 * (first half) + s1 * (second half). */
TILE_INLINE void dot_halves(int n, tile_code_fn *code, const uint8_t *sb, int b,
                            int flush, __m256i pair, const cpu_xblock *x, size_t x_stride,
                            __m256i isum[TILE_MAX])
{
    for (int c = 0; c < n; c++)
        isum[c] = _mm256_setzero_si256();
    TILE_UNROLL
    for (int w0 = 0; w0 < 8; w0 += flush) {
        const __m256i s = half_scale(pair, w0 >= 4);
        __m256i part[TILE_MAX];

        for (int c = 0; c < n; c++)
            part[c] = _mm256_setzero_si256();
        TILE_UNROLL
        for (int w = w0; w < w0 + flush; w++) {
            const __m256i u = code(sb, b, w);

            for (int c = 0; c < n; c++) {
                const __m256i q = bcast_word(x[c * x_stride].q + 4 * w);

                part[c] =
                    in_order(n, _mm256_add_epi16(part[c], _mm256_maddubs_epi16(u, q)));
            }
        }
        for (int c = 0; c < n; c++)
            isum[c] = _mm256_add_epi32(isum[c], _mm256_madd_epi16(part[c], s));
    }
}

#endif

/* s0 * sum0 + s1 * sum1 of a token's block. */
TILE_INLINE __m256i dot_sums(__m256i pair, const cpu_xblock *x)
{
    return _mm256_madd_epi16(pair, bcast_word(x->sum));
}

/* Block b = 4h + g: loops over h are kept, loops over g unrolled, so that (b & 3) is
 * constant where it selects shifts and the code stays small. */

/* ---- Q6_K ---- */

/* Nibbles of ql, bits 4 and 5 from qh. @ql: 32 words, then qh: 16 words. */
TILE_INLINE __m256i code_q6_k(const uint8_t *ql, int b, int w)
{
    const int h = b >> 2, g = b & 3;
    const __m256i lo = load_words(ql + 32 * (16 * h + 8 * (g & 1) + w));
    const __m256i hi = load_words(ql + 1024 + 32 * (8 * h + w));
    const __m256i top = g == 0   ? _mm256_slli_epi16(hi, 4)
                        : g == 1 ? _mm256_slli_epi16(hi, 2)
                        : g == 2 ? hi
                                 : _mm256_srli_epi16(hi, 2);

    return _mm256_or_si256(
        _mm256_and_si256(g < 2 ? lo : _mm256_srli_epi16(lo, 4), _mm256_set1_epi8(15)),
        _mm256_and_si256(top, _mm256_set1_epi8(48)));
}

TILE_INLINE void block_q6_k(int n, int b, __m256 acc[TILE_MAX], const uint8_t *group,
                            __m256 d, const cpu_xblock *x, size_t x_stride)
{
    const __m256i words = load_words(group + 16 + 32 * (b >> 1));
    const __m256i pair = _mm256_srai_epi16(byte_pair(words, b, 1), 8);
    __m256i isum[TILE_MAX];

    dot_halves(n, code_q6_k, group + 144, b, 2, pair, x, x_stride, isum);
    for (int c = 0; c < n; c++) {
        const __m256i off = _mm256_slli_epi32(dot_sums(pair, x + c * x_stride), 5);

        acc[c] = add_block(acc[c], _mm256_sub_epi32(isum[c], off), d, x + c * x_stride);
    }
}

TILE_INLINE void tile_q6_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    __m256 acc[TILE_MAX];

    start(n, out, resume, acc);
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * 210, x += 8) {
        prefetch_ahead(n, group, CPU_GROUP * 210);
        for (int h = 0; h < 2; h++) {
            TILE_UNROLL
            for (int g = 0; g < 4; g++)
                block_q6_k(n, 4 * h + g, acc, group, load_halves(group), x + 4 * h + g,
                           x_stride);
        }
    }
    store(n, out, acc);
}

/* ---- Q3_K ---- */

/* Two bits of qs, third bit: bit b of hm. @hm: 8 words, then qs: 16 words. */
TILE_INLINE __m256i code_q3_k(const uint8_t *hm, int b, int w)
{
    const int g = b & 3;
    const __m256i lo = load_words(hm + 256 + 32 * (8 * (b >> 2) + w));
    const __m256i hi =
        _mm256_srl_epi16(load_words(hm + 32 * w), _mm_cvtsi32_si128(b & 4));
    const __m256i top =
        g < 2 ? _mm256_slli_epi16(hi, 2 - g) : _mm256_srli_epi16(hi, g - 2);

    return _mm256_or_si256(
        _mm256_and_si256(_mm256_srli_epi16(lo, 2 * g), _mm256_set1_epi8(3)),
        _mm256_and_si256(top, _mm256_set1_epi8(4)));
}

/* 6-bit scales minus 32. */
TILE_INLINE __m256i pair_q3_k(const uint8_t *s12, int b)
{
    const __m128i by_half = _mm_cvtsi32_si128(b & 4);
    const __m256i lo = byte_pair(load_words(s12 + 32 * ((b >> 1) & 1)), b, 0);
    const __m256i hi = byte_pair(load_words(s12 + 64), b, 0);
    const __m256i low =
        _mm256_and_si256(_mm256_srl_epi16(lo, by_half), _mm256_set1_epi16(15));
    const __m256i high = _mm256_and_si256(
        _mm256_srli_epi16(_mm256_srl_epi16(hi, by_half), b & 2), _mm256_set1_epi16(3));

    return _mm256_sub_epi16(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)),
                            _mm256_set1_epi16(32));
}

TILE_INLINE void block_q3_k(int n, int b, __m256 acc[TILE_MAX], const uint8_t *group,
                            __m256 d, const cpu_xblock *x, size_t x_stride)
{
    const __m256i pair = pair_q3_k(group + 16, b);
    __m256i isum[TILE_MAX];

    dot_halves(n, code_q3_k, group + 112, b, 4, pair, x, x_stride, isum);
    for (int c = 0; c < n; c++) {
        const __m256i off = _mm256_slli_epi32(dot_sums(pair, x + c * x_stride), 2);

        acc[c] = add_block(acc[c], _mm256_sub_epi32(isum[c], off), d, x + c * x_stride);
    }
}

TILE_INLINE void tile_q3_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    __m256 acc[TILE_MAX];

    start(n, out, resume, acc);
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * 110, x += 8) {
        prefetch_ahead(n, group, CPU_GROUP * 110);
        for (int h = 0; h < 2; h++) {
            TILE_UNROLL
            for (int g = 0; g < 4; g++)
                block_q3_k(n, 4 * h + g, acc, group, load_halves(group), x + 4 * h + g,
                           x_stride);
        }
    }
    store(n, out, acc);
}

/* ---- Q2_K ---- */

TILE_INLINE __m256i code_q2_k(const uint8_t *qs, int b, int w)
{
    const __m256i v = load_words(qs + 32 * (8 * (b >> 2) + w));

    return _mm256_and_si256(_mm256_srli_epi16(v, 2 * (b & 3)), _mm256_set1_epi8(3));
}

/* Scale byte: low nibble scale, high nibble minimum. */
TILE_INLINE void block_q2_k(int n, int b, __m256 acc[TILE_MAX], const uint8_t *group,
                            const cpu_xblock *x, size_t x_stride)
{
    const __m256 d = load_halves(group);
    const __m256 neg = _mm256_sub_ps(_mm256_setzero_ps(), load_halves(group + 16));
    const __m256i sm = byte_pair(load_words(group + 32 + 32 * (b >> 1)), b, 0);
    const __m256i pair = _mm256_and_si256(sm, _mm256_set1_epi16(15));
    const __m256i mins = _mm256_srli_epi16(sm, 4);
    __m256i isum[TILE_MAX];

    dot_halves(n, code_q2_k, group + 160, b, 4, pair, x, x_stride, isum);
    for (int c = 0; c < n; c++) {
        const cpu_xblock *xb = x + c * x_stride;

        acc[c] = add_block(acc[c], isum[c], d, xb);
        acc[c] = add_block(acc[c], dot_sums(mins, xb), neg, xb);
    }
}

TILE_INLINE void tile_q2_k(int n, float *out, const uint8_t *group, size_t n_blocks,
                           const cpu_xblock *x, size_t x_stride, int resume)
{
    __m256 acc[TILE_MAX];

    start(n, out, resume, acc);
    for (size_t i = 0; i < n_blocks; i++, group += CPU_GROUP * 84, x += 8) {
        prefetch_ahead(n, group, CPU_GROUP * 84);
        for (int h = 0; h < 2; h++) {
            TILE_UNROLL
            for (int g = 0; g < 4; g++)
                block_q2_k(n, 4 * h + g, acc, group, x + 4 * h + g, x_stride);
        }
    }
    store(n, out, acc);
}

void cpu_dot_q2_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q2_k, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q3_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q3_k, out, group, n_blocks, x, x_stride, n_tokens, resume);
}

void cpu_dot_q6_k(float *out, const uint8_t *group, size_t n_blocks, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int resume)
{
    for_tiles(tile_q6_k, out, group, n_blocks, x, x_stride, n_tokens, resume);
}
