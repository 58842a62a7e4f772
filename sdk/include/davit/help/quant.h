/* SPDX-License-Identifier: Apache-2.0
 * Helpers for quant plugins, part of libdavit-sdk.a: scalar formats, checks of a module's
 * tensors with their records, and tiles decoded from small readers. Facts: OCP MX, IEEE, the
 * layouts of safetensors; the arithmetic is one rounding per operation in float32.
 */
#ifndef DAVIT_HELP_QUANT_H
#define DAVIT_HELP_QUANT_H

#include <davit/help/records.h>
#include <davit/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scalar formats ---- */

float davit_q_e4m3(uint8_t code); /* E4M3FN: 0x7F and 0xFF are NaN, no infinity */
float davit_q_e5m2(uint8_t code);
float davit_q_e8m0(uint8_t code); /* 2^(code - 127); 255 is NaN */
float davit_q_e2m1(uint8_t code); /* low four bits */
/* Value of @code of @kind (DAVIT_CODE_) without its scale; UINT: the number itself. */
float davit_q_value(uint32_t kind, uint8_t code);
/* Element @index of an array of @type (DAVIT_SCALE_). */
float davit_q_scale(const uint8_t *p, uint32_t type, uint64_t index);
uint64_t davit_q_scale_bytes(uint32_t type);
/* DAVIT_SCALE_ of a dtype name, U8 as E8M0; -1 = none of them. */
int32_t davit_q_scale_type(const char *dtype);
/* @n_bits <= 8 bits at bit @bit of little-endian words that lie @stride bytes apart. */
uint8_t davit_q_bits(const uint8_t *words, uint64_t stride, uint64_t bit, uint32_t n_bits);
/* Codes [col, col + n) of a row of four bits each, low half first, a byte each. */
void davit_q_u4(const uint8_t *row, uint64_t col, uint64_t n, uint8_t *out);
/* Codes [first, first + n) of a stream of @n_bits <= 8 each in such words, a byte each. */
void davit_q_words(const uint8_t *words, uint64_t stride, uint32_t n_bits, uint64_t first,
                   uint64_t n, uint8_t *out);

/* ---- checking a module ---- */

/* Findings of one check. After the first error all calls do nothing more than they must, so
 * that a check reads like a list of what the layout has. */
typedef struct davit_q_check {
    const davit_quant_module *module;
    davit_quant_desc *desc; /* being filled */
    const davit_sink *sink;
    uint64_t seen; /* bit per part */
    int32_t status;
    uint32_t reserved;
} davit_q_check;

void davit_q_begin(davit_q_check *c, const davit_quant_module *module, const char *scheme,
                   davit_quant_desc *out, const davit_sink *sink);
/* Parts that nobody asked for are refused as orphans. Returns: the status. */
int32_t davit_q_end(davit_q_check *c);

/* Has @module a part called @suffix (whose dtype is in the '|'-joined @dtypes, NULL = any)? */
int davit_q_has(const davit_quant_module *module, const char *suffix, const char *dtypes);
/* Part @suffix; NULL if absent. It counts as asked for. (borrowed) the call */
const davit_tensor_info *davit_q_find(davit_q_check *c, const char *suffix);
/* The same; absent or of another dtype is an error, and NULL. */
const davit_tensor_info *davit_q_need(davit_q_check *c, const char *suffix,
                                      const char *dtypes);
/* Its shape is [@rank dims]? Errors: SHAPE_MISMATCH. */
int davit_q_shape(davit_q_check *c, const davit_tensor_info *t, uint32_t rank,
                  const uint64_t *dims);
/* Bytes of a small part, or NULL. */
const uint8_t *davit_q_peek(davit_q_check *c, const char *suffix, uint64_t *out_bytes);
/* Exactly one F32 number (BF16 and F16 where the user allows)? */
int davit_q_one_number(davit_q_check *c, const davit_tensor_info *t);
/* Scales of activations: one number each, finite, above 0; and of the KV cache, which the host reads
 * where it keeps one in 8 bits. They change no weight, and are accounted for. */
void davit_q_activations(davit_q_check *c);
/* ModelOpt's pre_quant_scale [n_cols], factors of the activations and so of the weight's columns:
 * 1 if there is one, whose values are finite; its part is to be appended, and the codes have
 * DAVIT_CODES_FACTORS. */
int davit_q_column_scale(davit_q_check *c, const davit_tensor_info **out);
/* Append a part to the description. @row_bytes as in quant.h: 0 = its rows do not lie one after
 * another. */
void davit_q_part(davit_q_check *c, const char *role, const davit_tensor_info *t,
                  uint64_t row_bytes);
/* The configuration's number for @key against what the tensors say; 0 = not stated. */
void davit_q_agree(davit_q_check *c, const char *key, int64_t stated, int64_t found);
/* One error. @code is DAVIT_R_. Returns: 0, so that callers return it as "no". */
int davit_q_fail(davit_q_check *c, int32_t status, uint32_t code, const char *subject,
                 const char *expected, const char *found, const char *message);
/* The same; what was found is @n of @what, "17 inputs". */
int davit_q_fail_count(davit_q_check *c, int32_t status, uint32_t code, const char *subject,
                       const char *expected, uint64_t n, const char *what, const char *message);
/* One warning. */
void davit_q_warn(davit_q_check *c, uint32_t code, const char *subject, const char *found,
                  const char *message);
/* Settings of the module, never NULL (nothing stated without a configuration). */
const davit_quant_settings *davit_q_settings(const davit_quant_module *module);
/* Axes [first, last) multiplied; 0 = empty or too large. */
uint64_t davit_q_product(const davit_tensor_info *t, uint32_t first, uint32_t last);

/* ---- cuts ---- */

/* *out of davit_quant_iface.cut as a copy of @desc with the box's sizes, all parts whole. */
void davit_q_cut_begin(const davit_quant_desc *desc, const davit_quant_box *box,
                       davit_quant_cut *out);
/* May the box's rows (its columns) be cut: do both ends lie at multiples of @unit, or at the
 * matrix's own end? Returns: 1, or 0 after a record. */
int davit_q_cut_rows_fit(const davit_quant_desc *desc, const davit_quant_box *box, uint64_t unit,
                         const davit_sink *sink);
int davit_q_cut_cols_fit(const davit_quant_desc *desc, const davit_quant_box *box, uint64_t unit,
                         const davit_sink *sink);
/* Part @part is, for each expert, @n_all lines of @line_bytes: take of lines [line, line + n)
 * the bytes [at, at + n_bytes). */
typedef struct davit_q_lines {
    uint64_t n_all, line_bytes;
    uint64_t line, n;
    uint64_t at, n_bytes;
} davit_q_lines;
void davit_q_cut_lines(const davit_quant_box *box, uint32_t part, const davit_q_lines *lines,
                       davit_quant_cut *out);
/* Part @part has a line per row: the box's rows of it, and of each the bytes [at, at + n_bytes),
 * its new row_bytes. */
void davit_q_cut_by_row(const davit_quant_desc *desc, const davit_quant_box *box, uint32_t part,
                        uint64_t at, uint64_t n_bytes, davit_quant_cut *out);
/* Part @part is a number of @type (DAVIT_SCALE_) per column. */
void davit_q_cut_columns(const davit_quant_desc *desc, const davit_quant_box *box, uint32_t part,
                         uint32_t type, davit_quant_cut *out);
/* A whole cut of a module of one part that has a line per row and whole blocks of col_unit. */
int32_t davit_q_cut_blocks(const davit_quant_desc *desc, const davit_quant_box *box,
                           davit_quant_cut *out, const davit_sink *sink);
/* A cut of codes of four bits (part 0) and a byte of scale for each @group columns (part 1), both a
 * line per row. */
int32_t davit_q_cut_nibbles(const davit_quant_desc *desc, const davit_quant_box *box,
                            uint64_t group, davit_quant_cut *out, const davit_sink *sink);
/* Columns of a cut in an order of their own (DAVIT_CODES_MAP): they may be of any of @n_groups groups,
 * each of which is then filled up to 32 code columns, the least that kernels multiply with 8-bit
 * activations. */
void davit_q_cut_order(const davit_quant_box *box, uint64_t n_groups, davit_quant_cut *out);
uint64_t davit_q_divisor(uint64_t a, uint64_t b); /* greatest common, of 0 and b: b */
uint64_t davit_q_multiple(uint64_t a, uint64_t b); /* least common, of small numbers above 0 */

/* ---- tiles ---- */

/* Readers of one layout. @row and @group are absolute within the expert of the tile. */
typedef struct davit_q_view {
    void (*codes)(const davit_quant_tile *tile, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out);
    float (*scale)(const davit_quant_tile *tile, uint64_t row, uint64_t group);
    /* NULL = desc.codes.zero for all */
    float (*zero)(const davit_quant_tile *tile, uint64_t row, uint64_t group);
    /* NULL = column / group */
    uint64_t (*group_of)(const davit_quant_tile *tile, uint64_t col);
    /* NULL = scales are final; else they are E4M3, times (or through) this */
    float (*factor)(const davit_quant_tile *tile, uint32_t *out_divide);
    uint64_t group; /* columns per scale, > 0 */
    /* NULL = none; else each value is multiplied with its column's factor at the end (FACTORS) */
    float (*column)(const davit_quant_tile *tile, uint64_t col);
    /* NULL = codes, a row after the other; else all codes of the tile at once, out[n_rows][stride]:
     * for layouts that have several rows in a word */
    void (*rows)(const davit_quant_tile *tile, uint8_t *out, uint64_t stride);
    /* NULL = scale and zero, one at a time; else those of groups [group, group + n) of all rows of the tile,
     * each [n_rows][n], the same numbers. @zeros is NULL where zero is */
    void (*scales)(const davit_quant_tile *tile, uint64_t group, uint64_t n, float *scales,
                   float *zeros);
    uint64_t n_groups; /* stored ones; read where there are group_of and scales */
    /* NULL, or where the codes of @row lie as they are, a byte each, from column 0 on */
    const uint8_t *(*bytes)(const davit_quant_tile *tile, uint64_t row);
} davit_q_view;

/* Numbers of an array that decoding needs, of row r and group g: element first + r * row_step + g * group_step. */
typedef struct davit_q_grid {
    const uint8_t *p;
    uint64_t first, row_step, group_step;
    uint32_t type; /* DAVIT_SCALE_ */
    uint32_t reserved;
} davit_q_grid;

/* out[n_rows][n]: davit_q_scale of each. */
void davit_q_scales(const davit_q_grid *grid, uint64_t n_rows, uint64_t n, float *out);
/* Numbers [0, n) of an array: davit_q_scale of each. */
void davit_q_numbers(const uint8_t *p, uint32_t type, uint64_t n, float *out);

/* Both forms of a tile; desc.codes says what codes are. */
void davit_q_decode(const davit_q_view *view, const davit_quant_tile *tile,
                    davit_quant_out *out);
/* Scales of the tile's rows finite and not negative, 0 only over codes that are 0 as well; no
 * NaN among the codes. A tile of no rows: the first row. A float32 scale that is subnormal is told
 * as a warning, once a tile. */
int32_t davit_q_verify(const davit_q_view *view, const davit_quant_tile *tile,
                       const davit_sink *sink);
/* The same for scales of a byte each, E4M3 as SCALE_E4M3 or E8M0, of which @n belong to the tile's rows
 * and lie side by side at @scales: where none could be a fault, nothing else is looked at. */
int32_t davit_q_verify_bytes(const davit_q_view *view, const davit_quant_tile *tile,
                             const uint8_t *scales, uint64_t n, const davit_sink *sink);
/* The warning of a verify: bits that no code uses are set in row @row of the tile's module. */
void davit_q_warn_padding(const davit_quant_tile *tile, uint64_t row, const char *where,
                          const davit_sink *sink);
/* Are bits [bit, bit + n) of the bytes at @p, least significant first, all 0? */
int davit_q_bits_clear(const uint8_t *p, uint64_t bit, uint64_t n);
/* Less: scales finite, whatever their sign, for layouts whose writers leave them so. */
int32_t davit_q_verify_finite(const davit_q_view *view, const davit_quant_tile *tile,
                              const davit_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
