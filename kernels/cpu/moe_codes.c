/* SPDX-License-Identifier: Apache-2.0
 * moe_ffn/1 on packed codes (codes.h), float32 activations: scalar, a row of an expert at a time,
 * expanded once for all tokens that chose it; AVX2, eight rows and one token at a time. Baseline code;
 * phases are in moe.h. */
#include <string.h>

#include <davit/help/records.h>
#include <davit/help/ref.h>

#include "codes.h"
#include "layers.h"
#include "linear.h"
#include "moe.h"

static cpu_codes codes_of(const davit_weight *w)
{
    cpu_codes c;

    cpu_codes_init(&c, w->n_cols, w->params); /* was checked */
    return c;
}

/* ---- scalar ---- */

/* Row @row of expert @e as canonical values. */
static void expand(const davit_weight *w, uint64_t e, uint64_t row, float *out)
{
    const cpu_codes all = codes_of(w);
    cpu_codes own;
    const cpu_codes *c = cpu_codes_at(w, e, row, &all, &own);
    uint64_t lane, n;
    const uint8_t *block = cpu_codes_block(c, w, e, row, &lane, &n);
    const float *factors = cpu_codes_factors(c, w, e);

    cpu_codes_row(c, block, lane, out);
    for (uint64_t k = 0; factors && k < w->n_cols; k++)
        out[k] *= factors[k];
}

static void hidden_rows_scalar(const davit_call *call, uint64_t e, uint64_t r, uint64_t end,
                               float *row)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t K = call->weight[0]->n_cols, I = call->weight[2]->n_cols;
    const uint64_t by = cpu_moe_step(call), n_pairs = call->in[1].n_rows * a->top_k;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);

    for (; r < end; r++) {
        expand(call->weight[0], e, by * r, row);
        expand(call->weight[1], e, by * r + (by - 1), row + K);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float g, u;

            if (ids[i] != id)
                continue;
            g = cpu_dot_f32(cpu_in(call, 0, i / a->top_k), row, K);
            u = cpu_dot_f32(cpu_in(call, 0, i / a->top_k), row + K, K);
            cpu_moe_add_gate_up(call, e, r, 1, &g, &u);
            ((float *)call->scratch)[i * I + r] =
                davit_ref_glu(a->kind, a->limit, a->alpha, g, u);
        }
    }
}

static void down_rows_scalar(const davit_call *call, uint64_t e, uint64_t n, uint64_t end,
                             float *row)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_weight *down = call->weight[2];
    const uint64_t I = down->n_cols, n_pairs = call->in[1].n_rows * a->top_k;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);
    const float *hidden = call->scratch;

    for (; n < end; n++) {
        expand(down, e, n, row);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float *to = (float *)call->scratch + n_pairs * I + i * down->n_rows + n;

            if (ids[i] != id)
                continue;
            *to = cpu_dot_f32(hidden + i * I, row, I);
            cpu_moe_add_down(call, e, n, 1, to);
        }
    }
}

static void moe_run_scalar(const davit_call *call, uint32_t phase, uint64_t first,
                           uint64_t count, uint32_t worker, void *queue)
{
    (void)queue;
    cpu_moe_run(call, phase, first, count, cpu_worker(call, worker), hidden_rows_scalar,
                down_rows_scalar);
}

/* ---- AVX2 ---- */

/* @x times the factors of expert @e, if it has some, in what follows the dot's scratch. */
static const float *times_factors(const davit_weight *w, const cpu_codes *c, uint64_t e,
                                  const float *x, float *work)
{
    const float *factors = cpu_codes_factors(c, w, e);
    float *to = work + cpu_codes_scratch(1) / sizeof *work;

    if (!factors)
        return x;
    for (uint64_t k = 0; k < w->n_cols; k++)
        to[k] = x[k] * factors[k];
    return to;
}

/* Rows [row, row + n), n <= 8, of expert @e times @x into @out. */
static void row_dots(const davit_weight *w, const cpu_codes *c, uint64_t e, uint64_t row,
                     uint64_t n, const float *x, float *work, float *out)
{
    uint64_t lane, some;

    for (uint64_t r = 0; r < n; r += some) { /* several blocks where segments are cut apart */
        cpu_codes own;
        const cpu_codes *at = cpu_codes_at(w, e, row + r, c, &own);
        const uint8_t *block = cpu_codes_block(at, w, e, row + r, &lane, &some);
        float dots[CPU_GROUP];

        some = cpu_min(some, n - r);
        cpu_codes_dot_avx2(dots, at, block, times_factors(w, at, e, x, work), at->n_cols, 1, work);
        memcpy(out + r, dots + lane, some * sizeof *out);
    }
}

/* Rows of gate and up that alternate: rows [2r, 2r + 2n) of expert @e, n <= 8, taken apart. */
static void alternate_dots(const davit_weight *w, const cpu_codes *c, uint64_t e, uint64_t r,
                           uint64_t n, const float *x, float *work, float *g, float *u)
{
    float both[2 * CPU_GROUP];

    row_dots(w, c, e, 2 * r, cpu_min(2 * n, CPU_GROUP), x, work, both);
    if (2 * n > CPU_GROUP)
        row_dots(w, c, e, 2 * r + CPU_GROUP, 2 * n - CPU_GROUP, x, work, both + CPU_GROUP);
    cpu_moe_take_apart(both, n, g, u);
}

static void hidden_rows(const davit_call *call, uint64_t e, uint64_t r, uint64_t end, float *work)
{
    const davit_moe_ffn_attr *a = call->attr;
    const uint64_t I = call->weight[2]->n_cols, by = cpu_moe_step(call);
    const davit_act_attr act = {.kind = a->kind, .limit = a->limit, .alpha = a->alpha};
    const davit_weight *gate = call->weight[0], *up = call->weight[1];
    const cpu_codes gate_codes = codes_of(gate), up_codes = codes_of(up);
    const uint64_t n_pairs = call->in[1].n_rows * a->top_k;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);

    for (; r < end; r += CPU_GROUP) {
        const uint64_t n = cpu_min(CPU_GROUP, end - r);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float g[CPU_GROUP], u[CPU_GROUP];
            const float *x = cpu_in(call, 0, i / a->top_k);
            if (ids[i] != id)
                continue;
            if (by == 2) {
                alternate_dots(gate, &gate_codes, e, r, n, x, work, g, u);
            } else {
                row_dots(gate, &gate_codes, e, r, n, x, work, g);
                row_dots(up, &up_codes, e, r, n, x, work, u);
            }
            cpu_moe_add_gate_up(call, e, r, n, g, u);
            cpu_glu_values_avx2(&act, g, u, (float *)call->scratch + i * I + r, n);
        }
    }
}

static void down_rows(const davit_call *call, uint64_t e, uint64_t r, uint64_t end, float *work)
{
    const davit_moe_ffn_attr *a = call->attr;
    const davit_weight *down = call->weight[2];
    const cpu_codes codes = codes_of(down);
    const uint64_t I = down->n_cols, n_pairs = call->in[1].n_rows * a->top_k;
    const int32_t *ids = call->in[1].data, id = cpu_moe_id(a, e);
    const float *hidden = call->scratch;
    float *part = (float *)call->scratch + n_pairs * I;

    for (; r < end; r += CPU_GROUP) {
        const uint64_t n = cpu_min(CPU_GROUP, end - r);
        for (uint64_t i = 0; i < n_pairs; i++) {
            float *to = part + i * down->n_rows + r;

            if (ids[i] != id)
                continue;
            row_dots(down, &codes, e, r, n, hidden + i * I, work, to);
            cpu_moe_add_down(call, e, r, n, to);
        }
    }
}

static void moe_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                    uint32_t worker, void *queue)
{
    (void)queue;
    cpu_moe_run(call, phase, first, count, cpu_worker(call, worker), hidden_rows, down_rows);
}

static void moe_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                     uint64_t ctx, davit_work *out)
{
    const uint64_t K = call->weight[0]->n_cols, I = call->weight[2]->n_cols;
    const uint64_t least = cpu_codes_scratch(1) + (K > I ? K : I) * sizeof(float);

    cpu_moe_size(self, call, n_tokens, n_rows, ctx, out);
    out->worker_bytes = out->worker_bytes > least ? out->worker_bytes : least;
}

static int32_t check_no_map(const davit_call *call, const davit_sink *sink)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (!(codes_of(call->weight[i]).what.flags & DAVIT_CODES_MAP))
            continue;
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){
                             .code = DAVIT_R_OP_MISSING,
                             .subject = call->op,
                             .found = "a column map",
                             .message = "experts whose columns are reordered are not computed",
                         });
    }
    return DAVIT_OK;
}

static int32_t moe_check_scalar(void *self, const davit_call *call, const davit_sink *sink)
{
    const int32_t status = cpu_codes_check(self, call, sink);

    return status ? status : check_no_map(call, sink);
}

static int32_t moe_check(void *self, const davit_call *call, const davit_sink *sink)
{
    const davit_moe_ffn_attr *a = call->attr;
    int32_t status = cpu_codes_check_avx2(self, call, sink);

    if (!status)
        status = check_no_map(call, sink);
    return status ? status : cpu_check_gate(call, a->kind, sink);
}

const davit_kernel_entry cpu_moe_ffn_codes_scalar = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_MOE_FFN,
    .name = "moe_ffn codes scalar",
    .layouts = CPU_CODES_LAYOUT,
    .attr_size = DAVIT_END(davit_moe_ffn_attr, biases),
    .score = 100,
    .check = moe_check_scalar,
    .size = cpu_moe_size,
    .run = moe_run_scalar,
};

const davit_kernel_entry cpu_moe_ffn_codes = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_MOE_FFN,
    .name = "moe_ffn codes avx2",
    .layouts = CPU_CODES_LAYOUT,
    .cpu = CPU_AVX2,
    .attr_size = DAVIT_END(davit_moe_ffn_attr, biases),
    .score = 400,
    .check = moe_check,
    .size = moe_size,
    .run = moe_run,
};
