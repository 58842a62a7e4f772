/* SPDX-License-Identifier: Apache-2.0
 * From raw dot products to the output of linear/1: scale, bias, ADD.
 */
#ifndef CPU_LINEAR_FINISH_H
#define CPU_LINEAR_FINISH_H

#include <davit/kernels.h>

/* Tokens [token, token + n_tokens), at most 8 rows [row, row + n_rows); the dots of the
 * i-th of these tokens at dots + i * stride. */
void cpu_linear_finish(const davit_call *call, const float *dots, uint64_t stride,
                       uint64_t token, uint64_t n_tokens, uint64_t row, uint64_t n_rows);

#endif
