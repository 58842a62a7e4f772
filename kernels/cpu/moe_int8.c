/* SPDX-License-Identifier: Apache-2.0
 * moe_ffn/1 with 8-bit activations, for stored block layouts and packed codes. Baseline code; the
 * group kernels that it reaches need the entries' cpu bits.
 *   0: x to one plane of 8 bits, or two where gate and up are codes; a task is X_TASK inputs of one
 *      token
 *   1: hidden = f(gate x) * (up x); a task is ROWS rows of one expert, all tokens that chose it
 *   2: hidden to two planes of 8 bits, or one where down is a block layout of under three bits
 *      (linear_int8.c says why; gate and up of blocks take one)
 *   3: part = down hidden; tasks as in 1
 *   4: the weighted sum of each token's parts
 * Shared scratch: hidden [T, k, I], part [T, k, N], float32; then blocks of x [T, planes, K/32]
 * and of hidden [T, k, planes, I/32]. Worker scratch: struct bench. */
#include <string.h>

#include <davit/help/ref.h>

#include "codes.h"
#include "layers.h"
#include "linear.h"
#include "moe.h"

#define X_TASK 1024
#define ROWS   32 /* a multiple of CPU_GROUP; more = tokens are gathered less often */
#define PAIRS  16 /* (token, choice) pairs that pass an expert's rows together */
#define PLANES 2  /* the most */

/* 8-bit planes of x: a rule of layouts, so that every call on the weights does the same. */
static uint64_t x_planes(const davit_call *call)
{
    return cpu_layout_find(call->weight[0]->layout) && cpu_layout_find(call->weight[1]->layout)
               ? 1
               : PLANES;
}

/* The same of hidden. */
static uint64_t hidden_planes(const davit_call *call)
{
    const cpu_layout *down = cpu_layout_find(call->weight[2]->layout);

    return down && down->one_plane ? 1 : PLANES;
}

/* Where things of this step lie. */
typedef struct layout {
    uint64_t n_pairs, K, I, N, x_planes, hidden_planes;
    float *hidden, *part;
    cpu_xblock *x, *hidden_x;
} layout;

static layout layout_of(const davit_call *call)
{
    const davit_moe_ffn_attr *a = call->attr;
    layout l = {.n_pairs = call->in[1].n_rows * a->top_k,
                .K = call->weight[0]->n_cols,
                .I = call->weight[2]->n_cols,
                .N = call->weight[2]->n_rows,
                .x_planes = x_planes(call),
                .hidden_planes = hidden_planes(call)};

    l.hidden = call->scratch;
    l.part = l.hidden + l.n_pairs * l.I;
    l.x = (cpu_xblock *)(void *)(l.part + l.n_pairs * l.N);
    l.hidden_x = l.x + call->in[1].n_rows * l.x_planes * (l.K / CPU_XBLOCK);
    return l;
}

/* One worker's memory. */
typedef struct bench {
    uint8_t *rows;    /* CPU_ROWS_SCRATCH */
    float *dots[3];   /* [PAIRS * PLANES, 8] each; the last for rows that segments cut apart */
    cpu_xblock *x;    /* [PAIRS * PLANES, longer of K and I / 32] */
} bench;

#define DOTS (PAIRS * PLANES * CPU_GROUP)

static bench bench_of(const davit_call *call, uint32_t worker)
{
    uint8_t *at = cpu_worker(call, worker);
    float *dots = (float *)(void *)(at + CPU_ROWS_SCRATCH);

    return (bench){at, {dots, dots + DOTS, dots + 2 * DOTS},
                   (cpu_xblock *)(void *)(dots + 3 * DOTS)};
}

static void moe_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                     uint64_t ctx, davit_work *out)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t K = call->weight[0]->n_cols, I = call->weight[2]->n_cols;
    const uint64_t N = call->weight[2]->n_rows, n_pairs = n_tokens * a->top_k;
    const uint64_t longer = (K > I ? K : I) / CPU_XBLOCK;
    (void)self;
    (void)n_rows;
    (void)ctx;

    out->scratch_bytes =
        n_pairs * (I + N) * sizeof(float) +
        (n_tokens * x_planes(call) * (K / CPU_XBLOCK) +
         n_pairs * hidden_planes(call) * (I / CPU_XBLOCK)) *
            sizeof(cpu_xblock);
    out->worker_bytes = cpu_round_up(CPU_ROWS_SCRATCH + 3 * DOTS * sizeof(float) +
                                         PAIRS * PLANES * longer * sizeof(cpu_xblock),
                                     64);
    out->n_phases = 5;
    out->n_tasks[0] = n_tokens * cpu_ceil_div(K, X_TASK);
    out->n_tasks[1] = call->weight[0]->n_experts * cpu_ceil_div(I, ROWS);
    out->n_tasks[2] = n_pairs * cpu_ceil_div(I, X_TASK);
    out->n_tasks[3] = call->weight[2]->n_experts * cpu_ceil_div(N, ROWS);
    out->n_tasks[4] = n_tokens;
}

/* ---- rows ---- */

/* How the rows of one weight are multiplied. */
typedef struct reader {
    const davit_weight *w;
    const cpu_layout *blocks; /* NULL = codes */
    cpu_codes codes;
    cpu_codes_int8_fn *dot;
    int step; /* CPU_STEP_ */
} reader;

static reader reader_of(const davit_weight *w, int step)
{
    static cpu_codes_int8_fn *const dots[CPU_STEPS] = {
        [CPU_STEP_AVX2] = cpu_codes_dot_int8_avx2,
        [CPU_STEP_AVX_VNNI] = CPU_AVX_VNNI_DOT(cpu_codes_dot_int8),
        [CPU_STEP_AVX512_VNNI] = cpu_codes_dot_int8_vnni_avx512,
    };
    reader r = {.w = w, .blocks = cpu_layout_find(w->layout), .dot = dots[step], .step = step};

    if (!r.blocks)
        cpu_codes_init(&r.codes, w->n_cols, w->params); /* was checked */
    return r;
}

/* Rows [row, row + n), n <= 8, of expert @e times @n_tokens: out[t * 8 + r]. */
static void rows_dot(const reader *r, uint64_t e, uint64_t row, uint64_t n, const cpu_xblock *x,
                     size_t n_tokens, const bench *b, float *out)
{
    const size_t stride = (size_t)(r->w->n_cols / CPU_XBLOCK);
    uint64_t lane, some;

    if (r->blocks) {
        cpu_rows_dot(out, r->blocks, r->w, e, row, n, x, stride, n_tokens, r->step, b->rows);
        return;
    }
    for (uint64_t done = 0; done < n; done += some) {
        cpu_codes own;
        const cpu_codes *at = cpu_codes_at(r->w, e, row + done, &r->codes, &own);
        const uint8_t *block = cpu_codes_block(at, r->w, e, row + done, &lane, &some);

        some = cpu_min(some, n - done);
        r->dot(b->dots[2], at, block, x, stride, n_tokens);
        for (size_t t = 0; t < n_tokens; t++)
            memcpy(out + t * CPU_GROUP + done, b->dots[2] + t * CPU_GROUP + lane,
                   some * sizeof *out);
    }
}

/* ---- pairs of one expert ---- */

/* Up to PAIRS pairs that chose an expert. */
typedef struct group {
    uint64_t next; /* where the search goes on */
    uint64_t n, pair[PAIRS];
} group;

/* Fills *out with the next ones; returns 0 if there is none left. */
static int next_group(const davit_call *call, const layout *l, uint64_t e, group *out)
{
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(call->attr, e);

    for (out->n = 0; out->next < l->n_pairs && out->n < PAIRS; out->next++)
        if (ids[out->next] == id)
            out->pair[out->n++] = out->next;
    return out->n > 0;
}

/* Blocks of the group's pairs one after another; pair i is row i / @per of @x, each @n blocks. */
static const cpu_xblock *gathered(const group *g, const cpu_xblock *x, uint64_t per, uint64_t n,
                                  cpu_xblock *space)
{
    if (g->n == 1)
        return x + g->pair[0] / per * n;
    for (uint64_t i = 0; i < g->n; i++)
        memcpy(space + i * n, x + g->pair[i] / per * n, n * sizeof *space);
    return space;
}

/* Dots of one pair with rows of gate and up, which lie in the bench's dots, through f. @i: the
 * pair's place in the group; @r: the first of @n hidden rows. */
static void hidden_values(const davit_call *call, const bench *b, uint64_t e, uint64_t i,
                          uint64_t r, uint64_t n, float *out)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_act_attr act = {.kind = a->kind, .limit = a->limit, .alpha = a->alpha};
    float *g = b->dots[0] + i * CPU_GROUP, *u = b->dots[1] + i * CPU_GROUP;

    if (cpu_moe_step(call) == 2) {
        float both[2 * CPU_GROUP];

        memcpy(both, g, CPU_GROUP * sizeof *both);
        memcpy(both + CPU_GROUP, u, CPU_GROUP * sizeof *both);
        cpu_moe_take_apart(both, n, g, u);
    }
    cpu_moe_add_gate_up(call, e, r, n, g, u);
    cpu_glu_values_avx2(&act, g, u, out, n);
}

static void hidden_rows(const davit_call *call, const layout *l, uint64_t e, uint64_t first,
                        const bench *b, int step)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t by = cpu_moe_step(call);
    const reader gate = reader_of(call->weight[0], step), up = reader_of(call->weight[1], step);
    const uint64_t end = cpu_min(first + ROWS, l->I);
    group g = {0};

    while (next_group(call, l, e, &g)) {
        const cpu_xblock *x =
            gathered(&g, l->x, a->top_k, l->x_planes * (l->K / CPU_XBLOCK), b->x);

        for (uint64_t r = first; r < end; r += CPU_GROUP) {
            const uint64_t n = cpu_min(CPU_GROUP, end - r);
            /* where they alternate: the first eight rows of both, and the rest of them */
            const uint64_t n_first = cpu_min(by * n, CPU_GROUP);
            const uint64_t n_second = by == 2 ? 2 * n - n_first : n;

            rows_dot(&gate, e, by * r, n_first, x, g.n * l->x_planes, b, b->dots[0]);
            if (n_second > 0)
                rows_dot(&up, e, by == 2 ? 2 * r + n_first : r, n_second, x,
                         g.n * l->x_planes, b, b->dots[1]);
            for (int m = 0; m < 2 && l->x_planes == PLANES; m++)
                cpu_add_planes(b->dots[m], g.n);
            for (uint64_t i = 0; i < g.n; i++)
                hidden_values(call, b, e, i, r, n, l->hidden + g.pair[i] * l->I + r);
        }
    }
}

static void down_rows(const davit_call *call, const layout *l, uint64_t e, uint64_t first,
                      const bench *b, int step)
{
    const reader down = reader_of(call->weight[2], step);
    const uint64_t end = cpu_min(first + ROWS, l->N);
    group g = {0};

    while (next_group(call, l, e, &g)) {
        const cpu_xblock *x =
            gathered(&g, l->hidden_x, 1, l->hidden_planes * (l->I / CPU_XBLOCK), b->x);

        for (uint64_t r = first; r < end; r += CPU_GROUP) {
            const uint64_t n = cpu_min(CPU_GROUP, end - r);
            rows_dot(&down, e, r, n, x, g.n * l->hidden_planes, b, b->dots[0]);
            if (l->hidden_planes == PLANES)
                cpu_add_planes(b->dots[0], g.n);
            for (uint64_t i = 0; i < g.n; i++) {
                float *to = l->part + g.pair[i] * l->N + r;

                memcpy(to, b->dots[0] + i * CPU_GROUP, n * sizeof *to);
                cpu_moe_add_down(call, e, r, n, to);
            }
        }
    }
}

/* ---- phases ---- */

static void quantize_task(const davit_call *call, const layout *l, uint32_t phase, uint64_t i)
{
    const uint64_t width = phase == 0 ? l->K : l->I, per_row = cpu_ceil_div(width, X_TASK);
    const uint64_t row = i / per_row, col = i % per_row * X_TASK;
    const uint64_t n = cpu_min(X_TASK, width - col);
    const uint64_t planes = phase == 0 ? l->x_planes : l->hidden_planes;
    const float *x;
    cpu_xblock *to;

    if (phase == 0) {
        if (row >= call->in[0].n_rows)
            return;
        x = cpu_in(call, 0, row);
        to = l->x;
    } else {
        if (row >= l->n_pairs || !cpu_moe_is_own(call->attr, call->weight[2],
                                                  ((const int32_t *)call->in[1].data)[row]))
            return; /* an expert of another rank: nothing made its hidden values */
        x = l->hidden + row * width;
        to = l->hidden_x;
    }
    to += (row * planes * width + col) / CPU_XBLOCK;
    cpu_quantize_x(to, x + col, (size_t)n);
    if (planes == PLANES)
        cpu_quantize_rest(to + width / CPU_XBLOCK, to, x + col, n);
}

static void run_with(int step, const davit_call *call, uint32_t phase, uint64_t first,
                     uint64_t count, uint32_t worker)
{
    const layout l = layout_of(call);
    const bench b = bench_of(call, worker);
    const uint64_t per_expert = cpu_ceil_div(phase == 1 ? l.I : l.N, ROWS);

    for (uint64_t i = first; i < first + count; i++) {
        if (phase == 0 || phase == 2)
            quantize_task(call, &l, phase, i);
        else if (phase == 1)
            hidden_rows(call, &l, i / per_expert, i % per_expert * ROWS, &b, step);
        else if (phase == 3)
            down_rows(call, &l, i / per_expert, i % per_expert * ROWS, &b, step);
        else
            cpu_moe_combine(call, l.part, i);
    }
}

#define RUN(name, step)                                                                   \
    static void name(const davit_call *call, uint32_t phase, uint64_t first,              \
                     uint64_t count, uint32_t worker, void *queue)                        \
    {                                                                                     \
        (void)queue;                                                                      \
        run_with(step, call, phase, first, count, worker);                                \
    }
RUN(run_avx2, CPU_STEP_AVX2)
RUN(run_avx_vnni, CPU_STEP_AVX_VNNI)
RUN(run_avx512_vnni, CPU_STEP_AVX512_VNNI)

static int32_t moe_check(void *self, const davit_call *call, const davit_sink *sink)
{
    const davit_moe_ffn_attr *a = call->attr;
    const int32_t status = cpu_codes_check(self, call, sink); /* block layouts as they are */

    for (uint32_t i = 0; !status && i < 3; i++) {
        cpu_codes c;

        if (cpu_layout_find(call->weight[i]->layout))
            continue;
        cpu_codes_init(&c, call->weight[i]->n_cols, call->weight[i]->params);
        if (!cpu_codes_fit_int8(&c) || c.what.flags)
            return cpu_refuse_int8(call, sink);
    }
    return status ? status : cpu_check_gate(call, a->kind, sink);
}

/* Experts stay as they are stored: a packed copy of all of them would be most of the model in
 * private memory, and each token reads few. */
#define LAYOUTS                                                                           \
    "q4_0/1|q4_1/1|q5_0/1|q5_1/1|q8_0/1|q2_k/1|q3_k/1|q4_k/1|q5_k/1|q6_k/1|" DAVIT_REF_IQ \
    "|" CPU_CODES_LAYOUT

#define ENTRY(sym, text, cpu_, score_, run_)                                              \
    const davit_kernel_entry sym = {                                                      \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = DAVIT_OP_MOE_FFN,                                                           \
        .name = text,                                                                     \
        .layouts = LAYOUTS,                                                               \
        .cpu = cpu_,                                                                      \
        .attr_size = DAVIT_END(davit_moe_ffn_attr, biases),                             \
        .score = score_,                                                                  \
        .flags = DAVIT_ENTRY_INT8,                                                        \
        .check = moe_check,                                                               \
        .size = moe_size,                                                                 \
        .run = run_,                                                                      \
    }

ENTRY(cpu_moe_ffn_int8, "moe_ffn int8 avx2", CPU_AVX2, 500, run_avx2);
ENTRY(cpu_moe_ffn_vnni, "moe_ffn int8 avxvnni", CPU_AVX_VNNI, 510, run_avx_vnni);
ENTRY(cpu_moe_ffn_vnni512, "moe_ffn int8 avx512vnni", CPU_AVX512_VNNI, 520, run_avx512_vnni);
