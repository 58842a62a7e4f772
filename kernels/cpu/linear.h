/* SPDX-License-Identifier: Apache-2.0
 * linear/1 and moe_ffn/1 over matrices: where entries and packed layouts are listed.
 *
 * A faster entry: declare its struct here and add it to the list below, which cpu.c puts into
 * the component's table. Entries must give the same bits for any split of tasks and any T
 * (kernels.h, "Determinism"). Source files with instruction-set flags hold only functions
 * that are reached after the entry's cpu bits were checked by the host; the structs lie in
 * files without such flags.
 */
#ifndef DAVIT_CPU_LINEAR_H
#define DAVIT_CPU_LINEAR_H

#include <davit/kernels.h>

#include "codes.h"
#include "linear_fast.h"

extern const davit_kernel_entry cpu_linear_scalar;

/* Entries of linear/1, each with a comma after it; the best score wins, so the order is for
 * readers only. */
#define CPU_LINEAR_ENTRIES &cpu_linear_scalar, CPU_LINEAR_FAST_ENTRIES CPU_CODES_ENTRIES

/* Packed layouts of this component, each with a comma after it (&cpu_pack_x8,). */
#define CPU_PACKS CPU_FAST_PACKS &cpu_pack_codes,

/* Rows of a weight that one scalar task computes. */
#define CPU_LINEAR_ROWS 16

/* Dot product of two float rows in eight partial sums (k mod 8), added in ascending order. */
float cpu_dot_f32(const float *a, const float *b, uint64_t n);

#endif
