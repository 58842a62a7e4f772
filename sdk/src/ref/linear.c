/* SPDX-License-Identifier: Apache-2.0
 * Ops that read rows of a matrix: linear/1, embed/1, and the copy gather_rows/1. */
#include "ref.h"

double ref_dot_row(const davit_ref_layout *layout, const uint8_t *row, const float *x,
                   uint64_t n_cols)
{
    float block[DAVIT_REF_MAX_BLOCK];
    double sum = 0.0;

    for (uint64_t k = 0; k < n_cols; k += layout->block_elems) {
        layout->decode(row + k / layout->block_elems * layout->block_bytes, 1, block);
        for (uint32_t i = 0; i < layout->block_elems; i++)
            sum += (double)x[k + i] * (double)block[i];
    }
    return sum;
}

void ref_linear(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_linear_attr *a = call->attr;
    const davit_weight *w = call->weight[0];
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    const float *bias = davit_ref_weight_vector(call->weight[1]);
    (void)work;

    for (uint64_t t = first; t < first + count; t++) {
        float *y = ref_out(call, 0, t);
        for (uint64_t n = 0; n < w->n_rows; n++) {
            const uint8_t *row = davit_ref_weight_row(w, layout, 0, n);
            double sum = ref_dot_row(layout, row, ref_in(call, 0, t), w->n_cols);
            sum *= (double)ref_or_one(a->out_scale);
            sum += bias ? (double)bias[n] : 0.0;
            y[n] = (float)(a->flags & DAVIT_LINEAR_ADD ? (double)y[n] + sum : sum);
        }
    }
}

void ref_embed(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_embed_attr *a = call->attr;
    const davit_weight *w = call->weight[0];
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    const float scale = ref_or_one(a->scale);
    (void)work;

    for (uint64_t t = first; t < first + count; t++) {
        float *y = ref_out(call, 0, t);
        const int64_t row = call->batch->token[t] + a->row_offset;
        if ((a->flags & DAVIT_EMBED_PART) && (row < 0 || (uint64_t)row >= w->n_rows)) {
            memset(y, 0, w->n_cols * sizeof *y);
            continue;
        }
        davit_ref_weight_decode(w, layout, 0, (uint64_t)row, y);
        for (uint64_t d = 0; d < w->n_cols; d++)
            y[d] *= scale;
    }
}

void ref_gather_rows(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    (void)work;
    for (uint64_t r = first; r < first + count; r++) {
        const uint64_t t = (uint64_t)call->batch->logit_row[r];
        memcpy(ref_out(call, 0, r), ref_in(call, 0, t), call->out[0].width * sizeof(float));
    }
}
