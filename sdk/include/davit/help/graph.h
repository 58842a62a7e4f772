/* SPDX-License-Identifier: Apache-2.0
 * What a forward is recorded with: settings, slots, values, and any op as a record. One
 * wrapper for each op: build.h. A whole decoder from a descriptor: decoder.h.
 *
 * Every handle may be -1 (absent, or after an error): errors are sticky in the builder,
 * so nothing is checked here.
 */
#ifndef DAVIT_HELP_GRAPH_H
#define DAVIT_HELP_GRAPH_H

#include <string.h>

#include <davit/arch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What every wrapper takes: the recorder and the model's settings. Lives on the stack of
 * build; nothing in it is owned. */
typedef struct davit_graph {
    const davit_build_suite *build;
    davit_builder *b;
    const davit_config_suite *get; /* "config" suite */
    const davit_config *config;
} davit_graph;

/* Give these to the component: .create = davit_arch_create, .destroy =
 * davit_arch_destroy. The instance remembers the host and its config suite.
 * (sdk/src/arch/graph.c) */
int32_t davit_arch_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                          const davit_sink *sink);
void davit_arch_destroy(void *self);
/* @self of davit_arch_create; @build and @b as build got them. */
davit_graph davit_graph_open(void *self, const davit_build_suite *build,
                             davit_builder *b);
/* (borrowed) the config suite, for check. */
const davit_config_suite *davit_arch_config(void *self);

/* The table fields of a davit_arch_iface:
 *   static const davit_arch_iface x_arch = {..., DAVIT_ARCH_TABLES(x_config, x_slots),
 * ...};
 */
#define DAVIT_ARCH_TABLES(config_, slots_)                                               \
    .config = config_, .config_stride = sizeof(davit_config_row), .slots = slots_,       \
    .slot_stride = sizeof(davit_slot_row)

/* DAVIT_ACT_ of a name as config.json writes it ("silu", "gelu_pytorch_tanh"); NONE if it
 * is not known: let the config table's bound refuse it first. */
#define DAVIT_ACT_WORDS "silu|swish|gelu|gelu_new|gelu_pytorch_tanh|gelu_fast|relu|relu2"
uint32_t davit_act_kind(const char *name);

/* ---- settings; @layer is -1 where the symbol has one value ---- */

static inline int64_t davit_get_int(const davit_graph *g, const char *sym, int64_t layer)
{
    return g->get->integer(g->config, sym, layer);
}

static inline float davit_get_float(const davit_graph *g, const char *sym, int64_t layer)
{
    return (float)g->get->number(g->config, sym, layer);
}

static inline const char *davit_get_text(const davit_graph *g, const char *sym,
                                         int64_t layer)
{
    return g->get->text(g->config, sym, layer);
}

/* ---- slots and values ---- */

static inline int32_t davit_slot(const davit_graph *g, const char *id, int64_t layer)
{
    return g->build->slot(g->b, id, layer);
}

static inline int32_t davit_value_f32(const davit_graph *g, uint64_t width)
{
    return g->build->value(g->b, "f32/1", DAVIT_ROWS_T, width);
}

static inline uint64_t davit_width(const davit_graph *g, int32_t value)
{
    return g->build->value_width(g->b, value);
}

/* ---- any op: fill a record, then emit it ---- */

/* @attr is read when the record is emitted; NULL = none. */
static inline davit_op_rec davit_rec(const char *op, const void *attr)
{
    davit_op_rec r;

    memset(&r, 0, sizeof r);
    r.struct_size = DAVIT_END(davit_op_rec, weight);
    r.op = op;
    r.attr = attr;
    r.state = -1;
    return r;
}

static inline void davit_rec_in(davit_op_rec *r, int32_t value)
{
    r->in[r->n_in++] = value;
}

static inline void davit_rec_weight(davit_op_rec *r, int32_t weight)
{
    r->weight[r->n_weights++] = weight;
}

/* Emit with the one output @y. Returns @y. */
static inline int32_t davit_rec_out(const davit_graph *g, davit_op_rec *r, int32_t y)
{
    r->out[r->n_out++] = y;
    g->build->op(g->b, r);
    return y;
}

/* The commonest shape: one input, no weight, one output. */
static inline int32_t davit_rec_simple(const davit_graph *g, const char *op,
                                       const void *attr, int32_t x, int32_t y)
{
    davit_op_rec r = davit_rec(op, attr);

    davit_rec_in(&r, x);
    return davit_rec_out(g, &r, y);
}

#ifdef __cplusplus
}
#endif
#endif
