/* SPDX-License-Identifier: Apache-2.0
 * Ops on each value alone: add/1, scale/1, softcap/1, act/1, glu/1. */
#include "ref.h"

double davit_ref_act(uint32_t kind, double x)
{
    switch (kind) {
    case DAVIT_ACT_SILU:
        return x / (1.0 + exp(-x));
    case DAVIT_ACT_GELU_TANH: /* sqrt(2 / pi) */
        return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case DAVIT_ACT_GELU_ERF: /* sqrt(1 / 2) */
        return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
    case DAVIT_ACT_RELU:
        return x > 0.0 ? x : 0.0;
    case DAVIT_ACT_RELU2:
        return x > 0.0 ? x * x : 0.0;
    case DAVIT_ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case DAVIT_ACT_TANH:
        return tanh(x);
    case DAVIT_ACT_SOFTPLUS: /* log1p(exp(x)) without overflow */
        return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
    default: /* DAVIT_ACT_NONE */
        return x;
    }
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

float davit_ref_glu(uint32_t kind, float limit, float alpha, float g, float u)
{
    if (kind != DAVIT_ACT_OAI_CLAMP)
        return (float)(davit_ref_act(kind, (double)g) * (double)u);

    const double gate = (double)g > (double)limit ? (double)limit : (double)g;
    const double up = clamp((double)u, -(double)limit, (double)limit);
    return (float)((up + 1.0) * gate / (1.0 + exp(-(double)alpha * gate)));
}

void ref_add(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_scale_attr *a = call->attr;
    const float scale = ref_or_one(a->scale);
    const float *x = ref_in(call, 0, first);
    float *y = ref_out(call, 0, first);
    (void)work;

    for (uint64_t i = 0; i < count * call->out[0].width; i++)
        y[i] += scale * x[i];
}

void ref_scale(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_scale_attr *a = call->attr;
    const float scale = ref_or_one(a->scale);
    const float *x = ref_in(call, 0, first);
    float *y = ref_out(call, 0, first);
    (void)work;

    for (uint64_t i = 0; i < count * call->out[0].width; i++)
        y[i] = scale * x[i];
}

void ref_softcap(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_scale_attr *a = call->attr;
    const double cap = (double)ref_or_one(a->scale);
    const float *x = ref_in(call, 0, first);
    float *y = ref_out(call, 0, first);
    (void)work;

    for (uint64_t i = 0; i < count * call->out[0].width; i++)
        y[i] = (float)(cap * tanh((double)x[i] / cap));
}

void ref_act_op(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_act_attr *a = call->attr;
    const float *x = ref_in(call, 0, first);
    float *y = ref_out(call, 0, first);
    (void)work;

    for (uint64_t i = 0; i < count * call->out[0].width; i++)
        y[i] = (float)davit_ref_act(a->kind, (double)x[i]);
}

void ref_glu_op(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    const davit_act_attr *a = call->attr;
    const float *g = ref_in(call, 0, first), *u = ref_in(call, 1, first);
    float *y = ref_out(call, 0, first);
    (void)work;

    for (uint64_t i = 0; i < count * call->out[0].width; i++)
        y[i] = davit_ref_glu(a->kind, a->limit, a->alpha, g[i], u[i]);
}
