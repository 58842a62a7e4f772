/* SPDX-License-Identifier: Apache-2.0
 * Plain values of the packed layout (codes.h) times float32 tokens, AVX2 + FMA + F16C: one load is a
 * column's eight rows. One or two tokens at a time, for these are segments beside packed ones, not
 * whole matrices. Sums: codes.h. */
#include "codes.h"

#include "codes_avx2.h"

#define PARTS 4 /* partial sums, column mod 4 */

/* The eight rows of column @k. */
TILE_INLINE __m256 column(uint32_t type, const uint8_t *block, uint64_t k)
{
    if (type == DAVIT_SCALE_F32)
        return _mm256_loadu_ps((const float *)(const void *)block + k * CPU_GROUP);
    if (type == DAVIT_SCALE_F16)
        return load_halves(block + k * 2 * CPU_GROUP);
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)(block + k * 2 * CPU_GROUP))),
        16));
}

/* @n tokens, 1 or 2; both constants where it is called. */
TILE_INLINE void some_tokens(uint32_t type, int n, float *out, const cpu_codes *c,
                             const uint8_t *block, const float *x, size_t x_stride)
{
    __m256 acc[2][PARTS];

    for (int i = 0; i < 2 * PARTS; i++)
        acc[i / PARTS][i % PARTS] = _mm256_setzero_ps();
    for (uint64_t k = 0; k < c->n_cols; k += PARTS) {
        _mm_prefetch((const char *)block + k * CPU_GROUP * c->what.bits / 8 + PREFETCH_BYTES,
                     _MM_HINT_T0);
        for (int p = 0; p < PARTS && k + (uint64_t)p < c->n_cols; p++) {
            const __m256 w = column(type, block, k + (uint64_t)p);

            for (int t = 0; t < n; t++)
                acc[t][p] = _mm256_fmadd_ps(
                    _mm256_broadcast_ss(x + (size_t)t * x_stride + k + p), w, acc[t][p]);
        }
    }
    for (int t = 0; t < n; t++)
        _mm256_storeu_ps(out + t * CPU_GROUP, _mm256_add_ps(_mm256_add_ps(acc[t][0], acc[t][2]),
                                                            _mm256_add_ps(acc[t][1], acc[t][3])));
}

TILE_INLINE void all_tokens(uint32_t type, float *out, const cpu_codes *c, const uint8_t *block,
                            const float *x, size_t x_stride, size_t n_tokens)
{
    for (; n_tokens >= 2; n_tokens -= 2, out += 2 * CPU_GROUP, x += 2 * x_stride)
        some_tokens(type, 2, out, c, block, x, x_stride);
    if (n_tokens)
        some_tokens(type, 1, out, c, block, x, x_stride);
}

void cpu_codes_dot_plain_avx2(float *out, const cpu_codes *c, const uint8_t *block,
                              const float *x, size_t x_stride, size_t n_tokens)
{
    if (c->what.scale_type == DAVIT_SCALE_F32)
        all_tokens(DAVIT_SCALE_F32, out, c, block, x, x_stride, n_tokens);
    else if (c->what.scale_type == DAVIT_SCALE_F16)
        all_tokens(DAVIT_SCALE_F16, out, c, block, x, x_stride, n_tokens);
    else
        all_tokens(DAVIT_SCALE_BF16, out, c, block, x, x_stride, n_tokens);
}
