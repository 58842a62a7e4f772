/* SPDX-License-Identifier: Apache-2.0
 * moe_ffn/1, AVX2: four rows of an expert at a time, through the dense rows and decoders of
 * linear/1 (linear_dense.h, linear_rows.h). Baseline code; phases are in moe.h. */
#include <string.h>

#include <davit/help/ref.h>

#include "layers.h"
#include "linear.h"
#include "linear_dense.h"
#include "linear_rows.h"
#include "moe.h"

/* How the rows of one weight are read. */
typedef struct reader {
    const davit_weight *w;
    const davit_ref_layout *stored;
    const cpu_blocks *blocks; /* NULL = plain numbers, used as they lie */
    cpu_dense_fn *dot;
} reader;

static reader reader_of(const davit_weight *w)
{
    reader r = {w, davit_ref_layout_find(w->layout), cpu_blocks_find(w->layout), cpu_dense_f32};

    if (!r.blocks && strcmp(w->layout, "f16/1") == 0)
        r.dot = cpu_dense_f16;
    if (!r.blocks && strcmp(w->layout, "bf16/1") == 0)
        r.dot = cpu_dense_bf16;
    return r;
}

/* Rows of expert e: row r is the stored one by * r + off. */
typedef struct range {
    uint64_t e, row, end, by, off;
} range;

/* Four rows from at.row on; past at.end the last one again. @work: four rows. */
static void find_rows(const reader *r, range at, float *work,
                      const uint8_t *out_row[CPU_DENSE_ROWS])
{
    for (uint64_t i = 0; i < CPU_DENSE_ROWS; i++) {
        out_row[i] = davit_ref_weight_row(r->w, r->stored, at.e,
                                          cpu_min(at.row + i, at.end - 1) * at.by + at.off);
        if (!r->blocks)
            continue;
        float *dst = work + i * r->w->n_cols;
        r->blocks->dequant(dst, out_row[i], (size_t)(r->w->n_cols / r->blocks->block_elems));
        out_row[i] = (const uint8_t *)dst;
    }
}

static void hidden_rows(const davit_call *call, uint64_t e, uint64_t r, uint64_t end, float *work)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_act_attr act = {.kind = a->kind, .limit = a->limit, .alpha = a->alpha};
    const reader gate = reader_of(call->weight[0]), up = reader_of(call->weight[1]);
    const uint64_t K = gate.w->n_cols, n_pairs = call->in[1].n_rows * a->top_k;
    const uint64_t by = cpu_moe_step(call), I = call->weight[2]->n_cols;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);
    const uint8_t *gate_row[CPU_DENSE_ROWS], *up_row[CPU_DENSE_ROWS];

    for (; r < end; r += CPU_DENSE_ROWS) {
        const uint64_t n = cpu_min(CPU_DENSE_ROWS, end - r);
        find_rows(&gate, (range){e, r, end, by, 0}, work, gate_row);
        find_rows(&up, (range){e, r, end, by, by - 1}, work + CPU_DENSE_ROWS * K, up_row);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float g[CPU_DENSE_ROWS], u[CPU_DENSE_ROWS];
            const float *x = cpu_in(call, 0, i / a->top_k);
            if (ids[i] != id)
                continue;
            gate.dot(g, gate_row, (size_t)K, x, (size_t)K, 1);
            up.dot(u, up_row, (size_t)K, x, (size_t)K, 1);
            cpu_moe_add_gate_up(call, e, r, n, g, u);
            cpu_glu_values_avx2(&act, g, u, (float *)call->scratch + i * I + r, n);
        }
    }
}

static void down_rows(const davit_call *call, uint64_t e, uint64_t r, uint64_t end, float *work)
{
    const davit_moe_ffn_attr *a = call->attr;
    const reader down = reader_of(call->weight[2]);
    const uint64_t I = down.w->n_cols, n_pairs = call->in[1].n_rows * a->top_k;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);
    const float *hidden = call->scratch;
    float *part = (float *)call->scratch + n_pairs * I;
    const uint8_t *row[CPU_DENSE_ROWS];

    for (; r < end; r += CPU_DENSE_ROWS) {
        const uint64_t n = cpu_min(CPU_DENSE_ROWS, end - r);
        find_rows(&down, (range){e, r, end, 1, 0}, work, row);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float dots[CPU_DENSE_ROWS];
            if (ids[i] != id)
                continue;
            down.dot(dots, row, (size_t)I, hidden + i * I, (size_t)I, 1);
            cpu_moe_add_down(call, e, r, n, dots);
            memcpy(part + i * down.w->n_rows + r, dots, n * sizeof *dots);
        }
    }
}

static void moe_ffn_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                        uint32_t worker, void *queue)
{
    (void)queue;
    cpu_moe_run(call, phase, first, count, cpu_worker(call, worker), hidden_rows, down_rows);
}

static int32_t moe_ffn_check(void *self, const davit_call *call, const davit_sink *sink)
{
    const davit_moe_ffn_attr *a = call->attr;
    const int32_t status = cpu_check(self, call, sink);

    if (status)
        return status;
    return cpu_check_gate(call, a->kind, sink);
}

const davit_kernel_entry cpu_moe_ffn_avx2_entry = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_MOE_FFN,
    .name = "moe_ffn avx2",
    .layouts = DAVIT_REF_LAYOUTS,
    .cpu = CPU_AVX2,
    .attr_size = DAVIT_END(davit_moe_ffn_attr, biases),
    .score = 350,
    .check = moe_ffn_check,
    .size = cpu_moe_size,
    .run = moe_ffn_run,
};
