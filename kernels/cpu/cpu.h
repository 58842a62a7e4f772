/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of org.davit.kernels.cpu.
 *
 * Entry structs lie in files of baseline code and are listed in cpu.c; layers with
 * instruction-set flags (norm_avx2.c ...) export plain functions that entries name, and the
 * host calls them only where the entry's cpu bits are there. linear.h has the matrices'.
 */
#ifndef DAVIT_CPU_CPU_H
#define DAVIT_CPU_CPU_H

#include <davit/kernels.h>

#define CPU_AVX2 (DAVIT_CPU_AVX2 | DAVIT_CPU_FMA | DAVIT_CPU_F16C)
#define CPU_AVX512                                                                        \
    (CPU_AVX2 | DAVIT_CPU_AVX512F | DAVIT_CPU_AVX512BW | DAVIT_CPU_AVX512DQ |             \
     DAVIT_CPU_AVX512VL)

#if defined(CPU_VNNI_SIMDE) /* portable C in a build for tests: vnni.h */
#define CPU_AVX_VNNI    CPU_AVX2
#define CPU_AVX_VNNI_DOT(name) name##_vnni_avx512 /* one portable copy for both */
#define CPU_AVX512_VNNI CPU_AVX2
#define CPU_AVX512_F32  CPU_AVX2
#else
#define CPU_AVX_VNNI    (CPU_AVX2 | DAVIT_CPU_AVXVNNI)
#define CPU_AVX_VNNI_DOT(name) name##_vnni_avx
#define CPU_AVX512_VNNI (CPU_AVX512 | DAVIT_CPU_AVX512VNNI)
#define CPU_AVX512_F32  CPU_AVX512
#endif

extern const davit_kernel_entry cpu_embed_scalar;
extern const davit_kernel_entry cpu_rmsnorm_scalar;
extern const davit_kernel_entry cpu_layernorm_scalar;
extern const davit_kernel_entry cpu_add_scalar;
extern const davit_kernel_entry cpu_scale_scalar;
extern const davit_kernel_entry cpu_softcap_scalar;
extern const davit_kernel_entry cpu_act_scalar;
extern const davit_kernel_entry cpu_glu_scalar;
extern const davit_kernel_entry cpu_rope_angles_scalar;
extern const davit_kernel_entry cpu_rope_scalar;
extern const davit_kernel_entry cpu_kv_append_scalar;
extern const davit_kernel_entry cpu_attn_scalar;
extern const davit_kernel_entry cpu_moe_route_scalar;
extern const davit_kernel_entry cpu_moe_route_once;
extern const davit_kernel_entry cpu_moe_ffn_scalar;
extern const davit_kernel_entry cpu_gather_rows_scalar;

typedef void cpu_run_fn(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                        uint32_t worker, void *queue);
typedef void cpu_size_fn(void *self, const davit_call *call, uint64_t n_tokens,
                         uint64_t n_rows, uint64_t ctx, davit_work *out);

/* check of every entry: ops.h, as davit_ref_check reads it. */
int32_t cpu_check(void *self, const davit_call *call, const davit_sink *sink);

static inline uint64_t cpu_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t cpu_ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static inline uint64_t cpu_round_up(uint64_t a, uint64_t unit)
{
    return cpu_ceil_div(a, unit) * unit;
}

/* Rows of a call's values. (borrowed) the call */
static inline const float *cpu_in(const davit_call *call, uint32_t i, uint64_t row)
{
    return (const float *)call->in[i].data + row * call->in[i].width;
}

static inline float *cpu_out(const davit_call *call, uint32_t i, uint64_t row)
{
    return (float *)call->out[i].data + row * call->out[i].width;
}

static inline void *cpu_worker(const davit_call *call, uint32_t worker)
{
    return (uint8_t *)call->worker_scratch + worker * call->worker_bytes;
}

#endif
