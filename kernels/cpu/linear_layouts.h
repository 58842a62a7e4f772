/* SPDX-License-Identifier: Apache-2.0
 * Group kernels, interleavers and decoders that linear_layouts.c puts into one table.
 * Contracts: linear_rows.h.
 */
#ifndef CPU_LINEAR_LAYOUTS_H
#define CPU_LINEAR_LAYOUTS_H

#include "linear_rows.h"

/* linear_q32_avx2.c, linear_k32_avx2.c, linear_k16_avx2.c */
#if defined(CPU_VNNI)
#include "vnni.h" /* renames the first line's */
#endif
cpu_group_fn cpu_dot_q4_0, cpu_dot_q4_1, cpu_dot_q5_0, cpu_dot_q5_1, cpu_dot_q8_0;
cpu_group_fn cpu_dot_q2_k, cpu_dot_q3_k, cpu_dot_q4_k, cpu_dot_q5_k, cpu_dot_q6_k;

/* the same sources compiled for VNNI: vnni.h */
#define CPU_DOT_VNNI(layer)                                                               \
    cpu_group_fn cpu_dot_q4_0_vnni_##layer, cpu_dot_q4_1_vnni_##layer,                    \
        cpu_dot_q5_0_vnni_##layer, cpu_dot_q5_1_vnni_##layer, cpu_dot_q8_0_vnni_##layer,  \
        cpu_dot_q2_k_vnni_##layer, cpu_dot_q3_k_vnni_##layer, cpu_dot_q4_k_vnni_##layer,  \
        cpu_dot_q5_k_vnni_##layer, cpu_dot_q6_k_vnni_##layer
CPU_DOT_VNNI(avx);
CPU_DOT_VNNI(avx512);

/* pack_x8_avx2.c */
cpu_interleave_fn cpu_pack_q4_0, cpu_pack_q4_1, cpu_pack_q5_0, cpu_pack_q5_1,
    cpu_pack_q8_0;
cpu_interleave_fn cpu_pack_q2_k, cpu_pack_q3_k, cpu_pack_q4_k, cpu_pack_q5_k,
    cpu_pack_q6_k;

/* linear_dequant_avx2.c, linear_dequant_k_avx2.c */
cpu_dequant_fn cpu_dequant_q4_0, cpu_dequant_q4_1, cpu_dequant_q5_0, cpu_dequant_q5_1;
cpu_dequant_fn cpu_dequant_q8_0, cpu_dequant_q2_k, cpu_dequant_q3_k, cpu_dequant_q4_k;
cpu_dequant_fn cpu_dequant_q5_k, cpu_dequant_q6_k;
/* linear_dequant_iq_avx2.c: blocks that no group kernel takes */
cpu_dequant_fn cpu_dequant_iq1_s, cpu_dequant_iq1_m, cpu_dequant_iq2_xxs, cpu_dequant_iq2_xs;
cpu_dequant_fn cpu_dequant_iq2_s, cpu_dequant_iq3_xxs, cpu_dequant_iq3_s, cpu_dequant_iq4_xs;
cpu_dequant_fn cpu_dequant_tq1_0, cpu_dequant_q1_0;

/* linear_iq_avx2.c */
cpu_rows_fn cpu_rows_iq1_s, cpu_rows_iq1_m, cpu_rows_iq2_xxs, cpu_rows_iq2_xs, cpu_rows_iq2_s;
cpu_rows_fn cpu_rows_iq3_xxs, cpu_rows_iq3_s, cpu_rows_iq4_xs, cpu_rows_tq1_0, cpu_rows_q1_0;

#endif
