/* SPDX-License-Identifier: Apache-2.0
 * rope/1, eight values at a time. One task is one token. */
#include "layers.h"
#include "vec_avx2.h"

/* Pairs (j, j + half). */
static void rotate_half(float *x, const float *c, const float *s, uint64_t half)
{
    for (uint64_t j = 0; j < half; j += 8) {
        const uint64_t n = half - j;
        const __m256 cos = vec_load(c + j, n), sin = vec_load(s + j, n);
        const __m256 p = vec_load(x + j, n), q = vec_load(x + half + j, n);
        vec_store(x + j, n, _mm256_fnmadd_ps(q, sin, _mm256_mul_ps(p, cos)));
        vec_store(x + half + j, n, _mm256_fmadd_ps(p, sin, _mm256_mul_ps(q, cos)));
    }
}

/* Pairs (2j, 2j + 1), four in a vector: x * [c c] + swapped x * [-s s]. */
static void rotate_inter(float *x, const float *c, const float *s, uint64_t half)
{
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const __m256 sign = _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f);

    for (uint64_t j = 0; j < half; j += 4) {
        const uint64_t n = half - j < 4 ? half - j : 4;
        const __m256 v = vec_load(x + 2 * j, 2 * n);
        const __m256 cos = _mm256_permutevar8x32_ps(vec_load(c + j, n), twice);
        const __m256 sin = _mm256_permutevar8x32_ps(vec_load(s + j, n), twice);
        const __m256 swapped = _mm256_permute_ps(v, 0xb1);
        const __m256 y = _mm256_fmadd_ps(swapped, _mm256_xor_ps(sin, sign),
                                         _mm256_mul_ps(v, cos));
        vec_store(x + 2 * j, 2 * n, y);
    }
}

void cpu_rope_avx2(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                   uint32_t worker, void *queue)
{
    const davit_rope_attr *a = call->attr;
    const uint64_t half = a->rot_dim / 2;
    (void)phase;
    (void)worker;
    (void)queue;

    for (uint64_t t = first; t < first + count; t++) {
        const float *c = cpu_in(call, 1, t), *s = c + half;
        for (uint64_t h = 0; h < a->n_heads; h++) {
            float *x = cpu_out(call, 0, t) + h * a->head_dim + a->rot_off;
            if (a->pairing == DAVIT_PAIR_HALF)
                rotate_half(x, c, s, half);
            else
                rotate_inter(x, c, s, half);
        }
    }
}
