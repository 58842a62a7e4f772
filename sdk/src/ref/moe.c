/* SPDX-License-Identifier: Apache-2.0
 * moe_route/1 and moe_ffn/1. */
#include "ref.h"

/* Score of expert @e for the choice and for its weight; softmax over all is done later, as a
 * common divisor does not change the order. */
static float choice(const davit_moe_route_attr *a, const float *logits, const float *bias,
                    uint64_t e, double max, double sum)
{
    double s = (double)logits[e];

    if (a->kind == DAVIT_ROUTE_SOFTMAX)
        s = exp(s - max) / sum;
    else if (a->kind == DAVIT_ROUTE_SIGMOID)
        s = 1.0 / (1.0 + exp(-s));
    return (float)s + (bias ? bias[e] : 0.0f);
}

static int is_taken(const int32_t *ids, uint64_t n, uint64_t e)
{
    for (uint64_t i = 0; i < n; i++)
        if (ids[i] == (int32_t)e)
            return 1;
    return 0;
}

/* Softmax over the chosen logits. */
static void softmax_chosen(const float *logits, const int32_t *ids, uint64_t k, float *w)
{
    double max = -INFINITY, sum = 0.0;

    for (uint64_t i = 0; i < k; i++)
        max = fmax(max, (double)logits[ids[i]]);
    for (uint64_t i = 0; i < k; i++)
        sum += exp((double)logits[ids[i]] - max);
    for (uint64_t i = 0; i < k; i++)
        w[i] = (float)(exp((double)logits[ids[i]] - max) / sum);
}

void davit_ref_moe_route_row(const davit_moe_route_attr *a, const float *logits,
                             const float *bias, int32_t *ids, float *w)
{
    double max = -INFINITY, all = 0.0, sum = 0.0;

    for (uint64_t e = 0; e < a->n_experts; e++)
        max = fmax(max, (double)logits[e]);
    for (uint64_t e = 0; e < a->n_experts; e++)
        all += exp((double)logits[e] - max);

    for (uint64_t i = 0; i < a->top_k; i++) {
        float best = -INFINITY;
        ids[i] = -1;
        for (uint64_t e = 0; e < a->n_experts; e++) {
            const float s = choice(a, logits, bias, e, max, all);
            if (!is_taken(ids, i, e) && (ids[i] < 0 || s > best)) {
                ids[i] = (int32_t)e;
                best = s;
            }
        }
        w[i] = choice(a, logits, NULL, (uint64_t)ids[i], max, all);
        sum += (double)w[i];
    }
    if (a->kind == DAVIT_ROUTE_TOPK_SOFTMAX) {
        softmax_chosen(logits, ids, a->top_k, w);
        sum = 1.0;
    }
    for (uint64_t i = 0; i < a->top_k; i++) {
        double v = (double)w[i];
        if (a->flags & DAVIT_ROUTE_RENORM)
            v /= sum + (double)a->renorm_eps;
        w[i] = (float)(v * (double)ref_or_one(a->factor));
    }
}

void ref_moe_route(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_moe_route_attr *a = call->attr;
    const float *bias = davit_ref_weight_vector(call->weight[0]);
    (void)work;

    for (uint64_t t = first; t < first + count; t++) {
        int32_t *ids = (int32_t *)call->out[0].data + t * a->top_k;
        davit_ref_moe_route_row(a, ref_in(call, 0, t), bias, ids, ref_out(call, 1, t));
    }
}

/* Value @row of expert @e of bias @which (0 gate's, 1 up's, 2 down's), 0 without one. */
static double bias_at(const davit_call *call, uint32_t which, uint64_t e, uint64_t row)
{
    const davit_moe_ffn_attr *a = call->attr;
    const float *bias = a->biases ? davit_ref_weight_vector(call->weight[3 + which]) : NULL;

    return bias ? (double)bias[e * call->weight[which]->n_rows + row] : 0.0;
}

/* Row @row of expert @e of matrix @which (gate or up) times @x, and its bias. */
static float gate_or_up(const davit_call *call, uint32_t which, uint64_t e, uint64_t row,
                        const float *x)
{
    const davit_weight *w = call->weight[which];
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    const uint8_t *stored = davit_ref_weight_row(w, layout, e, row);

    return (float)(ref_dot_row(layout, stored, x, w->n_cols) + bias_at(call, which, e, row));
}

/* hidden[i] = f(gate_i . x) * (up_i . x) for every row i of expert @e. */
static void expert_hidden(const davit_call *call, uint64_t e, const float *x, float *hidden)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t by = a->gate_up == DAVIT_GATE_UP_ALTERNATE ? 2 : 1;

    for (uint64_t i = 0; i < call->weight[2]->n_cols; i++)
        hidden[i] = davit_ref_glu(a->kind, a->limit, a->alpha,
                                  gate_or_up(call, 0, e, by * i, x),
                                  gate_or_up(call, 1, e, by * i + (by - 1), x));
}

/* Which of the weight's experts @id is; those of other ranks are outside [0, E). */
static uint64_t own_expert(const davit_moe_ffn_attr *a, int32_t id)
{
    return a->flags & DAVIT_MOE_PART ? (uint64_t)id - a->first_expert : (uint64_t)id;
}

/* @work: one row of hidden values of each chosen expert, [k, I]. */
void ref_moe_ffn(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_weight *down = call->weight[2];
    const davit_ref_layout *layout = davit_ref_layout_find(down->layout);
    const uint64_t n_hidden = down->n_cols;
    float *hidden = work;

    for (uint64_t t = first; t < first + count; t++) {
        const int32_t *ids = (const int32_t *)call->in[1].data + t * a->top_k;
        const float *w = ref_in(call, 2, t);
        float *y = ref_out(call, 0, t);

        for (uint64_t i = 0; i < a->top_k; i++)
            if (own_expert(a, ids[i]) < down->n_experts)
                expert_hidden(call, own_expert(a, ids[i]), ref_in(call, 0, t),
                              hidden + i * n_hidden);
        for (uint64_t n = 0; n < down->n_rows; n++) {
            double sum = 0.0;
            for (uint64_t i = 0; i < a->top_k; i++) {
                const uint64_t e = own_expert(a, ids[i]);
                const uint8_t *row;

                if (e >= down->n_experts)
                    continue;
                row = davit_ref_weight_row(down, layout, e, n);
                sum += (double)w[i] *
                       (ref_dot_row(layout, row, hidden + i * n_hidden, n_hidden) +
                        bias_at(call, 2, e, n));
            }
            y[n] = (float)sum;
        }
    }
}
