/* SPDX-License-Identifier: Apache-2.0
 * "cpu.codes_x8/1": the packed layout for every scheme that decodes into CODES (quant.h).
 *
 * A block is eight rows. In order: the factor of its scales (8 bytes: factor, divide; only
 * SCALE_E4M3); the scales of group 0, 1, ... , each eight side by side (or one, where the
 * rows share them) in the module's scale type; the zeros likewise; then the codes, 32 columns
 * after 32 columns. Codes of 32 columns are split into planes of 8, 4, 2 or 1 bits, low bits
 * in the widest plane: 3 bits are a plane of 2 and one of 1, so that n bits take n bits. A
 * plane is words of 4 bytes, word v of all rows side by side; byte j of row r's word v holds
 * the plane's bits of columns 4w + j for w = v, v + words, v + 2 words ..., from bit 0 up.
 * Float codes: bytes 1 and 2 of a word change places (cpu_codes_byte), so that columns that
 * become floats together lie next to each other.
 *
 * Factors of inputs (FACTORS) are multiplied with the activations before anything else; the scalar
 * entries multiply the weights with them, as the definition says.
 *
 * Plain values (CODE_PLAIN, segments beside packed ones): no scales, no zeros, no planes; column after
 * column, the eight rows' numbers side by side, in the type that scale_type names.
 *
 * Sums with float32 activations: the weight is its canonical float32 value (E4M3: a 256th of it,
 * made good at the end, so that its least numbers stay exact); four partial sums per row and
 * token, column k in sum k mod 4, ascending, fused multiply-add; then (0 + 2) + (1 + 3). With
 * 8-bit activations: linear_rows.h.
 */
#ifndef DAVIT_CPU_CODES_H
#define DAVIT_CPU_CODES_H

#include "cpu.h"
#include "linear_rows.h"

#define CPU_CODES_LAYOUT "cpu.codes_x8/1"
#define CPU_CODES_CHUNK  512 /* columns that are expanded at a time: 16 KiB of float32 */

/* A packed weight's shape, from its params. */
typedef struct cpu_codes {
    davit_quant_codes what;
    uint64_t n_cols;  /* of codes: with a map may be more than the weight has */
    uint64_t group;   /* columns per scale */
    uint64_t n_groups;
    uint64_t n_shared; /* scales of one group: 8, or 1 */
    size_t scale_bytes, zero_bytes; /* of one group */
    size_t scale_off, zero_off, code_off; /* from the block's start */
    size_t block_bytes;
} cpu_codes;

/* Returns: 0 if such codes cannot be packed (no width, or too large): then *out is @n_cols and zeros. */
int cpu_codes_init(cpu_codes *out, uint64_t n_cols, const uint64_t params[8]);

/* Codes of row @row of expert @expert, which were checked: those of the weight, in @all, or its
 * segment's own, in @own. Returns the one that holds. */
const cpu_codes *cpu_codes_at(const davit_weight *w, uint64_t expert, uint64_t row,
                              const cpu_codes *all, cpu_codes *own);

/* Block that holds row @row of expert @expert; *out_lane = the row in it, *out_n = rows from
 * it on that lie in the same block. (borrowed) the call */
const uint8_t *cpu_codes_block(const cpu_codes *c, const davit_weight *w, uint64_t expert,
                               uint64_t row, uint64_t *out_lane, uint64_t *out_n);
/* Columns' inputs of expert @expert, DAVIT_CODES_NONE = none; or NULL if they are in order.
 * (borrowed) the call */
const uint32_t *cpu_codes_map(const cpu_codes *c, const davit_weight *w, uint64_t expert);
/* Factors of the inputs of expert @expert, in their order; or NULL if there are none. (borrowed) the call */
const float *cpu_codes_factors(const cpu_codes *c, const davit_weight *w, uint64_t expert);

/* Scale and zero of a row of the block in group @g. */
float cpu_codes_scale(const cpu_codes *c, const uint8_t *block, uint64_t lane, uint64_t g);
float cpu_codes_zero(const cpu_codes *c, const uint8_t *block, uint64_t lane, uint64_t g);
/* Number of a row of the block in column @k; PLAIN. */
float cpu_codes_plain(const cpu_codes *c, const uint8_t *block, uint64_t lane, uint64_t k);
/* A 4-bit kind's values; NULL for the other kinds. (static) [16] */
const float *cpu_codes_table(uint32_t kind);
/* Byte of a word that holds its column @j, and the column of byte @j. */
static inline uint64_t cpu_codes_byte(const cpu_codes *c, uint64_t j)
{
    return c->what.kind == DAVIT_CODE_UINT ? j : (j & 1) << 1 | j >> 1;
}

/* Canonical values of one row, in code order: the scalar definition. out[n_cols] */
void cpu_codes_row(const cpu_codes *c, const uint8_t *block, uint64_t lane, float *out);

/* Do the AVX2 functions take these groups: multiples of 16 columns, or the whole row? The scalar
 * entries take any. */
int cpu_codes_fit_avx2(const cpu_codes *c);
/* Can these codes be multiplied with 8-bit activations? */
int cpu_codes_fit_int8(const cpu_codes *c);
/* The record of an entry with 8-bit activations that these codes do not fit. */
int32_t cpu_refuse_int8(const davit_call *call, const davit_sink *sink);
/* check of entries on packed codes: ops.h, with the layout's own limits. */
int32_t cpu_codes_check(void *self, const davit_call *call, const davit_sink *sink);
/* The same for entries that need cpu_codes_fit_avx2. */
int32_t cpu_codes_check_avx2(void *self, const davit_call *call, const davit_sink *sink);

/* One block times tokens: out[t * 8 + r]. @x in code order, tokens @x_stride apart.
 * @scratch: cpu_codes_scratch bytes, aligned to 64. (codes_avx2.c) */
void cpu_codes_dot_avx2(float *out, const cpu_codes *c, const uint8_t *block, const float *x,
                        size_t x_stride, size_t n_tokens, float *scratch);
size_t cpu_codes_scratch(uint64_t n_tokens);
/* Its part for plain values. (codes_plain_avx2.c) */
void cpu_codes_dot_plain_avx2(float *out, const cpu_codes *c, const uint8_t *block,
                              const float *x, size_t x_stride, size_t n_tokens);
/* Its half for float codes. (codes_float_avx2.c) */
void cpu_codes_dot_float_avx2(float *out, const cpu_codes *c, const uint8_t *block,
                              const float *x, size_t x_stride, size_t n_tokens, float *scratch);
/* One token times codes of 4 bits, the same bits. (codes_float_avx512.c) */
void cpu_codes_dot_float_avx512(float *out, const cpu_codes *c, const uint8_t *block,
                                const float *x);
/* The same with 8-bit activations; UINT of 2, 3, 4 or 8 bits, n_cols and groups multiples of 32.
 * (codes_int8_avx2.c) */
typedef void cpu_codes_int8_fn(float *out, const cpu_codes *c, const uint8_t *block,
                               const cpu_xblock *x, size_t x_stride, size_t n_tokens);
cpu_codes_int8_fn cpu_codes_dot_int8_avx2, cpu_codes_dot_int8_vnni_avx,
    cpu_codes_dot_int8_vnni_avx512;

extern const davit_pack cpu_pack_codes;
extern const davit_kernel_entry cpu_linear_codes_scalar, cpu_linear_codes_avx2,
    cpu_linear_codes_avx512, cpu_linear_codes_int8, cpu_linear_codes_vnni, cpu_linear_codes_vnni512, cpu_embed_codes;

#define CPU_CODES_ENTRIES                                                                 \
    &cpu_linear_codes_scalar, &cpu_linear_codes_avx2, &cpu_linear_codes_avx512,           \
        &cpu_linear_codes_int8, &cpu_linear_codes_vnni, &cpu_linear_codes_vnni512, &cpu_embed_codes,

#endif
