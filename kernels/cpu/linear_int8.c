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

static void int8_size(void *self, const davit_call *call, uint64_t n_tokens,
                      uint64_t n_rows, uint64_t ctx, davit_work *out)
{
    const davit_weight *w = call->weight[0];
    const uint64_t rows = n_tokens > n_rows ? n_tokens : n_rows;
    const uint64_t results = rows * CPU_GROUP * sizeof(float);
    (void)self;
    (void)ctx;

    out->scratch_bytes = rows * (w->n_cols / CPU_XBLOCK) * sizeof(cpu_xblock);
    out->worker_bytes = CPU_ROWS_SCRATCH + cpu_round_up(results, 64);
    out->n_phases = 2;
    out->n_tasks[0] = rows * x_tasks(w->n_cols);
    out->n_tasks[1] = cpu_ceil_div(w->n_rows, CPU_GROUP);
}

static void quantize(const davit_call *call, uint64_t first, uint64_t count)
{
    const uint64_t n_cols = call->weight[0]->n_cols, per_token = x_tasks(n_cols);
    cpu_xblock *xq = call->scratch;

    for (uint64_t i = first; i < first + count; i++) {
        const uint64_t t = i / per_token, col = i % per_token * X_TASK;

        if (t >= call->in[0].n_rows)
            return; /* the host sized for tokens, this value has logit rows */
        cpu_quantize_x(xq + (t * n_cols + col) / CPU_XBLOCK, cpu_in(call, 0, t) + col,
                       (size_t)cpu_min(X_TASK, n_cols - col));
    }
}

static void multiply(const davit_call *call, uint64_t first, uint64_t count,
                     uint32_t worker)
{
    const davit_weight *w = call->weight[0];
    const cpu_layout *layout = cpu_layout_find(w->layout);
    const size_t x_stride = (size_t)(w->n_cols / CPU_XBLOCK);
    const uint64_t n_tokens = call->in[0].n_rows;
    uint8_t *scratch = cpu_worker(call, worker);
    float *dots = (float *)(void *)(scratch + CPU_ROWS_SCRATCH);

    for (uint64_t g = first; g < first + count; g++) {
        const uint64_t row = g * CPU_GROUP, n_rows = cpu_min(CPU_GROUP, w->n_rows - row);

        cpu_rows_dot(dots, layout, w, 0, row, n_rows, call->scratch, x_stride,
                     (size_t)n_tokens, scratch);
        cpu_linear_finish(call, dots, CPU_GROUP, 0, n_tokens, row, n_rows);
    }
}

static void int8_run(const davit_call *call, uint32_t phase, uint64_t first,
                     uint64_t count, uint32_t worker, void *queue)
{
    (void)queue;
    if (phase == 0)
        quantize(call, first, count);
    else
        multiply(call, first, count, worker);
}

const davit_kernel_entry cpu_linear_int8_stored = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_LINEAR,
    .name = "linear int8 avx2",
    .layouts = "q4_0/1|q4_1/1|q5_0/1|q5_1/1|q8_0/1|q2_k/1|q3_k/1|q4_k/1|q5_k/1|q6_k/1",
    .cpu = CPU_AVX2,
    .attr_size = DAVIT_END(davit_linear_attr, flags),
    .score = 500,
    .flags = DAVIT_ENTRY_INT8,
    .check = int8_check,
    .size = int8_size,
    .run = int8_run,
};

const davit_kernel_entry cpu_linear_int8_packed = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_LINEAR,
    .name = "linear int8 avx2 packed",
    .layouts = "cpu.q4_0_x8/1|cpu.q4_1_x8/1|cpu.q5_0_x8/1|cpu.q5_1_x8/1|"
               "cpu.q2_k_x8/1|cpu.q3_k_x8/1|cpu.q4_k_x8/1|cpu.q5_k_x8/1|cpu.q6_k_x8/1",
    .cpu = CPU_AVX2,
    .attr_size = DAVIT_END(davit_linear_attr, flags),
    .score = 550,
    .flags = DAVIT_ENTRY_INT8,
    .check = int8_check,
    .size = int8_size,
    .run = int8_run,
};

/* Below the stored entry: at 8.5 bits a weight the private copy costs more start-up time and
 * memory than most runs win back (SPEED.md), so it is taken only when packing is asked for. */
const davit_kernel_entry cpu_linear_int8_packed_q8_0 = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_LINEAR,
    .name = "linear int8 avx2 packed q8_0",
    .layouts = "cpu.q8_0_x8/1",
    .cpu = CPU_AVX2,
    .attr_size = DAVIT_END(davit_linear_attr, flags),
    .score = 490,
    .flags = DAVIT_ENTRY_INT8,
    .check = int8_check,
    .size = int8_size,
    .run = int8_run,
};
