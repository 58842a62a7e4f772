/* SPDX-License-Identifier: Apache-2.0
 * moe_ffn/1 in three phases; a task of the first two is CPU_LINEAR_ROWS rows of one expert.
 *   0: hidden[t, i, r] = f(gate_r . x_t) * (up_r . x_t) for the i-th choice of token t
 *   1: part[t, i, n]   = down_n . hidden[t, i]          (each dot with its bias, where there is one)
 *   2: y[t, n]         = sum_i w[t, i] * part[t, i, n], i ascending; a task is one token
 * Shared scratch: hidden [T, k, I], then part [T, k, N]. Worker scratch: CPU_MOE_WORK rows.
 */
#ifndef DAVIT_CPU_MOE_H
#define DAVIT_CPU_MOE_H

#include "cpu.h"

#define CPU_MOE_WORK 8 /* rows of the longer of K and I, float32 */

/* Rows [r, end) of expert @e for every token that chose it: of gate and up into hidden, or of
 * down into part. @work: the worker's scratch. */
typedef void cpu_moe_rows_fn(const davit_call *call, uint64_t e, uint64_t r, uint64_t end,
                             float *work);

/* The model's id of the weights' expert @e. */
static inline int32_t cpu_moe_id(const davit_moe_ffn_attr *a, uint64_t e)
{
    return (int32_t)(a->flags & DAVIT_MOE_PART ? a->first_expert + e : e);
}

/* Does this rank hold expert @id? */
static inline int cpu_moe_is_own(const davit_moe_ffn_attr *a, const davit_weight *down, int32_t id)
{
    return !(a->flags & DAVIT_MOE_PART) || (uint64_t)id - a->first_expert < down->n_experts;
}

/* Where gate and up alternate in one weight: 2, rows of it to a hidden value; else 1. */
static inline uint64_t cpu_moe_step(const davit_call *call)
{
    const davit_moe_ffn_attr *a = call->attr;

    return a->gate_up == DAVIT_GATE_UP_ALTERNATE ? 2 : 1;
}

/* Biases of rows [row, ...) of matrix @which (0 gate, 1 up, 2 down) of expert @e; NULL = none. */
static inline const float *cpu_moe_bias(const davit_call *call, uint32_t which, uint64_t e,
                                        uint64_t row)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_weight *bias = a->biases ? call->weight[3 + which] : NULL;

    return bias ? (const float *)(const void *)bias->segments[0].part[0] +
                      e * call->weight[which]->n_rows + row
                : NULL;
}

/* @n rows of gate and of up out of 2n that alternate. */
static inline void cpu_moe_take_apart(const float *both, uint64_t n, float *g, float *u)
{
    for (uint64_t j = 0; j < n; j++) {
        g[j] = both[2 * j];
        u[j] = both[2 * j + 1];
    }
}

/* Adds the biases of @n hidden rows from @r on to dots @g of gate and @u of up. */
void cpu_moe_add_gate_up(const davit_call *call, uint64_t e, uint64_t r, uint64_t n, float *g,
                         float *u);
/* Adds those of @n rows of down from @r on to @part. */
void cpu_moe_add_down(const davit_call *call, uint64_t e, uint64_t r, uint64_t n, float *part);

void cpu_moe_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                  uint64_t ctx, davit_work *out);
void cpu_moe_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                 float *work, cpu_moe_rows_fn *hidden_of, cpu_moe_rows_fn *down_of);
/* Phase 2 of one token; part [T, k, N]. */
void cpu_moe_combine(const davit_call *call, const float *part, uint64_t t);

#endif
