/* SPDX-License-Identifier: Apache-2.0
 * Eight floats at a time: tails, sums of fixed order, exp, tanh, erf. Only for files built
 * with AVX2, FMA and F16C.
 *
 * A value's result does not depend on its lane, and tails go through the same code under a
 * mask, so that results do not depend on where a row is cut.
 */
#ifndef DAVIT_CPU_VEC_AVX2_H
#define DAVIT_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

/* Lanes 0 .. n-1 of eight, n <= 8. */
static inline __m256i vec_mask(uint64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Up to eight values from @p on, @n > 0 of them; zeros after them. */
static inline __m256 vec_load(const float *p, uint64_t n)
{
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, vec_mask(n));
}

static inline void vec_store(float *p, uint64_t n, __m256 v)
{
    if (n >= 8)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, vec_mask(n), v);
}

/* ((0+4)+(2+6)) + ((1+5)+(3+7)) */
static inline float vec_sum(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline float vec_max(__m256 v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    s = _mm_max_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline __m256 vec_set(float f)
{
    return _mm256_set1_ps(f);
}

/* e^x to 1.5 ulp; 0 below -87.3, the largest float from 88.72 on; NaN stays NaN.
 * x = n ln 2 + r, |r| <= ln 2 / 2; polynomial of Cephes' expf. */
static inline __m256 vec_exp(__m256 x)
{
    const __m256 low = _mm256_cmp_ps(x, vec_set(-87.33f), _CMP_LT_OQ);
    const __m256 c = _mm256_min_ps(vec_set(88.7228f), x); /* NaN in x passes through */
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(c, vec_set(1.44269504088896341f)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, vec_set(0.693359375f), c);
    r = _mm256_fnmadd_ps(n, vec_set(-2.12194440e-4f), r);

    __m256 y = vec_set(1.9875691500e-4f);
    y = _mm256_fmadd_ps(y, r, vec_set(1.3981999507e-3f));
    y = _mm256_fmadd_ps(y, r, vec_set(8.3334519073e-3f));
    y = _mm256_fmadd_ps(y, r, vec_set(4.1665795894e-2f));
    y = _mm256_fmadd_ps(y, r, vec_set(1.6666665459e-1f));
    y = _mm256_fmadd_ps(y, r, vec_set(5.0000001201e-1f));
    y = _mm256_fmadd_ps(y, _mm256_mul_ps(r, r), _mm256_add_ps(r, vec_set(1.0f)));

    /* 2^n in two factors: n reaches 128 at the top */
    const __m256i i = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(i, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i b = _mm256_slli_epi32(
        _mm256_add_epi32(_mm256_sub_epi32(i, half), bias), 23);
    y = _mm256_mul_ps(_mm256_mul_ps(y, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
    return _mm256_andnot_ps(low, y);
}

/* 1 / (1 + e^-x) */
static inline __m256 vec_sigmoid(__m256 x)
{
    const __m256 e = vec_exp(_mm256_sub_ps(_mm256_setzero_ps(), x));
    return _mm256_div_ps(vec_set(1.0f), _mm256_add_ps(vec_set(1.0f), e));
}

/* tanh: odd polynomial below 0.625 (Cephes' tanhf), 1 - 2 / (e^2x + 1) above. */
static inline __m256 vec_tanh(__m256 x)
{
    const __m256 sign = _mm256_and_ps(x, vec_set(-0.0f));
    const __m256 a = _mm256_xor_ps(x, sign);
    const __m256 z = _mm256_mul_ps(a, a);
    __m256 p = vec_set(-5.70498872745e-3f);
    p = _mm256_fmadd_ps(p, z, vec_set(2.06390887954e-2f));
    p = _mm256_fmadd_ps(p, z, vec_set(-5.37397155531e-2f));
    p = _mm256_fmadd_ps(p, z, vec_set(1.33314422036e-1f));
    p = _mm256_fmadd_ps(p, z, vec_set(-3.33332819422e-1f));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, z), a, a);

    const __m256 e = vec_exp(_mm256_min_ps(vec_set(40.0f), _mm256_add_ps(a, a)));
    const __m256 q = _mm256_sub_ps(
        vec_set(1.0f), _mm256_div_ps(vec_set(2.0f), _mm256_add_ps(e, vec_set(1.0f))));
    const __m256 is_small = _mm256_cmp_ps(a, vec_set(0.625f), _CMP_LT_OQ);
    return _mm256_or_ps(_mm256_blendv_ps(q, p, is_small), sign);
}

/* Polynomial of @n coefficients, highest power first. */
static inline __m256 vec_poly(const float *c, int n, __m256 x)
{
    __m256 y = vec_set(c[0]);

    for (int i = 1; i < n; i++)
        y = _mm256_fmadd_ps(y, x, vec_set(c[i]));
    return y;
}

/* erf, after Cephes' erff: x P(x^2) up to 1, 1 - e^(-x^2) / x Q(1 / x^2) above. */
static inline __m256 vec_erf(__m256 x)
{
    static const float near_zero[] = {7.853861353153693e-5f, -8.010193625184903e-4f,
                                      5.188327685732524e-3f, -2.685381193529856e-2f,
                                      1.128358514861418e-1f, -3.761262582423300e-1f,
                                      1.128379165726710e+0f};
    static const float to_two[] = {2.326819970068386e-2f,  -1.387039388740657e-1f,
                                   3.687424674597105e-1f,  -5.824733027278666e-1f,
                                   6.210004621745983e-1f,  -4.944515323274145e-1f,
                                   3.404879937665872e-1f,  -2.741127028184656e-1f,
                                   5.638259427386472e-1f};
    static const float above[] = {-1.047766399936249e+1f, 1.297719955372516e+1f,
                                  -7.495518717768503e+0f, 2.921019019210786e+0f,
                                  -1.015265279202700e+0f, 4.218463358204948e-1f,
                                  -2.820767439740514e-1f, 5.641895067754075e-1f};
    const __m256 sign = _mm256_and_ps(x, vec_set(-0.0f));
    const __m256 a = _mm256_xor_ps(x, sign);
    const __m256 z = _mm256_mul_ps(a, a);
    const __m256 small = _mm256_mul_ps(a, vec_poly(near_zero, 7, z));

    const __m256 q = _mm256_div_ps(vec_set(1.0f), a), w = _mm256_mul_ps(q, q);
    const __m256 is_far = _mm256_cmp_ps(a, vec_set(2.0f), _CMP_GE_OQ);
    const __m256 p = _mm256_blendv_ps(vec_poly(to_two, 9, w), vec_poly(above, 8, w), is_far);
    const __m256 e = vec_exp(_mm256_sub_ps(_mm256_setzero_ps(), z));
    const __m256 big = _mm256_fnmadd_ps(_mm256_mul_ps(e, q), p, vec_set(1.0f));
    const __m256 is_small = _mm256_cmp_ps(a, vec_set(1.0f), _CMP_LT_OQ);
    return _mm256_or_ps(_mm256_blendv_ps(big, small, is_small), sign);
}

#endif
