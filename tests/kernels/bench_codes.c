/* SPDX-License-Identifier: Apache-2.0
 * Stored bytes per second of each layout of codes against our own Q4_K and Q8_0: linear/1 of one
 * thread, processor time, candidates in turns, medians.
 *   bench_codes [ROUNDS [TOKENS]]     9 rounds, 1 and 64 tokens */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/codes_case.h"

#define N 512
#define K 2048
#define MAX_ROUNDS 99
#define COPIES 24 /* matrices in turn, so that weights come from memory */

typedef struct Candidate {
    const char *name, *entry;
    const char *layout; /* GGUF's, NULL = codes */
    davit_quant_codes codes;
    Rig *rig[COPIES];
    const davit_kernel_entry *run;
    davit_work work;
    uint64_t n_bytes; /* of one matrix */
    double seconds[MAX_ROUNDS];
} Candidate;

#define UINT DAVIT_CODE_UINT
static Candidate candidates[] = {
    {.name = "q4_k stored int8", .entry = "linear int8 avx2", .layout = "q4_k/1"},
    {.name = "q8_0 stored int8", .entry = "linear int8 avx2", .layout = "q8_0/1"},
    {.name = "awq g128 int8", .entry = "linear codes int8 avx2",
     .codes = {128, 1, 4, UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4, 0, 0, 0}},
    {.name = "awq g128 f32", .entry = "linear codes f32 avx2",
     .codes = {128, 1, 4, UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4, 0, 0, 0}},
    {.name = "gptq 8 bit int8", .entry = "linear codes int8 avx2",
     .codes = {128, 1, 8, UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U8_1, 0, 0, 0}},
    {.name = "w8a16 channel int8", .entry = "linear codes int8 avx2",
     .codes = {0, 1, 8, UINT, DAVIT_SCALE_F32, DAVIT_ZERO_CONST, 0, 128, 0}},
    {.name = "gptq 3 bit int8", .entry = "linear codes int8 avx2",
     .codes = {128, 1, 3, UINT, DAVIT_SCALE_F16, DAVIT_ZERO_U4_1, 0, 0, 0}},
    {.name = "fp8 block f32", .entry = "linear codes f32 avx2",
     .codes = {128, 128, 8, DAVIT_CODE_E4M3, DAVIT_SCALE_F32, DAVIT_ZERO_CONST, 0, 0, 0}},
    {.name = "mxfp4 f32", .entry = "linear codes f32 avx2",
     .codes = {32, 1, 4, DAVIT_CODE_E2M1, DAVIT_SCALE_E8M0, DAVIT_ZERO_CONST, 0, 0, 0}},
    {.name = "mxfp8 f32", .entry = "linear codes f32 avx2",
     .codes = {32, 1, 8, DAVIT_CODE_E4M3, DAVIT_SCALE_E8M0, DAVIT_ZERO_CONST, 0, 0, 0}},
    {.name = "nf4 f32", .entry = "linear codes f32 avx2",
     .codes = {64, 1, 4, DAVIT_CODE_NF4, DAVIT_SCALE_F32, DAVIT_ZERO_CONST, 0, 0, 0}},
    {.name = "iq4 f32", .entry = "linear codes f32 avx2",
     .codes = {32, 1, 4, DAVIT_CODE_IQ4, DAVIT_SCALE_F16, DAVIT_ZERO_CONST, 0, 0, 0}},
    {.name = "nvfp4 f32", .entry = "linear codes f32 avx2",
     .codes = {16, 1, 4, DAVIT_CODE_E2M1, DAVIT_SCALE_E4M3, DAVIT_ZERO_CONST, 0, 0, 0}},
};

static const davit_linear_attr attr = {.struct_size = DAVIT_END(davit_linear_attr, flags)};

static Rig *make(const davit_kernels_iface *iface, Candidate *c, uint64_t T)
{
    Rig *rig = rig_new(DAVIT_OP_LINEAR, &attr);

    rig_batch(rig, T, 0, 10);
    if (c->layout) {
        rig_matrix(rig, 0, c->layout, 1, N, K);
        c->n_bytes = N * davit_ref_row_bytes(davit_ref_layout_find(c->layout), K);
    } else {
        const davit_pack *pack = codes_case_pack(iface);
        codes_case_weight(rig, 0, pack, &c->codes, 1, N, K);
        c->n_bytes = N / 8 * pack->block_bytes(NULL, K, rig->weights[0].params);
    }
    rig_in(rig, T, K, 1.0f);
    rig_out(rig, T, N);
    rig_run(rig, c->run, (RigSplit){0}, 1); /* scratch, warm caches */
    c->work = (davit_work){.struct_size = DAVIT_END(davit_work, n_tasks), .n_phases = 1};
    c->run->size(NULL, &rig->call, T, T, 1, &c->work);
    return rig;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_all(Candidate *c, int round)
{
    const double start = now();

    for (int i = 0; i < COPIES; i++)
        for (uint32_t p = 0; p < c->work.n_phases; p++)
            c->run->run(&c->rig[i]->call, p, 0, c->work.n_tasks[p], 0, NULL);
    c->seconds[round] = (now() - start) / COPIES;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void bench(const davit_kernels_iface *iface, uint64_t T, int rounds)
{
    const size_t n = G_N_ELEMENTS(candidates);

    for (size_t i = 0; i < n; i++) {
        Candidate *c = &candidates[i];
        for (size_t e = 0; iface->entries[e]; e++)
            if (strcmp(iface->entries[e]->name, c->entry) == 0)
                c->run = iface->entries[e];
        for (int j = 0; j < COPIES; j++)
            c->rig[j] = make(iface, c, T);
    }
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++)
            run_all(&candidates[i], round);
    printf("T = %d, [%d, %d]\n", (int)T, N, K);
    for (size_t i = 0; i < n; i++) {
        Candidate *c = &candidates[i];
        qsort(c->seconds, (size_t)rounds, sizeof(double), by_value);
        const double s = c->seconds[rounds / 2];
        printf("  %-20s %7.3f bits  %8.1f us  %6.2f GB/s  %6.1f Gop/s\n", c->name,
               8.0 * (double)c->n_bytes / N / K, 1e6 * s, 1e-9 * (double)c->n_bytes / s,
               2e-9 * N * K * (double)T / s);
        for (int j = 0; j < COPIES; j++)
            rig_free(c->rig[j]);
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? CLAMP(atoi(argv[1]), 1, MAX_ROUNDS) : 9;
    const davit_kernels_iface *iface = rig_plugin("davit-kernels-cpu.so");

    g_test_init(&argc, &argv, NULL); /* the rig's random numbers */
    if (argc > 2) {
        bench(iface, (uint64_t)CLAMP(atoi(argv[2]), 1, 512), rounds);
    } else {
        bench(iface, 1, rounds);
        bench(iface, 64, rounds);
    }
    return 0;
}
