/* SPDX-License-Identifier: Apache-2.0
 * linear/1, scalar, for every stored layout: a task takes CPU_LINEAR_ROWS rows, expands one at
 * a time into the worker's scratch and multiplies it with every token. Never a full copy. */
#include "linear.h"

#include <davit/help/ref.h>

#include "cpu.h"

float cpu_dot_f32(const float *a, const float *b, uint64_t n)
{
    double part[8] = {0};
    double sum = 0.0;
    uint64_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            part[j] += (double)a[i + j] * (double)b[i + j];
    for (int j = 0; i < n; i++, j++)
        part[j] += (double)a[i] * (double)b[i];
    for (int j = 0; j < 8; j++)
        sum += part[j];
    return (float)sum;
}

static void linear_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)n_tokens;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes = call->weight[0]->n_cols * sizeof(float);
    out->n_phases = 1;
    out->n_tasks[0] = cpu_ceil_div(call->weight[0]->n_rows, CPU_LINEAR_ROWS);
}

/* One output of one token. */
static void finish(const davit_linear_attr *a, const float *bias, uint64_t n, float dot, float *y)
{
    float v = a->out_scale == 0.0f ? dot : dot * a->out_scale;

    v += bias ? bias[n] : 0.0f;
    y[n] = a->flags & DAVIT_LINEAR_ADD ? y[n] + v : v;
}

static void linear_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                       uint32_t worker, void *queue)
{
    const davit_weight *w = call->weight[0];
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    const float *bias = davit_ref_weight_vector(call->weight[1]);
    const uint64_t end = cpu_min((first + count) * CPU_LINEAR_ROWS, w->n_rows);
    float *row = cpu_worker(call, worker);
    (void)phase;
    (void)queue;

    for (uint64_t n = first * CPU_LINEAR_ROWS; n < end; n++) {
        davit_ref_weight_decode(w, layout, 0, n, row);
        for (uint64_t t = 0; t < call->out[0].n_rows; t++) {
            const float dot = cpu_dot_f32(cpu_in(call, 0, t), row, w->n_cols);
            finish(call->attr, bias, n, dot, cpu_out(call, 0, t));
        }
    }
}

const davit_kernel_entry cpu_linear_scalar = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_LINEAR,
    .name = "linear scalar",
    .layouts = DAVIT_REF_LAYOUTS,
    .attr_size = DAVIT_END(davit_linear_attr, flags),
    .score = 100,
    .check = cpu_check,
    .size = linear_size,
    .run = linear_run,
};
