/* SPDX-License-Identifier: Apache-2.0
 * AVX2 entries of linear/1 against the scalar definition: values, invariance, extremes,
 * packing. GTest prints the random seed.
 */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "kernels/linear_case.h"

#define INT8_AVX2   "linear int8 avx2"

/* The entries with 8-bit activations under test: "avx2", or the layer in DAVIT_TEST_LAYER. */
static const char *int8_stored, *int8_packed;
/* With float32 activations: avx2, or avx512 where a layer is named. */
static const char *f32_dense, *f32_blocks;

/* @name's entry, or NULL after the test was skipped because this processor lacks it. */
static const davit_kernel_entry *entry_or_skip(const char *name)
{
    const davit_kernel_entry *entry = linear_case_entry(name);

    g_assert_nonnull(entry);
    if ((entry->cpu & ~linear_case_features()) == 0)
        return entry;
    g_test_skip("this processor lacks a feature of the layer");
    return NULL;
}

static const davit_ref_layout *layout_of(gconstpointer name)
{
    const davit_ref_layout *layout = davit_ref_layout_find(name);

    g_assert_nonnull(layout);
    return layout;
}

static uint64_t rand_in(int lo, int hi)
{
    return (uint64_t)g_test_rand_int_range(lo, hi + 1);
}

static uint64_t random_cols(const davit_ref_layout *layout)
{
    return layout->block_elems == 1    ? rand_in(1, 300)
           : layout->block_elems == 32 ? 32 * rand_in(1, 40)
                                       : layout->block_elems * rand_in(1, rand_in(0, 9) ? 6 : 20);
}

/* Wide enough for one plane of activations now and then. */
static uint64_t random_rows(void)
{
    return rand_in(0, 3) ? rand_in(1, 45) : rand_in(200, 400);
}

/* Odd sizes, padding, cuts, bias, scale and ADD by chance. */
static LinearCase *random_case(const davit_ref_layout *layout)
{
    LinearCase *c =
        linear_case_new(layout, random_rows(), random_cols(layout), rand_in(1, 9),
                        rand_in(0, 1) * rand_in(0, 7), CASE_RANDOM);

    if (c->n_rows > 4 && rand_in(0, 1)) {
        const uint64_t a = rand_in(1, (int)c->n_rows / 2), b = c->n_rows - 1;

        linear_case_cut(c, (const uint64_t[]){a, b}, a < b ? 2 : 1);
    }
    if (rand_in(0, 1)) {
        c->bias = g_new(float, c->n_rows);
        for (uint64_t n = 0; n < c->n_rows; n++)
            c->bias[n] = (float)g_test_rand_double_range(-1, 1);
    }
    c->attr.out_scale = rand_in(0, 1) ? 0.0f : 0.75f;
    c->attr.flags = rand_in(0, 1) ? DAVIT_LINEAR_ADD : 0;
    return c;
}

/* ---- definition ---- */

/* 8 bits per block of 32, as values added to @out. */
static void round_plane(const float *x, uint64_t n, double *out)
{
    for (uint64_t b = 0; b < n; b += 32) {
        float big = 0.0f;

        for (int i = 0; i < 32; i++)
            big = fmaxf(big, fabsf(x[b + i]));
        for (int i = 0; i < 32; i++) {
            const float inv = big > 0.0f ? 127.0f / big : 0.0f;

            out[b + i] += (double)(big / 127.0f) * (double)rintf(x[b + i] * inv);
        }
    }
}

static int is_coarse(const char *name)
{
    return strstr("iq1_s/1|iq1_m/1|iq2_xxs/1|iq2_xs/1|iq2_s/1|tq1_0/1|q1_0/1", name) != NULL;
}

/* Matrices that widen a value up to eight times, and layouts of less than three bits, take one plane
 * of activations, others a second one for what the first leaves over. */
static void round_to_int8(const LinearCase *c, const float *x, double *out)
{
    const uint64_t N = c->n_rows, K = c->n_cols;
    g_autofree float *rest = g_new(float, K);

    memset(out, 0, K * sizeof *out);
    round_plane(x, K, out);
    if ((N > K && N / 8 < K) || is_coarse(c->layout->name))
        return;
    for (uint64_t k = 0; k < K; k++)
        rest[k] = x[k] - (float)out[k];
    round_plane(rest, K, out);
}

/* Size of the terms that a row sums up, so that cancellation is no excuse and no fault.
 */
static double term_size(const davit_ref_layout *layout, const uint8_t *row,
                        const double *x, uint64_t n_cols, const float *values)
{
    double sum = 0.0;
    uint8_t codes[DAVIT_REF_MAX_BLOCK];
    float scales[16], zeros[16];

    for (uint64_t k = 0; k < n_cols; k++) {
        const uint64_t i = k % layout->block_elems;

        if (!layout->codes) {
            sum += fabs((double)values[k] * x[k]);
            continue;
        }
        if (i == 0)
            layout->codes(row + k / layout->block_elems * layout->block_bytes, 1, codes,
                          scales, zeros);
        const double s = (double)scales[i / layout->group],
                     z = (double)zeros[i / layout->group];
        sum +=
            (fabs(s * (double)codes[i]) + fabs(layout->has_min ? z : s * z)) * fabs(x[k]);
    }
    return sum;
}

static void compare(const LinearCase *c, const float *before, const float *y, int int8,
                    double tolerance)
{
    g_autofree float *w = g_new(float, c->n_cols);
    g_autofree double *x = g_new(double, c->n_cols);

    for (uint64_t t = 0; t < c->n_tokens; t++) {
        for (uint64_t k = 0; k < c->n_cols; k++)
            x[k] = (double)c->x[t * c->n_cols + k];
        if (int8)
            round_to_int8(c, c->x + t * c->n_cols, x);
        for (uint64_t n = 0; n < c->n_rows; n++) {
            const uint8_t *row = c->rows + n * c->row_bytes;
            const uint64_t i = t * c->n_rows + n;
            const double scale =
                c->attr.out_scale == 0.0f ? 1.0 : (double)c->attr.out_scale;
            double want = 0.0, size;

            c->layout->decode(row, c->n_cols / c->layout->block_elems, w);
            for (uint64_t k = 0; k < c->n_cols; k++)
                want += (double)w[k] * x[k];
            size = scale * term_size(c->layout, row, x, c->n_cols, w) + 1.0;
            want = want * scale + (c->bias ? (double)c->bias[n] : 0.0);
            want += c->attr.flags & DAVIT_LINEAR_ADD ? (double)before[i] : 0.0;
            if (fabs((double)y[i] - want) > tolerance * size)
                g_error("%s N=%" G_GUINT64_FORMAT " K=%" G_GUINT64_FORMAT
                        " t=%" G_GUINT64_FORMAT " n=%" G_GUINT64_FORMAT
                        ": %g, want %g, size %g",
                        c->layout->name, c->n_rows, c->n_cols, t, n, (double)y[i], want,
                        size);
        }
    }
}

static CaseRun whole(const LinearCase *c, int packed)
{
    return (CaseRun){.use_packed = packed, .n_tokens = c->n_tokens};
}

static float *new_y(const LinearCase *c)
{
    float *y = g_new(float, c->n_tokens * c->n_rows);

    for (uint64_t i = 0; i < c->n_tokens * c->n_rows; i++)
        y[i] = 0.5f;
    return y;
}

/* ---- tests ---- */

static void int8_differs_from_definition(gconstpointer name)
{
    const davit_kernel_entry *entry = entry_or_skip(int8_stored);

    for (int i = 0; entry && i < 40; i++) {
        LinearCase *c = random_case(layout_of(name));
        g_autofree float *before = new_y(c), *y = new_y(c);
        const CaseRun run = whole(c, 0);

        linear_case_run(c, entry, &run, y);
        compare(c, before, y, 1, 4e-6);
        linear_case_free(c);
    }
}

static void f32_differs_from_definition(gconstpointer name)
{
    const int blocks = layout_of(name)->block_elems > 1;
    const davit_kernel_entry *entry = entry_or_skip(blocks ? f32_blocks : f32_dense);

    for (int i = 0; entry && i < 40; i++) {
        LinearCase *c = random_case(layout_of(name));
        g_autofree float *before = new_y(c), *y = new_y(c);
        const CaseRun run = whole(c, 0);

        linear_case_run(c, entry, &run, y);
        compare(c, before, y, 0, 4e-6);
        linear_case_free(c);
    }
}

/* One token at a time, tasks one by one from the end, must give the same bits. */
static void sum_depends_on_split(const LinearCase *c, const davit_kernel_entry *entry,
                                 int packed, const float *want)
{
    g_autofree float *y = new_y(c);

    for (uint64_t t = 0, n; t < c->n_tokens; t += n) {
        const uint64_t left = c->n_tokens - t, some = rand_in(1, 4);
        CaseRun run = {.use_packed = packed, .first_token = t, .backwards = 1};

        n = run.n_tokens = MIN(left, some);
        run.chunk = rand_in(1, 3);
        linear_case_run(c, entry, &run, y + t * c->n_rows);
    }
    g_assert_true(memcmp(y, want, c->n_tokens * c->n_rows * sizeof *y) == 0);
}

static void int8_bits_depend_on_split_or_packing(gconstpointer name)
{
    const davit_kernel_entry *stored = entry_or_skip(int8_stored);
    const davit_kernel_entry *packed = linear_case_entry(int8_packed);
    const davit_pack *pack = linear_case_pack(name);

    g_assert_nonnull(packed);
    for (int i = 0; stored && i < 25; i++) {
        LinearCase *c = random_case(layout_of(name));
        g_autofree float *y = new_y(c);
        const CaseRun run = whole(c, 0);

        linear_case_run(c, stored, &run, y);
        sum_depends_on_split(c, linear_case_entry(INT8_AVX2), 0, y);
        sum_depends_on_split(c, stored, 0, y);
        if (pack) {
            linear_case_pack_all(c, pack);
            sum_depends_on_split(c, packed, 1, y);
        }
        linear_case_free(c);
    }
}

static void f32_bits_depend_on_split(gconstpointer name)
{
    const int blocks = layout_of(name)->block_elems > 1;
    const davit_kernel_entry *entry = entry_or_skip(blocks ? f32_blocks : f32_dense);

    for (int i = 0; entry && i < 25; i++) {
        LinearCase *c = random_case(layout_of(name));
        g_autofree float *y = new_y(c);
        const CaseRun run = whole(c, 0);

        linear_case_run(c, entry, &run, y);
        sum_depends_on_split(c, entry, 0, y);
        linear_case_free(c);
    }
}

/* Largest and smallest codes with every activation at +-127: int16 sums must not
 * saturate. */
static void int16_saturates(gconstpointer name)
{
    const davit_kernel_entry *entry = entry_or_skip(int8_stored);
    const davit_ref_layout *layout = layout_of(name);

    for (uint64_t blocks = 1; entry && blocks <= 3; blocks++) {
        LinearCase *c =
            linear_case_new(layout, 9, layout->block_elems * blocks, 6, 0, CASE_EXTREME);
        g_autofree float *before = new_y(c), *y = new_y(c);
        const CaseRun run = whole(c, 0);

        linear_case_run(c, entry, &run, y);
        compare(c, before, y, 1, 1e-6);
        linear_case_free(c);
    }
}

/* A unit vector picks one weight: the decoder inside the f32 entry, bit for bit. */
static void decoder_differs_in_a_bit(gconstpointer name)
{
    const davit_kernel_entry *entry = entry_or_skip(f32_blocks);
    const davit_ref_layout *layout = layout_of(name);

    for (int i = 0; entry && i < 2; i++) {
        const uint64_t n_cols = 512;
        LinearCase *c = linear_case_new(layout, 8, n_cols, n_cols, 0, CASE_RANDOM);
        g_autofree float *y = new_y(c), *w = g_new(float, n_cols);
        const CaseRun run = whole(c, 0);

        for (uint64_t j = 0; j < n_cols * n_cols; j++)
            c->x[j] = j / n_cols == j % n_cols ? 1.0f : 0.0f;
        linear_case_run(c, entry, &run, y);
        for (uint64_t n = 0; n < c->n_rows; n++) {
            layout->decode(c->rows + n * c->row_bytes, n_cols / layout->block_elems, w);
            for (uint64_t k = 0; k < n_cols; k++)
                g_assert_cmpfloat(y[k * c->n_rows + n], ==, w[k]);
        }
        linear_case_free(c);
    }
}

/* A NaN or infinite input must show in its own token's rows and in no other. */
static void non_finite_input_is_lost_or_spreads(gconstpointer name)
{
    const davit_kernel_entry *entry = entry_or_skip(int8_stored);
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};

    for (int i = 0; entry && i < 4; i++) {
        LinearCase *c = linear_case_new(layout_of(name), 5, 512, 3, 0, CASE_RANDOM);
        g_autofree float *y = new_y(c);
        const CaseRun run = whole(c, 0);

        c->x[c->n_cols + rand_in(0, (int)c->n_cols - 1)] = bad[i];
        linear_case_run(c, entry, &run, y);
        for (uint64_t j = 0; j < c->n_tokens * c->n_rows; j++)
            g_assert_cmpint(isfinite(y[j]) != 0, ==, j / c->n_rows != 1);
        linear_case_free(c);
    }
}

/* Packed bytes are a permutation of the stored ones with nothing added, the same every
 * time. */
static void packing_changes_size_or_bits(gconstpointer name)
{
    const davit_ref_layout *layout = layout_of(name);
    const davit_pack *pack = linear_case_pack(name);
    const uint64_t row_bytes = davit_ref_row_bytes(layout, 512);
    LinearCase *c;
    uint64_t ones[2] = {0};
    g_autofree uint8_t *again = NULL;

    if (!entry_or_skip(int8_packed))
        return;
    g_assert_nonnull(pack);
    c = linear_case_new(layout, 16, 512, 1, 5, CASE_RANDOM);
    g_assert_cmpuint(pack->lossy, ==, 0);
    g_assert_cmpuint(pack->block_bytes(NULL, 512, NULL), ==, row_bytes * pack->row_block);
    if (layout->block_elems > 32)
        g_assert_cmpuint(pack->block_bytes(NULL, 480, NULL), ==, 0);
    linear_case_pack_all(c, pack);
    again = g_memdup2(c->packed, 16 * row_bytes);
    linear_case_pack_all(c, pack);
    g_assert_true(memcmp(again, c->packed, 16 * row_bytes) == 0);
    for (uint64_t i = 0; i < 16 * row_bytes; i++) {
        ones[0] += (uint64_t)__builtin_popcount(again[i]);
        ones[1] += (uint64_t)__builtin_popcount(
            c->rows[i / row_bytes * c->row_bytes + i % row_bytes]);
    }
    g_assert_cmpuint(ones[0], ==, ones[1]);
    linear_case_free(c);
}

static void add(const char *name, const char *layout, void (*test)(gconstpointer))
{
    g_autofree char *stem = g_strndup(layout, strlen(layout) - 2);
    g_autofree char *path = g_strdup_printf("/linear/%s/%s", name, stem);

    g_test_add_data_func(path, layout, test);
}

int main(int argc, char **argv)
{
    const char *layer = g_getenv("DAVIT_TEST_LAYER");
    g_autofree char *stored = g_strdup_printf("linear int8 %s", layer ? layer : "avx2");
    g_autofree char *packed = g_strdup_printf("%s packed", stored);
    const davit_ref_layout *layout;

    g_test_init(&argc, &argv, NULL);
    int8_stored = stored;
    int8_packed = packed;
    f32_dense = layer ? "linear f32 avx512 dense" : "linear f32 avx2 dense";
    f32_blocks = layer ? "linear f32 avx512 blocks" : "linear f32 avx2 blocks";
    for (uint64_t i = 0; (layout = davit_ref_layout_get(i)); i++) {
        add("f32_differs_from_definition", layout->name, f32_differs_from_definition);
        add("f32_bits_depend_on_split", layout->name, f32_bits_depend_on_split);
        if (layout->block_elems == 1)
            continue;
        add("decoder_differs_in_a_bit", layout->name, decoder_differs_in_a_bit);
        if (layer && strstr(DAVIT_REF_IQ, layout->name)) /* the same code in every layer */
            continue;
        add("int8_differs_from_definition", layout->name, int8_differs_from_definition);
        add("int8_bits_depend_on_split_or_packing", layout->name,
            int8_bits_depend_on_split_or_packing);
        add("int16_saturates", layout->name, int16_saturates);
        add("non_finite_input_is_lost_or_spreads", layout->name,
            non_finite_input_is_lost_or_spreads);
        if (!strstr(DAVIT_REF_IQ, layout->name)) /* those are multiplied as they lie */
            add("packing_changes_size_or_bits", layout->name, packing_changes_size_or_bits);
    }
    return g_test_run();
}
