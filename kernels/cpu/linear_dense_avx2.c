/* SPDX-License-Identifier: Apache-2.0
 * Dense rows (float32, float16, bfloat16) times float32 tokens, AVX2 + FMA + F16C: tiles
 * of 4 rows x 3 tokens, twelve sums in registers, each loaded vector used three or four
 * times.
 */
#include "linear_dense.h"

#include <immintrin.h>
#include <string.h>

#define DENSE_INLINE static inline __attribute__((always_inline))
#define ROWS         CPU_DENSE_ROWS
#define TOKENS       3

/* Eight weights from value @k on. */
typedef __m256 load_fn(const uint8_t *row, size_t k);

DENSE_INLINE __m256 load_f32(const uint8_t *row, size_t k)
{
    return _mm256_loadu_ps((const float *)(const void *)(row + 4 * k));
}

DENSE_INLINE __m256 load_f16(const uint8_t *row, size_t k)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(row + 2 * k)));
}

DENSE_INLINE __m256 load_bf16(const uint8_t *row, size_t k)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(row + 2 * k));

    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* Sums of the eight lanes of four vectors, in one order for all. */
DENSE_INLINE __m128 add_lanes(const __m256 v[ROWS])
{
    const __m256 ab = _mm256_hadd_ps(v[0], v[1]), cd = _mm256_hadd_ps(v[2], v[3]);
    const __m256 all = _mm256_hadd_ps(ab, cd);

    return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

/* The last 1..7 inputs, padded with zeros, as one more step. */
DENSE_INLINE void add_tail(int n_tok, __m256 acc[TOKENS][ROWS],
                           const uint8_t *const row[ROWS], size_t k, size_t n,
                           const float *x, size_t x_stride, load_fn *load, size_t elem)
{
    uint8_t w[ROWS][32] = {{0}};

    for (int r = 0; r < ROWS; r++)
        memcpy(w[r], row[r] + k * elem, (n - k) * elem);
    for (int t = 0; t < n_tok; t++) {
        float part[8] = {0};
        __m256 xv;

        memcpy(part, x + t * x_stride + k, (n - k) * sizeof *part);
        xv = _mm256_loadu_ps(part);
        for (int r = 0; r < ROWS; r++)
            acc[t][r] = _mm256_fmadd_ps(load(w[r], 0), xv, acc[t][r]);
    }
}

DENSE_INLINE void tile(int n_tok, float *out, const uint8_t *const row[ROWS], size_t n,
                       const float *x, size_t x_stride, load_fn *load, size_t elem)
{
    __m256 acc[TOKENS][ROWS];
    size_t k = 0;

    for (int t = 0; t < n_tok; t++)
        for (int r = 0; r < ROWS; r++)
            acc[t][r] = _mm256_setzero_ps();
    for (; k + 8 <= n; k += 8) {
        __m256 xv[TOKENS];

        for (int t = 0; t < n_tok; t++)
            xv[t] = _mm256_loadu_ps(x + t * x_stride + k);
        for (int r = 0; r < ROWS; r++) {
            const __m256 w = load(row[r], k);

            for (int t = 0; t < n_tok; t++)
                acc[t][r] = _mm256_fmadd_ps(w, xv[t], acc[t][r]);
        }
    }
    if (k < n)
        add_tail(n_tok, acc, row, k, n, x, x_stride, load, elem);
    for (int t = 0; t < n_tok; t++)
        _mm_storeu_ps(out + t * ROWS, add_lanes(acc[t]));
}

DENSE_INLINE void all_tokens(float *out, const uint8_t *const row[ROWS], size_t n,
                             const float *x, size_t x_stride, size_t n_tokens,
                             load_fn *load, size_t elem)
{
    for (; n_tokens >= 3; n_tokens -= 3, x += 3 * x_stride, out += 3 * ROWS)
        tile(3, out, row, n, x, x_stride, load, elem);
    if (n_tokens == 2)
        tile(2, out, row, n, x, x_stride, load, elem);
    else if (n_tokens == 1)
        tile(1, out, row, n, x, x_stride, load, elem);
}

void cpu_dense_f32(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                   size_t x_stride, size_t n_tokens)
{
    all_tokens(out, row, n, x, x_stride, n_tokens, load_f32, 4);
}

void cpu_dense_f16(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                   size_t x_stride, size_t n_tokens)
{
    all_tokens(out, row, n, x, x_stride, n_tokens, load_f16, 2);
}

void cpu_dense_bf16(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                    size_t x_stride, size_t n_tokens)
{
    all_tokens(out, row, n, x, x_stride, n_tokens, load_bf16, 2);
}
