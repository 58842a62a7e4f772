/* SPDX-License-Identifier: Apache-2.0
 * linear/1 with 8-bit activations, for stored and packed block layouts. Baseline code;
 * the group kernels that it reaches need the entries' cpu bits. phase 0: quantise the
 * inputs; a task is 1024 inputs of one token phase 1: a task is a group of 8 output rows,
 * all tokens Shared scratch: cpu_xblock [T, K/32]. Worker scratch: interleaved rows, then
 * [T, 8] results. Sums: see linear_rows.h.
 */
#include <davit/help/ref.h>

#include "cpu.h"
#include "linear_fast.h"
#include "linear_finish.h"
#include "linear_rows.h"

#define X_TASK 1024 /* inputs of one phase 0 task */

static uint64_t x_tasks(uint64_t n_cols)
{
    return cpu_ceil_div(n_cols, X_TASK);
}

/* Packed names are unknown to the reference check; what they store is not. */
static int32_t int8_check(void *self, const davit_call *call, const davit_sink *sink)
{
    const cpu_layout *layout = NULL;
    davit_call stored = *call;
    davit_weight weight;

    if (call->n_weights < 1 || !call->weight[0])
        return cpu_check(self, call, sink);
    weight = *call->weight[0];
    if (weight.layout)
        layout = cpu_layout_find(weight.layout);
    if (layout)
        weight.layout = layout->stored;
    stored.weight[0] = &weight;
    return cpu_check(self, &stored, sink);
}

/* 8-bit planes of the activations: 1, or 2 where a second one holds what the first leaves over
 * (16 bits or so). Matrices that widen a value, such as gate and up, take one: their rounding
 * matters least and they are most of the work (SPEED.md has the divergence of each choice). So do
 * layouts of under three bits, whose own rounding is far larger (docs/quant.md). A rule of
 * shape and layout, so that every call on a weight does the same. */
static uint64_t planes_of(const davit_weight *w)
{
    /* sizes are asked of weights that check refuses, too */
    const cpu_layout *layout = w->layout ? cpu_layout_find(w->layout) : NULL;

    if (layout && layout->one_plane)
        return 1;
    return w->n_rows > w->n_cols && w->n_rows / 8 < w->n_cols ? 1 : 2;
}

static void int8_size(void *self, const davit_call *call, uint64_t n_tokens,
                      uint64_t n_rows, uint64_t ctx, davit_work *out)
{
    const davit_weight *w = call->weight[0];
    const uint64_t rows = n_tokens > n_rows ? n_tokens : n_rows;
    const uint64_t results = rows * planes_of(w) * CPU_GROUP * sizeof(float);
    (void)self;
    (void)ctx;

    out->scratch_bytes =
        rows * planes_of(w) * (w->n_cols / CPU_XBLOCK) * sizeof(cpu_xblock);
    out->worker_bytes = CPU_ROWS_SCRATCH + cpu_round_up(results, 64);
    out->n_phases = 2;
    out->n_tasks[0] = rows * x_tasks(w->n_cols);
    out->n_tasks[1] = cpu_ceil_div(w->n_rows, CPU_GROUP);
}

void cpu_quantize_rest(cpu_xblock *out, const cpu_xblock *first, const float *x, uint64_t n)
{
    for (uint64_t b = 0; b < n / CPU_XBLOCK; b++) {
        float rest[CPU_XBLOCK];

        for (uint64_t i = 0; i < CPU_XBLOCK; i++)
            rest[i] = x[b * CPU_XBLOCK + i] - first[b].d * (float)first[b].q[i];
        cpu_quantize_x(out + b, rest, CPU_XBLOCK);
    }
}

/* Plane p of token t is row t * planes + p. */
static void quantize(const davit_call *call, uint64_t first, uint64_t count)
{
    const uint64_t n_cols = call->weight[0]->n_cols, per_token = x_tasks(n_cols);
    const uint64_t planes = planes_of(call->weight[0]);

    for (uint64_t i = first; i < first + count; i++) {
        const uint64_t t = i / per_token, col = i % per_token * X_TASK;
        const uint64_t n = cpu_min(X_TASK, n_cols - col);
        cpu_xblock *xq = (cpu_xblock *)call->scratch + (t * planes * n_cols + col) / CPU_XBLOCK;

        if (t >= call->in[0].n_rows)
            return; /* the host sized for tokens, this value has logit rows */
        cpu_quantize_x(xq, cpu_in(call, 0, t) + col, (size_t)n);
        if (planes == 2)
            cpu_quantize_rest(xq + n_cols / CPU_XBLOCK, xq, cpu_in(call, 0, t) + col, n);
    }
}

void cpu_add_planes(float *dots, uint64_t n_tokens)
{
    for (uint64_t t = 0; t < n_tokens; t++)
        for (uint64_t r = 0; r < CPU_GROUP; r++)
            dots[t * CPU_GROUP + r] =
                dots[2 * t * CPU_GROUP + r] + dots[(2 * t + 1) * CPU_GROUP + r];
}

static void multiply(const davit_call *call, uint64_t first, uint64_t count,
                     uint32_t worker, int step)
{
    const davit_weight *w = call->weight[0];
    const cpu_layout *layout = cpu_layout_find(w->layout);
    const size_t x_stride = (size_t)(w->n_cols / CPU_XBLOCK);
    const uint64_t n_tokens = call->in[0].n_rows, planes = planes_of(w);
    uint8_t *scratch = cpu_worker(call, worker);
    float *dots = (float *)(void *)(scratch + CPU_ROWS_SCRATCH);

    for (uint64_t g = first; g < first + count; g++) {
        const uint64_t row = g * CPU_GROUP, n_rows = cpu_min(CPU_GROUP, w->n_rows - row);

        cpu_rows_dot(dots, layout, w, 0, row, n_rows, call->scratch, x_stride,
                     (size_t)(n_tokens * planes), step, scratch);
        if (planes == 2)
            cpu_add_planes(dots, n_tokens);
        cpu_linear_finish(call, dots, CPU_GROUP, 0, n_tokens, row, n_rows);
    }
}

/* What one phase does, with the group kernels of @step. */
static void run_with(int step, const davit_call *call, uint32_t phase, uint64_t first,
                     uint64_t count, uint32_t worker)
{
    if (phase == 0)
        quantize(call, first, count);
    else
        multiply(call, first, count, worker, step);
}

#define RUN(name, step)                                                                  \
    static void name(const davit_call *call, uint32_t phase, uint64_t first,             \
                     uint64_t count, uint32_t worker, void *queue)                       \
    {                                                                                    \
        (void)queue;                                                                     \
        run_with(step, call, phase, first, count, worker);                               \
    }
RUN(run_avx2, CPU_STEP_AVX2)
RUN(run_avx_vnni, CPU_STEP_AVX_VNNI)
RUN(run_avx512_vnni, CPU_STEP_AVX512_VNNI)

#define STORED                                                                           \
    "q4_0/1|q4_1/1|q5_0/1|q5_1/1|q8_0/1|q2_k/1|q3_k/1|q4_k/1|q5_k/1|q6_k/1|" DAVIT_REF_IQ
#define PACKED                                                                           \
    "cpu.q4_0_x8/1|cpu.q4_1_x8/1|cpu.q5_0_x8/1|cpu.q5_1_x8/1|cpu.q2_k_x8/1|"             \
    "cpu.q3_k_x8/1|cpu.q4_k_x8/1|cpu.q5_k_x8/1|cpu.q6_k_x8/1"
/* Below the stored entry: at 8.5 bits a weight the private copy costs more start-up time and
 * memory than most runs win back (SPEED.md), so it is taken only when packing is asked for. */
#define PACKED_Q8_0 "cpu.q8_0_x8/1"

#define ENTRY(sym, text, layouts_, cpu_, score_, run_)                                   \
    const davit_kernel_entry sym = {                                                     \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                               \
        .op = DAVIT_OP_LINEAR,                                                           \
        .name = text,                                                                    \
        .layouts = layouts_,                                                             \
        .cpu = cpu_,                                                                     \
        .attr_size = DAVIT_END(davit_linear_attr, flags),                                \
        .score = score_,                                                                 \
        .flags = DAVIT_ENTRY_INT8,                                                       \
        .check = int8_check,                                                             \
        .size = int8_size,                                                               \
        .run = run_,                                                                     \
    }

ENTRY(cpu_linear_int8_stored, "linear int8 avx2", STORED, CPU_AVX2, 500, run_avx2);
ENTRY(cpu_linear_int8_packed, "linear int8 avx2 packed", PACKED, CPU_AVX2, 550, run_avx2);
ENTRY(cpu_linear_int8_packed_q8_0, "linear int8 avx2 packed q8_0", PACKED_Q8_0, CPU_AVX2, 490,
      run_avx2);

ENTRY(cpu_linear_vnni_stored, "linear int8 avxvnni", STORED, CPU_AVX_VNNI, 510, run_avx_vnni);
ENTRY(cpu_linear_vnni_packed, "linear int8 avxvnni packed", PACKED, CPU_AVX_VNNI, 560,
      run_avx_vnni);
ENTRY(cpu_linear_vnni_packed_q8_0, "linear int8 avxvnni packed q8_0", PACKED_Q8_0, CPU_AVX_VNNI,
      505, run_avx_vnni);

ENTRY(cpu_linear_vnni512_stored, "linear int8 avx512vnni", STORED, CPU_AVX512_VNNI, 520,
      run_avx512_vnni);
ENTRY(cpu_linear_vnni512_packed, "linear int8 avx512vnni packed", PACKED, CPU_AVX512_VNNI, 570,
      run_avx512_vnni);
ENTRY(cpu_linear_vnni512_packed_q8_0, "linear int8 avx512vnni packed q8_0", PACKED_Q8_0,
      CPU_AVX512_VNNI, 515, run_avx512_vnni);
