/* SPDX-License-Identifier: Apache-2.0
 * linear and moe_ffn: every entry that keeps float32 activations against the reference, for
 * every layout it takes; all entries to the bit for any T and any split of tasks. Entries that
 * round activations to 8 bits are held to a wider, stated tolerance. Packed layouts are packed
 * from the stored bytes first. */
#include <math.h>
#include <string.h>

#include "kernels/rig.h"

/* Relative to the root of the sum of squares of what is added up; and 2e-7 of the result. */
#define TOLERANCE 4e-6
/* Entries with 8-bit activations: sigmas of the rounding error that norms_int8 computes for each
 * output from the steps of its own row. Six, since many outputs are looked at. The exact
 * comparison, with rounded activations on both sides, is in test_linear_fast.c. */
#define SIGMAS_INT8 6.0
#define INT8_BLOCK 32u
#define ROUNDS 6

static const davit_kernels_iface *iface;

static bool takes(const char *list, const char *layout)
{
    g_auto(GStrv) names = g_strsplit(list, "|", -1);

    return g_strv_contains((const char *const *)names, layout);
}

static const davit_pack *pack_of(const char *layout)
{
    for (size_t i = 0; iface->packs && iface->packs[i]; i++)
        if (strcmp(iface->packs[i]->layout, layout) == 0)
            return iface->packs[i];
    return NULL;
}

/* Replace weight 0, stored in one of the pack's layouts, by its packed form. Segments of the
 * stored form start anywhere; packing wants whole row blocks, so they are joined first. */
static bool pack_weight(Rig *rig, const davit_pack *pack)
{
    davit_weight *w = &rig->weights[0];
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    const uint64_t row_bytes = davit_ref_row_bytes(layout, w->n_cols);
    const uint64_t block = pack->block_bytes(NULL, w->n_cols, w->params);
    const uint64_t n_blocks = (w->n_rows + pack->row_block - 1) / pack->row_block;
    uint8_t *stored, *packed;
    davit_segment *s;

    if (block == 0)
        return false;
    stored = rig_memory(rig, w->n_rows * row_bytes, 1);
    packed = rig_memory(rig, n_blocks * block, 0);
    for (uint64_t r = 0; r < w->n_rows; r++)
        memcpy(stored + r * row_bytes, davit_ref_weight_row(w, layout, 0, r), row_bytes);
    memset(packed, 0, n_blocks * block);
    for (uint64_t b = 0; b < n_blocks; b++) {
        const uint64_t row = b * pack->row_block;
        const davit_segment src = {.row = row,
                                   .n_rows = MIN(pack->row_block, w->n_rows - row),
                                   .n_parts = 1,
                                   .part = {stored + row * row_bytes},
                                   .row_bytes = {row_bytes}};
        pack->pack(NULL, w, &src, NULL, src.n_rows, packed + b * block);
    }
    s = rig_memory(rig, sizeof *s, 0);
    *s = (davit_segment){.n_rows = w->n_rows, .n_parts = 1, .part = {packed}};
    w->layout = pack->layout;
    w->n_segments = 1;
    w->segments = s;
    return true;
}

/* |error| against sqrt(sum of x^2 w^2), which is what the dot product adds up, and against the
 * terms added to it: @before, and a bias that is at most |expected| + |before| + |dot|. */
static void compare(const char *what, const Rig *rig, const float *got, const float *expected,
                    const float *before, const float *norm, double tol)
{
    const uint64_t n = rig_count(rig, 0);

    for (uint64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <=
              tol * (double)norm[i] +
                  2e-7 * (fabs((double)expected[i]) + 2 * fabs((double)before[i]))))
            g_error("%s: value %" G_GUINT64_FORMAT ": %.9g, reference %.9g, norm %.9g", what, i,
                    (double)got[i], (double)expected[i], (double)norm[i]);
}

/* Error of rounding x[k] to its block's step amax/127: uniform, step/sqrt(12) rms. */
static double rounding(const float *x, uint64_t k, uint64_t n)
{
    const uint64_t from = k / INT8_BLOCK * INT8_BLOCK;
    double amax = 0;

    for (uint64_t i = from; i < n && i < from + INT8_BLOCK; i++)
        amax = MAX(amax, fabs((double)x[i]));
    return amax / 127 / sqrt(12);
}

/* (owned) per output: root of the sum of squares of its terms x w, or, with @int8, of the
 * terms' rounding errors. */
static float *norms(Rig *rig, bool int8)
{
    const davit_weight *w = &rig->weights[0];
    const davit_ref_layout *layout = davit_ref_layout_find(w->layout);
    float *norm = g_new(float, rig_count(rig, 0));
    g_autofree float *row = g_new(float, w->n_cols);
    g_autofree double *size = g_new(double, w->n_cols);

    for (uint64_t t = 0; t < rig->call.out[0].n_rows; t++) {
        const float *x = (float *)rig->call.in[0].data + t * w->n_cols;
        for (uint64_t k = 0; k < w->n_cols; k++)
            size[k] = int8 ? rounding(x, k, w->n_cols) : (double)x[k];
        for (uint64_t n = 0; n < w->n_rows; n++) {
            double sum = 1e-12;
            davit_ref_weight_decode(w, layout, 0, n, row);
            for (uint64_t k = 0; k < w->n_cols; k++)
                sum += size[k] * size[k] * (double)row[k] * (double)row[k];
            norm[t * w->n_rows + n] = (float)sqrt(sum) + (int8 ? 1e-5f : 1e-3f);
        }
    }
    return norm;
}

static void check_invariance(Rig *rig, const davit_kernel_entry *entry, const float *before,
                             const float *all)
{
    const uint64_t n = rig_count(rig, 0), T = rig->call.out[0].n_rows;
    const uint64_t width = rig->call.out[0].width, t = rig_between(rig, 0, T - 1);
    const davit_call saved = rig->call;
    const davit_batch batch = rig->batch;
    float *row = rig_memory(rig, width * sizeof *row, 0);

    memcpy(rig->call.out[0].data, before, n * sizeof *before);
    rig_run(rig, entry, (RigSplit){1, true, 3}, 1);
    rig_same(entry->name, rig->call.out[0].data, all, n);

    memcpy(row, before + t * width, width * sizeof *row);
    rig->call.in[0].data = (float *)saved.in[0].data + t * saved.in[0].width;
    rig->call.out[0].data = row;
    rig->call.in[0].n_rows = rig->call.out[0].n_rows = 1;
    rig->batch.n_tokens = rig->batch.n_rows = 1;
    rig_run(rig, entry, (RigSplit){0}, 1);
    rig_same(entry->name, row, all + t * width, width);
    rig->call = saved;
    rig->batch = batch;
}

static void check_entry(Rig *rig, const davit_kernel_entry *entry, const float *before,
                        const float *expected, const float *norm_f32,
                        const float *norm_int8)
{
    const bool int8 = (entry->flags & DAVIT_ENTRY_INT8) != 0;
    const float *norm = int8 ? norm_int8 : norm_f32;
    const davit_weight stored = rig->weights[0];
    g_auto(GStrv) names = g_strsplit(entry->layouts, "|", -1);
    const double tol = int8 ? SIGMAS_INT8 : TOLERANCE;

    for (size_t i = 0; names[i]; i++) {
        const davit_pack *pack = pack_of(names[i]);
        const bool as_stored = strcmp(names[i], stored.layout) == 0;
        g_autofree float *all = NULL;

        if (!as_stored && !(pack && pack->from && takes(pack->from, stored.layout)))
            continue;
        if (!as_stored && !pack_weight(rig, pack))
            continue;
        if (!entry->check || entry->check(NULL, &rig->call, NULL) == DAVIT_OK) {
            memcpy(rig->call.out[0].data, before, rig_count(rig, 0) * sizeof(float));
            rig_run(rig, entry, (RigSplit){0}, 1);
            all = rig_save(rig, 0);
            compare(entry->name, rig, all, expected, before, norm, tol);
            check_invariance(rig, entry, before, all);
        }
        rig->weights[0] = stored;
    }
}

static void one_case(const davit_ref_layout *layout)
{
    davit_linear_attr attr = {.struct_size = DAVIT_END(davit_linear_attr, flags)};
    g_autoptr(Rig) rig = rig_new(DAVIT_OP_LINEAR, &attr);
    const uint64_t T = rig_between(rig, 1, 20), N = rig_between(rig, 1, 70);
    const uint64_t K = layout->block_elems * rig_between(rig, 1, layout->block_elems == 1 ? 300 : 5);
    g_autofree float *before = NULL, *expected = NULL, *norm = NULL, *norm_int8 = NULL;

    attr.out_scale = rig_between(rig, 0, 1) ? 0.0f : 0.5f;
    attr.flags = (uint32_t)rig_between(rig, 0, 1);
    rig_batch(rig, T, 0, 10);
    rig_in(rig, T, K, 1.0f);
    rig_matrix(rig, 0, layout->name, 1, N, K);
    if (rig_between(rig, 0, 1))
        rig_vector(rig, 1, N);
    rig_out(rig, T, N);
    for (uint64_t i = 0; i < T * N; i++)
        ((float *)rig->call.out[0].data)[i] = rig_normal(rig);
    before = rig_save(rig, 0);
    norm = norms(rig, false);
    norm_int8 = norms(rig, true);
    rig_run_reference(rig);
    expected = rig_save(rig, 0);
    for (size_t i = 0; iface->entries[i]; i++)
        if (strcmp(iface->entries[i]->op, DAVIT_OP_LINEAR) == 0 && rig_can_run(iface->entries[i]))
            check_entry(rig, iface->entries[i], before, expected, norm, norm_int8);
}

static void test_layout(const void *data)
{
    for (int round = 0; round < ROUNDS; round++)
        one_case(data);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    iface = rig_plugin("davit-kernels-cpu.so");
    for (uint64_t i = 0; davit_ref_layout_get(i); i++) {
        g_autofree char *path =
            g_strdup_printf("/kernels/linear/%s", davit_ref_layout_get(i)->name);
        g_test_add_data_func(path, davit_ref_layout_get(i), test_layout);
    }
    return g_test_run();
}
