/* SPDX-License-Identifier: Apache-2.0
 * One case maker per op: random odd sizes, optional parts there or not. */
#include "call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD      64u
#define GUARD_BYTE 0xa5
#define MAX_ROWS   7u /* tokens of a case */

void *test_call_memory(test_call *c, uint64_t n_bytes, uint64_t shift)
{
    test_memory *m = &c->memory[c->n_memory];
    void *p = NULL;

    if (c->n_memory == CALL_MAX_MEMORY || posix_memalign(&p, 64, 2 * GUARD + shift + n_bytes)) {
        fprintf(stderr, "test: no memory for a call\n");
        exit(1);
    }
    c->n_memory++;
    m->base = p;
    m->front = GUARD + shift;
    m->n_bytes = n_bytes;
    memset(m->base, GUARD_BYTE, 2 * GUARD + shift + n_bytes);
    return m->base + m->front;
}

int test_call_guards_hold(const test_call *c)
{
    for (uint64_t i = 0; i < c->n_memory; i++) {
        const test_memory *m = &c->memory[i];

        for (uint64_t k = 0; k < m->front; k++)
            if (m->base[k] != GUARD_BYTE)
                return 0;
        for (uint64_t k = 0; k < GUARD; k++)
            if (m->base[m->front + m->n_bytes + k] != GUARD_BYTE)
                return 0;
    }
    return 1;
}

void test_call_free(test_call *c)
{
    for (uint64_t i = 0; i < c->n_memory; i++)
        free(c->memory[i].base);
    c->n_memory = 0;
}

static uint64_t between(test_call *c, uint64_t lo, uint64_t hi)
{
    return davit_test_between(c->t, lo, hi);
}

static int chance(test_call *c)
{
    return davit_test_between(c->t, 0, 1) != 0;
}

/* ---- values and weights ---- */

static davit_value new_value(test_call *c, uint64_t rows, uint64_t width)
{
    return (davit_value){.data = test_call_memory(c, rows * width * sizeof(float), 0),
                         .n_rows = rows,
                         .width = width,
                         .dtype = "f32/1"};
}

static void add_in(test_call *c, uint64_t rows, uint64_t width)
{
    davit_value v = new_value(c, rows, width);
    float *data = v.data;

    for (uint64_t i = 0; i < rows * width; i++)
        data[i] = davit_test_normal(c->t);
    c->call.in[c->call.n_in++] = v;
}

/* Its values are set before a run; random here, since ADD reads them. */
static void add_out(test_call *c, uint64_t rows, uint64_t width)
{
    davit_value v = new_value(c, rows, width);
    float *data = v.data;

    for (uint64_t i = 0; i < rows * width; i++)
        data[i] = davit_test_normal(c->t);
    c->call.out[c->call.n_out++] = v;
}

/* The output is input @i, or a value of its own where the op allows both. */
static void add_out_in_place(test_call *c, uint32_t i)
{
    c->call.out[c->call.n_out++] = c->call.in[i];
}

static davit_weight *new_weight(test_call *c, const char *layout, uint64_t rows, uint64_t cols)
{
    davit_weight *w = &c->weights[c->call.n_weights];

    *w = (davit_weight){.layout = layout, .n_experts = 1, .n_rows = rows, .n_cols = cols};
    c->call.weight[c->call.n_weights++] = w;
    return w;
}

/* An optional vector, there or not. */
static void add_vector(test_call *c, uint64_t n)
{
    davit_weight *w;
    davit_segment *s;
    float *data;

    if (!chance(c)) {
        c->call.weight[c->call.n_weights++] = NULL;
        return;
    }
    w = new_weight(c, "f32/1", n, 1);
    s = test_call_memory(c, sizeof *s, 0);
    data = test_call_memory(c, n * sizeof *data, 0);
    for (uint64_t i = 0; i < n; i++)
        data[i] = 1.0f + 0.3f * davit_test_normal(c->t);
    memset(s, 0, sizeof *s);
    s->n_rows = n;
    s->n_parts = 1;
    s->part[0] = (const uint8_t *)data;
    s->row_bytes[0] = sizeof *data;
    w->n_segments = 1;
    w->segments = s;
}

static void put_plain(test_call *c, const davit_ref_layout *layout, uint8_t *dst)
{
    const float f = 0.1f * davit_test_normal(c->t);
    uint32_t bits;
    uint16_t half;

    memcpy(&bits, &f, sizeof bits);
    half = strcmp(layout->name, "f16/1") == 0 ? davit_ref_f32_to_f16(f)
                                              : (uint16_t)(bits >> 16);
    if (layout->block_bytes == sizeof f)
        memcpy(dst, &f, sizeof f);
    else
        memcpy(dst, &half, sizeof half);
}

/* Random bytes with scales of ordinary size. */
static void put_block(test_call *c, const davit_ref_layout *layout, uint8_t *dst)
{
    if (layout->block_elems == 1) {
        put_plain(c, layout, dst);
        return;
    }
    for (uint32_t i = 0; i < layout->block_bytes; i++)
        dst[i] = (uint8_t)davit_test_random(c->t);
    for (int i = 0; i < 2 && layout->half_at[i] != UINT32_MAX; i++) {
        const uint16_t half = davit_ref_f32_to_f16(0.01f * davit_test_normal(c->t));
        memcpy(dst + layout->half_at[i], &half, sizeof half);
    }
    if (layout->codes && layout->half_at[0] == UINT32_MAX) /* iq1_m: the top of its float16, finite */
        dst[layout->block_bytes - 1] = 0x20 | (dst[layout->block_bytes - 1] & 0x0f);
}

/* A matrix in segments of random length, at odd addresses. */
static void add_matrix(test_call *c, const davit_ref_layout *layout, uint64_t rows,
                       uint64_t cols)
{
    const uint64_t row_bytes = davit_ref_row_bytes(layout, cols);
    davit_weight *w = new_weight(c, layout->name, rows, cols);
    davit_segment *segments = test_call_memory(c, rows * sizeof *segments, 0);
    uint64_t n = 0;

    for (uint64_t row = 0, some; row < rows; row += some) {
        uint8_t *bytes;

        some = between(c, 1, rows - row);
        bytes = test_call_memory(c, some * row_bytes, between(c, 0, 3) * 2 + 1);
        for (uint64_t b = 0; b < some * row_bytes / layout->block_bytes; b++)
            put_block(c, layout, bytes + b * layout->block_bytes);
        memset(&segments[n], 0, sizeof *segments);
        segments[n].row = row;
        segments[n].n_rows = some;
        segments[n].n_parts = 1;
        segments[n].part[0] = bytes;
        segments[n++].row_bytes[0] = row_bytes;
    }
    w->n_segments = n;
    w->segments = segments;
}

static int32_t *add_ints(test_call *c, uint64_t n, uint64_t limit)
{
    int32_t *x = test_call_memory(c, n * sizeof *x, 0);

    for (uint64_t i = 0; i < n; i++)
        x[i] = (int32_t)between(c, 0, limit - 1);
    return x;
}

/* One sequence of @T tokens. */
static void set_batch(test_call *c, uint64_t T, uint64_t vocab)
{
    int32_t *position = add_ints(c, T, 1), *seq = add_ints(c, T, 1);
    int32_t *query_start = add_ints(c, 2, 1), *ctx_len = add_ints(c, 1, 1);

    for (uint64_t t = 0; t < T; t++)
        position[t] = (int32_t)t;
    query_start[1] = ctx_len[0] = (int32_t)T;
    c->batch = (davit_batch){.struct_size = DAVIT_END(davit_batch, tree_mask),
                             .n_tokens = T,
                             .n_seqs = 1,
                             .n_rows = T,
                             .block_tokens = 1,
                             .token = add_ints(c, T, vocab),
                             .position = position,
                             .seq = seq,
                             .query_start = query_start,
                             .ctx_len = ctx_len,
                             .rope_n = ctx_len,
                             .logit_row = add_ints(c, T, T)};
}

/* ---- ops ---- */

typedef void fill_fn(test_call *c, const davit_ref_layout *layout, uint64_t T);

/* Columns that are whole blocks of @layout, odd ones where blocks are single numbers. */
static uint64_t columns(test_call *c, const davit_ref_layout *layout)
{
    return layout->block_elems == 1 ? between(c, 1, 300)
                                    : layout->block_elems * between(c, 1, 5);
}

static void fill_embed(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t V = between(c, 2, 40), D = columns(c, layout);

    c->attr.embed.struct_size = DAVIT_END(davit_embed_attr, reserved);
    c->attr.embed.scale = chance(c) ? 3.5f : 0;
    set_batch(c, T, V);
    add_matrix(c, layout, V, D);
    add_out(c, T, D);
}

static void fill_linear(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t N = between(c, 1, 70), K = columns(c, layout);

    c->attr.linear.struct_size = DAVIT_END(davit_linear_attr, flags);
    c->attr.linear.out_scale = chance(c) ? 0.75f : 0;
    c->attr.linear.flags = chance(c) ? DAVIT_LINEAR_ADD : 0;
    add_in(c, T, K);
    add_matrix(c, layout, N, K);
    add_vector(c, N);
    add_out(c, T, N);
}

static void fill_norm(test_call *c, uint64_t T, int has_bias)
{
    const uint64_t groups = between(c, 1, 4), D = between(c, 1, 150);

    c->attr.norm.struct_size = DAVIT_END(davit_norm_attr, reserved);
    c->attr.norm.n_groups = groups > 1 ? groups : 0;
    c->attr.norm.eps = 1e-5f;
    add_in(c, T, groups * D);
    add_vector(c, chance(c) ? D : groups * D);
    if (has_bias)
        add_vector(c, D);
    if (chance(c))
        add_out_in_place(c, 0);
    else
        add_out(c, T, groups * D);
}

static void fill_rmsnorm(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    (void)layout;
    fill_norm(c, T, 0);
}

static void fill_layernorm(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    (void)layout;
    fill_norm(c, T, 1);
}

static void fill_add(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t D = between(c, 1, 300);

    (void)layout;
    c->attr.scale.struct_size = DAVIT_END(davit_scale_attr, reserved);
    c->attr.scale.scale = chance(c) ? 0.22f : 0;
    add_in(c, T, D);
    add_in(c, T, D);
    add_out_in_place(c, 1);
}

static void fill_scale(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t D = between(c, 1, 300);

    (void)layout;
    c->attr.scale.struct_size = DAVIT_END(davit_scale_attr, reserved);
    c->attr.scale.scale = 1.5f;
    add_in(c, T, D);
    if (chance(c))
        add_out_in_place(c, 0);
    else
        add_out(c, T, D);
}

static void fill_act(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t D = between(c, 1, 300);

    (void)layout;
    c->attr.act.struct_size = DAVIT_END(davit_act_attr, reserved);
    c->attr.act.kind = (uint32_t)between(c, DAVIT_ACT_NONE, DAVIT_ACT_SOFTPLUS);
    add_in(c, T, D);
    if (chance(c))
        add_out_in_place(c, 0);
    else
        add_out(c, T, D);
}

static void fill_glu(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t D = between(c, 1, 300);

    (void)layout;
    c->attr.act.struct_size = DAVIT_END(davit_act_attr, reserved);
    c->attr.act.kind = (uint32_t)between(c, DAVIT_ACT_SILU, DAVIT_ACT_GELU_ERF);
    add_in(c, T, D);
    add_in(c, T, D);
    if (chance(c))
        add_out_in_place(c, 0);
    else
        add_out(c, T, D);
}

static void fill_rope(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t heads = between(c, 1, 4), head = 2 * between(c, 1, 40);
    const uint64_t rot = 2 * between(c, 1, head / 2);
    float *angles;

    (void)layout;
    c->attr.rope.struct_size = DAVIT_END(davit_rope_attr, reserved);
    c->attr.rope.n_heads = heads;
    c->attr.rope.head_dim = head;
    c->attr.rope.rot_off = between(c, 0, head - rot);
    c->attr.rope.rot_dim = rot;
    c->attr.rope.pairing = (uint32_t)between(c, DAVIT_PAIR_HALF, DAVIT_PAIR_INTER);
    add_in(c, T, heads * head);
    add_in(c, T, rot);
    angles = c->call.in[1].data;
    for (uint64_t t = 0; t < T; t++)
        for (uint64_t j = 0; j < rot / 2; j++) {
            const double angle = 3.0 * (double)davit_test_normal(c->t);
            angles[t * rot + j] = (float)cos(angle);
            angles[t * rot + rot / 2 + j] = (float)sin(angle);
        }
    add_out_in_place(c, 0);
}

static void fill_gather(test_call *c, const davit_ref_layout *layout, uint64_t T)
{
    const uint64_t D = between(c, 1, 300);

    (void)layout;
    c->attr.none.struct_size = DAVIT_END(davit_none_attr, struct_size);
    set_batch(c, T, 2);
    add_in(c, T, D);
    add_out(c, T, D);
}

static const struct {
    const char *op;
    fill_fn *fill;
} makers[] = {
    {DAVIT_OP_EMBED, fill_embed},         {DAVIT_OP_LINEAR, fill_linear},
    {DAVIT_OP_RMSNORM, fill_rmsnorm},     {DAVIT_OP_LAYERNORM, fill_layernorm},
    {DAVIT_OP_ADD, fill_add},             {DAVIT_OP_SCALE, fill_scale},
    {DAVIT_OP_SOFTCAP, fill_scale},       {DAVIT_OP_ACT, fill_act},
    {DAVIT_OP_GLU, fill_glu},             {DAVIT_OP_ROPE, fill_rope},
    {DAVIT_OP_GATHER_ROWS, fill_gather},
};

int test_call_fill(test_call *c, const char *op, const davit_ref_layout *layout)
{
    const uint64_t T = between(c, 1, MAX_ROWS);

    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        if (strcmp(makers[i].op, op) != 0)
            continue;
        c->call.struct_size = DAVIT_END(davit_call, weight);
        c->call.self = davit_test_self(c->t);
        c->call.op = makers[i].op;
        c->call.attr = &c->attr;
        c->call.batch = &c->batch;
        makers[i].fill(c, layout, T);
        if (!c->batch.struct_size)
            set_batch(c, T, 2);
        return 1;
    }
    return 0;
}
