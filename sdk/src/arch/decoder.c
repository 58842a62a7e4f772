/* SPDX-License-Identifier: Apache-2.0
 * The forward behind davit_decoder. Shapes: T tokens, H model width, hd head width. */
#include <math.h>
#include <string.h>

#include <davit/help/decoder.h>
#include <davit/help/rope.h>

static int32_t slot(const davit_graph *g, const char *id, uint64_t i)
{
    return davit_slot(g, id, (int64_t)i);
}

davit_decoder davit_decoder_of(const davit_graph *g)
{
    davit_decoder d = {.act = davit_act_kind(davit_get_text(g, "act", -1)),
                       .n_layers = (uint64_t)davit_get_int(g, "L", -1),
                       .head_dim = (uint64_t)davit_get_int(g, "hd", -1),
                       .eps = davit_get_float(g, "eps", -1)};

    return d;
}

/* Norm of @x with the slots @id and @id.bias, into @y (which may be @x). */
static int32_t norm_to(const davit_graph *g, const davit_decoder *d, int32_t x, int32_t w,
                       int32_t bias, int32_t y)
{
    if (d->norm == DAVIT_NORM_LAYER)
        return davit_layernorm_to(g, x, w, bias, 1, d->eps, y);
    return davit_rmsnorm_to(g, x, w, 1, d->eps, y);
}

static int32_t norm(const davit_graph *g, const davit_decoder *d, int32_t x, int32_t w,
                    int32_t bias)
{
    return norm_to(g, d, x, w, bias, davit_value_f32(g, davit_width(g, x)));
}

/* ---- attention ---- */

static void qk_norm(const davit_graph *g, const davit_decoder *d, int32_t x, int32_t w)
{
    uint64_t groups = d->qk_norm == DAVIT_QK_HEAD ? davit_width(g, x) / d->head_dim : 1;
    float eps = d->qk_eps > 0 ? d->qk_eps : d->eps;

    if (d->qk_norm == DAVIT_QK_NONE || w < 0)
        return;
    if (d->qk_kind == DAVIT_NORM_LAYER)
        davit_layernorm_to(g, x, w, -1, groups, eps, x);
    else
        davit_rmsnorm_to(g, x, w, groups, eps, x);
}

/* q and k must keep the same rotary row order, and so must their biases. */
static uint32_t pairing_of(const davit_graph *g, int32_t q, int32_t k, int32_t q_bias,
                           int32_t k_bias)
{
    uint32_t bit = g->build->slot_flags(g->b, q) & DAVIT_SLOT_INTERLEAVED;
    const int32_t others[] = {k, q_bias, k_bias};
    const davit_refusal no = {
        .struct_size = DAVIT_END(davit_refusal, url),
        .code = DAVIT_R_MAP_INCOMPLETE,
        .subject = "attn.q",
        .expected = "one rotary row order for q, k and their biases",
        .found = "two",
        .message = "the file stores q and k in different row orders"};

    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
        if (others[n] >= 0 &&
            (g->build->slot_flags(g->b, others[n]) & DAVIT_SLOT_INTERLEAVED) != bit)
            g->build->fail(g->b, &no);
    return bit ? DAVIT_PAIR_INTER : DAVIT_PAIR_HALF;
}

static int32_t angles_of(const davit_decoder_ropes *ropes, const char *type)
{
    for (size_t n = 0; type && n < DAVIT_DECODER_ROPES; n++)
        if (ropes->type[n] && strcmp(ropes->type[n], type) == 0)
            return ropes->angles[n];
    return -1;
}

static davit_decoder_layer layer_of(const davit_graph *g, const davit_decoder *d,
                                    uint64_t i)
{
    davit_decoder_layer layer = {.rope = ""};

    if (d->layer)
        d->layer(g, i, &layer);
    return layer;
}

int32_t davit_decoder_attn(const davit_graph *g, const davit_decoder *d, uint64_t i,
                           const davit_decoder_ropes *ropes, int32_t x)
{
    davit_decoder_layer layer = layer_of(g, d, i);
    int32_t wq = slot(g, "attn.q", i);
    int32_t wk = slot(g, "attn.k", i);
    int32_t bq = slot(g, "attn.q.bias", i);
    int32_t bk = slot(g, "attn.k.bias", i);
    int32_t angles = angles_of(ropes, layer.rope);
    int32_t q = davit_linear(g, x, wq, bq); /* [T, nh*hd] */
    int32_t k = davit_linear(g, x, wk, bk); /* [T, nkv*hd] */
    int32_t v = davit_linear(g, x, slot(g, "attn.v", i), slot(g, "attn.v.bias", i));
    uint64_t hd = d->head_dim;
    int32_t state, y;

    if (d->qk_norm != DAVIT_QK_NONE) {
        qk_norm(g, d, q, slot(g, "attn.q_norm", i));
        qk_norm(g, d, k, slot(g, "attn.k_norm", i));
    }
    if (angles >= 0) {
        uint32_t pairing = pairing_of(g, wq, wk, bq, bk);

        davit_rope(g, q, angles, hd, pairing);
        davit_rope(g, k, angles, hd, pairing);
    }
    state = davit_kv_state(g, davit_width(g, k) / hd, hd, hd, layer.window);
    davit_kv_append(g, k, v, state);
    y = davit_attn(g, q, state, slot(g, "attn.sinks", i),
                   (davit_attn_attr){.n_heads = davit_width(g, q) / hd,
                                     .n_kv_heads = davit_width(g, k) / hd,
                                     .k_dim = hd,
                                     .v_dim = hd,
                                     .window = layer.window,
                                     .scale = d->attn_scale > 0
                                                  ? d->attn_scale
                                                  : (float)(1 / sqrt((double)hd)),
                                     .softcap = d->attn_softcap});
    return davit_linear(g, y, slot(g, "attn.o", i), slot(g, "attn.o.bias", i));
}

/* ---- MLP ---- */

static int32_t experts(const davit_graph *g, const davit_decoder *d, uint64_t i,
                       int32_t x, int32_t router)
{
    int32_t both = slot(g, "moe.gate_up", i), both_bias = slot(g, "moe.gate_up.bias", i);
    const int32_t weights[3] = {both >= 0 ? both : slot(g, "moe.gate", i),
                                both >= 0 ? both : slot(g, "moe.up", i),
                                slot(g, "moe.down", i)};
    const int32_t biases[3] = {both >= 0 ? both_bias : slot(g, "moe.gate.bias", i),
                               both >= 0 ? both_bias : slot(g, "moe.up.bias", i),
                               slot(g, "moe.down.bias", i)};
    int32_t logits = davit_linear(g, x, router, slot(g, "moe.router.bias", i)); /* [T, E] */
    uint64_t n_experts = davit_width(g, logits);
    int32_t ids, w;

    davit_moe_route(g, logits, -1,
                    (davit_moe_route_attr){.n_experts = n_experts,
                                           .top_k = d->top_k,
                                           .kind = d->route,
                                           .flags = d->route_flags,
                                           .factor = d->route_factor,
                                           .renorm_eps = d->route_eps},
                    &ids, &w);
    return davit_moe_ffn_biased(
        g, x, ids, w, weights, biases,
        (davit_moe_ffn_attr){.n_experts = n_experts,
                             .top_k = d->top_k,
                             .kind = d->act,
                             .limit = d->act_limit,
                             .alpha = d->act_alpha,
                             .gate_up = both >= 0 ? DAVIT_GATE_UP_ALTERNATE
                                                  : DAVIT_GATE_UP_APART});
}

int32_t davit_decoder_ffn(const davit_graph *g, const davit_decoder *d, uint64_t i,
                          int32_t x)
{
    int32_t router = d->top_k ? slot(g, "moe.router", i) : -1;
    int32_t gate, up;

    if (router >= 0)
        return experts(g, d, i, x, router);
    gate = slot(g, "ffn.gate", i);
    up = davit_linear(g, x, slot(g, "ffn.up", i), slot(g, "ffn.up.bias", i)); /* [T, I] */
    if (gate >= 0)
        up = davit_glu(g, davit_linear(g, x, gate, slot(g, "ffn.gate.bias", i)), up,
                       d->act);
    else
        davit_act(g, up, d->act);
    return davit_linear(g, up, slot(g, "ffn.down", i), slot(g, "ffn.down.bias", i));
}

/* ---- a layer ---- */

/* x += y, with the norm on y that the placement asks for. */
static void add_branch(const davit_graph *g, const davit_decoder *d, int32_t y, int32_t x,
                       const char *post_norm, uint64_t i)
{
    if (d->placement == DAVIT_PLACE_POST || d->placement == DAVIT_PLACE_SANDWICH)
        norm_to(g, d, y, slot(g, post_norm, i), -1, y);
    davit_add(g, y, x, d->residual_scale);
}

/* What the attention reads: @x itself when norms come after. */
static int32_t attn_input(const davit_graph *g, const davit_decoder *d, uint64_t i,
                          int32_t x)
{
    if (d->placement == DAVIT_PLACE_POST)
        return x;
    return norm(g, d, x, slot(g, "attn.norm", i), slot(g, "attn.norm.bias", i));
}

/* What the MLP reads: in a parallel block without a norm of its own, the attention's
 * input. */
static int32_t ffn_input(const davit_graph *g, const davit_decoder *d, uint64_t i,
                         int32_t x, int32_t attn_in)
{
    int32_t w = d->placement == DAVIT_PLACE_POST ? -1 : slot(g, "ffn.norm", i);

    if (d->placement == DAVIT_PLACE_POST)
        return x;
    if (d->placement == DAVIT_PLACE_PARALLEL && w < 0)
        return attn_in;
    return norm(g, d, x, w, slot(g, "ffn.norm.bias", i));
}

static void record_layer(const davit_graph *g, const davit_decoder *d, uint64_t i,
                         const davit_decoder_ropes *ropes, int32_t x)
{
    int32_t attn_in = attn_input(g, d, i, x);
    int32_t y = davit_decoder_attn(g, d, i, ropes, attn_in);

    if (d->placement == DAVIT_PLACE_PARALLEL) {
        /* both branches read x as it was before either is added */
        int32_t z = davit_decoder_ffn(g, d, i, ffn_input(g, d, i, x, attn_in));

        add_branch(g, d, y, x, NULL, i);
        add_branch(g, d, z, x, NULL, i);
        return;
    }
    add_branch(g, d, y, x, "attn.post_norm", i);
    y = davit_decoder_ffn(g, d, i, ffn_input(g, d, i, x, -1));
    add_branch(g, d, y, x, "ffn.post_norm", i);
}

/* ---- the model ---- */

/* Angles of every rope that some layer names, once each. */
static davit_decoder_ropes record_ropes(const davit_graph *g, const davit_decoder *d)
{
    davit_decoder_ropes ropes = {0};
    int32_t divisors = davit_slot(g, "rope.freqs", -1);
    size_t n = 0;

    for (uint64_t i = 0; i < d->n_layers; i++) {
        davit_decoder_layer layer = layer_of(g, d, i);
        size_t at = 0;

        while (layer.rope && at < n && strcmp(ropes.type[at], layer.rope) != 0)
            at++;
        if (!layer.rope || at < n || n == DAVIT_DECODER_ROPES)
            continue;
        ropes.type[n] = layer.rope;
        ropes.angles[n++] = davit_rope_angles(g, layer.rope, d->head_dim, divisors);
    }
    return ropes;
}

int32_t davit_decoder_build(const davit_graph *g, const davit_decoder *d)
{
    int32_t x =
        davit_embed(g, davit_slot(g, "tok_embd", -1), d->embed_scale); /* [T, H] */
    davit_decoder_ropes ropes = record_ropes(g, d);
    int32_t logits;

    for (uint64_t i = 0; i < d->n_layers; i++) {
        g->build->layer(g->b, (int64_t)i);
        record_layer(g, d, i, &ropes, x);
        g->build->name(g->b, x, "layer");
    }
    g->build->layer(g->b, -1);
    x = davit_gather_rows(g, x); /* [R, H] */
    norm_to(g, d, x, davit_slot(g, "norm", -1), davit_slot(g, "norm.bias", -1), x);
    logits = davit_linear_rows(g, x, davit_slot(g, "head", -1), -1, d->logit_scale,
                               DAVIT_ROWS_R);
    if (d->logit_softcap > 0)
        davit_softcap(g, logits, d->logit_softcap);
    g->build->name(g->b, logits, "logits");
    g->build->output(g->b, logits);
    return DAVIT_OK;
}

void davit_decoder_window(const davit_graph *g, uint64_t i, davit_decoder_layer *out)
{
    if (davit_get_int(g, "windowed", (int64_t)i))
        out->window = (uint64_t)davit_get_int(g, "window", -1);
}

int32_t davit_decoder_build_plain(void *self, const davit_build_suite *build,
                                  davit_builder *b, const char *entry,
                                  const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = davit_decoder_of(&g);

    (void)entry;
    (void)sink;
    d.layer = davit_decoder_window;
    return davit_decoder_build(&g, &d);
}
