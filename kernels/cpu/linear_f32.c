/* SPDX-License-Identifier: Apache-2.0
 * linear/1 with float32 activations, AVX2 and AVX-512: dense rows as they lie, block layouts expanded
 * four rows at a time into the worker's scratch. Baseline code. One phase; a task is 4
 * output rows, all tokens. Worker scratch: four expanded rows (block layouts), then [T,
 * 4] results. Sums: linear_dense.h, linear_dense_avx512.c; a block layout gives the bits of its dense float32
 * copy.
 */
#include <string.h>

#include <davit/help/ref.h>

#include "cpu.h"
#include "linear_dense.h"
#include "linear_fast.h"
#include "linear_finish.h"
#include "linear_rows.h"

/* Tokens whose inputs stay in the second-level cache while the rows pass. */
#define X_CACHE_BYTES (192u * 1024u)

static uint64_t expanded_bytes(const davit_weight *w)
{
    return cpu_blocks_find(w->layout)
               ? cpu_round_up(CPU_DENSE_ROWS * w->n_cols * sizeof(float), 64)
               : 0;
}

static void f32_size(void *self, const davit_call *call, uint64_t n_tokens,
                     uint64_t n_rows, uint64_t ctx, davit_work *out)
{
    const uint64_t rows = n_tokens > n_rows ? n_tokens : n_rows;
    (void)self;
    (void)ctx;

    out->worker_bytes = expanded_bytes(call->weight[0]) +
                        cpu_round_up(rows * CPU_DENSE_ROWS * sizeof(float), 64);
    out->n_phases = 1;
    out->n_tasks[0] = cpu_ceil_div(call->weight[0]->n_rows, CPU_DENSE_ROWS);
}

/* One layer's functions on dense rows. */
typedef struct dense {
    cpu_dense_fn *f32, *f16, *bf16;
} dense;

static const dense avx2 = {cpu_dense_f32, cpu_dense_f16, cpu_dense_bf16};
static const dense avx512 = {cpu_dense_f32_avx512, cpu_dense_f16_avx512, cpu_dense_bf16_avx512};

static cpu_dense_fn *dense_of(const dense *layer, const char *layout)
{
    return strcmp(layout, "bf16/1") == 0  ? layer->bf16
           : strcmp(layout, "f16/1") == 0 ? layer->f16
                                          : layer->f32;
}

/* Four rows from @row0 on, expanded if they are blocks. Rows past the end repeat the
 * last. */
static void find_rows(const davit_weight *w, const cpu_blocks *blocks, uint64_t row0,
                      float *expanded, const uint8_t *out_row[CPU_DENSE_ROWS])
{
    const davit_ref_layout *stored = davit_ref_layout_find(w->layout);

    for (uint64_t r = 0; r < CPU_DENSE_ROWS; r++) {
        const uint64_t n = cpu_min(row0 + r, w->n_rows - 1);
        const uint8_t *src = davit_ref_weight_row(w, stored, 0, n);
        float *dst = expanded + r * w->n_cols;

        out_row[r] = src;
        if (!blocks)
            continue;
        blocks->dequant(dst, src, (size_t)(w->n_cols / blocks->block_elems));
        out_row[r] = (const uint8_t *)dst;
    }
}

static void run_with(const dense *layer, const davit_call *call, uint64_t first, uint64_t count,
                     uint32_t worker)
{
    const davit_weight *w = call->weight[0];
    const cpu_blocks *blocks = cpu_blocks_find(w->layout);
    cpu_dense_fn *dot = blocks ? layer->f32 : dense_of(layer, w->layout);
    const uint64_t n_tokens = call->in[0].n_rows;
    const uint64_t fit = X_CACHE_BYTES / (w->n_cols * sizeof(float));
    /* blocks: expanding rows again costs more than cache misses */
    const uint64_t least = blocks ? 48 : 6;
    const uint64_t step = fit < least ? least : fit / 3 * 3;
    float *expanded = cpu_worker(call, worker);
    float *dots = expanded + expanded_bytes(w) / sizeof(float);

    for (uint64_t t = 0; t < n_tokens; t += step) {
        const uint64_t n = cpu_min(step, n_tokens - t);

        for (uint64_t i = first; i < first + count; i++) {
            const uint64_t row0 = i * CPU_DENSE_ROWS;
            const uint8_t *row[CPU_DENSE_ROWS];

            find_rows(w, blocks, row0, expanded, row);
            dot(dots, row, (size_t)w->n_cols, cpu_in(call, 0, t), (size_t)w->n_cols,
                (size_t)n);
            cpu_linear_finish(call, dots, CPU_DENSE_ROWS, t, n, row0,
                              cpu_min(CPU_DENSE_ROWS, w->n_rows - row0));
        }
    }
}

#define RUN(name, layer)                                                                  \
    static void name(const davit_call *call, uint32_t phase, uint64_t first,              \
                     uint64_t count, uint32_t worker, void *queue)                        \
    {                                                                                     \
        (void)phase;                                                                      \
        (void)queue;                                                                      \
        run_with(&layer, call, first, count, worker);                                     \
    }
RUN(run_avx2, avx2)
RUN(run_avx512, avx512)

#define DENSE "f32/1|f16/1|bf16/1"
#define BLOCKS                                                                                "q4_0/1|q4_1/1|q5_0/1|q5_1/1|q8_0/1|q2_k/1|q3_k/1|q4_k/1|q5_k/1|q6_k/1|" DAVIT_REF_IQ

#define ENTRY(sym, text, layouts_, cpu_, score_, run_)                                    \
    const davit_kernel_entry sym = {                                                      \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = DAVIT_OP_LINEAR,                                                            \
        .name = text,                                                                     \
        .layouts = layouts_,                                                              \
        .cpu = cpu_,                                                                      \
        .attr_size = DAVIT_END(davit_linear_attr, flags),                                 \
        .score = score_,                                                                  \
        .check = cpu_check,                                                               \
        .size = f32_size,                                                                 \
        .run = run_,                                                                      \
    }

ENTRY(cpu_linear_f32_dense, "linear f32 avx2 dense", DENSE, CPU_AVX2, 400, run_avx2);
ENTRY(cpu_linear_f32_blocks, "linear f32 avx2 blocks", BLOCKS, CPU_AVX2, 350, run_avx2);
ENTRY(cpu_linear_f32_dense_512, "linear f32 avx512 dense", DENSE, CPU_AVX512_F32, 410, run_avx512);
ENTRY(cpu_linear_f32_blocks_512, "linear f32 avx512 blocks", BLOCKS, CPU_AVX512_F32, 360,
      run_avx512);
