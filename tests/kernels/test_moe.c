/* SPDX-License-Identifier: Apache-2.0
 * moe_route and moe_ffn: every entry against the reference, and to the bit for any split. */
#include <math.h>
#include <string.h>

#include "kernels/rig.h"

#define ROUNDS 12
#define TOLERANCE 4e-6
/* Two float32 products in a row with a square (relu2) between them, on terms that cancel. */
#define TOLERANCE_FFN 3e-5
/* With 8-bit activations beside it: sigmas of the rounding of hidden values, see hidden_sigmas.
 * Six, since many outputs are looked at. Inputs lie on the grid of one plane and round to
 * themselves. */
#define SIGMAS_INT8 6.0
#define INT8_BLOCK  32u

static const davit_kernels_iface *iface;

static void check_route(Rig *rig, const davit_kernel_entry *entry, const float *ids,
                        const float *w)
{
    const uint64_t n = rig_count(rig, 0);

    rig_run(rig, entry, (RigSplit){2, true, 2}, 1);
    rig_same(entry->name, rig->call.out[0].data, ids, n);
    rig_compare(entry->name, rig->call.out[1].data, w, rig->call.out[1].n_rows,
                rig->call.out[1].width, TOLERANCE, 0.0);
}

static void test_route(void)
{
    for (int round = 0; round < 40; round++) {
        davit_moe_route_attr attr = {.struct_size = DAVIT_END(davit_moe_route_attr, renorm_eps)};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_MOE_ROUTE, &attr);
        const uint64_t T = rig_between(rig, 1, 9);
        g_autofree float *ids = NULL, *w = NULL;

        attr.n_experts = rig_between(rig, 1, 130);
        attr.top_k = rig_between(rig, 1, MIN(attr.n_experts, 8));
        attr.kind = (uint32_t)rig_between(rig, 0, DAVIT_ROUTE_TOPK_SOFTMAX);
        attr.flags = (uint32_t)rig_between(rig, 0, 1);
        attr.factor = rig_between(rig, 0, 1) ? 0.0f : 2.5f;
        rig_batch(rig, T, 0, 10);
        rig_in(rig, T, attr.n_experts, 2.0f);
        if (rig_between(rig, 0, 1))
            rig_vector(rig, 0, attr.n_experts);
        rig_out(rig, T, attr.top_k);
        rig->call.out[0].dtype = "i32/1";
        rig_out(rig, T, attr.top_k);
        rig_run_reference(rig);
        ids = rig_save(rig, 0);
        w = rig_save(rig, 1);
        for (size_t i = 0; iface->entries[i]; i++)
            if (strcmp(iface->entries[i]->op, DAVIT_OP_MOE_ROUTE) == 0 &&
                rig_can_run(iface->entries[i]))
                check_route(rig, iface->entries[i], ids, w);
    }
}

/* Distinct experts for each token. */
static void fill_ids(Rig *rig, uint64_t E, uint64_t k, uint64_t T)
{
    int32_t *ids = rig->call.in[1].data;

    rig->call.in[1].dtype = "i32/1";
    for (uint64_t t = 0; t < T; t++) {
        const uint64_t first = rig_between(rig, 0, E - 1);
        for (uint64_t i = 0; i < k; i++)
            ids[t * k + i] = (int32_t)((first + i) % E);
    }
}

/* hidden[i] of one expert for input @x, as the definition has it. @row [K] scratch. */
static void expert_hidden(const Rig *rig, uint64_t e, const float *x, float *row, float *hidden)
{
    const davit_moe_ffn_attr *a = rig->call.attr;
    float dots[2];

    const uint64_t by = a->gate_up == DAVIT_GATE_UP_ALTERNATE ? 2 : 1;

    for (uint64_t i = 0; i < rig->weights[2].n_cols; i++) {
        for (unsigned m = 0; m < 2; m++) {
            const davit_weight *w = &rig->weights[m];
            const uint64_t at = by * i + (by == 2 ? m : 0);
            const float *bias = a->biases ? davit_ref_weight_vector(rig->call.weight[3 + m]) : NULL;
            double sum = bias ? (double)bias[e * w->n_rows + at] : 0.0;
            davit_ref_weight_decode(w, davit_ref_layout_find(w->layout), e, at, row);
            for (uint64_t k = 0; k < w->n_cols; k++)
                sum += (double)row[k] * (double)x[k];
            dots[m] = (float)sum;
        }
        hidden[i] = davit_ref_glu(a->kind, a->limit, a->alpha, dots[0], dots[1]);
    }
}

/* Layouts of less than three bits, whose hidden values take one plane. */
static bool is_coarse(const char *name)
{
    return strstr("iq1_s/1|iq1_m/1|iq2_xxs/1|iq2_xs/1|iq2_s/1|tq1_0/1|q1_0/1", name) != NULL;
}

/* Adds to @variance [N] what rounding @hidden [I] of expert @e does to its rows of down times
 * @weight. One plane is right to 1/254 of the largest of a block (127 steps, and half a step), two
 * to 1/64516 (the same of that): uniform, so that over sqrt(3) rms. @row [I] scratch. */
static void add_rounding(const Rig *rig, uint64_t e, const float *hidden, double weight,
                         float *row, double *variance)
{
    const davit_weight *down = &rig->weights[2];
    const davit_ref_layout *layout = davit_ref_layout_find(down->layout);
    const double steps = is_coarse(down->layout) ? 254.0 : 64516.0;

    for (uint64_t n = 0; n < down->n_rows; n++) {
        davit_ref_weight_decode(down, layout, e, n, row);
        for (uint64_t from = 0; from < down->n_cols; from += INT8_BLOCK) {
            const uint64_t to = MIN(from + INT8_BLOCK, down->n_cols);
            double largest = 0.0, squares = 0.0;
            for (uint64_t i = from; i < to; i++) {
                largest = MAX(largest, fabs((double)hidden[i]));
                squares += (double)row[i] * (double)row[i];
            }
            largest *= weight / steps;
            variance[n] += largest * largest / 3.0 * squares;
        }
    }
}

/* (owned) [T, N]: rms error of each output where hidden values are rounded to their planes. */
static double *hidden_sigmas(const Rig *rig)
{
    const davit_moe_ffn_attr *a = rig->call.attr;
    const uint64_t K = rig->weights[0].n_cols, I = rig->weights[2].n_cols;
    const uint64_t N = rig->weights[2].n_rows, T = rig->call.out[0].n_rows;
    const uint64_t first = a->flags & DAVIT_MOE_PART ? a->first_expert : 0;
    double *sigma = g_new0(double, T * N);
    g_autofree float *row = g_new(float, MAX(K, I));
    g_autofree float *hidden = g_new(float, I);

    for (uint64_t t = 0; t < T; t++) {
        for (uint64_t c = t * a->top_k; c < (t + 1) * a->top_k; c++) {
            const uint64_t e = (uint64_t)((const int32_t *)rig->call.in[1].data)[c] - first;
            if (e >= rig->weights[2].n_experts)
                continue; /* another rank's */
            expert_hidden(rig, e, (const float *)rig->call.in[0].data + t * K, row, hidden);
            add_rounding(rig, e, hidden, (double)((const float *)rig->call.in[2].data)[c], row,
                         sigma + t * N);
        }
        for (uint64_t n = 0; n < N; n++)
            sigma[t * N + n] = sqrt(sigma[t * N + n]);
    }
    return sigma;
}

/* As rig_compare; @sigma NULL for float32 activations. */
static void compare_ffn(const char *what, const Rig *rig, const float *got, const float *expected,
                        const double *sigma)
{
    const uint64_t N = rig->call.out[0].width, T = rig->call.out[0].n_rows;

    if (!sigma)
        rig_compare(what, got, expected, T, N, TOLERANCE_FFN, 0.0);
    for (uint64_t t = 0; sigma && t < T; t++) {
        double largest = 0.0;
        for (uint64_t i = t * N; i < (t + 1) * N; i++)
            largest = MAX(largest, fabs((double)expected[i]));
        for (uint64_t i = t * N; i < (t + 1) * N; i++)
            if (!(fabs((double)got[i] - (double)expected[i]) <=
                  SIGMAS_INT8 * sigma[i] + TOLERANCE_FFN * largest))
                g_error("%s: value %" G_GUINT64_FORMAT ": %.9g, reference %.9g, sigma %.3g, "
                        "largest %.9g",
                        what, i, (double)got[i], (double)expected[i], sigma[i], largest);
    }
}

static void check_ffn(Rig *rig, const davit_kernel_entry *entry, const float *expected,
                      const double *sigma)
{
    const uint64_t n = rig_count(rig, 0), T = rig->call.out[0].n_rows;
    const davit_call saved = rig->call;
    const bool int8 = entry->flags & DAVIT_ENTRY_INT8;
    g_autofree float *all = NULL;

    if (entry->check(NULL, &rig->call, NULL))
        return; /* a layer may lack an activation; the scalar entry never does */
    rig_run(rig, entry, (RigSplit){0}, 1);
    all = rig_save(rig, 0);
    compare_ffn(entry->name, rig, all, expected, int8 ? sigma : NULL);
    rig_run(rig, entry, (RigSplit){1, true, 3}, 1);
    rig_same(entry->name, rig->call.out[0].data, all, n);

    for (uint32_t i = 0; i < 3; i++) { /* the last token alone */
        rig->call.in[i].data = (float *)saved.in[i].data + (T - 1) * saved.in[i].width;
        rig->call.in[i].n_rows = 1;
    }
    rig->call.out[0].n_rows = rig->batch.n_tokens = 1;
    rig_run(rig, entry, (RigSplit){0}, 1);
    rig_same(entry->name, rig->call.out[0].data, all + (T - 1) * saved.out[0].width,
             saved.out[0].width);
    rig->call = saved;
    rig->batch.n_tokens = T;
}

/* Weights and biases of E experts [I, K], [I, K], [N, I] for the attributes of @rig; some biases
 * are absent. @size E I K N. */
static void add_weights(Rig *rig, const char *layout, const uint64_t size[4])
{
    const davit_moe_ffn_attr *a = rig->call.attr;
    const uint64_t E = size[0], I = size[1], K = size[2], N = size[3];
    const bool alternate = a->gate_up == DAVIT_GATE_UP_ALTERNATE;
    const uint64_t rows = alternate ? 2 * I : I;

    rig_matrix(rig, 0, layout, E, rows, K);
    if (alternate)
        rig_share(rig, 1, 0);
    else
        rig_matrix(rig, 1, layout, E, rows, K);
    rig_matrix(rig, 2, layout, E, N, I);
    if (!a->biases)
        return;
    if (rig_between(rig, 0, 3)) {
        rig_vector(rig, 3, E * rows);
        if (alternate)
            rig_share(rig, 4, 3);
        else
            rig_vector(rig, 4, E * rows);
    }
    if (rig_between(rig, 0, 3))
        rig_vector(rig, 5, E * N);
}

static void test_ffn(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        davit_moe_ffn_attr attr = {.struct_size = DAVIT_END(davit_moe_ffn_attr, biases)};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_MOE_FFN, &attr);
        const davit_ref_layout *layout = davit_ref_layout_get(rig_between(rig, 0, 22));
        const uint64_t unit = layout->block_elems == 1 ? 7 : layout->block_elems;
        const uint64_t T = rig_between(rig, 1, 30), K = unit * rig_between(rig, 1, 2);
        const uint64_t I = unit * rig_between(rig, 1, 2), N = rig_between(rig, 16, 40);
        g_autofree float *expected = NULL;
        g_autofree double *sigma = NULL;
        uint64_t E;

        attr.n_experts = E = rig_between(rig, 1, 9);
        attr.top_k = rig_between(rig, 1, MIN(attr.n_experts, 4));
        attr.kind = (uint32_t)rig_between(rig, 0, DAVIT_ACT_OAI_CLAMP);
        attr.limit = 7.0f;
        attr.alpha = 1.702f;
        rig_batch(rig, T, 0, 10);
        rig_in(rig, T, K, 1.0f);
        if (K % 32 == 0)
            rig_on_grid(rig, 0);
        rig_in(rig, T, attr.top_k, 1.0f);
        fill_ids(rig, attr.n_experts, attr.top_k, T);
        rig_in(rig, T, attr.top_k, 1.0f);
        if (rig_between(rig, 0, 1)) { /* the experts of one rank */
            attr.flags = DAVIT_MOE_PART;
            attr.first_expert = rig_between(rig, 0, E - 1);
            E = rig_between(rig, 1, E - attr.first_expert);
        }
        attr.gate_up = (uint32_t)rig_between(rig, 0, DAVIT_GATE_UP_ALTERNATE);
        attr.biases = (uint32_t)rig_between(rig, 0, 1);
        add_weights(rig, layout->name, (uint64_t[]){E, I, K, N});
        rig_out(rig, T, N);
        rig_run_reference(rig);
        expected = rig_save(rig, 0);
        sigma = hidden_sigmas(rig);
        for (size_t i = 0; iface->entries[i]; i++)
            if (strcmp(iface->entries[i]->op, DAVIT_OP_MOE_FFN) == 0 &&
                rig_can_run(iface->entries[i]) && rig_takes(rig, iface->entries[i]))
                check_ffn(rig, iface->entries[i], expected, sigma);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    iface = rig_plugin("davit-kernels-cpu.so");
    g_test_add_func("/kernels/moe_route", test_route);
    g_test_add_func("/kernels/moe_ffn", test_ffn);
    return g_test_run();
}
