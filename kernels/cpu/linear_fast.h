/* SPDX-License-Identifier: Apache-2.0
 * The AVX2 entries of linear/1 and the packed layouts, for the lists in linear.h.
 */
#ifndef DAVIT_CPU_LINEAR_FAST_H
#define DAVIT_CPU_LINEAR_FAST_H

#include <davit/kernels.h>

/* linear_int8.c: activations rounded to 8 bits per block of 32 */
extern const davit_kernel_entry cpu_linear_int8_stored;
extern const davit_kernel_entry cpu_linear_int8_packed;
extern const davit_kernel_entry cpu_linear_int8_packed_q8_0;
extern const davit_kernel_entry cpu_linear_vnni_stored, cpu_linear_vnni_packed,
    cpu_linear_vnni_packed_q8_0;
extern const davit_kernel_entry cpu_linear_vnni512_stored, cpu_linear_vnni512_packed,
    cpu_linear_vnni512_packed_q8_0;

/* linear_f32.c: activations stay float32 */
extern const davit_kernel_entry cpu_linear_f32_dense;
extern const davit_kernel_entry cpu_linear_f32_blocks;
extern const davit_kernel_entry cpu_linear_f32_dense_512, cpu_linear_f32_blocks_512;

/* pack_x8.c */
extern const davit_pack cpu_pack_x8[];
#define CPU_N_PACKS 10

/* Members of the lists in linear.h. */
#define CPU_LINEAR_FAST_ENTRIES                                                          \
    &cpu_linear_f32_blocks, &cpu_linear_f32_dense, &cpu_linear_f32_blocks_512,           \
        &cpu_linear_f32_dense_512, &cpu_linear_int8_stored,                              \
        &cpu_linear_int8_packed, &cpu_linear_int8_packed_q8_0, &cpu_linear_vnni_stored,  \
        &cpu_linear_vnni_packed, &cpu_linear_vnni_packed_q8_0,                           \
        &cpu_linear_vnni512_stored, &cpu_linear_vnni512_packed,                          \
        &cpu_linear_vnni512_packed_q8_0,
#define CPU_FAST_PACKS                                                                   \
    &cpu_pack_x8[0], &cpu_pack_x8[1], &cpu_pack_x8[2], &cpu_pack_x8[3], &cpu_pack_x8[4], \
        &cpu_pack_x8[5], &cpu_pack_x8[6], &cpu_pack_x8[7], &cpu_pack_x8[8],              \
        &cpu_pack_x8[9],

#endif
