/* SPDX-License-Identifier: Apache-2.0
 * kv_append/1 with the processor's conversion to float16, and E4M3 eight at a time. One task is
 * one token. */
#include <immintrin.h>

#include <davit/help/ref.h>

#include "kv.h"
#include "layers.h"

/* Eight values at a time to float16, rounded to nearest even; the rest one by one. */
static void store_half(uint8_t *dst, uint64_t stride, const float *src, uint64_t n)
{
    uint64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        uint16_t half[8];
        const __m128i v = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT);
        if (stride == 1) {
            _mm_storeu_si128((void *)(dst + 2 * i), v);
            continue;
        }
        _mm_storeu_si128((void *)half, v);
        for (uint64_t j = 0; j < 8; j++)
            memcpy(dst + 2 * (i + j) * stride, &half[j], 2);
    }
    for (; i < n; i++) {
        const uint16_t half = _cvtss_sh(src[i], _MM_FROUND_TO_NEAREST_INT);
        memcpy(dst + 2 * i * stride, &half, 2);
    }
}

/* Codes of davit_ref_f32_to_e4m3, one in each 32 bits. */
static __m256i to_e4m3(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const __m256 size = _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x),
                                      _mm256_set1_ps(448.0f));
    const __m256i u = _mm256_castps_si256(size);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 20), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7ffff - 0x3c000000));
    const __m256i normal = _mm256_srli_epi32(_mm256_add_epi32(u, up), 20);
    const __m256 least = _mm256_add_ps(size, _mm256_set1_ps(0x1p14f)); /* rounds to 2^-9 */
    const __m256i small = _mm256_sub_epi32(_mm256_castps_si256(least),
                                           _mm256_set1_epi32(0x46800000));
    const __m256 is_small = _mm256_cmp_ps(size, _mm256_set1_ps(0x1p-6f), _CMP_LT_OQ);
    __m256i code = _mm256_blendv_epi8(normal, small, _mm256_castps_si256(is_small));

    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7f), _mm256_castps_si256(nan));
    return _mm256_or_si256(code, sign);
}

static void store_e4m3(uint8_t *dst, uint64_t stride, const float *src, uint64_t n, float scale)
{
    const __m256 s = _mm256_set1_ps(scale);
    uint64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        int32_t codes[8];

        _mm256_storeu_si256((void *)codes,
                            to_e4m3(_mm256_div_ps(_mm256_loadu_ps(src + i), s)));
        for (uint64_t j = 0; j < 8; j++)
            dst[(i + j) * stride] = (uint8_t)codes[j];
    }
    for (; i < n; i++)
        dst[i * stride] = davit_ref_f32_to_e4m3(src[i] / scale);
}

static void store(const kv_view *kv, uint8_t *dst, uint64_t stride, const float *src, uint64_t n,
                  float scale)
{
    if (kv->elem_bytes == 1)
        store_e4m3(dst, stride, src, n, scale);
    else if (kv->elem_bytes == 2)
        store_half(dst, stride, src, n);
    else if (stride == 1)
        memcpy(dst, src, n * sizeof *src);
    else
        for (uint64_t i = 0; i < n; i++)
            memcpy(dst + 4 * i * stride, src + i, 4);
}

void cpu_kv_append_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                        uint32_t worker, void *queue)
{
    (void)phase;
    (void)worker;
    (void)queue;
    for (uint64_t t = first; t < first + count; t++) {
        const kv_view kv = kv_view_of(call, (uint64_t)call->batch->seq[t]);
        const uint64_t index = davit_ref_token_index(call->batch, t);

        for (uint64_t h = 0; h < call->state->spec->n_heads; h++) {
            store(&kv, kv_key(&kv, index, h), kv.tile, cpu_in(call, 0, t) + h * kv.k_dim,
                  kv.k_dim, kv_key_scale(&kv, h));
            store(&kv, kv_value(&kv, index, h), 1, cpu_in(call, 1, t) + h * kv.v_dim, kv.v_dim,
                  kv_value_scale(&kv, h));
        }
    }
}
