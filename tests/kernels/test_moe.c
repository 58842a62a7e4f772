/* SPDX-License-Identifier: Apache-2.0
 * moe_route and moe_ffn: every entry against the reference, and to the bit for any split. */
#include <string.h>

#include "kernels/rig.h"

#define ROUNDS 12
#define TOLERANCE 4e-6
/* Two float32 products in a row with a square (relu2) between them, on terms that cancel. */
#define TOLERANCE_FFN 3e-5
/* Hidden values in two planes of 8 bits are right to 1/64516 of a block's largest; with one plane,
 * 1/254, this fails ten times over. A block's largest can be 30 times its typical value behind a product
 * of two activations, and terms cancel: a random seed missed by 3.2e-4. */
#define TOLERANCE_INT8 1e-3

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

static void check_ffn(Rig *rig, const davit_kernel_entry *entry, const float *expected)
{
    const uint64_t n = rig_count(rig, 0), T = rig->call.out[0].n_rows;
    const davit_call saved = rig->call;
    const bool int8 = entry->flags & DAVIT_ENTRY_INT8;
    g_autofree float *all = NULL;

    if (entry->check(NULL, &rig->call, NULL))
        return; /* a layer may lack an activation; the scalar entry never does */
    rig_run(rig, entry, (RigSplit){0}, 1);
    all = rig_save(rig, 0);
    rig_compare(entry->name, all, expected, T, rig->call.out[0].width,
                int8 ? TOLERANCE_INT8 : TOLERANCE_FFN, 0.0);
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

static void test_ffn(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        davit_moe_ffn_attr attr = {.struct_size = DAVIT_END(davit_moe_ffn_attr, flags)};
        g_autoptr(Rig) rig = rig_new(DAVIT_OP_MOE_FFN, &attr);
        const davit_ref_layout *layout = davit_ref_layout_get(rig_between(rig, 0, 12));
        const uint64_t unit = layout->block_elems == 1 ? 7 : layout->block_elems;
        const uint64_t T = rig_between(rig, 1, 30), K = unit * rig_between(rig, 1, 2);
        const uint64_t I = unit * rig_between(rig, 1, 2), N = rig_between(rig, 16, 40);
        g_autofree float *expected = NULL;
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
        rig_matrix(rig, 0, layout->name, E, I, K);
        rig_matrix(rig, 1, layout->name, E, I, K);
        rig_matrix(rig, 2, layout->name, E, N, I);
        rig_out(rig, T, N);
        rig_run_reference(rig);
        expected = rig_save(rig, 0);
        for (size_t i = 0; iface->entries[i]; i++)
            if (strcmp(iface->entries[i]->op, DAVIT_OP_MOE_FFN) == 0 &&
                rig_can_run(iface->entries[i]) && rig_takes(rig, iface->entries[i]))
                check_ffn(rig, iface->entries[i], expected);
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
