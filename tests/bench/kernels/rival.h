/* SPDX-License-Identifier: Apache-2.0
 * ggml's mul_mat on the same bytes, if the build found ggml (DAVIT_GGML_DIR); else a stub
 * that answers NULL.
 */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct BenchRival BenchRival;

/* @n_copies matrices of layout @layout ("q4_k/1"), the bytes at @rows in each, times the
 * tokens at @x. @repack: in ggml's own packed buffer type. NULL = not built or not
 * supported. */
BenchRival *bench_rival_new(const char *layout, const uint8_t *rows, uint64_t n_rows,
                            uint64_t n_cols, const float *x, uint64_t n_tokens,
                            unsigned n_copies, unsigned n_threads, int repack);
/* All copies once. */
void bench_rival_run(BenchRival *rival);
/* Output of the last copy [T, N]. (borrowed) the rival */
const float *bench_rival_output(const BenchRival *rival);
void bench_rival_free(BenchRival *rival); /* NULL is fine */

#endif
