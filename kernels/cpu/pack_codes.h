/* SPDX-License-Identifier: Apache-2.0
 * The parts of writing the packed layout of codes.h that have a faster version. */
#ifndef DAVIT_CPU_PACK_CODES_H
#define DAVIT_CPU_PACK_CODES_H

#include <string.h>

#include "codes.h"

/* What the component's instance is: may its packs use AVX2? Entries ask the host instead. */
typedef struct cpu_self {
    uint64_t features; /* DAVIT_CPU_ */
} cpu_self;

/* Codes of eight rows, a byte each, to the planes at @dst, whole runs of 32 columns. Returns: the columns
 * that were written. */
uint64_t cpu_put_codes_avx2(const cpu_codes *c, uint8_t *dst, const uint8_t *const row[CPU_GROUP]);
/* Numbers of eight rows, [8][n_groups], n_shared of which is 8, into the block @dst; zeros not of
 * ZERO_CONST. */
void cpu_put_scales_avx2(const cpu_codes *c, uint8_t *dst, const float *scales);
void cpu_put_zeros_avx2(const cpu_codes *c, uint8_t *dst, const float *zeros);

#endif
