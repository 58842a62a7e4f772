/* SPDX-License-Identifier: Apache-2.0
 * Kind "quant", interface 0.1: what stored bytes mean.
 *
 * A quant plugin recognises the tensors of one module ("model.layers.0.mlp.up_proj"), checks
 * them and decodes tiles. It knows no kernel and no file; kernels name the stored layouts
 * that they take in place or the forms they pack from.
 */
#ifndef DAVIT_QUANT_H
#define DAVIT_QUANT_H

#include "suites.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_MAX_PARTS 8

/* One tensor of a module: @suffix is what follows the module's name ("weight", "scales",
 * "weight_scale_inv"; "" when the tensor is the module, as with stacked experts). */
typedef struct davit_quant_part_in {
    uint64_t struct_size;
    const char *suffix;
    const davit_tensor_info *info; /* (borrowed) the call; NULL in a signature's claim */
    const char *dtype;
    uint32_t rank;
    uint32_t reserved;
} davit_quant_part_in;

/* The tensors of a module, sorted by suffix. */
typedef struct davit_quant_module {
    uint64_t struct_size;
    const char *name; /* module name as stored; NULL in claim */
    const davit_quant_part_in *const *parts;
    uint64_t n_parts;
    const davit_config *config;  /* quantisation settings; may be NULL (bare file) */
    uint64_t want_rank;          /* 2 = matrix, 3 = stacked experts, 1 = vector, 0 = any */
} davit_quant_module;

/* Stored part of a checked module. */
typedef struct davit_quant_part {
    uint64_t struct_size;
    const char *role;   /* "weight" "scale" "zero" "g_idx" "global_scale" ... */
    uint64_t index;     /* into davit_quant_module.parts */
    uint64_t row_bytes; /* bytes of one logical output row, when rows lie one after another;
                         * 0 = rows of this part are not contiguous */
} davit_quant_part;

/* What a module is, after check. Logical matrix: E experts of N output rows, K inputs. */
typedef struct davit_quant_desc {
    uint64_t struct_size;
    const char *scheme; /* "dense/1" "gguf/1" "awq/1" */
    const char *layout; /* stored layout: "bf16/1" "q4_k/1" "awq_gemm/1"; (static) */
    uint64_t n_experts; /* E, 1 for a matrix */
    uint64_t n_rows;    /* N */
    uint64_t n_cols;    /* K; 1 for a vector (then N is its length) */
    uint64_t row_unit;  /* rows may be cut at multiples of this (1 = anywhere) */
    uint64_t col_unit;  /* columns may be cut at multiples of this; 0 = not at all */
    uint64_t params[8]; /* the scheme's own numbers (group size, bits ...), meaning in its README */
    davit_quant_part parts[DAVIT_MAX_PARTS];
    uint32_t n_parts;
    uint32_t forms;     /* DAVIT_FORM_ bits that decode offers */
} davit_quant_desc;

#define DAVIT_FORM_F32   1u /* canonical float32 */
#define DAVIT_FORM_CODES 2u /* codes, scales, zeros per group, exact */

/* Bytes of one stored part in memory: the part from logical row @row0 on. */
typedef struct davit_quant_bytes {
    const uint8_t *ptr;
    uint64_t n_bytes;
} davit_quant_bytes;

/* Rows [row, row+n_rows) x columns [col, col+n_cols) of expert @expert. */
typedef struct davit_quant_tile {
    uint64_t struct_size;
    const davit_quant_desc *desc;
    const davit_quant_bytes *parts; /* [desc->n_parts], whole stored parts of the module */
    uint64_t expert;
    uint64_t row;
    uint64_t n_rows;
    uint64_t col;    /* multiple of col_unit (any value if col_unit is 1) */
    uint64_t n_cols; /* multiple of col_unit or up to K */
} davit_quant_tile;

/* Where decode writes. F32: values[n_rows][stride]. CODES: value = scale * (code - zero) or
 * scale * code + min, see has_min. */
typedef struct davit_quant_out {
    uint64_t struct_size;
    uint32_t form;       /* DAVIT_FORM_, one bit */
    uint32_t has_min;    /* CODES: 1 = zeros holds minima to add instead of zero points */
    float *values;       /* F32 [n_rows, stride] */
    uint64_t stride;     /* elements between rows of values and codes */
    uint8_t *codes;      /* CODES [n_rows, stride] */
    float *scales;       /* CODES [n_rows, n_groups] */
    float *zeros;        /* CODES [n_rows, n_groups] */
    uint64_t group;      /* CODES: columns per group, set by decode */
} davit_quant_out;

typedef struct davit_quant_iface {
    uint64_t struct_size; /* DAVIT_END(davit_quant_iface, decode) */

    /* Is a module with these suffixes, dtypes and ranks ours? Asked once per distinct
     * signature. REFUSE = recognised by name but not readable here. Required. [any thread] */
    int32_t (*claim)(void *self, const davit_quant_module *signature, davit_verdict *out,
                     const davit_sink *sink);

    /* Check one module from headers; fill *out. Errors: DAVIT_E_CORRUPT, _MISMATCH,
     * _UNSUPPORTED with records naming tensor, found and expected. Required. [any thread] */
    int32_t (*check)(void *self, const davit_quant_module *module, davit_quant_desc *out,
                     const davit_sink *sink);

    /* Check payload values (scales finite ...) of rows [tile]. NULL = nothing to check.
     * [any thread] */
    int32_t (*verify)(void *self, const davit_quant_tile *tile, const davit_sink *sink);

    /* Decode a tile. Pure; the same bits on every machine. Required for F32.
     * [any thread] */
    void (*decode)(void *self, const davit_quant_tile *tile, davit_quant_out *out);
} davit_quant_iface;

#ifdef __cplusplus
}
#endif
#endif
