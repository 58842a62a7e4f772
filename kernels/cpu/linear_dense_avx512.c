/* SPDX-License-Identifier: Apache-2.0
 * Dense rows (float32, float16, bfloat16) times float32 tokens in 512-bit vectors: tiles of
 * 4 rows x 4 tokens. Weights are widened; activations keep their 24 bits (SPEED.md says why the
 * processors' bfloat16 dot product is not used).
 *
 * Sums: sixteen partial sums per row and token, input k in sum k mod 16, ascending, fused
 * multiply-add; then 0 + 8, 1 + 9 ..., and the eight as linear_dense.h says. The same for
 * every T. Built for AVX512F, BW, DQ, VL; with CPU_VNNI_SIMDE in portable C for tests. */
#include "linear_dense.h"

#if defined(CPU_VNNI_SIMDE)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512/cast.h>
#include <simde/x86/avx512/extract.h>
#include <simde/x86/avx512/fmadd.h>
#include <simde/x86/avx512/loadu.h>
#include <simde/x86/avx512/setzero.h>
#endif
#include <immintrin.h>
#include <string.h>

#define DENSE_INLINE static inline __attribute__((always_inline))
#define ROWS         CPU_DENSE_ROWS
#define TOKENS       4
#define LANES        16

/* Sixteen weights from value @k on. */
typedef __m512 load_fn(const uint8_t *row, size_t k);

DENSE_INLINE __m512 load_f32(const uint8_t *row, size_t k)
{
    return _mm512_loadu_ps((const float *)(const void *)(row + 4 * k));
}

/* simde lacks the two conversions in 512 bits: halves there. */
#if defined(CPU_VNNI_SIMDE)
DENSE_INLINE __m128i eight_at(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

DENSE_INLINE __m512 from_halves(__m256 low, __m256 high)
{
    float both[LANES];

    _mm256_storeu_ps(both, low);
    _mm256_storeu_ps(both + 8, high);
    return _mm512_loadu_ps(both);
}

DENSE_INLINE __m512 load_f16(const uint8_t *row, size_t k)
{
    return from_halves(_mm256_cvtph_ps(eight_at(row + 2 * k)),
                       _mm256_cvtph_ps(eight_at(row + 2 * k + 16)));
}

DENSE_INLINE __m256 bf16_eight(const uint8_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight_at(p)), 16));
}

DENSE_INLINE __m512 load_bf16(const uint8_t *row, size_t k)
{
    return from_halves(bf16_eight(row + 2 * k), bf16_eight(row + 2 * k + 16));
}
#else
DENSE_INLINE __m256i sixteen_at(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

DENSE_INLINE __m512 load_f16(const uint8_t *row, size_t k)
{
    return _mm512_cvtph_ps(sixteen_at(row + 2 * k));
}

DENSE_INLINE __m512 load_bf16(const uint8_t *row, size_t k)
{
    const __m512i wide = _mm512_cvtepu16_epi32(sixteen_at(row + 2 * k));

    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
#endif

DENSE_INLINE __m256 add_halves(__m512 v)
{
    const __m256d high = _mm512_extractf64x4_pd(_mm512_castps_pd(v), 1);

    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm256_castpd_ps(high));
}

DENSE_INLINE __m128 add_lanes(const __m512 v[ROWS])
{
    const __m256 ab = _mm256_hadd_ps(add_halves(v[0]), add_halves(v[1]));
    const __m256 cd = _mm256_hadd_ps(add_halves(v[2]), add_halves(v[3]));
    const __m256 all = _mm256_hadd_ps(ab, cd);

    return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

/* One vector of each row times one of each token. */
DENSE_INLINE void step(int n_tok, __m512 acc[TOKENS][ROWS], const uint8_t *const row[ROWS],
                       size_t k, const float *x, size_t x_stride, load_fn *load)
{
    __m512 xv[TOKENS];

    for (int t = 0; t < n_tok; t++)
        xv[t] = _mm512_loadu_ps(x + (size_t)t * x_stride);
    for (int r = 0; r < ROWS; r++) {
        const __m512 w = load(row[r], k);

        for (int t = 0; t < n_tok; t++)
            acc[t][r] = _mm512_fmadd_ps(w, xv[t], acc[t][r]);
    }
}

/* The last 1..15 inputs, padded with zeros, as one more step. */
DENSE_INLINE void add_tail(int n_tok, __m512 acc[TOKENS][ROWS], const uint8_t *const row[ROWS],
                           size_t k, size_t n, const float *x, size_t x_stride, load_fn *load,
                           size_t elem)
{
    uint8_t w[ROWS][LANES * 4] = {{0}};
    float part[TOKENS * LANES] = {0};
    const uint8_t *const rows[ROWS] = {w[0], w[1], w[2], w[3]};

    for (int r = 0; r < ROWS; r++)
        memcpy(w[r], row[r] + k * elem, (n - k) * elem);
    for (int t = 0; t < n_tok; t++)
        memcpy(part + t * LANES, x + (size_t)t * x_stride + k, (n - k) * sizeof *part);
    step(n_tok, acc, rows, 0, part, LANES, load);
}

DENSE_INLINE void tile(int n_tok, float *out, const uint8_t *const row[ROWS], size_t n,
                       const float *x, size_t x_stride, load_fn *load, size_t elem)
{
    __m512 acc[TOKENS][ROWS];
    size_t k = 0;

    for (int t = 0; t < n_tok; t++)
        for (int r = 0; r < ROWS; r++)
            acc[t][r] = _mm512_setzero_ps();
    for (; k + LANES <= n; k += LANES)
        step(n_tok, acc, row, k, x + k, x_stride, load);
    if (k < n)
        add_tail(n_tok, acc, row, k, n, x, x_stride, load, elem);
    for (int t = 0; t < n_tok; t++)
        _mm_storeu_ps(out + t * ROWS, add_lanes(acc[t]));
}

DENSE_INLINE void all_tokens(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                             size_t x_stride, size_t n_tokens, load_fn *load, size_t elem)
{
    for (; n_tokens >= TOKENS; n_tokens -= TOKENS, x += TOKENS * x_stride, out += TOKENS * ROWS)
        tile(4, out, row, n, x, x_stride, load, elem);
    if (n_tokens == 3)
        tile(3, out, row, n, x, x_stride, load, elem);
    else if (n_tokens == 2)
        tile(2, out, row, n, x, x_stride, load, elem);
    else if (n_tokens == 1)
        tile(1, out, row, n, x, x_stride, load, elem);
}

void cpu_dense_f32_avx512(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                          size_t x_stride, size_t n_tokens)
{
    all_tokens(out, row, n, x, x_stride, n_tokens, load_f32, 4);
}

void cpu_dense_f16_avx512(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                          size_t x_stride, size_t n_tokens)
{
    all_tokens(out, row, n, x, x_stride, n_tokens, load_f16, 2);
}

void cpu_dense_bf16_avx512(float *out, const uint8_t *const row[ROWS], size_t n, const float *x,
                           size_t x_stride, size_t n_tokens)
{
    all_tokens(out, row, n, x, x_stride, n_tokens, load_bf16, 2);
}
