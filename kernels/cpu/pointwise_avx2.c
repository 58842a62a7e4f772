/* SPDX-License-Identifier: Apache-2.0
 * add/1, scale/1, softcap/1, act/1, glu/1, eight values at a time. A task is CPU_POINTS values
 * of the whole [T, D] array, so that one row can keep many workers busy. */
#include <davit/help/ref.h>

#include "layers.h"
#include "vec_avx2.h"

/* Values [*out_first, *out_end) of tasks [first, first + count). */
static void range_of(const davit_call *call, uint64_t first, uint64_t count, uint64_t *out_first,
                     uint64_t *out_end)
{
    *out_first = first * CPU_POINTS;
    *out_end = cpu_min((first + count) * CPU_POINTS,
                       call->out[0].n_rows * call->out[0].width);
}

static inline float or_one(float factor)
{
    return factor == 0.0f ? 1.0f : factor;
}

void cpu_add_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                  uint32_t worker, void *queue)
{
    const davit_scale_attr *a = call->attr;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const __m256 s = vec_set(or_one(a->scale));
    uint64_t i, end;
    (void)phase;
    (void)worker;
    (void)queue;

    range_of(call, first, count, &i, &end);
    for (; i < end; i += 8)
        vec_store(y + i, end - i,
                  _mm256_fmadd_ps(vec_load(x + i, end - i), s, vec_load(y + i, end - i)));
}

void cpu_scale_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                    uint32_t worker, void *queue)
{
    const davit_scale_attr *a = call->attr;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const __m256 s = vec_set(or_one(a->scale));
    uint64_t i, end;
    (void)phase;
    (void)worker;
    (void)queue;

    range_of(call, first, count, &i, &end);
    for (; i < end; i += 8)
        vec_store(y + i, end - i, _mm256_mul_ps(vec_load(x + i, end - i), s));
}

void cpu_softcap_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                      uint32_t worker, void *queue)
{
    const davit_scale_attr *a = call->attr;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const __m256 cap = vec_set(or_one(a->scale));
    uint64_t i, end;
    (void)phase;
    (void)worker;
    (void)queue;

    range_of(call, first, count, &i, &end);
    for (; i < end; i += 8) {
        const __m256 v = _mm256_div_ps(vec_load(x + i, end - i), cap);
        vec_store(y + i, end - i, _mm256_mul_ps(cap, vec_tanh(v)));
    }
}

static inline __m256 relu(__m256 x)
{
    return _mm256_max_ps(x, _mm256_setzero_ps());
}

static inline __m256 gelu(__m256 x, __m256 t)
{
    return _mm256_mul_ps(_mm256_mul_ps(vec_set(0.5f), x), _mm256_add_ps(vec_set(1.0f), t));
}

static inline __m256 gelu_tanh(__m256 x)
{
    const __m256 cube = _mm256_mul_ps(_mm256_mul_ps(x, x), x);
    const __m256 inner = _mm256_fmadd_ps(vec_set(0.044715f), cube, x);
    return gelu(x, vec_tanh(_mm256_mul_ps(vec_set(0.79788456080286535588f), inner)));
}

/* f of @kind; SOFTPLUS and OAI_CLAMP do not come here. */
static inline __m256 activate(uint32_t kind, __m256 x)
{
    switch (kind) {
    case DAVIT_ACT_SILU:
        return _mm256_mul_ps(x, vec_sigmoid(x));
    case DAVIT_ACT_GELU_TANH:
        return gelu_tanh(x);
    case DAVIT_ACT_GELU_ERF:
        return gelu(x, vec_erf(_mm256_mul_ps(x, vec_set(0.70710678118654752440f))));
    case DAVIT_ACT_RELU:
        return relu(x);
    case DAVIT_ACT_RELU2:
        return _mm256_mul_ps(relu(x), relu(x));
    case DAVIT_ACT_SIGMOID:
        return vec_sigmoid(x);
    case DAVIT_ACT_TANH:
        return vec_tanh(x);
    default: /* DAVIT_ACT_NONE */
        return x;
    }
}

void cpu_act_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                  uint32_t worker, void *queue)
{
    const davit_act_attr *a = call->attr;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    uint64_t i, end;
    (void)phase;
    (void)worker;
    (void)queue;

    range_of(call, first, count, &i, &end);
    for (; i < end; i += 8)
        vec_store(y + i, end - i, activate(a->kind, vec_load(x + i, end - i)));
}

/* (u + 1) * g * sigmoid(alpha * g), both clamped. */
static inline __m256 oai_clamp(const davit_act_attr *a, __m256 g, __m256 u)
{
    const __m256 limit = vec_set(a->limit);

    g = _mm256_min_ps(g, limit);
    u = _mm256_max_ps(_mm256_min_ps(u, limit), vec_set(-a->limit));
    const __m256 gate = _mm256_mul_ps(g, vec_sigmoid(_mm256_mul_ps(vec_set(a->alpha), g)));
    return _mm256_mul_ps(_mm256_add_ps(u, vec_set(1.0f)), gate);
}

void cpu_glu_values_avx2(const davit_act_attr *a, const float *g, const float *u, float *y,
                         uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 8) {
        const __m256 gate = vec_load(g + i, n - i), up = vec_load(u + i, n - i);
        const __m256 v = a->kind == DAVIT_ACT_OAI_CLAMP
                             ? oai_clamp(a, gate, up)
                             : _mm256_mul_ps(activate(a->kind, gate), up);
        vec_store(y + i, n - i, v);
    }
}

void cpu_glu_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                  uint32_t worker, void *queue)
{
    uint64_t i, end;
    (void)phase;
    (void)worker;
    (void)queue;

    range_of(call, first, count, &i, &end);
    if (i >= end)
        return;
    cpu_glu_values_avx2(call->attr, (const float *)call->in[0].data + i,
                        (const float *)call->in[1].data + i, (float *)call->out[0].data + i,
                        end - i);
}
