/* SPDX-License-Identifier: Apache-2.0
 * Ops on rows: every entry against the reference on random odd sizes, in place and not, and
 * to the bit for any split of rows and of tasks. */
#include <math.h>
#include <string.h>

#include "kernels/rig.h"

/* Relative to the largest value of a row. */
#define TOLERANCE 2e-6
/* Activations far below zero are 1 - (1 - tiny) times an input of up to 40. */
#define FLOOR 2e-6
#define ROUNDS 40

/* Fill a rig for one random case of its op. */
typedef void (*CaseFn)(Rig *rig, void *attr);

static const davit_kernels_iface *iface;

/* Row @t alone, as a call of one token, must give the bits that it had among others. */
static void rows_alone_are_equal(Rig *rig, const davit_kernel_entry *entry, const float *all,
                                 const float *before)
{
    const uint64_t rows = rig->call.out[0].n_rows, width = rig->call.out[0].width;
    const uint64_t t = rig_between(rig, 0, rows - 1);
    const davit_call saved = rig->call;
    const davit_batch batch = rig->batch;
    float *row = rig_memory(rig, width * sizeof *row, 0);

    rig->call.out[0].data = row;
    rig->call.out[0].n_rows = 1;
    memcpy(row, before + t * width, width * sizeof *row); /* in place: the input */
    for (uint32_t i = 0; i < rig->call.n_in; i++) {
        davit_value *v = &rig->call.in[i];
        const bool in_place = v->data == saved.out[0].data;
        v->data = in_place ? (void *)row : (float *)v->data + t * v->width;
        v->n_rows = 1;
    }
    rig->batch.n_tokens = rig->batch.n_rows = 1;
    rig->batch.token += t;
    rig->batch.position += t;
    rig_run(rig, entry, (RigSplit){0}, 64);
    rig_same(entry->name, row, all + t * width, width);
    rig->call = saved;
    rig->batch = batch;
}

static void check_entry(Rig *rig, const davit_kernel_entry *entry, const float *before,
                        const float *expected)
{
    const uint64_t n = rig_count(rig, 0), bytes = n * sizeof(float);
    const RigSplit splits[] = {{1, true, 3}, {3, false, 2}};
    g_autofree float *all = NULL;

    if (entry->check && entry->check(NULL, &rig->call, NULL))
        return; /* a layer may lack a kind; the scalar entry never does */
    memcpy(rig->call.out[0].data, before, bytes);
    rig_run(rig, entry, (RigSplit){0}, 64);
    all = rig_save(rig, 0);
    rig_compare(entry->name, all, expected, rig->call.out[0].n_rows, rig->call.out[0].width,
                TOLERANCE, FLOOR);
    for (size_t i = 0; i < G_N_ELEMENTS(splits); i++) {
        memcpy(rig->call.out[0].data, before, bytes);
        rig_run(rig, entry, splits[i], 64);
        rig_same(entry->name, rig->call.out[0].data, all, n);
    }
    if (strcmp(rig->call.op, DAVIT_OP_GATHER_ROWS) != 0)
        rows_alone_are_equal(rig, entry, all, before);
}

static void check_op(const char *op, CaseFn fill)
{
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t attr[16] = {0};
        g_autoptr(Rig) rig = rig_new(op, attr);
        g_autofree float *before = NULL, *expected = NULL;

        fill(rig, attr);
        before = rig_save(rig, 0);
        rig_run_reference(rig);
        expected = rig_save(rig, 0);
        for (size_t i = 0; iface->entries[i]; i++)
            if (strcmp(iface->entries[i]->op, op) == 0 && rig_can_run(iface->entries[i]) &&
                rig_takes(rig, iface->entries[i]))
                check_entry(rig, iface->entries[i], before, expected);
    }
}

/* ---- cases ---- */

/* x and y of one width; y new, or x itself. */
static void x_to_y(Rig *rig, uint64_t rows, uint64_t width, float scale)
{
    rig_batch(rig, rows, 5, 100);
    rig_in(rig, rows, width, scale);
    if (rig_between(rig, 0, 1))
        rig_in_place(rig, 0);
    else
        rig_out(rig, rows, width);
}

static void norm_case(Rig *rig, davit_norm_attr *a, uint32_t n_vectors)
{
    const uint64_t groups = rig_between(rig, 1, 3), D = rig_between(rig, 1, 300);

    a->struct_size = DAVIT_END(davit_norm_attr, reserved);
    a->n_groups = groups == 1 ? rig_between(rig, 0, 1) : groups;
    a->eps = 1e-6f;
    x_to_y(rig, rig_between(rig, 1, 7), groups * D, 3.0f);
    for (uint32_t i = 0; i < n_vectors; i++)
        if (rig_between(rig, 0, 2))
            rig_vector(rig, i, rig_between(rig, 0, 1) ? D : groups * D);
}

static void fill_rmsnorm(Rig *rig, void *attr)
{
    norm_case(rig, attr, 1);
}

static void fill_layernorm(Rig *rig, void *attr)
{
    norm_case(rig, attr, 2);
}

static void scale_case(Rig *rig, davit_scale_attr *a)
{
    a->struct_size = DAVIT_END(davit_scale_attr, reserved);
    a->scale = rig_between(rig, 0, 1) ? 0.0f : 1.5f + 0.2f * rig_normal(rig);
}

static void fill_scale(Rig *rig, void *attr)
{
    scale_case(rig, attr);
    x_to_y(rig, rig_between(rig, 1, 7), rig_between(rig, 1, 300), 5.0f);
}

static void fill_add(Rig *rig, void *attr)
{
    const uint64_t rows = rig_between(rig, 1, 7), width = rig_between(rig, 1, 300);

    scale_case(rig, attr);
    rig_batch(rig, rows, 0, 100);
    rig_in(rig, rows, width, 1.0f);
    rig_in(rig, rows, width, 1.0f);
    rig_in_place(rig, 1);
}

static void fill_act(Rig *rig, void *attr)
{
    davit_act_attr *a = attr;

    a->struct_size = DAVIT_END(davit_act_attr, reserved);
    a->kind = (uint32_t)rig_between(rig, 0, DAVIT_ACT_SOFTPLUS);
    x_to_y(rig, rig_between(rig, 1, 7), rig_between(rig, 1, 300), 8.0f);
}

static void fill_glu(Rig *rig, void *attr)
{
    const uint64_t rows = rig_between(rig, 1, 7), width = rig_between(rig, 1, 300);
    davit_act_attr *a = attr;

    a->struct_size = DAVIT_END(davit_act_attr, reserved);
    a->kind = (uint32_t)rig_between(rig, 0, DAVIT_ACT_OAI_CLAMP);
    a->limit = 7.0f;
    a->alpha = 1.702f;
    x_to_y(rig, rows, width, 5.0f);
    rig_in(rig, rows, width, 5.0f);
}

static void fill_rope_angles(Rig *rig, void *attr)
{
    davit_rope_angles_attr *a = attr;
    const uint64_t rows = rig_between(rig, 1, 7), half = rig_between(rig, 2, 70);
    float *table;

    a->struct_size = DAVIT_END(davit_rope_angles_attr, n_variants);
    a->theta = 10000.0;
    a->factor = 4.0;
    a->max_positions = (double)rig_between(rig, 2, 8000);
    a->rot_dim = 2 * half;
    a->attention[0] = 1.0f;
    a->attention[1] = 1.19f;
    a->select = (uint32_t)rig_between(rig, 0, DAVIT_ROPE_NTK);
    a->n_variants = a->select == DAVIT_ROPE_LONG ? 2 : 1;
    rig_batch(rig, rows, rig_between(rig, 0, 6000), 100);
    rig_out(rig, rows, 2 * half);
    table = rig_vector(rig, 0, a->n_variants * half);
    for (uint64_t j = 0; j < a->n_variants * half; j++)
        table[j] = (float)pow(10000.0, -2.0 * (double)j / (double)(2 * half));
    rig->weights[0].n_rows = a->n_variants;
    rig->weights[0].n_cols = half;
    if (rig_between(rig, 0, 1))
        rig_vector(rig, 1, half);
}

static void fill_rope(Rig *rig, void *attr)
{
    davit_rope_attr *a = attr;
    const uint64_t rows = rig_between(rig, 1, 7);

    a->struct_size = DAVIT_END(davit_rope_attr, reserved);
    a->n_heads = rig_between(rig, 1, 5);
    a->rot_off = rig_between(rig, 0, 1) ? 0 : rig_between(rig, 0, 9);
    a->rot_dim = 2 * rig_between(rig, 1, 70);
    a->head_dim = a->rot_off + a->rot_dim + rig_between(rig, 0, 1) * 13;
    a->pairing = (uint32_t)rig_between(rig, 0, 1);
    rig_batch(rig, rows, 0, 100);
    rig_in(rig, rows, a->n_heads * a->head_dim, 1.0f);
    rig_in(rig, rows, a->rot_dim, 1.0f);
    rig_in_place(rig, 0);
}

static void fill_embed(Rig *rig, void *attr)
{
    davit_embed_attr *a = attr;
    const davit_ref_layout *layout = davit_ref_layout_get(rig_between(rig, 0, 22));
    const uint64_t rows = rig_between(rig, 1, 7);
    /* one column would make it a vector, whose layout nobody asks for */
    const uint64_t K = layout->block_elems * rig_between(rig, 1, 3) + (layout->block_elems == 1);

    a->struct_size = DAVIT_END(davit_embed_attr, flags);
    a->row_offset = (int64_t)rig_between(rig, 0, 2);
    if (rig_between(rig, 0, 1)) { /* ids before and past the rows of this rank */
        a->flags = DAVIT_EMBED_PART;
        a->row_offset = (int64_t)rig_between(rig, 0, 30) - 15;
    }
    a->scale = rig_between(rig, 0, 1) ? 0.0f : 16.0f;
    rig_batch(rig, rows, 0, 30);
    rig_out(rig, rows, K);
    rig_matrix(rig, 0, layout->name, 1, 32, K);
}

static void fill_gather(Rig *rig, void *attr)
{
    const uint64_t rows = rig_between(rig, 1, 7), width = rig_between(rig, 1, 300);
    (void)attr;

    rig_batch(rig, rows, 0, 30);
    rig_in(rig, rows, width, 1.0f);
    rig_out(rig, rows, width);
}

static void test_op(const void *data)
{
    static const struct {
        const char *op;
        CaseFn fill;
    } cases[] = {
        {DAVIT_OP_EMBED, fill_embed},       {DAVIT_OP_RMSNORM, fill_rmsnorm},
        {DAVIT_OP_LAYERNORM, fill_layernorm}, {DAVIT_OP_ADD, fill_add},
        {DAVIT_OP_SCALE, fill_scale},       {DAVIT_OP_SOFTCAP, fill_scale},
        {DAVIT_OP_ACT, fill_act},           {DAVIT_OP_GLU, fill_glu},
        {DAVIT_OP_ROPE_ANGLES, fill_rope_angles}, {DAVIT_OP_ROPE, fill_rope},
        {DAVIT_OP_GATHER_ROWS, fill_gather},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        if (strcmp(cases[i].op, data) == 0)
            check_op(cases[i].op, cases[i].fill);
}

int main(int argc, char **argv)
{
    static const char *const ops[] = {
        DAVIT_OP_EMBED, DAVIT_OP_RMSNORM, DAVIT_OP_LAYERNORM,   DAVIT_OP_ADD,
        DAVIT_OP_SCALE, DAVIT_OP_SOFTCAP, DAVIT_OP_ACT,         DAVIT_OP_GLU,
        DAVIT_OP_ROPE,  DAVIT_OP_ROPE_ANGLES, DAVIT_OP_GATHER_ROWS,
    };

    g_test_init(&argc, &argv, NULL);
    iface = rig_plugin("davit-kernels-cpu.so");
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++) {
        g_autofree char *path = g_strdup_printf("/kernels/%s", ops[i]);
        g_test_add_data_func(path, ops[i], test_op);
    }
    return g_test_run();
}
