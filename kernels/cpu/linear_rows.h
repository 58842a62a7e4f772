/* SPDX-License-Identifier: Apache-2.0
 * Rows of a quantised weight times quantised tokens: what `linear` and `moe_ffn` share.
 *
 * Eight output rows form a group. A group's bytes are interleaved ("x8"): per stored
 * block the two-byte header fields of the eight rows side by side, then the rest of the
 * block as 4-byte words, word w of all rows side by side. That is a permutation of the
 * stored bytes, so a packed group has exactly the size of its eight rows; stored rows are
 * interleaved into scratch when they are used (see pack_x8_avx2.c), so both ways give the
 * same bits.
 *
 * Sums: per row and token, blocks of 32 inputs in ascending order, each an exact integer
 * sum that is scaled and added in float32; rows of the layouts without an interleaved form in eight
 * such sums (linear_iq_avx2.c). Nothing depends on how many tokens share a call.
 */
#ifndef CPU_LINEAR_ROWS_H
#define CPU_LINEAR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <davit/kernels.h>

#define CPU_GROUP  8  /* output rows of a group */
#define CPU_XBLOCK 32 /* inputs that share one activation scale */

/* 32 quantised activations of one token: value = d * q, |q| <= 127. */
typedef struct cpu_xblock {
    int8_t q[CPU_XBLOCK];
    float d;        /* largest magnitude / 127; NaN or infinite if an input was */
    float dsum;     /* d * sum of q */
    int16_t sum[2]; /* sums of q[0..15] and q[16..31] */
} cpu_xblock;

/* Interleave the first @n_blocks stored blocks of eight rows. */
typedef void cpu_interleave_fn(uint8_t *dst, const uint8_t *const row[CPU_GROUP],
                               size_t n_blocks);

/* One group times @n_tokens tokens: out[t * 8 + r], raw dot products.
 * @x       token t at x + t * x_stride; n_blocks * block_elems / 32 blocks each
 * @resume  0 = start from zero, 1 = go on adding to what @out holds */
typedef void cpu_group_fn(float *out, const uint8_t *group, size_t n_blocks,
                          const cpu_xblock *x, size_t x_stride, size_t n_tokens,
                          int resume);

/* Up to eight stored rows times @n_tokens tokens: out[t * 8 + r]. */
typedef void cpu_rows_fn(float *out, const uint8_t *const row[], size_t n_rows, size_t n_blocks,
                         const cpu_xblock *x, size_t x_stride, size_t n_tokens);

/* Canonical float32 values of @n_blocks stored blocks of one row (quant contract). */
typedef void cpu_dequant_fn(float *out, const uint8_t *row, size_t n_blocks);

/* Which of the compiled copies of a group kernel: equal bits, other instructions. */
enum { CPU_STEP_AVX2, CPU_STEP_AVX_VNNI, CPU_STEP_AVX512_VNNI, CPU_STEPS };

typedef struct cpu_layout {
    const char *stored; /* "q4_k/1" */
    const char *packed; /* "cpu.q4_k_x8/1"; NULL = multiplied as they lie, by @rows */
    uint32_t block_elems;
    uint32_t block_bytes; /* of one stored block of one row */
    cpu_interleave_fn *interleave;
    cpu_group_fn *dot[CPU_STEPS];
    cpu_dequant_fn *dequant;
    int one_plane; /* 1 = a second plane of activations never pays (linear_int8.c) */
    cpu_rows_fn *rows; /* instead of interleave and dot */
} cpu_layout;

/* By stored or packed name; NULL = not ours. The functions of the table, cpu_quantize_x
 * and cpu_rows_dot need the bits CPU_AVX2 of cpu.h: the caller's entry states them. */
const cpu_layout *cpu_layout_find(const char *name);

/* Stored blocks that can be expanded to float32, those of the table above and more. Baseline struct;
 * the function needs CPU_AVX2. */
typedef struct cpu_blocks {
    const char *stored;
    uint32_t block_elems;
    cpu_dequant_fn *dequant;
} cpu_blocks;

const cpu_blocks *cpu_blocks_find(const char *stored); /* NULL = plain numbers */

/* Segment that holds a row: the last whose start is not behind it. */
const davit_segment *cpu_segment_find(const davit_weight *weight, uint64_t expert,
                                      uint64_t row);

/* Quantise @n (multiple of 32) inputs into n / 32 blocks. */
void cpu_quantize_x(cpu_xblock *out, const float *x, size_t n);
/* A second plane: what the blocks of the first leave of @n inputs, as blocks. (linear_int8.c) */
void cpu_quantize_rest(cpu_xblock *out, const cpu_xblock *first, const float *x, uint64_t n);
/* Results [n_tokens, 2 planes, 8], added in place to [n_tokens, 8]. */
void cpu_add_planes(float *dots, uint64_t n_tokens);

/* Rows [row0, row0 + n_rows), n_rows <= 8, of expert @expert of a stored or packed weight
 * times tokens: out[t * 8 + r]. @step: CPU_STEP_. @scratch: CPU_ROWS_SCRATCH bytes, aligned to 64. */
void cpu_rows_dot(float *out, const cpu_layout *layout, const davit_weight *weight,
                  uint64_t expert, uint64_t row0, uint64_t n_rows, const cpu_xblock *x,
                  size_t x_stride, size_t n_tokens, int step, uint8_t *scratch);

/* Inputs of a group that are worked on together, so that their bytes stay in the
 * first-level cache while all tokens pass; at most 8 rows of 34 bytes per 32. */
#define CPU_CHUNK        1024
#define CPU_ROWS_SCRATCH (CPU_CHUNK / 32 * 34 * CPU_GROUP)

#endif
