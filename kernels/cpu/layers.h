/* SPDX-License-Identifier: Apache-2.0
 * Functions of the layers that need CPU features; the entries that name them, with their
 * feature bits, are in layers.c (baseline code). A file's suffix names its features.
 */
#ifndef DAVIT_CPU_LAYERS_H
#define DAVIT_CPU_LAYERS_H

#include "cpu.h"

/* tokens * key heads up to which attn shares out spans of keys too */
#define CPU_ATTN_SPLIT 16

/* Values of one task of an op on each value alone. */
#define CPU_POINTS 2048

cpu_run_fn cpu_add_avx2;
cpu_run_fn cpu_scale_avx2;
cpu_run_fn cpu_softcap_avx2;
cpu_run_fn cpu_act_avx2; /* not SOFTPLUS */
cpu_run_fn cpu_glu_avx2; /* not SOFTPLUS */
cpu_run_fn cpu_rmsnorm_avx2;
cpu_run_fn cpu_layernorm_avx2;
cpu_run_fn cpu_rope_avx2;
cpu_run_fn cpu_attn_avx2;
cpu_run_fn cpu_kv_append_avx2;
cpu_size_fn cpu_attn_size_avx2;

extern const davit_kernel_entry cpu_add_avx2_entry;
extern const davit_kernel_entry cpu_scale_avx2_entry;
extern const davit_kernel_entry cpu_softcap_avx2_entry;
extern const davit_kernel_entry cpu_act_avx2_entry;
extern const davit_kernel_entry cpu_glu_avx2_entry;
extern const davit_kernel_entry cpu_rmsnorm_avx2_entry;
extern const davit_kernel_entry cpu_layernorm_avx2_entry;
extern const davit_kernel_entry cpu_rope_avx2_entry;
extern const davit_kernel_entry cpu_attn_avx2_entry;
extern const davit_kernel_entry cpu_kv_append_avx2_entry;
extern const davit_kernel_entry cpu_moe_ffn_avx2_entry;
extern const davit_kernel_entry cpu_moe_ffn_codes, cpu_moe_ffn_codes_scalar;
extern const davit_kernel_entry cpu_moe_ffn_int8, cpu_moe_ffn_vnni, cpu_moe_ffn_vnni512;

/* Errors: DAVIT_E_UNSUPPORTED with a record if @kind is what the layers lack. */
int32_t cpu_check_gate(const davit_call *call, uint32_t kind, const davit_sink *sink);

/* y[i] = f(g[i]) * u[i], any kind but SOFTPLUS. */
void cpu_glu_values_avx2(const davit_act_attr *a, const float *g, const float *u, float *y,
                         uint64_t n);

#endif
