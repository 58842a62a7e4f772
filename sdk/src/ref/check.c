/* SPDX-License-Identifier: Apache-2.0
 * Does a call obey ops.h? Static facts only: counts, widths, ranges, layouts. */
#include <stdio.h>

#include <davit/help/records.h>

#include "ref.h"

typedef struct checker {
    const davit_call *call;
    const davit_sink *sink;
    int32_t status;
} checker;

static void fail(checker *c, const char *what, uint64_t expected, uint64_t found)
{
    char want[32], have[32], message[128];

    if (c->status)
        return;
    snprintf(want, sizeof want, "%llu", (unsigned long long)expected);
    snprintf(have, sizeof have, "%llu", (unsigned long long)found);
    snprintf(message, sizeof message, "%s does not fit this op", what);
    c->status = davit_say(c->sink, DAVIT_E_UNSUPPORTED,
                          &(davit_refusal){
                              .code = DAVIT_R_OP_MISSING,
                              .subject = c->call->op,
                              .expected = want,
                              .found = have,
                              .message = message,
                          });
}

static void fail_text(checker *c, const char *message, const char *expected, const char *found)
{
    if (c->status)
        return;
    c->status = davit_say(c->sink, DAVIT_E_UNSUPPORTED,
                          &(davit_refusal){
                              .code = DAVIT_R_OP_MISSING,
                              .subject = c->call->op,
                              .expected = expected,
                              .found = found,
                              .message = message,
                          });
}

static void want(checker *c, const char *what, uint64_t expected, uint64_t found)
{
    if (expected != found)
        fail(c, what, expected, found);
}

/* 1 <= @value <= @max */
static void want_range(checker *c, const char *what, uint64_t value, uint64_t max)
{
    if (value < 1 || value > max)
        fail(c, what, max, value);
}

static uint64_t in_width(const checker *c, uint32_t i)
{
    return c->call->in[i].width;
}

static uint64_t out_width(const checker *c, uint32_t i)
{
    return c->call->out[i].width;
}

/* Optional vector of float32. */
static void want_vector(checker *c, uint32_t i, uint64_t length)
{
    const davit_weight *w = c->call->weight[i];

    if (!w)
        return;
    if (!w->layout || strcmp(w->layout, "f32/1") != 0)
        fail_text(c, "a vector must be float32", "f32/1", w->layout);
    want(c, "length of a vector", length, w->n_experts * w->n_rows * w->n_cols);
}

static void want_matrix(checker *c, uint32_t i, uint64_t n_experts, uint64_t n_rows,
                        uint64_t n_cols)
{
    const davit_weight *w = c->call->weight[i];

    if (!w) {
        fail_text(c, "a weight is absent", "a matrix", NULL);
        return;
    }
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    if (!layout) {
        fail_text(c, "layout is not known to this kernel", DAVIT_REF_LAYOUTS, w->layout);
        return;
    }
    want(c, "number of experts", n_experts, w->n_experts);
    want(c, "rows of a matrix", n_rows, w->n_rows);
    want(c, "columns of a matrix", n_cols, w->n_cols);
    want(c, "remainder of columns by the layout's block", 0, n_cols % layout->block_elems);
}

static void check_embed(checker *c)
{
    const davit_weight *w = c->call->weight[0];
    want_matrix(c, 0, 1, w ? w->n_rows : 0, out_width(c, 0));
}

static void check_linear(checker *c)
{
    want_matrix(c, 0, 1, out_width(c, 0), in_width(c, 0));
    want_vector(c, 1, out_width(c, 0));
}

/* A gain or bias counts D (one for all groups) or g*D values. */
static void want_gain(checker *c, uint32_t i, uint64_t D)
{
    const davit_weight *w = c->call->weight[i];
    want_vector(c, i, w && w->n_rows == D ? D : out_width(c, 0));
}

static void check_norm(checker *c)
{
    const davit_norm_attr *a = c->call->attr;
    const uint64_t groups = a->n_groups ? a->n_groups : 1;

    want(c, "width of y", in_width(c, 0), out_width(c, 0));
    want_range(c, "number of groups", groups, out_width(c, 0));
    want(c, "remainder of the width by the groups", 0, out_width(c, 0) % groups);
    want_gain(c, 0, out_width(c, 0) / groups);
    want_gain(c, 1, out_width(c, 0) / groups);
}

static void check_same_width(checker *c)
{
    for (uint32_t i = 0; i < c->call->n_in; i++)
        want(c, "width of a value", out_width(c, 0), in_width(c, i));
}

static void check_act(checker *c)
{
    const davit_act_attr *a = c->call->attr;
    check_same_width(c);
    if (a->kind > DAVIT_ACT_SOFTPLUS)
        fail(c, "activation", DAVIT_ACT_SOFTPLUS, a->kind);
}

static void check_glu(checker *c)
{
    const davit_act_attr *a = c->call->attr;
    check_same_width(c);
    if (a->kind > DAVIT_ACT_OAI_CLAMP)
        fail(c, "activation", DAVIT_ACT_OAI_CLAMP, a->kind);
}

static void check_rope_angles(checker *c)
{
    const davit_rope_angles_attr *a = c->call->attr;
    const uint64_t variants = a->select == DAVIT_ROPE_LONG ? 2 : 1;

    want(c, "width of the angles", a->rot_dim, out_width(c, 0));
    want_range(c, "rot_dim", a->rot_dim, UINT32_MAX);
    want(c, "remainder of rot_dim by two", 0, a->rot_dim % 2);
    if (a->select > DAVIT_ROPE_NTK)
        fail(c, "rope selection", DAVIT_ROPE_NTK, a->select);
    if (a->select == DAVIT_ROPE_NTK && (a->rot_dim <= 2 || !(a->max_positions > 0.0)))
        fail_text(c, "dynamic rope needs max_positions and rot_dim > 2", "> 0", "0");
    if (a->n_variants < variants)
        fail(c, "number of frequency rows", variants, a->n_variants);
    if (!c->call->weight[0])
        fail_text(c, "frequencies are absent", "a table", NULL);
    want_vector(c, 0, a->n_variants * a->rot_dim / 2);
    want_vector(c, 1, a->rot_dim / 2);
}

static void check_rope(checker *c)
{
    const davit_rope_attr *a = c->call->attr;

    want(c, "width of x", a->n_heads * a->head_dim, out_width(c, 0));
    want(c, "width of the angles", a->rot_dim, in_width(c, 1));
    want(c, "remainder of rot_dim by two", 0, a->rot_dim % 2);
    if (a->rot_off > a->head_dim || a->rot_dim > a->head_dim - a->rot_off)
        fail(c, "rotated part of the head", a->head_dim, a->rot_off + a->rot_dim);
    if (a->pairing > DAVIT_PAIR_INTER)
        fail(c, "pairing", DAVIT_PAIR_INTER, a->pairing);
}

static const davit_state_spec *want_kv(checker *c)
{
    const davit_state *state = c->call->state;

    if (state && state->spec && state->spec->kind == DAVIT_STATE_KV)
        return state->spec;
    fail_text(c, "the op needs a kv state", "kv", NULL);
    return NULL;
}

static void check_kv_append(checker *c)
{
    const davit_state_spec *spec = want_kv(c);

    if (!spec)
        return;
    want(c, "width of k", spec->n_heads * spec->k_dim, in_width(c, 0));
    want(c, "width of v", spec->n_heads * spec->v_dim, in_width(c, 1));
}

static void check_attn(checker *c)
{
    const davit_attn_attr *a = c->call->attr;
    const davit_state_spec *spec = want_kv(c);

    if (!spec)
        return;
    want_range(c, "key heads", a->n_kv_heads, a->n_heads);
    if (c->status)
        return;
    want(c, "remainder of heads by key heads", 0, a->n_heads % a->n_kv_heads);
    want(c, "key heads of the state", spec->n_heads, a->n_kv_heads);
    want(c, "k_dim of the state", spec->k_dim, a->k_dim);
    want(c, "v_dim of the state", spec->v_dim, a->v_dim);
    want(c, "width of q", a->n_heads * a->k_dim, in_width(c, 0));
    want(c, "width of o", a->n_heads * a->v_dim, out_width(c, 0));
    want_vector(c, 0, a->n_heads);
    if (!(a->scale > 0.0f) || !(a->softcap >= 0.0f))
        fail_text(c, "scale must be above zero, softcap not below", "> 0", "0 or less");
}

static void check_moe_route(checker *c)
{
    const davit_moe_route_attr *a = c->call->attr;

    want(c, "width of the logits", a->n_experts, in_width(c, 0));
    want_range(c, "top_k", a->top_k, a->n_experts);
    want(c, "width of ids", a->top_k, out_width(c, 0));
    want(c, "width of the weights", a->top_k, out_width(c, 1));
    want_vector(c, 0, a->n_experts);
    if (a->kind > DAVIT_ROUTE_TOPK_SOFTMAX)
        fail(c, "routing kind", DAVIT_ROUTE_TOPK_SOFTMAX, a->kind);
}

/* Biases of @n_own experts; those of gate and up have @n_rows values each. */
static void check_moe_biases(checker *c, uint64_t n_own, uint64_t n_rows)
{
    const davit_moe_ffn_attr *a = c->call->attr;

    if (a->biases > 1)
        fail(c, "biases", 1, a->biases);
    if (!a->biases && c->call->n_weights > 3)
        fail(c, "number of weights", 3, c->call->n_weights);
    if (c->status || !a->biases)
        return;
    want_vector(c, 3, n_own * n_rows);
    want_vector(c, 4, n_own * n_rows);
    want_vector(c, 5, n_own * out_width(c, 0));
}

static void check_moe_ffn(checker *c)
{
    const davit_moe_ffn_attr *a = c->call->attr;
    const davit_weight *gate = c->call->weight[0], *down = c->call->weight[2];
    const uint64_t n_hidden = down ? down->n_cols : 0;
    const uint64_t n_rows = a->gate_up == DAVIT_GATE_UP_ALTERNATE ? 2 * n_hidden : n_hidden;
    const uint64_t n_own = a->flags & DAVIT_MOE_PART && gate ? gate->n_experts : a->n_experts;

    want_range(c, "top_k", a->top_k, a->n_experts);
    want(c, "width of ids", a->top_k, in_width(c, 1));
    want(c, "width of the weights", a->top_k, in_width(c, 2));
    if (a->gate_up > DAVIT_GATE_UP_ALTERNATE)
        fail(c, "order of gate and up", DAVIT_GATE_UP_ALTERNATE, a->gate_up);
    want_matrix(c, 0, n_own, n_rows, in_width(c, 0));
    want_matrix(c, 1, n_own, n_rows, in_width(c, 0));
    want_matrix(c, 2, n_own, out_width(c, 0), n_hidden);
    if (a->flags & DAVIT_MOE_PART && (a->first_expert > a->n_experts ||
                                      n_own > a->n_experts - a->first_expert))
        fail(c, "first expert of a part", a->n_experts - n_own, a->first_expert);
    if (a->kind > DAVIT_ACT_OAI_CLAMP)
        fail(c, "activation", DAVIT_ACT_OAI_CLAMP, a->kind);
    check_moe_biases(c, n_own, n_rows);
}

typedef struct rule {
    const char *op;
    uint32_t n_in, n_out, max_weights;
    uint32_t has_attr;
    void (*check)(checker *c);
} rule;

static const rule rules[] = {
    {DAVIT_OP_EMBED, 0, 1, 1, 1, check_embed},
    {DAVIT_OP_LINEAR, 1, 1, 2, 1, check_linear},
    {DAVIT_OP_RMSNORM, 1, 1, 1, 1, check_norm},
    {DAVIT_OP_LAYERNORM, 1, 1, 2, 1, check_norm},
    {DAVIT_OP_ADD, 2, 1, 0, 1, check_same_width},
    {DAVIT_OP_SCALE, 1, 1, 0, 1, check_same_width},
    {DAVIT_OP_SOFTCAP, 1, 1, 0, 1, check_same_width},
    {DAVIT_OP_ACT, 1, 1, 0, 1, check_act},
    {DAVIT_OP_GLU, 2, 1, 0, 1, check_glu},
    {DAVIT_OP_ROPE_ANGLES, 0, 1, 2, 1, check_rope_angles},
    {DAVIT_OP_ROPE, 2, 1, 0, 1, check_rope},
    {DAVIT_OP_KV_APPEND, 2, 0, 0, 0, check_kv_append},
    {DAVIT_OP_ATTN, 1, 1, 1, 1, check_attn},
    {DAVIT_OP_MOE_ROUTE, 1, 2, 1, 1, check_moe_route},
    {DAVIT_OP_MOE_FFN, 3, 1, 6, 1, check_moe_ffn},
    {DAVIT_OP_GATHER_ROWS, 1, 1, 0, 0, check_same_width},
};

static void apply(checker *c, const rule *r)
{
    /* linear with ADD and add name their output among the inputs too */
    if (c->call->n_in < r->n_in)
        fail(c, "number of inputs", r->n_in, c->call->n_in);
    want(c, "number of outputs", r->n_out, c->call->n_out);
    if (c->call->n_weights > r->max_weights)
        fail(c, "number of weights", r->max_weights, c->call->n_weights);
    if (r->has_attr && !c->call->attr)
        fail_text(c, "attributes are absent", "an attribute struct", NULL);
    if (!c->status)
        r->check(c);
}

int32_t davit_ref_check(const davit_call *call, const davit_sink *sink)
{
    checker c = {call, sink, DAVIT_OK};

    for (uint64_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].op, call->op) == 0) {
            apply(&c, &rules[i]);
            return c.status;
        }
    fail_text(&c, "this op is not known", "an op of davit/ops.h", NULL);
    return c.status;
}
