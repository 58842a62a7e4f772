/* SPDX-License-Identifier: Apache-2.0
 * attn/1, scalar: one task is one head of one token; two passes over its keys in ascending
 * order, sums in double. */
#include <math.h>

#include <davit/help/quant.h>
#include <davit/help/ref.h>

#include "kv.h"

static double load(const kv_view *kv, const uint8_t *p, float scale)
{
    if (kv->elem_bytes == 1)
        return (double)(davit_q_e4m3(*p) * scale);
    if (kv->elem_bytes == 2) {
        uint16_t half;
        memcpy(&half, p, sizeof half);
        return (double)davit_ref_f16_to_f32(half);
    }
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
}

static double score(const davit_attn_attr *a, const kv_view *kv, const float *q, uint64_t key,
                    uint64_t h)
{
    const uint8_t *k = kv_key(kv, key, h);
    const float k_scale = kv_key_scale(kv, h);
    double dot = 0.0;

    for (uint64_t d = 0; d < kv->k_dim; d++)
        dot += (double)q[d] * load(kv, k + d * kv->tile * kv->elem_bytes, k_scale);
    dot *= (double)a->scale;
    return a->softcap > 0.0f ? (double)a->softcap * tanh(dot / (double)a->softcap) : dot;
}

/* Head @head of token @t. @acc: v_dim doubles. */
static void attend(const davit_call *call, uint64_t t, uint64_t head, double *acc)
{
    const davit_attn_attr *a = call->attr;
    const uint64_t seq = (uint64_t)call->batch->seq[t];
    const uint64_t n_keys = (uint64_t)call->batch->ctx_len[seq];
    const uint64_t h = head * a->n_kv_heads / a->n_heads;
    const kv_view kv = kv_view_of(call, seq);
    const float *q = cpu_in(call, 0, t) + head * a->k_dim;
    const float *sinks = davit_ref_weight_vector(call->weight[0]);
    float *o = cpu_out(call, 0, t) + head * a->v_dim;
    double max = sinks ? (double)sinks[head] : -INFINITY;

    for (uint64_t key = 0; key < n_keys; key++)
        if (davit_ref_visible(call->batch, t, key, a->window))
            max = fmax(max, score(a, &kv, q, key, h));

    double sum = sinks ? exp((double)sinks[head] - max) : 0.0;
    memset(acc, 0, a->v_dim * sizeof *acc);
    for (uint64_t key = 0; key < n_keys; key++) {
        if (!davit_ref_visible(call->batch, t, key, a->window))
            continue;
        const double p = exp(score(a, &kv, q, key, h) - max);
        const uint8_t *v = kv_value(&kv, key, h);
        sum += p;
        for (uint64_t d = 0; d < kv.v_dim; d++)
            acc[d] += p * load(&kv, v + d * kv.elem_bytes, kv_value_scale(&kv, h));
    }
    for (uint64_t d = 0; d < kv.v_dim; d++)
        o[d] = (float)(acc[d] / sum);
}

static void attn_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                     uint32_t worker, void *queue)
{
    const davit_attn_attr *a = call->attr;
    (void)phase;
    (void)queue;

    for (uint64_t i = first; i < first + count; i++)
        attend(call, i / a->n_heads, i % a->n_heads, cpu_worker(call, worker));
}

static void attn_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                      uint64_t ctx, davit_work *out)
{
    const davit_attn_attr *a = call->attr;
    (void)self;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes = a->v_dim * sizeof(double);
    out->n_phases = 1;
    out->n_tasks[0] = n_tokens * a->n_heads;
}

const davit_kernel_entry cpu_attn_scalar = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_ATTN,
    .name = "attn scalar",
    .attr_size = DAVIT_END(davit_attn_attr, softcap),
    .score = 100,
    .check = cpu_check,
    .size = attn_size,
    .run = attn_run,
};
