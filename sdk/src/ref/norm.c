/* SPDX-License-Identifier: Apache-2.0
 * rmsnorm/1 and layernorm/1: per row and group of D values. */
#include "ref.h"

/* Gain or bias of value @d of group @g: one for all groups, or one for each. */
static double vector_at(const davit_weight *w, uint64_t g, uint64_t d, uint64_t D, double absent)
{
    if (!w)
        return absent;
    return (double)davit_ref_weight_vector(w)[w->n_rows == D ? d : g * D + d];
}

void ref_rmsnorm(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_norm_attr *a = call->attr;
    const uint64_t groups = a->n_groups ? a->n_groups : 1;
    const uint64_t D = call->in[0].width / groups;
    (void)work;

    for (uint64_t r = first * groups; r < (first + count) * groups; r++) {
        const float *x = (const float *)call->in[0].data + r * D;
        float *y = (float *)call->out[0].data + r * D;
        double sum = 0.0;

        for (uint64_t d = 0; d < D; d++)
            sum += (double)x[d] * (double)x[d];
        const double inv = 1.0 / sqrt(sum / (double)D + (double)a->eps);
        for (uint64_t d = 0; d < D; d++)
            y[d] = (float)((double)x[d] * inv *
                           vector_at(call->weight[0], r % groups, d, D, 1.0));
    }
}

void ref_layernorm(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_norm_attr *a = call->attr;
    const uint64_t groups = a->n_groups ? a->n_groups : 1;
    const uint64_t D = call->in[0].width / groups;
    (void)work;

    for (uint64_t r = first * groups; r < (first + count) * groups; r++) {
        const float *x = (const float *)call->in[0].data + r * D;
        float *y = (float *)call->out[0].data + r * D;
        double mean = 0.0, var = 0.0;

        for (uint64_t d = 0; d < D; d++)
            mean += (double)x[d];
        mean /= (double)D;
        for (uint64_t d = 0; d < D; d++)
            var += ((double)x[d] - mean) * ((double)x[d] - mean);
        const double inv = 1.0 / sqrt(var / (double)D + (double)a->eps);
        for (uint64_t d = 0; d < D; d++) {
            const double gain = vector_at(call->weight[0], r % groups, d, D, 1.0);
            const double bias = vector_at(call->weight[1], r % groups, d, D, 0.0);
            y[d] = (float)(((double)x[d] - mean) * inv * gain + bias);
        }
    }
}
