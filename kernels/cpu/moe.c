/* SPDX-License-Identifier: Apache-2.0
 * moe_ffn/1: phases and tasks (moe.h), and the scalar rows: one at a time, expanded once for
 * all tokens that chose the expert. */
#include "moe.h"

#include <davit/help/ref.h>

#include "linear.h"

void cpu_moe_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                  uint64_t ctx, davit_work *out)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t K = call->weight[0]->n_cols, hidden = call->weight[2]->n_cols;
    const uint64_t N = call->weight[2]->n_rows;
    (void)self;
    (void)n_rows;
    (void)ctx;
    out->scratch_bytes = n_tokens * a->top_k * (hidden + N) * sizeof(float);
    out->worker_bytes = CPU_MOE_WORK * (K > hidden ? K : hidden) * sizeof(float);
    out->n_phases = 3;
    out->n_tasks[0] = call->weight[0]->n_experts * cpu_ceil_div(hidden, CPU_LINEAR_ROWS);
    out->n_tasks[1] = call->weight[2]->n_experts * cpu_ceil_div(N, CPU_LINEAR_ROWS);
    out->n_tasks[2] = n_tokens;
}

void cpu_moe_add_gate_up(const davit_call *call, uint64_t e, uint64_t r, uint64_t n, float *g,
                         float *u)
{
    const uint64_t by = cpu_moe_step(call);
    const float *gate = cpu_moe_bias(call, 0, e, by * r);
    const float *up = cpu_moe_bias(call, 1, e, by * r + (by - 1));

    for (uint64_t j = 0; gate && j < n; j++)
        g[j] += gate[by * j];
    for (uint64_t j = 0; up && j < n; j++)
        u[j] += up[by * j];
}

void cpu_moe_add_down(const davit_call *call, uint64_t e, uint64_t r, uint64_t n, float *part)
{
    const float *bias = cpu_moe_bias(call, 2, e, r);

    for (uint64_t j = 0; bias && j < n; j++)
        part[j] += bias[j];
}

/* Most tasks of a short step end here. */
static int is_used(const davit_call *call, uint64_t e)
{
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(call->attr, e);

    for (uint64_t i = 0; i < call->in[1].n_rows * call->in[1].width; i++)
        if (ids[i] == id)
            return 1;
    return 0;
}

/* @row: two expanded rows. */
static void hidden_rows(const davit_call *call, uint64_t e, uint64_t r, uint64_t end, float *row)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_weight *gate = call->weight[0], *up = call->weight[1];
    const davit_ref_layout *gate_layout = davit_ref_layout_find(gate->layout);
    const davit_ref_layout *up_layout = davit_ref_layout_find(up->layout);
    const uint64_t K = gate->n_cols, n_pairs = call->in[1].n_rows * a->top_k;
    const uint64_t by = cpu_moe_step(call), I = call->weight[2]->n_cols;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);
    float *hidden = call->scratch;

    for (; r < end; r++) {
        davit_ref_weight_decode(gate, gate_layout, e, by * r, row);
        davit_ref_weight_decode(up, up_layout, e, by * r + (by - 1), row + K);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float g, u;

            if (ids[i] != id)
                continue;
            g = cpu_dot_f32(cpu_in(call, 0, i / a->top_k), row, K);
            u = cpu_dot_f32(cpu_in(call, 0, i / a->top_k), row + K, K);
            cpu_moe_add_gate_up(call, e, r, 1, &g, &u);
            hidden[i * I + r] = davit_ref_glu(a->kind, a->limit, a->alpha, g, u);
        }
    }
}

static void down_rows(const davit_call *call, uint64_t e, uint64_t n, uint64_t end, float *row)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_weight *down = call->weight[2];
    const davit_ref_layout *layout = davit_ref_layout_find(down->layout);
    const uint64_t n_pairs = call->in[1].n_rows * a->top_k;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);
    const float *hidden = call->scratch;
    float *part = (float *)call->scratch + n_pairs * down->n_cols;

    for (; n < end; n++) {
        davit_ref_weight_decode(down, layout, e, n, row);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float *to = part + i * down->n_rows + n;

            if (ids[i] != id)
                continue;
            *to = cpu_dot_f32(hidden + i * down->n_cols, row, down->n_cols);
            cpu_moe_add_down(call, e, n, 1, to);
        }
    }
}

void cpu_moe_combine(const davit_call *call, const float *part, uint64_t t)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t N = call->weight[2]->n_rows;
    const int32_t *ids = (const int32_t *)call->in[1].data + t * a->top_k;
    const float *w = cpu_in(call, 2, t);
    float *y = cpu_out(call, 0, t);

    for (uint64_t n = 0; n < N; n++) {
        double sum = 0.0;
        for (uint64_t i = 0; i < a->top_k; i++)
            if (cpu_moe_is_own(a, call->weight[2], ids[i]))
                sum += (double)w[i] * (double)part[(t * a->top_k + i) * N + n];
        y[n] = (float)sum;
    }
}

void cpu_moe_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                 float *work, cpu_moe_rows_fn *hidden_of, cpu_moe_rows_fn *down_of)
{
    const uint64_t n_rows = phase == 0 ? call->weight[2]->n_cols : call->weight[2]->n_rows;
    const uint64_t per_expert = cpu_ceil_div(n_rows, CPU_LINEAR_ROWS);
    const davit_moe_ffn_attr *a = call->attr;
    const float *part = (float *)call->scratch +
                        call->in[1].n_rows * a->top_k * call->weight[2]->n_cols;

    for (uint64_t i = first; i < first + count; i++) {
        if (phase == 2) {
            cpu_moe_combine(call, part, i);
            continue;
        }
        const uint64_t e = i / per_expert, r = i % per_expert * CPU_LINEAR_ROWS;
        const uint64_t end = cpu_min(r + CPU_LINEAR_ROWS, n_rows);
        if (is_used(call, e))
            (phase == 0 ? hidden_of : down_of)(call, e, r, end, work);
    }
}

static void moe_ffn_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                        uint32_t worker, void *queue)
{
    (void)queue;
    cpu_moe_run(call, phase, first, count, cpu_worker(call, worker), hidden_rows, down_rows);
}

const davit_kernel_entry cpu_moe_ffn_scalar = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_MOE_FFN,
    .name = "moe_ffn scalar",
    .layouts = DAVIT_REF_LAYOUTS,
    .attr_size = DAVIT_END(davit_moe_ffn_attr, biases),
    .score = 100,
    .check = cpu_check,
    .size = cpu_moe_size,
    .run = moe_ffn_run,
};
