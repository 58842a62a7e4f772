/* SPDX-License-Identifier: Apache-2.0
 * rope_angles/1 and rope/1. Rotary embedding: RoFormer (2021), eq. 34; the variants' rules
 * are in ops.h. */
#include "ref.h"

/* Frequency @j of the token's variant, before the divisor. */
static float frequency(const davit_rope_angles_attr *a, const float *table, double n, uint64_t j)
{
    const double d = (double)a->rot_dim;

    if (a->select == DAVIT_ROPE_NTK && n > a->max_positions) {
        const double stretch = a->factor * n / a->max_positions - (a->factor - 1.0);
        const double base = a->theta * pow(stretch, d / (d - 2.0));
        return (float)pow(base, -2.0 * (double)j / d);
    }
    if (a->select == DAVIT_ROPE_LONG && n > a->max_positions)
        return table[a->rot_dim / 2 + j];
    return table[j];
}

void davit_ref_rope_angles_row(const davit_call *call, uint64_t t, float *out)
{
    const davit_rope_angles_attr *a = call->attr;
    const davit_batch *batch = call->batch;
    const float *table = davit_ref_weight_vector(call->weight[0]);
    const float *div = davit_ref_weight_vector(call->weight[1]);
    const double n = (double)batch->rope_n[batch->seq[t]];
    const int is_long = a->select == DAVIT_ROPE_LONG && n > a->max_positions;
    const double attention = (double)a->attention[is_long];
    const uint64_t half = a->rot_dim / 2;

    for (uint64_t j = 0; j < half; j++) {
        const float f = frequency(a, table, n, j);
        const float angle = (float)batch->position[t] * (div ? f / div[j] : f);
        out[j] = (float)(attention * (double)(float)cos((double)angle));
        out[half + j] = (float)(attention * (double)(float)sin((double)angle));
    }
}

void ref_rope_angles(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    (void)work;
    for (uint64_t t = first; t < first + count; t++)
        davit_ref_rope_angles_row(call, t, ref_out(call, 0, t));
}

void ref_rope(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_rope_attr *a = call->attr;
    const uint64_t half = a->rot_dim / 2;
    const uint64_t stride = a->pairing == DAVIT_PAIR_HALF ? 1 : 2; /* between pairs */
    const uint64_t other = a->pairing == DAVIT_PAIR_HALF ? half : 1; /* within a pair */
    (void)work;

    for (uint64_t t = first; t < first + count; t++) {
        const float *c = ref_in(call, 1, t), *s = c + half;
        for (uint64_t h = 0; h < a->n_heads; h++) {
            float *x = ref_out(call, 0, t) + h * a->head_dim + a->rot_off;
            for (uint64_t j = 0; j < half; j++) {
                const float p = x[j * stride], q = x[j * stride + other];
                x[j * stride] = p * c[j] - q * s[j];
                x[j * stride + other] = q * c[j] + p * s[j];
            }
        }
    }
}
