/* SPDX-License-Identifier: Apache-2.0
 * rmsnorm/1 and layernorm/1, eight values at a time. Sums: four accumulators of eight lanes,
 * value i in lane i mod 32, added in fixed order. One task is one row. */
#include <math.h>

#include <davit/help/ref.h>

#include "layers.h"
#include "vec_avx2.h"

/* Sum of v, or of v^2 where @square is set, v = (x - shift) - rest: with a mean near the
 * values the first difference is exact, so that nothing of a small variance is lost. */
static inline float row_sum(const float *x, uint64_t n, float shift, float rest, int square)
{
    const __m256 s = vec_set(shift), t = vec_set(rest);
    __m256 acc[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                     _mm256_setzero_ps()};

    for (uint64_t i = 0; i < n; i += 8) {
        const uint64_t left = n - i;
        __m256 v = _mm256_sub_ps(_mm256_sub_ps(vec_load(x + i, left), s), t);
        __m256 *a = &acc[i / 8 % 4];
        if (left < 8)
            v = _mm256_and_ps(v, _mm256_castsi256_ps(vec_mask(left)));
        *a = square ? _mm256_fmadd_ps(v, v, *a) : _mm256_add_ps(*a, v);
    }
    return vec_sum(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), _mm256_add_ps(acc[2], acc[3])));
}

/* Values of @w for group @g: one vector for all groups, or one for each. */
static const float *group_of(const davit_weight *w, uint64_t g, uint64_t D)
{
    const float *v = davit_ref_weight_vector(w);

    return v && w->n_rows != D ? v + g * D : v;
}

static void normalise(const float *x, float *y, uint64_t D, const float *gain,
                      const float *bias, float mean, float rest, float inv)
{
    const __m256 m = vec_set(mean), t = vec_set(rest), s = vec_set(inv);

    for (uint64_t d = 0; d < D; d += 8) {
        const uint64_t left = D - d;
        __m256 v = _mm256_sub_ps(_mm256_sub_ps(vec_load(x + d, left), m), t);
        v = _mm256_mul_ps(v, s);
        if (gain)
            v = _mm256_mul_ps(v, vec_load(gain + d, left));
        if (bias)
            v = _mm256_add_ps(v, vec_load(bias + d, left));
        vec_store(y + d, left, v);
    }
}

void cpu_rmsnorm_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                      uint32_t worker, void *queue)
{
    const davit_norm_attr *a = call->attr;
    const uint64_t groups = a->n_groups ? a->n_groups : 1;
    const uint64_t D = call->in[0].width / groups;
    (void)phase;
    (void)worker;
    (void)queue;

    for (uint64_t r = first * groups; r < (first + count) * groups; r++) {
        const float *x = (const float *)call->in[0].data + r * D;
        const float mean = row_sum(x, D, 0.0f, 0.0f, 1) / (float)D;
        normalise(x, (float *)call->out[0].data + r * D, D,
                  group_of(call->weight[0], r % groups, D), NULL, 0.0f, 0.0f,
                  1.0f / sqrtf(mean + a->eps));
    }
}

void cpu_layernorm_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                        uint32_t worker, void *queue)
{
    const davit_norm_attr *a = call->attr;
    const uint64_t groups = a->n_groups ? a->n_groups : 1;
    const uint64_t D = call->in[0].width / groups;
    (void)phase;
    (void)worker;
    (void)queue;

    for (uint64_t r = first * groups; r < (first + count) * groups; r++) {
        const float *x = (const float *)call->in[0].data + r * D;
        const float mean = row_sum(x, D, 0.0f, 0.0f, 0) / (float)D;
        const float rest = row_sum(x, D, mean, 0.0f, 0) / (float)D;
        const float var = row_sum(x, D, mean, rest, 1) / (float)D;
        normalise(x, (float *)call->out[0].data + r * D, D,
                  group_of(call->weight[0], r % groups, D),
                  group_of(call->weight[1], r % groups, D), mean, rest,
                  1.0f / sqrtf(var + a->eps));
    }
}
