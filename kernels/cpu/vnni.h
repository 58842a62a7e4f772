/* SPDX-License-Identifier: Apache-2.0
 * One step of VNNI, and the names of the functions that are compiled a second and third time
 * for it: the group kernels with 8-bit activations (linear_q32, _k32, _k16, codes_int8), whose
 * integer sums and hence bits are the same as AVX2's.
 *
 * Defined by the build: CPU_VNNI = avx512 (EVEX, 256 bits: AVX512VL and AVX512VNNI) or avx (VEX:
 * AVX-VNNI). With CPU_VNNI_SIMDE the step is portable C of the package simde, so that tests run
 * on processors without it. */
#ifndef CPU_VNNI_H
#define CPU_VNNI_H

#if defined(CPU_VNNI)

#if defined(CPU_VNNI_SIMDE)
#include <simde/x86/avx512/dpbusd.h>
#define VNNI_STEP   simde_mm256_dpbusd_epi32
#define VNNI_INLINE static __attribute__((noinline)) /* inlined it takes minutes to compile */
#else
#include <immintrin.h>
#define VNNI_INLINE static inline __attribute__((always_inline))
#if defined(CPU_VNNI_VEX)
#define VNNI_STEP _mm256_dpbusd_avx_epi32
#else
#define VNNI_STEP _mm256_dpbusd_epi32
#endif
#endif

/* sum + four products of unsigned @u and signed @q per lane, without saturation. */
VNNI_INLINE __m256i add_products(__m256i sum, __m256i u, __m256i q)
{
    return VNNI_STEP(sum, u, q);
}

#define VNNI_JOIN(name, layer)  VNNI_JOIN_(name, layer)
#define VNNI_JOIN_(name, layer) name##_vnni_##layer

#define cpu_dot_q4_0            VNNI_JOIN(cpu_dot_q4_0, CPU_VNNI)
#define cpu_dot_q4_1            VNNI_JOIN(cpu_dot_q4_1, CPU_VNNI)
#define cpu_dot_q5_0            VNNI_JOIN(cpu_dot_q5_0, CPU_VNNI)
#define cpu_dot_q5_1            VNNI_JOIN(cpu_dot_q5_1, CPU_VNNI)
#define cpu_dot_q8_0            VNNI_JOIN(cpu_dot_q8_0, CPU_VNNI)
#define cpu_dot_q2_k            VNNI_JOIN(cpu_dot_q2_k, CPU_VNNI)
#define cpu_dot_q3_k            VNNI_JOIN(cpu_dot_q3_k, CPU_VNNI)
#define cpu_dot_q4_k            VNNI_JOIN(cpu_dot_q4_k, CPU_VNNI)
#define cpu_dot_q5_k            VNNI_JOIN(cpu_dot_q5_k, CPU_VNNI)
#define cpu_dot_q6_k            VNNI_JOIN(cpu_dot_q6_k, CPU_VNNI)
#define cpu_codes_dot_int8_avx2 VNNI_JOIN(cpu_codes_dot_int8, CPU_VNNI)

#endif
#endif
