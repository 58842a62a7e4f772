/* SPDX-License-Identifier: Apache-2.0
 * linear/1 and embed/1 on packed codes (codes.h): scalar, AVX2 with float32, AVX2 and VNNI
 * with 8-bit activations. Baseline code; functions with instruction sets are reached through entries
 * that ask for them.
 *   phase 0: a task is one token: its inputs into code order and times their factors (MAP, FACTORS),
 *            or 1024 of them to 8 bits
 *   phase 1: a task is eight output rows, all tokens
 * Where there is nothing to do in phase 0, it has no tasks. */
#include <string.h>

#include <davit/help/ref.h>

#include "codes.h"
#include "linear.h"
#include "linear_finish.h"

#define X_TASK 1024
#define PLANES 2 /* of 8-bit activations: the second holds what the first leaves over */

static cpu_codes codes_of(const davit_weight *w)
{
    cpu_codes c;

    cpu_codes_init(&c, w->n_cols, w->params); /* was checked */
    return c;
}

/* Are inputs made ready before they are multiplied: put in code order, or times their factors? */
static int has_order(const davit_weight *w)
{
    return codes_of(w).what.flags != 0;
}

/* Code column @j of the input @x. */
static float ordered_input(const float *x, const uint32_t *map, const float *factors, uint64_t j)
{
    const uint64_t k = map ? map[j] : j;

    if (map && map[j] == DAVIT_CODES_NONE)
        return 0.0f;
    return factors ? x[k] * factors[k] : x[k];
}

/* ---- scalar ---- */

/* Row @row in input order; @work: as many more as there are columns of codes. */
static void row_of(const davit_weight *w, uint64_t expert, uint64_t row, float *out, float *work)
{
    const cpu_codes all = codes_of(w);
    cpu_codes own;
    const cpu_codes *c = cpu_codes_at(w, expert, row, &all, &own);
    const uint32_t *map = cpu_codes_map(c, w, expert);
    const float *factors = cpu_codes_factors(c, w, expert);
    uint64_t lane, n;
    const uint8_t *block = cpu_codes_block(c, w, expert, row, &lane, &n);

    cpu_codes_row(c, block, lane, map ? work : out);
    for (uint64_t j = 0; map && j < c->n_cols; j++)
        if (map[j] != DAVIT_CODES_NONE)
            out[map[j]] = work[j];
    for (uint64_t k = 0; factors && k < w->n_cols; k++)
        out[k] *= factors[k];
}

static void scalar_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)n_tokens;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes =
        (call->weight[0]->n_cols + codes_of(call->weight[0]).n_cols) * sizeof(float);
    out->n_phases = 1;
    out->n_tasks[0] = cpu_ceil_div(call->weight[0]->n_rows, CPU_LINEAR_ROWS);
}

static void scalar_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                       uint32_t worker, void *queue)
{
    const davit_weight *w = call->weight[0];
    const uint64_t end = cpu_min((first + count) * CPU_LINEAR_ROWS, w->n_rows);
    float *row = cpu_worker(call, worker);
    (void)phase;
    (void)queue;

    for (uint64_t n = first * CPU_LINEAR_ROWS; n < end; n++) {
        row_of(w, 0, n, row, row + w->n_cols);
        for (uint64_t t = 0; t < call->in[0].n_rows; t++) {
            const float dot = cpu_dot_f32(cpu_in(call, 0, t), row, w->n_cols);
            cpu_linear_finish(call, &dot, 1, t, 1, n, 1);
        }
    }
}

/* ---- embed ---- */

static void embed_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                       uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes = codes_of(call->weight[0]).n_cols * sizeof(float);
    out->n_phases = 1;
    out->n_tasks[0] = n_tokens;
}

static void embed_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                      uint32_t worker, void *queue)
{
    const davit_embed_attr *a = call->attr;
    const davit_weight *w = call->weight[0];
    (void)phase;
    (void)queue;

    for (uint64_t t = first; t < first + count; t++) {
        float *y = cpu_out(call, 0, t);
        const int64_t row = call->batch->token[t] + a->row_offset;
        if ((a->flags & DAVIT_EMBED_PART) && (row < 0 || (uint64_t)row >= w->n_rows)) {
            memset(y, 0, w->n_cols * sizeof *y);
            continue;
        }
        row_of(w, 0, (uint64_t)row, y, cpu_worker(call, worker));
        for (uint64_t k = 0; a->scale != 0.0f && k < w->n_cols; k++)
            y[k] *= a->scale;
    }
}

/* ---- AVX2, float32 activations ---- */

static void f32_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                     uint64_t ctx, davit_work *out)
{
    const davit_weight *w = call->weight[0];
    const uint64_t rows = n_tokens > n_rows ? n_tokens : n_rows;
    (void)self;
    (void)ctx;

    out->scratch_bytes = has_order(w) ? rows * codes_of(w).n_cols * sizeof(float) : 0;
    out->worker_bytes = cpu_codes_scratch(rows) + cpu_round_up(rows * CPU_GROUP * sizeof(float), 64);
    out->n_phases = 2;
    out->n_tasks[0] = has_order(w) ? rows : 0;
    out->n_tasks[1] = cpu_ceil_div(w->n_rows, CPU_GROUP);
}

static void reorder(const davit_call *call, uint64_t first, uint64_t count)
{
    const davit_weight *w = call->weight[0];
    const cpu_codes c = codes_of(w);
    const uint32_t *map = cpu_codes_map(&c, w, 0);
    const float *factors = cpu_codes_factors(&c, w, 0);

    for (uint64_t t = first; t < cpu_min(first + count, call->in[0].n_rows); t++) {
        const float *x = cpu_in(call, 0, t);
        float *to = (float *)call->scratch + t * c.n_cols;
        for (uint64_t j = 0; j < c.n_cols; j++)
            to[j] = ordered_input(x, map, factors, j);
    }
}

/* What multiplies one block with all tokens; out[t * 8 + r]. */
typedef void block_fn(const davit_call *call, const cpu_codes *c, const uint8_t *block,
                      float *out, float *scratch);

static void block_f32(const davit_call *call, const cpu_codes *c, const uint8_t *block,
                      float *out, float *scratch)
{
    const float *x = c->what.flags ? call->scratch : call->in[0].data;

    cpu_codes_dot_avx2(out, c, block, x, c->n_cols, call->in[0].n_rows, scratch);
}

/* One token of codes of 4 bits has a faster way to the same bits. */
static void block_f32_512(const davit_call *call, const cpu_codes *c, const uint8_t *block,
                          float *out, float *scratch)
{
    const float *x = c->what.flags ? call->scratch : call->in[0].data;

    if (call->in[0].n_rows == 1 && cpu_codes_table(c->what.kind))
        cpu_codes_dot_float_avx512(out, c, block, x);
    else
        block_f32(call, c, block, out, scratch);
}

#define BLOCK_INT8(name, dot)                                                             \
    static void name(const davit_call *call, const cpu_codes *c, const uint8_t *block,    \
                     float *out, float *scratch)                                          \
    {                                                                                     \
        (void)scratch;                                                                    \
        dot(out, c, block, call->scratch, c->n_cols / CPU_XBLOCK,                         \
            PLANES * call->in[0].n_rows);                                                 \
        cpu_add_planes(out, call->in[0].n_rows);                                          \
    }
BLOCK_INT8(block_int8, cpu_codes_dot_int8_avx2)
BLOCK_INT8(block_vnni, CPU_AVX_VNNI_DOT(cpu_codes_dot_int8))
BLOCK_INT8(block_vnni512, cpu_codes_dot_int8_vnni_avx512)

/* Groups of eight output rows; where segments are cut elsewhere a group lies in several
 * blocks. @dots and @scratch: the worker's. */
static void multiply(const davit_call *call, uint64_t first, uint64_t count, block_fn *block,
                     float *dots, float *scratch)
{
    const davit_weight *w = call->weight[0];
    const cpu_codes c = codes_of(w);
    const uint64_t n_tokens = call->in[0].n_rows;

    for (uint64_t g = first; g < first + count; g++) {
        const uint64_t end = cpu_min((g + 1) * CPU_GROUP, w->n_rows);
        uint64_t lane, n;

        for (uint64_t row = g * CPU_GROUP; row < end; row += n) {
            cpu_codes own;
            const cpu_codes *what = cpu_codes_at(w, 0, row, &c, &own);
            const uint8_t *at = cpu_codes_block(what, w, 0, row, &lane, &n);
            n = cpu_min(n, end - row);
            block(call, what, at, dots, scratch);
            cpu_linear_finish(call, dots + lane, CPU_GROUP, 0, n_tokens, row, n);
        }
    }
}

static void f32_phase(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                      uint32_t worker, block_fn *block)
{
    float *scratch = cpu_worker(call, worker);
    const uint64_t n_tokens = call->in[0].n_rows;

    if (phase == 0)
        reorder(call, first, count);
    else
        multiply(call, first, count, block,
                 scratch + cpu_codes_scratch(n_tokens) / sizeof(float), scratch);
}

#define RUN_F32(name, block)                                                              \
    static void name(const davit_call *call, uint32_t phase, uint64_t first,              \
                     uint64_t count, uint32_t worker, void *queue)                        \
    {                                                                                     \
        (void)queue;                                                                      \
        f32_phase(call, phase, first, count, worker, block);                              \
    }
RUN_F32(f32_run, block_f32)
RUN_F32(f32_512_run, block_f32_512)

/* ---- AVX2, 8-bit activations ---- */

static uint64_t x_tasks(uint64_t n_cols)
{
    return cpu_ceil_div(n_cols, X_TASK);
}

static void int8_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                      uint64_t ctx, davit_work *out)
{
    const davit_weight *w = call->weight[0];
    const uint64_t rows = n_tokens > n_rows ? n_tokens : n_rows;
    (void)self;
    (void)ctx;

    const uint64_t n_cols = codes_of(w).n_cols;

    out->scratch_bytes = rows * PLANES * (n_cols / CPU_XBLOCK) * sizeof(cpu_xblock);
    out->worker_bytes =
        cpu_round_up(rows * PLANES * CPU_GROUP * sizeof(float), 64) + X_TASK * sizeof(float);
    out->n_phases = 2;
    out->n_tasks[0] = rows * x_tasks(n_cols);
    out->n_tasks[1] = cpu_ceil_div(w->n_rows, CPU_GROUP);
}

/* Plane p of token t is row t * PLANES + p. @ordered: X_TASK values of the worker's. */
static void quantize(const davit_call *call, uint64_t first, uint64_t count, float *ordered)
{
    const davit_weight *w = call->weight[0];
    const cpu_codes c = codes_of(w);
    const uint64_t n_cols = c.n_cols, per_token = x_tasks(n_cols);
    const uint32_t *map = cpu_codes_map(&c, w, 0);
    const float *factors = cpu_codes_factors(&c, w, 0);

    for (uint64_t i = first; i < first + count; i++) {
        const uint64_t t = i / per_token, col = i % per_token * X_TASK;
        const uint64_t n = cpu_min(X_TASK, n_cols - col);

        if (t >= call->in[0].n_rows)
            return; /* the host sized for tokens, this value has logit rows */
        cpu_xblock *xq = (cpu_xblock *)call->scratch + (t * PLANES * n_cols + col) / CPU_XBLOCK;
        const float *x = has_order(w) ? ordered : cpu_in(call, 0, t) + col;
        for (uint64_t j = 0; x == ordered && j < n; j++)
            ordered[j] = ordered_input(cpu_in(call, 0, t), map, factors, col + j);
        cpu_quantize_x(xq, x, (size_t)n);
        cpu_quantize_rest(xq + n_cols / CPU_XBLOCK, xq, x, n);
    }
}

static void int8_phase(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                       uint32_t worker, block_fn *block)
{
    float *dots = cpu_worker(call, worker);
    const uint64_t n_dots = cpu_round_up(call->in[0].n_rows * PLANES * CPU_GROUP, 16);

    if (phase == 0)
        quantize(call, first, count, dots + n_dots);
    else
        multiply(call, first, count, block, dots, NULL);
}

#define RUN_INT8(name, block)                                                             \
    static void name(const davit_call *call, uint32_t phase, uint64_t first,              \
                     uint64_t count, uint32_t worker, void *queue)                        \
    {                                                                                     \
        (void)queue;                                                                      \
        int8_phase(call, phase, first, count, worker, block);                             \
    }
RUN_INT8(int8_run, block_int8)
RUN_INT8(vnni_run, block_vnni)
RUN_INT8(vnni512_run, block_vnni512)

static int32_t int8_check(void *self, const davit_call *call, const davit_sink *sink)
{
    const int32_t status = cpu_codes_check(self, call, sink);
    const davit_weight *w = call->weight[0];

    if (status)
        return status;
    const cpu_codes c = codes_of(w);
    return cpu_codes_fit_int8(&c) ? DAVIT_OK : cpu_refuse_int8(call, sink);
}

#define ENTRY(sym, op_, text, cpu_, end, score_, flags_, check_, size_, run_)             \
    const davit_kernel_entry sym = {                                                      \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = op_,                                                                        \
        .name = text,                                                                     \
        .layouts = CPU_CODES_LAYOUT,                                                      \
        .cpu = cpu_,                                                                      \
        .attr_size = end,                                                                 \
        .score = score_,                                                                  \
        .flags = flags_,                                                                  \
        .check = check_,                                                                  \
        .size = size_,                                                                    \
        .run = run_,                                                                      \
    }
#define LINEAR_END DAVIT_END(davit_linear_attr, flags)

ENTRY(cpu_linear_codes_scalar, DAVIT_OP_LINEAR, "linear codes scalar", 0, LINEAR_END, 100, 0,
      cpu_codes_check, scalar_size, scalar_run);
ENTRY(cpu_linear_codes_avx2, DAVIT_OP_LINEAR, "linear codes f32 avx2", CPU_AVX2, LINEAR_END, 400,
      0, cpu_codes_check_avx2, f32_size, f32_run);
ENTRY(cpu_linear_codes_avx512, DAVIT_OP_LINEAR, "linear codes f32 avx512", CPU_AVX512_F32,
      LINEAR_END, 410, 0, cpu_codes_check_avx2, f32_size, f32_512_run);
ENTRY(cpu_linear_codes_int8, DAVIT_OP_LINEAR, "linear codes int8 avx2", CPU_AVX2, LINEAR_END,
      500, DAVIT_ENTRY_INT8, int8_check, int8_size, int8_run);
ENTRY(cpu_linear_codes_vnni, DAVIT_OP_LINEAR, "linear codes int8 avxvnni", CPU_AVX_VNNI,
      LINEAR_END, 510, DAVIT_ENTRY_INT8, int8_check, int8_size, vnni_run);
ENTRY(cpu_linear_codes_vnni512, DAVIT_OP_LINEAR, "linear codes int8 avx512vnni",
      CPU_AVX512_VNNI, LINEAR_END, 520, DAVIT_ENTRY_INT8, int8_check, int8_size, vnni512_run);
ENTRY(cpu_embed_codes, DAVIT_OP_EMBED, "embed codes", 0, DAVIT_END(davit_embed_attr, flags),
      100, 0, cpu_codes_check, embed_size, embed_run);
