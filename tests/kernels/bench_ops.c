/* SPDX-License-Identifier: Apache-2.0
 * Time of every entry of attn, norms, activations, rope, experts and (asked for) linear on every stored
 * layout, on the shapes of real models, one thread, processor time (other work on the machine does not count), shortest of 9 rounds.
 *   bench_ops [attn|rows|moe|linear [LAYOUTS]]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/rig.h"

#define ROUNDS 9

static const davit_kernels_iface *iface;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_once(Rig *rig, const davit_kernel_entry *entry, uint64_t ctx, int repeat)
{
    davit_work work = {.struct_size = DAVIT_END(davit_work, n_tasks), .n_phases = 1};
    double start;

    if (entry->size)
        entry->size(NULL, &rig->call, rig->batch.n_tokens, rig->batch.n_rows, ctx, &work);
    else
        work.n_tasks[0] = rig->call.out[0].n_rows;
    rig->call.worker_bytes = work.worker_bytes;
    rig->call.scratch = rig_memory(rig, work.scratch_bytes, 0);
    rig->call.worker_scratch = rig_memory(rig, work.worker_bytes, 0);
    start = now_s();
    for (int i = 0; i < repeat; i++)
        for (uint32_t phase = 0; phase < work.n_phases; phase++)
            entry->run(&rig->call, phase, 0, work.n_tasks[phase], 0, NULL);
    return (now_s() - start) / repeat;
}

/* @work: operations (or bytes) of one call, in units that @unit names per 1e9. */
static void report(Rig *rig, const char *label, uint64_t ctx, double work, const char *unit)
{
    for (size_t i = 0; iface->entries[i]; i++) {
        const davit_kernel_entry *e = iface->entries[i];
        double best = 1e9, first;

        if (strcmp(e->op, rig->call.op) != 0 || !rig_can_run(e) || !rig_takes(rig, e) ||
            (e->check && e->check(NULL, &rig->call, NULL)))
            continue;
        first = run_once(rig, e, ctx, 1);
        for (int r = 0; r < ROUNDS && (first < 0.2 || r < 1); r++)
            best = MIN(best, run_once(rig, e, ctx, (int)MAX(1.0, 0.01 / (first + 1e-9))));
        printf("%-22s %-36s %12.2f us %8.2f %s\n", e->name, label, best * 1e6,
               work / best * 1e-9, unit);
    }
}

/* ---- attention ---- */

typedef struct AttnShape {
    const char *label;
    uint64_t T, ctx, nh, nkv, d;
    const char *dtype;
} AttnShape;

static void bench_attn(const AttnShape *s)
{
    davit_attn_attr attr = {.struct_size = DAVIT_END(davit_attn_attr, softcap),
                            .n_heads = s->nh, .n_kv_heads = s->nkv, .k_dim = s->d,
                            .v_dim = s->d, .scale = 0.125f};
    g_autoptr(Rig) rig = rig_new(DAVIT_OP_ATTN, &attr);
    const uint64_t bt = 16, n_blocks = (s->ctx + bt - 1) / bt;
    int32_t *table = rig_memory(rig, n_blocks * sizeof *table, 0), *ctx_len;
    double keys = 0.0;

    rig_batch(rig, s->T, 0, 10);
    for (uint64_t b = 0; b < n_blocks; b++)
        table[b] = (int32_t)b;
    ctx_len = rig_memory(rig, sizeof *ctx_len, 0);
    *ctx_len = (int32_t)s->ctx;
    rig->batch.ctx_len = ctx_len;
    rig->batch.block_table = table;
    rig->batch.block_tokens = bt;
    rig->batch.max_blocks = n_blocks;
    rig->spec = (davit_state_spec){.struct_size = DAVIT_END(davit_state_spec, dtype),
                                   .kind = DAVIT_STATE_KV, .n_heads = s->nkv,
                                   .k_dim = s->d, .v_dim = s->d, .dtype = s->dtype};
    rig->state.spec = &rig->spec;
    rig->state.block_bytes = iface->state_size(NULL, &rig->spec, bt, NULL);
    rig->state.base = rig_memory(rig, n_blocks * rig->state.block_bytes, 0);
    memset(rig->state.base, 0x11, n_blocks * rig->state.block_bytes);
    rig->call.state = &rig->state;
    rig_in(rig, s->T, s->nh * s->d, 1.0f);
    rig_out(rig, s->T, s->nh * s->d);
    for (uint64_t t = 0; t < s->T; t++)
        keys += (double)(s->ctx - s->T + t + 1);
    report(rig, s->label, s->ctx, 4.0 * keys * (double)(s->nh * s->d), "Gop/s");
}

static void bench_all_attn(void)
{
    static const AttnShape shapes[] = {
        {"SmolLM2 prefill 512 f16", 512, 512, 9, 3, 64, "f16/1"},
        {"SmolLM2 prefill 512 f32", 512, 512, 9, 3, 64, "f32/1"},
        {"SmolLM2 decode at 512 f16", 1, 512, 9, 3, 64, "f16/1"},
        {"SmolLM2 decode at 4096 f16", 1, 4096, 9, 3, 64, "f16/1"},
        {"Gemma-270M prefill 512 f16", 512, 512, 4, 1, 256, "f16/1"},
        {"Gemma-270M decode at 512 f16", 1, 512, 4, 1, 256, "f16/1"},
        {"Llama-8B prefill 512 f16", 512, 512, 32, 8, 128, "f16/1"},
        {"Llama-8B decode at 4096 f16", 1, 4096, 32, 8, 128, "f16/1"},
        {"Llama-8B decode at 256 f16", 1, 256, 32, 8, 128, "f16/1"},
        {"Llama-8B decode at 256 f32", 1, 256, 32, 8, 128, "f32/1"},
        {"Llama-8B decode at 4096 f32", 1, 4096, 32, 8, 128, "f32/1"},
        {"8 beside one another at 512 f16", 8, 512, 32, 8, 128, "f16/1"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++)
        bench_attn(&shapes[i]);
}

/* ---- rows ---- */

static void bench_rows(const char *op, uint64_t T, uint64_t width)
{
    uint64_t room[16] = {0};
    g_autofree char *label = g_strdup_printf("[%d, %d]", (int)T, (int)width);
    g_autoptr(Rig) rig = rig_new(op, room);

    rig_batch(rig, T, 0, 10);
    rig_in(rig, T, width, 1.0f);
    if (strcmp(op, DAVIT_OP_GLU) == 0 || strcmp(op, DAVIT_OP_ACT) == 0) {
        ((davit_act_attr *)(void *)room)->kind = DAVIT_ACT_SILU;
    } else if (strcmp(op, DAVIT_OP_ROPE) == 0) {
        *(davit_rope_attr *)(void *)room = (davit_rope_attr){
            .n_heads = width / 64, .head_dim = 64, .rot_dim = 64};
    } else {
        rig_vector(rig, 0, width);
    }
    if (strcmp(op, DAVIT_OP_GLU) == 0)
        rig_in(rig, T, width, 1.0f);
    if (strcmp(op, DAVIT_OP_ROPE) == 0)
        rig_in(rig, T, 64, 1.0f);
    rig_in_place(rig, 0);
    report(rig, label, 64, (double)(T * width), "Gvalues/s");
}

/* ---- experts ---- */

/* 8 of 32 experts of Qwen3-30B-A3B's width. */
static void bench_moe(uint64_t T, const char *layout)
{
    davit_moe_ffn_attr attr = {.struct_size = DAVIT_END(davit_moe_ffn_attr, reserved),
                               .kind = DAVIT_ACT_SILU, .n_experts = 32, .top_k = 8};
    const uint64_t K = 2048, I = 768;
    g_autofree char *label = g_strdup_printf("%s, %d tokens", layout, (int)T);
    g_autoptr(Rig) rig = rig_new(DAVIT_OP_MOE_FFN, &attr);
    int32_t *ids;

    rig_batch(rig, T, 0, 10);
    rig_in(rig, T, K, 1.0f);
    ids = (int32_t *)(void *)rig_in(rig, T, attr.top_k, 1.0f);
    rig->call.in[1].dtype = "i32/1";
    for (uint64_t i = 0; i < T * attr.top_k; i++)
        ids[i] = (int32_t)((i / attr.top_k * 5 + i % attr.top_k) % attr.n_experts);
    rig_in(rig, T, attr.top_k, 1.0f);
    rig_matrix(rig, 0, layout, attr.n_experts, I, K);
    rig_matrix(rig, 1, layout, attr.n_experts, I, K);
    rig_matrix(rig, 2, layout, attr.n_experts, K, I);
    rig_out(rig, T, K);
    report(rig, label, 64, 6.0 * (double)(T * attr.top_k * K * I), "Gop/s");
}

/* ---- matrices ---- */

static void bench_linear(const davit_ref_layout *layout, uint64_t T)
{
    const davit_linear_attr attr = {.struct_size = DAVIT_END(davit_linear_attr, flags)};
    const uint64_t N = 2048, K = 2048;
    g_autofree char *label = g_strdup_printf("%s, %d tokens", layout->name, (int)T);
    g_autoptr(Rig) rig = rig_new(DAVIT_OP_LINEAR, &attr);

    rig_batch(rig, T, 0, 10);
    rig_in(rig, T, K, 1.0f);
    rig_matrix(rig, 0, layout->name, 1, N, K);
    rig_out(rig, T, N);
    report(rig, label, 64, (double)(N * davit_ref_row_bytes(layout, K)), "GB/s of the weight");
}

int main(int argc, char **argv)
{
    static const char *const ops[] = {DAVIT_OP_RMSNORM, DAVIT_OP_GLU, DAVIT_OP_ACT, DAVIT_OP_ROPE};

    g_test_init(&argc, &argv, NULL);
    iface = rig_plugin("davit-kernels-cpu.so");
    if (argc < 2 || strcmp(argv[1], "attn") == 0)
        bench_all_attn();
    for (size_t i = 0; i < G_N_ELEMENTS(ops) && (argc < 2 || strcmp(argv[1], "rows") == 0); i++) {
        bench_rows(ops[i], 1, 2048);
        bench_rows(ops[i], 512, 576);
    }
    for (size_t i = 0; i < 3 && (argc < 2 || strcmp(argv[1], "moe") == 0); i++) {
        static const char *const layouts[] = {"q4_k/1", "q8_0/1", "q4_0/1"};
        bench_moe(1, layouts[i]);
        bench_moe(64, layouts[i]);
    }
    for (uint64_t i = 0; argc > 1 && strcmp(argv[1], "linear") == 0; i++) {
        const davit_ref_layout *layout = davit_ref_layout_get(i);

        if (!layout)
            break;
        if (argc > 2 && !strstr(argv[2], layout->name))
            continue;
        bench_linear(layout, 1);
        bench_linear(layout, 64);
    }
    return 0;
}
