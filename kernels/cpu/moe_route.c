/* SPDX-License-Identifier: Apache-2.0
 * moe_route/1 with every expert's score computed once, in the worker's scratch; the same
 * arithmetic as the definition, hence the same bits. One task is one token. Baseline code. */
#include <math.h>

#include <davit/help/ref.h>

#include "cpu.h"

static void moe_route_size(void *self, const davit_call *call, uint64_t n_tokens,
                           uint64_t n_rows, uint64_t ctx, davit_work *out)
{
    const davit_moe_route_attr *a = call->attr;
    (void)self;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes = a->n_experts * sizeof(float);
    out->n_phases = 1;
    out->n_tasks[0] = n_tokens;
}

static void scores_of(const davit_moe_route_attr *a, const float *logits, float *score)
{
    double max = -INFINITY, sum = 0.0;

    for (uint64_t e = 0; e < a->n_experts; e++)
        max = fmax(max, (double)logits[e]);
    for (uint64_t e = 0; a->kind == DAVIT_ROUTE_SOFTMAX && e < a->n_experts; e++)
        sum += exp((double)logits[e] - max);
    for (uint64_t e = 0; e < a->n_experts; e++) {
        double s = (double)logits[e];
        if (a->kind == DAVIT_ROUTE_SOFTMAX)
            s = exp(s - max) / sum;
        else if (a->kind == DAVIT_ROUTE_SIGMOID)
            s = 1.0 / (1.0 + exp(-s));
        score[e] = (float)s;
    }
}

/* The best expert that is not in @ids yet; ties: the lower. */
static int32_t best_left(const davit_moe_route_attr *a, const float *score, const float *bias,
                         const int32_t *ids, uint64_t n_taken)
{
    int32_t best = -1;
    float most = 0.0f;

    for (uint64_t e = 0; e < a->n_experts; e++) {
        const float s = score[e] + (bias ? bias[e] : 0.0f);
        int is_taken = 0;
        if (best >= 0 && !(s > most))
            continue;
        for (uint64_t i = 0; i < n_taken; i++)
            is_taken |= ids[i] == (int32_t)e;
        if (is_taken)
            continue;
        best = (int32_t)e;
        most = s;
    }
    return best;
}

static void weigh(const davit_moe_route_attr *a, const float *score, const int32_t *ids, float *w)
{
    const double factor = a->factor == 0.0f ? 1.0 : (double)a->factor;
    double max = -INFINITY, sum = 0.0;

    for (uint64_t i = 0; i < a->top_k; i++) {
        w[i] = score[ids[i]];
        max = fmax(max, (double)w[i]);
    }
    for (uint64_t i = 0; i < a->top_k; i++)
        sum += a->kind == DAVIT_ROUTE_TOPK_SOFTMAX ? exp((double)w[i] - max) : (double)w[i];
    for (uint64_t i = 0; i < a->top_k; i++) {
        double v = (double)w[i];
        if (a->kind == DAVIT_ROUTE_TOPK_SOFTMAX)
            v = (double)(float)(exp(v - max) / sum);
        if (a->flags & DAVIT_ROUTE_RENORM)
            v /= (a->kind == DAVIT_ROUTE_TOPK_SOFTMAX ? 1.0 : sum) + (double)a->renorm_eps;
        w[i] = (float)(v * factor);
    }
}

static void moe_route_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                          uint32_t worker, void *queue)
{
    const davit_moe_route_attr *a = call->attr;
    const float *bias = davit_ref_weight_vector(call->weight[0]);
    float *score = cpu_worker(call, worker);
    (void)phase;
    (void)queue;

    for (uint64_t t = first; t < first + count; t++) {
        int32_t *ids = (int32_t *)call->out[0].data + t * a->top_k;
        scores_of(a, cpu_in(call, 0, t), score);
        for (uint64_t i = 0; i < a->top_k; i++)
            ids[i] = best_left(a, score, bias, ids, i);
        weigh(a, score, ids, cpu_out(call, 1, t));
    }
}

const davit_kernel_entry cpu_moe_route_once = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_MOE_ROUTE,
    .name = "moe_route scores once",
    .attr_size = DAVIT_END(davit_moe_route_attr, renorm_eps),
    .score = 200,
    .check = cpu_check,
    .size = moe_route_size,
    .run = moe_route_run,
};
