/* SPDX-License-Identifier: Apache-2.0
 * Four dense rows times tokens in float32 (linear_dense_avx2.c).
 *
 * Sums: eight partial sums per row and token, input k in sum k mod 8, ascending, fused
 * multiply-add; then added pairwise in a fixed order. The same for every T.
 */
#ifndef CPU_LINEAR_DENSE_H
#define CPU_LINEAR_DENSE_H

#include <stddef.h>
#include <stdint.h>

#define CPU_DENSE_ROWS 4

/* out[t * 4 + r]; rows of @n values, any alignment; token t at x + t * x_stride. */
typedef void cpu_dense_fn(float *out, const uint8_t *const row[CPU_DENSE_ROWS], size_t n,
                          const float *x, size_t x_stride, size_t n_tokens);

cpu_dense_fn cpu_dense_f32, cpu_dense_f16, cpu_dense_bf16;
/* The same in 512-bit vectors; sums: linear_dense_avx512.c. */
cpu_dense_fn cpu_dense_f32_avx512, cpu_dense_f16_avx512, cpu_dense_bf16_avx512;

#endif
