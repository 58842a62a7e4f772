/* SPDX-License-Identifier: Apache-2.0
 * Activations to 8 bits per block of 32, AVX2: d = max|x| / 127, q = x / d rounded to
 * nearest even, with the sums that offsets and minima of weights need.
 */
#include <float.h>

#include "linear_tile.h"

/* Largest of eight non-negative floats by their bits, so that NaN beats everything and is
 * not lost. */
static float max_by_bits(__m256i v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(m));
}

static int16_t sum_of_four(__m128i v)
{
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
    return (int16_t)_mm_cvtsi128_si32(v);
}

static void quantize_block(cpu_xblock *out, const float *x)
{
    const __m256i no_sign = _mm256_set1_epi32(INT32_MAX);
    __m256i v[4], big = _mm256_setzero_si256();
    float amax, inv;

    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_castps_si256(_mm256_loadu_ps(x + 8 * i));
        big = _mm256_max_epi32(big, _mm256_and_si256(v[i], no_sign));
    }
    amax = max_by_bits(big);
    out->d = amax / 127.0f;
    /* Below this 127 / amax would overflow; the values are zero for every purpose. */
    if (amax < 127.0f / FLT_MAX)
        out->d = 0.0f;
    inv = amax < 127.0f / FLT_MAX ? 0.0f : 127.0f / amax;
    for (int i = 0; i < 4; i++) {
        const __m256 s = _mm256_mul_ps(_mm256_castsi256_ps(v[i]), _mm256_set1_ps(inv));

        v[i] = _mm256_cvtps_epi32(s);
    }
    {
        const __m256i a = _mm256_add_epi32(v[0], v[1]), b = _mm256_add_epi32(v[2], v[3]);
        const __m256i p = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                                             _mm256_packs_epi32(v[2], v[3]));
        /* both packs work within 128-bit lanes: put the words back in order */
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);

        _mm256_storeu_si256((__m256i *)(void *)out->q,
                            _mm256_permutevar8x32_epi32(p, order));
        out->sum[0] = sum_of_four(
            _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
        out->sum[1] = sum_of_four(
            _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1)));
    }
    out->dsum = out->d * (float)(out->sum[0] + out->sum[1]);
}

void cpu_quantize_x(cpu_xblock *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n / CPU_XBLOCK; i++)
        quantize_block(out + i, x + i * CPU_XBLOCK);
}
