/* SPDX-License-Identifier: Apache-2.0
 * kv_append/1 with the processor's conversion to float16. One task is one token. */
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

static void store(const kv_view *kv, uint8_t *dst, uint64_t stride, const float *src, uint64_t n)
{
    if (kv->elem_bytes == 2)
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
                  kv.k_dim);
            store(&kv, kv_value(&kv, index, h), 1, cpu_in(call, 1, t) + h * kv.v_dim, kv.v_dim);
        }
    }
}
