/* SPDX-License-Identifier: Apache-2.0
 * Stored rows of IQ1, IQ2, IQ3, IQ4_XS, TQ1_0 and Q1_0 times 8-bit tokens, AVX2. Their codes are
 * looked up, which takes as long as the product, so rows are not interleaved; two go together. One
 * or two tokens (planes) are multiplied as the codes come; for more, some blocks become signed
 * 8-bit codes in the first-level cache, then all tokens pass. Both ways add the same terms in the
 * same order.
 *
 * value = d * scale * code: |code| <= 127 and, in pairs against |q| <= 127 (maddubs),
 * 2 * 127 * 127 = 32258 fits int16; |scale| <= 32 with two of those fits int32. */
#include "iq_blocks.h"

#define SOME   16 /* blocks whose products are summed before the eight lanes are */
#define FEW    2  /* tokens that are multiplied as the codes come */

/* A block, expanded. */
typedef struct codes {
    _Alignas(32) int8_t q[256];
    head head;
} codes;

/* ---- products ---- */

/* Scales of 32 codes: the first of the pair in the lower half, the second in the upper. */
TILE_INLINE __m256i scales_at(const reader *r, const head *h, int g)
{
    const __m256i spread = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2,
                                            3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3);

    return r->is_scaled ? _mm256_shuffle_epi8(bcast_word(h->scale + 2 * g), spread)
                        : _mm256_set1_epi16(1);
}

/* sum + scale * code * q * d_x over 32 codes, in eight lanes of four codes. */
TILE_INLINE __m256 add_group(__m256 sum, group v, __m256i scale, const cpu_xblock *x)
{
    const __m256i q = _mm256_sign_epi8(load_words((const uint8_t *)x->q), v.sign);
    const __m256i p = _mm256_madd_epi16(_mm256_maddubs_epi16(v.size, q), scale);

    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(p), _mm256_broadcast_ss(&x->d), sum);
}

TILE_INLINE float sum_lanes(__m256 v)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

TILE_INLINE void put_sum(float *out, __m256 acc, int resume)
{
    *out = sum_lanes(acc) + (resume ? *out : 0.0f);
}

/* out[c * 8 + i] (+)= @n_blocks of row i of @n_rows (1 or 2) times @n tokens (up to FEW). */
TILE_INLINE void dot_few(const reader *r, int n_rows, int n, float *out, const uint8_t *const row[],
                         size_t n_blocks, const cpu_xblock *x, size_t x_stride, int resume)
{
    const uint8_t *at[2] = {row[0], row[n_rows - 1]};
    __m256 acc[2][FEW], sum[2][FEW];
    head h[2];

    for (int i = 0; i < 2 * FEW; i++)
        acc[i / FEW][i % FEW] = _mm256_setzero_ps();
    for (size_t b = 0; b < n_blocks; b++, x += r->elems / 32) {
        for (int i = 0; i < n_rows; i++) {
            for (size_t k = 0; k < r->block_bytes; k += 64)
                _mm_prefetch((const char *)at[i] + PREFETCH_BYTES + k, _MM_HINT_T0);
            r->head(h + i, at[i]);
            for (int c = 0; c < n; c++)
                sum[i][c] = _mm256_setzero_ps();
        }
        TILE_UNROLL
        for (int g = 0; g < r->elems / 32; g++)
            for (int i = 0; i < n_rows; i++) {
                const group v = r->codes(h + i, at[i], g);
                const __m256i scale = scales_at(r, h + i, g);

                for (int c = 0; c < n; c++)
                    sum[i][c] = add_group(sum[i][c], v, scale, x + c * x_stride + g);
            }
        for (int i = 0; i < n_rows; i++, at[i - 1] += r->block_bytes)
            for (int c = 0; c < n; c++)
                acc[i][c] = _mm256_fmadd_ps(_mm256_set1_ps(h[i].d), sum[i][c], acc[i][c]);
    }
    for (int i = 0; i < n_rows; i++)
        for (int c = 0; c < n; c++)
            put_sum(out + c * CPU_GROUP + i, acc[i][c], resume);
}

TILE_INLINE void expand(const reader *r, codes *out, const uint8_t *row, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++, row += r->block_bytes) {
        r->head(&out[b].head, row);
        for (int g = 0; g < r->elems / 32; g++) {
            const group v = r->codes(&out[b].head, row, g);

            _mm256_store_si256((void *)(out[b].q + 32 * g), _mm256_sign_epi8(v.size, v.sign));
        }
    }
}

/* out[c * 8] (+)= @n_blocks expanded blocks of a row times @n tokens. */
TILE_INLINE void dot_expanded(const reader *r, int n, float *out, const codes *some, size_t n_blocks,
                              const cpu_xblock *x, size_t x_stride, int resume)
{
    __m256 acc[TILE_MAX], sum[TILE_MAX];

    for (int c = 0; c < n; c++)
        acc[c] = _mm256_setzero_ps();
    for (size_t b = 0; b < n_blocks; b++, some++, x += r->elems / 32) {
        for (int c = 0; c < n; c++)
            sum[c] = _mm256_setzero_ps();
        TILE_UNROLL
        for (int g = 0; g < r->elems / 32; g++) {
            const __m256i q = load_words((const uint8_t *)some->q + 32 * g);
            const group v = {_mm256_abs_epi8(q), q};
            const __m256i scale = scales_at(r, &some->head, g);

            for (int c = 0; c < n; c++)
                sum[c] = add_group(sum[c], v, scale, x + c * x_stride + g);
        }
        for (int c = 0; c < n; c++)
            acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(some->head.d), sum[c], acc[c]);
    }
    for (int c = 0; c < n; c++)
        put_sum(out + c * CPU_GROUP, acc[c], resume);
}

/* One or two rows. */
TILE_INLINE void dot_rows(const reader *r, int n_rows, float *out, const uint8_t *const row[],
                          size_t n_blocks, const cpu_xblock *x, size_t x_stride, size_t n_tokens)
{
    codes some[SOME];

    for (size_t b = 0, n; b < n_blocks; b += n) {
        const uint8_t *const at[2] = {row[0] + b * r->block_bytes,
                                      row[n_rows - 1] + b * r->block_bytes};
        const cpu_xblock *xb = x + b * (size_t)(r->elems / 32);

        n = n_blocks - b < SOME ? n_blocks - b : SOME;
        if (n_tokens == 1)
            dot_few(r, n_rows, 1, out, at, n, xb, x_stride, b > 0);
        else if (n_tokens == FEW)
            dot_few(r, n_rows, FEW, out, at, n, xb, x_stride, b > 0);
        for (int i = 0; n_tokens > FEW && i < n_rows; i++) {
            size_t t = 0;

            expand(r, some, at[i], n);
            for (; t + TILE_MAX <= n_tokens; t += TILE_MAX)
                dot_expanded(r, TILE_MAX, out + t * CPU_GROUP + i, some, n, xb + t * x_stride,
                             x_stride, b > 0);
            for (; t < n_tokens; t++)
                dot_expanded(r, 1, out + t * CPU_GROUP + i, some, n, xb + t * x_stride, x_stride,
                             b > 0);
        }
    }
}

#define ROWS(id, elems_, bytes, scaled)                                                   \
    void cpu_rows_##id(float *out, const uint8_t *const row[], size_t n_rows,             \
                       size_t n_blocks, const cpu_xblock *x, size_t x_stride,             \
                       size_t n_tokens)                                                   \
    {                                                                                     \
        const reader r = {elems_, bytes, scaled, head_##id, codes_##id};                  \
                                                                                          \
        for (; n_rows >= 2; n_rows -= 2, out += 2, row += 2)                              \
            dot_rows(&r, 2, out, row, n_blocks, x, x_stride, n_tokens);                   \
        if (n_rows)                                                                       \
            dot_rows(&r, 1, out, row, n_blocks, x, x_stride, n_tokens);                   \
    }

IQ_BLOCKS(ROWS)
