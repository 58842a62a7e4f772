/* SPDX-License-Identifier: Apache-2.0
 * One wrapper for each op, so that a forward reads like calls:
 *
 *   davit_graph g = davit_graph_open(self, build, b);
 *   int32_t x = davit_embed(&g, davit_slot(&g, "tok_embd", -1), 0);
 *   int32_t n = davit_rmsnorm(&g, x, davit_slot(&g, "attn.norm", i), 1, eps);
 *   int32_t q = davit_linear(&g, n, davit_slot(&g, "attn.q", i), -1);
 *
 * What each op computes is said in ops.h. Everything returned is a handle of the builder, -1
 * after an error: errors are sticky, nothing is checked here. Handles that are passed in may be
 * absent (-1) only where that is said. Ops that change a value in place return it. Widths come
 * from slots and values. On the thread of build.
 */
#ifndef DAVIT_HELP_BUILD_H
#define DAVIT_HELP_BUILD_H

#include <davit/help/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of table @w [V, D] for the step's tokens. @scale 0 = 1. Returns [T, D]. */
static inline int32_t davit_embed(const davit_graph *g, int32_t w, float scale)
{
    const davit_embed_attr attr = {DAVIT_END(davit_embed_attr, flags), 0, scale, 0, 0};
    davit_op_rec r = davit_rec(DAVIT_OP_EMBED, &attr);

    davit_rec_weight(&r, w);
    return davit_rec_out(g, &r, davit_value_f32(g, g->build->slot_dim(g->b, w, 1)));
}

/* @x [T, K] or [R, K] times @w [N, K]. @bias [N] may be -1; @out_scale 0 = 1; @rows of the result
 * as of @x: DAVIT_ROWS_T, or _R for the head. Returns [@rows, N]. */
static inline int32_t davit_linear_rows(const davit_graph *g, int32_t x, int32_t w,
                                        int32_t bias, float out_scale, uint32_t rows)
{
    const davit_linear_attr attr = {DAVIT_END(davit_linear_attr, flags), out_scale, 0};
    davit_op_rec r = davit_rec(DAVIT_OP_LINEAR, &attr);

    davit_rec_in(&r, x);
    davit_rec_weight(&r, w);
    davit_rec_weight(&r, bias);
    return davit_rec_out(
        g, &r, g->build->value(g->b, "f32/1", rows, g->build->slot_dim(g->b, w, 0)));
}

/* The usual case: [T, K] to [T, N]. */
static inline int32_t davit_linear(const davit_graph *g, int32_t x, int32_t w,
                                   int32_t bias)
{
    return davit_linear_rows(g, x, w, bias, 0, DAVIT_ROWS_T);
}

/* @n_groups: 1, or the heads of a q/k norm, which divide the width of @x; @w [width / n_groups] or
 * [width], may be -1. Writes @y, of @x's width; in place when @y == @x. Returns @y. */
static inline int32_t davit_rmsnorm_to(const davit_graph *g, int32_t x, int32_t w,
                                       uint64_t n_groups, float eps, int32_t y)
{
    const davit_norm_attr attr = {DAVIT_END(davit_norm_attr, reserved), n_groups, eps, 0};
    davit_op_rec r = davit_rec(DAVIT_OP_RMSNORM, &attr);

    davit_rec_in(&r, x);
    davit_rec_weight(&r, w);
    return davit_rec_out(g, &r, y);
}

/* The same into a new value. */
static inline int32_t davit_rmsnorm(const davit_graph *g, int32_t x, int32_t w,
                                    uint64_t n_groups, float eps)
{
    return davit_rmsnorm_to(g, x, w, n_groups, eps,
                            davit_value_f32(g, davit_width(g, x)));
}

/* As davit_rmsnorm_to; @bias like @w, may be -1. */
static inline int32_t davit_layernorm_to(const davit_graph *g, int32_t x, int32_t w,
                                         int32_t bias, uint64_t n_groups, float eps,
                                         int32_t y)
{
    const davit_norm_attr attr = {DAVIT_END(davit_norm_attr, reserved), n_groups, eps, 0};
    davit_op_rec r = davit_rec(DAVIT_OP_LAYERNORM, &attr);

    davit_rec_in(&r, x);
    davit_rec_weight(&r, w);
    davit_rec_weight(&r, bias);
    return davit_rec_out(g, &r, y);
}

/* The same into a new value. */
static inline int32_t davit_layernorm(const davit_graph *g, int32_t x, int32_t w,
                                      int32_t bias, uint64_t n_groups, float eps)
{
    return davit_layernorm_to(g, x, w, bias, n_groups, eps,
                              davit_value_f32(g, davit_width(g, x)));
}

/* y += scale * x, both of one width; @scale 0 = 1. Returns @y. */
static inline int32_t davit_add(const davit_graph *g, int32_t x, int32_t y, float scale)
{
    const davit_scale_attr attr = {DAVIT_END(davit_scale_attr, reserved), scale, 0};
    davit_op_rec r = davit_rec(DAVIT_OP_ADD, &attr);

    davit_rec_in(&r, x);
    davit_rec_in(&r, y);
    return davit_rec_out(g, &r, y);
}

/* x *= scale, in place; @scale 0 = 1. */
static inline int32_t davit_scale(const davit_graph *g, int32_t x, float scale)
{
    const davit_scale_attr attr = {DAVIT_END(davit_scale_attr, reserved), scale, 0};

    return davit_rec_simple(g, DAVIT_OP_SCALE, &attr, x, x);
}

/* x = cap * tanh(x / cap), in place; @cap > 0. */
static inline int32_t davit_softcap(const davit_graph *g, int32_t x, float cap)
{
    const davit_scale_attr attr = {DAVIT_END(davit_scale_attr, reserved), cap, 0};

    return davit_rec_simple(g, DAVIT_OP_SOFTCAP, &attr, x, x);
}

/* x = f(x), in place. @kind DAVIT_ACT_, not OAI_CLAMP. */
static inline int32_t davit_act(const davit_graph *g, int32_t x, uint32_t kind)
{
    const davit_act_attr attr = {DAVIT_END(davit_act_attr, reserved), kind, 0, 0, 0};

    return davit_rec_simple(g, DAVIT_OP_ACT, &attr, x, x);
}

/* gate = f(gate) * up, both [T, D], in place in @gate. @kind as for davit_act. */
static inline int32_t davit_glu(const davit_graph *g, int32_t gate, int32_t up,
                                uint32_t kind)
{
    const davit_act_attr attr = {DAVIT_END(davit_act_attr, reserved), kind, 0, 0, 0};
    davit_op_rec r = davit_rec(DAVIT_OP_GLU, &attr);

    davit_rec_in(&r, gate);
    davit_rec_in(&r, up);
    return davit_rec_out(g, &r, gate);
}

/* Rotate the first rot_dim (= width of @angles) elements of every head of @x [T, heads * head_dim],
 * in place. @angles from rope_angles (help/rope.h); @pairing DAVIT_PAIR_. */
static inline int32_t davit_rope(const davit_graph *g, int32_t x, int32_t angles,
                                 uint64_t head_dim, uint32_t pairing)
{
    const davit_rope_attr attr = {DAVIT_END(davit_rope_attr, reserved),
                                  head_dim ? davit_width(g, x) / head_dim : 0,
                                  head_dim,
                                  0,
                                  davit_width(g, angles),
                                  pairing,
                                  0};
    davit_op_rec r = davit_rec(DAVIT_OP_ROPE, &attr);

    davit_rec_in(&r, x);
    davit_rec_in(&r, angles);
    return davit_rec_out(g, &r, x);
}

/* A per-token key/value state: heads of @k_dim and @v_dim elements. @window in tokens, 0 = all stay
 * visible. Returns the state's handle. */
static inline int32_t davit_kv_state(const davit_graph *g, uint64_t n_kv_heads,
                                     uint64_t k_dim, uint64_t v_dim, uint64_t window)
{
    const davit_state_spec spec = {DAVIT_END(davit_state_spec, window),
                                   DAVIT_STATE_KV,
                                   0,
                                   n_kv_heads,
                                   k_dim,
                                   v_dim,
                                   window,
                                   NULL,
                                   0,
                                   0,
                                   NULL,
                                   NULL};

    return g->build->state(g->b, &spec);
}

/* Store the step's keys @k [T, heads * k_dim] and values @v [T, heads * v_dim] in @state. */
static inline void davit_kv_append(const davit_graph *g, int32_t k, int32_t v,
                                   int32_t state)
{
    const davit_none_attr attr = {DAVIT_END(davit_none_attr, struct_size)};
    davit_op_rec r = davit_rec(DAVIT_OP_KV_APPEND, &attr);

    davit_rec_in(&r, k);
    davit_rec_in(&r, v);
    r.state = state;
    g->build->op(g->b, &r);
}

/* Queries @q [T, nh*dk] over what @state holds after the step's append. @attr all but struct_size
 * filled. @sinks [nh] may be -1. Returns [T, nh*dv]. */
static inline int32_t davit_attn(const davit_graph *g, int32_t q, int32_t state,
                                 int32_t sinks, davit_attn_attr attr)
{
    davit_op_rec r = davit_rec(DAVIT_OP_ATTN, &attr);

    attr.struct_size = DAVIT_END(davit_attn_attr, softcap);
    davit_rec_in(&r, q);
    davit_rec_weight(&r, sinks);
    r.state = state;
    return davit_rec_out(g, &r, davit_value_f32(g, attr.n_heads * attr.v_dim));
}

/* Choose experts from @logits [T, E]. @attr all but struct_size filled; @bias [E] may be -1.
 * *out_ids (int32) and *out_w are [T, k]. */
static inline void davit_moe_route(const davit_graph *g, int32_t logits, int32_t bias,
                                   davit_moe_route_attr attr, int32_t *out_ids,
                                   int32_t *out_w)
{
    davit_op_rec r = davit_rec(DAVIT_OP_MOE_ROUTE, &attr);

    attr.struct_size = DAVIT_END(davit_moe_route_attr, renorm_eps);
    *out_ids = g->build->value(g->b, "i32/1", DAVIT_ROWS_T, attr.top_k);
    *out_w = davit_value_f32(g, attr.top_k);
    davit_rec_in(&r, logits);
    davit_rec_weight(&r, bias);
    r.out[r.n_out++] = *out_ids;
    davit_rec_out(g, &r, *out_w);
}

/* @x [T, K] through the chosen experts; @ids and @w from davit_moe_route; @weights gate [E, I, K],
 * up [E, I, K], down [E, N, I]: slots of class exp. With attr.gate_up ALTERNATE gate and up are the
 * same slot. @biases NULL, or those of the three, each may be -1. @attr all but struct_size and
 * biases filled. Returns [T, N]. */
static inline int32_t davit_moe_ffn_biased(const davit_graph *g, int32_t x, int32_t ids,
                                           int32_t w, const int32_t weights[3],
                                           const int32_t biases[3],
                                           davit_moe_ffn_attr attr)
{
    davit_op_rec r = davit_rec(DAVIT_OP_MOE_FFN, &attr);

    attr.struct_size = DAVIT_END(davit_moe_ffn_attr, biases);
    attr.biases = biases && (biases[0] >= 0 || biases[1] >= 0 || biases[2] >= 0);
    davit_rec_in(&r, x);
    davit_rec_in(&r, ids);
    davit_rec_in(&r, w);
    for (int n = 0; n < 3; n++)
        davit_rec_weight(&r, weights[n]);
    for (int n = 0; attr.biases && n < 3; n++)
        davit_rec_weight(&r, biases[n]);
    return davit_rec_out(g, &r,
                         davit_value_f32(g, g->build->slot_dim(g->b, weights[2], 1)));
}

/* The usual case: no biases. */
static inline int32_t davit_moe_ffn(const davit_graph *g, int32_t x, int32_t ids,
                                    int32_t w, const int32_t weights[3],
                                    davit_moe_ffn_attr attr)
{
    return davit_moe_ffn_biased(g, x, ids, w, weights, NULL, attr);
}

/* [T, D] -> [R, D]: the rows that need logits. */
static inline int32_t davit_gather_rows(const davit_graph *g, int32_t x)
{
    const davit_none_attr attr = {DAVIT_END(davit_none_attr, struct_size)};

    return davit_rec_simple(
        g, DAVIT_OP_GATHER_ROWS, &attr, x,
        g->build->value(g->b, "f32/1", DAVIT_ROWS_R, davit_width(g, x)));
}

#ifdef __cplusplus
}
#endif
#endif
