/* SPDX-License-Identifier: Apache-2.0
 * Kind "quant", interface 0.6: what stored bytes mean.
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

/* Which tensors are a module: a name is cut at its last dot into module and suffix. Suffixes that
 * davit knows: "weight", "qweight", what begins with "weight_", and companions of well-known
 * layouts beside them; a plugin names others in its capability, "suffix=codes|lut". */

/* One tensor of a module: @suffix is what follows the module's name ("weight", "scales",
 * "weight_scale_inv"; "" when the tensor is the module, as with stacked experts). */
typedef struct davit_quant_part_in {
    uint64_t struct_size;
    const char *suffix;
    const davit_tensor_info *info; /* (borrowed) the call; NULL in a signature's claim. Its bytes
                                    * follow from shape and block; nothing else is promised */
    const char *dtype;             /* interned name, "u8/1" */
    uint32_t rank;                 /* 0 = scalar */
    uint32_t reserved;             /* 0 */
} davit_quant_part_in;

/* What the configuration says of one module, all spellings and ignore lists resolved by the
 * host. It is advice: the tensors decide, and a contradiction is refused by name. Texts are
 * lower case and live as long as the plan; NULL = not stated. */
typedef struct davit_quant_settings {
    uint64_t struct_size;    /* DAVIT_END(davit_quant_settings, ambiguous) */
    const char *source;      /* where it stands: "config.json: quantization_config" */
    const char *method;      /* "gptq" "awq" "fp8" "compressed-tensors" "modelopt" ... */
    const char *format;      /* checkpoint_format, AWQ's version, CT's format, quant_algo */
    const char *type;        /* "int" or "float" */
    const char *strategy;    /* "tensor" "channel" "group" "block" "tensor_group" */
    const char *scale_fmt;   /* "ue8m0" */
    const char *activations; /* "static" or "dynamic" */
    const char *producer;    /* version of the tool that wrote the files, "0.13.0" */
    int64_t bits;            /* 0 = not stated, as for the next three */
    int64_t group;           /* inputs that share a scale; -1 = whole row */
    int64_t block_rows;
    int64_t block_cols;
    int32_t symmetric;       /* 1, 0; -1 = not stated, as for the next two */
    int32_t act_order;
    int32_t quantized;       /* 1 = a target, 0 = in an ignore list */
    uint32_t allow;          /* DAVIT_QUANT_ALLOW_ bits: what the user asked for */
    const char *status;      /* "compressed", "frozen", "dense" */
    uint64_t ambiguous;      /* 1 = two groups of the configuration fit the module equally */
} davit_quant_settings;

#define DAVIT_QUANT_ALLOW_SCALE_DTYPE 1u /* one-number scales may be BF16 or F16 */
#define DAVIT_QUANT_ALLOW_FP8_AS_U8   2u /* FP8 codes may be declared U8 or I8 */
#define DAVIT_QUANT_ALLOW_ZEROS_V1    4u /* GPTQ zeros are of this kind, whatever is stated */
#define DAVIT_QUANT_ALLOW_ZEROS_V2    8u
#define DAVIT_QUANT_ALLOW_PADDED_GRID 16u /* FP8 block scales may have more rows or columns */

/* The tensors of a module, sorted by suffix, each suffix once. All (borrowed) the call. */
typedef struct davit_quant_module {
    uint64_t struct_size;
    const char *name; /* module name as stored; NULL in claim */
    const davit_quant_part_in *const *parts;
    uint64_t n_parts; /* >= 1; may be more than the layout has: what it does not know is not its */
    const davit_config *config;  /* settings of the architecture; may be NULL (bare file) */
    uint64_t want_rank;          /* 2 = matrix, 3 = stacked experts, 1 = vector, 0 = any */
    const davit_quant_settings *settings; /* NULL = no quantisation block, and in claim */
    /* Stored bytes of parts[@part], for small companions that decide the shape (at most
     * DAVIT_QUANT_PEEK bytes); costs a read, so only where headers do not suffice. NULL if
     * it is larger or cannot be read. (borrowed) the call. NULL in claim. */
    const uint8_t *(*peek)(void *peek_ctx, uint64_t part, uint64_t *out_bytes);
    void *peek_ctx;
} davit_quant_module;

#define DAVIT_QUANT_PEEK 1048576

/* Stored part of a checked module. */
typedef struct davit_quant_part {
    uint64_t struct_size;
    const char *role;   /* "weight" "scale" "zero" "g_idx" "global_scale" ... */
    uint64_t index;     /* into davit_quant_module.parts */
    uint64_t row_bytes; /* bytes of one logical output row, when rows lie one after another;
                         * 0 = rows of this part are not contiguous */
} davit_quant_part;

/* ---- CODES: one description for all rows of a module, known from headers ---- */

/* What a code stands for. UINT: value = scale * (code - zero), or scale * code + min; the
 * others: value = scale * f(code), no zero. */
#define DAVIT_CODE_UINT 0u
#define DAVIT_CODE_E2M1 1u /* 4 bits: 0 .5 1 1.5 2 3 4 6 and their negatives */
#define DAVIT_CODE_E4M3 2u /* 8 bits; 0x7F and 0xFF do not occur (verify) */
#define DAVIT_CODE_E5M2 3u /* 8 bits; no infinity, no NaN (verify) */
#define DAVIT_CODE_NF4  4u /* 4 bits: table of bitsandbytes' nf4 */
#define DAVIT_CODE_FP4  5u /* 4 bits: table of bitsandbytes' fp4 */
#define DAVIT_CODE_IQ4  6u /* 4 bits: table of GGUF's IQ4_NL */
/* No codes: values of scale_type F16 or BF16 (16 bits) or F32 (32), without scales. Never a plugin's
 * description: the host's, for plain modules that lie in one weight with packed ones (DAVIT_PACK_PLAIN). */
#define DAVIT_CODE_PLAIN 7u

/* A type that holds every scale of the module exactly: packed copies keep them in it. */
#define DAVIT_SCALE_F32  0u
#define DAVIT_SCALE_F16  1u
#define DAVIT_SCALE_BF16 2u
#define DAVIT_SCALE_E8M0 3u /* powers of two, 2^-127 to 2^127 */
#define DAVIT_SCALE_E4M3 4u /* scale = e4m3 * factor, or e4m3 / factor: davit_quant_out */

/* A type that holds every zero (UINT) exactly. */
#define DAVIT_ZERO_CONST 0u /* all are davit_quant_codes.zero */
#define DAVIT_ZERO_U4    1u /* integers 0..15 */
#define DAVIT_ZERO_U4_1  2u /* integers 1..16 */
#define DAVIT_ZERO_U8    3u /* integers 0..255 */
#define DAVIT_ZERO_U8_1  4u /* integers 1..256 */
#define DAVIT_ZERO_F32   5u
#define DAVIT_MIN_F32    6u /* minima to add instead of zeros */
#define DAVIT_MIN_F16    7u

#define DAVIT_CODES_MAP 1u /* code column j belongs to input cols[j]; the same for all rows */
#define DAVIT_CODES_NONE UINT32_MAX /* cols[j] of a code column without an input */
#define DAVIT_CODES_FACTORS 2u /* each input has a factor: the value of a code times it, at the end;
                                * the same for all rows (ModelOpt's pre_quant_scale) */

/* The weight params of a layout that was packed from CODES are the bytes of this struct. */
typedef struct davit_quant_codes {
    uint64_t group;      /* code columns that share scale and zero; the last group may be
                          * short; 0 = the whole row. Packed where 0, or a multiple of 16 */
    uint64_t scale_rows; /* rows that share scales and zeros, from row 0 on; 0 = 1 */
    uint32_t bits;       /* 1..8, codes are below 2^bits; 0 = no description: never packed; 16, 32: PLAIN */
    uint32_t kind;       /* DAVIT_CODE_ */
    uint32_t scale_type; /* DAVIT_SCALE_ */
    uint32_t zero_type;  /* DAVIT_ZERO_ or DAVIT_MIN_ */
    uint32_t flags;      /* DAVIT_CODES_ */
    float zero;          /* ZERO_CONST */
    /* MAP: code columns, a multiple of group and at least K, where some have no input: columns in an
     * order of their own whose groups are of any size are filled up. 0 = K. */
    uint64_t n_cols;
} davit_quant_codes;

/* What a module is, after check. Logical matrix: E experts of N output rows, K inputs. Comes
 * with struct_size set and zeros; strings are (static). */
typedef struct davit_quant_desc {
    uint64_t struct_size; /* set by the host */
    const char *scheme; /* "dense/1" "gguf/1" "awq/1" */
    const char *layout; /* stored layout: "bf16/1" "q4_k/1" "awq_gemm/1"; (static) */
    uint64_t n_experts; /* E, 1 for a matrix */
    uint64_t n_rows;    /* N */
    uint64_t n_cols;    /* K; 1 for a vector (then N is its length) */
    uint64_t row_unit;  /* rows may be cut at multiples of this (1 = anywhere) */
    uint64_t col_unit;  /* columns may be cut at multiples of this; 0 = not at all */
    uint64_t params[8]; /* the scheme's own numbers (group size, bits ...), meaning in its README */
    davit_quant_part parts[DAVIT_MAX_PARTS];
    uint32_t n_parts;   /* 1..DAVIT_MAX_PARTS: parts that decode reads, each once */
    uint32_t forms;     /* DAVIT_FORM_ bits that decode offers; F32 always */
    davit_quant_codes codes; /* CODES: filled by check; zeros = not described */
} davit_quant_desc;

#define DAVIT_FORM_F32   1u /* canonical float32 */
#define DAVIT_FORM_CODES 2u /* codes, scales, zeros per group, exact */

/* Bytes of one stored part in memory, without alignment. (borrowed) the call, read only. */
typedef struct davit_quant_bytes {
    const uint8_t *ptr;
    uint64_t n_bytes; /* of the tensor's header */
} davit_quant_bytes;

/* Rows [row, row+n_rows) x columns [col, col+n_cols) of expert @expert. */
typedef struct davit_quant_tile {
    uint64_t struct_size;
    const davit_quant_desc *desc;
    const davit_quant_bytes *parts; /* [desc->n_parts], whole stored parts of the module */
    uint64_t expert;                /* < E */
    uint64_t row;                   /* any; row + n_rows <= N */
    uint64_t n_rows;                /* 0 in verify only */
    uint64_t col;    /* multiple of col_unit (any value if col_unit is 1) */
    uint64_t n_cols; /* multiple of col_unit or up to K */
} davit_quant_tile;

/* Where decode writes. F32: values[n_rows][stride]. CODES: value = scale * (code - zero) or
 * scale * code + min, see has_min, or by davit_quant_codes.kind; equal to F32 in every bit.
 * CODES is asked for whole rows; group and scale count code columns, of which there may be more than
 * K (davit_quant_codes.n_cols). All arrays are the host's, (filled) during the call; those of the other form are NULL. With SCALE_E4M3 scales
 * holds the e4m3 values, and the scale is scale * factor, or scale / factor if divide. */
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
    uint32_t *cols;      /* CODES with a MAP: [code columns], set by decode; else NULL */
    float factor;        /* CODES with SCALE_E4M3: set by decode */
    uint32_t divide;     /* 1 = divide by factor */
    float *factors;      /* CODES with FACTORS: [K], in the order of inputs, set by decode; else NULL */
} davit_quant_out;

/* ---- cuts: what one of several ranks takes of a module ---- */

/* Experts, rows and columns of a module's matrix. */
typedef struct davit_quant_box {
    uint64_t struct_size;
    uint64_t expert, n_experts; /* expert + n_experts <= E, as for the others; none is empty */
    uint64_t row, n_rows;
    uint64_t col, n_cols;
} davit_quant_box;

/* Bytes of one stored part: @n_planes times @n_runs runs of @n_bytes, one after another the part
 * of the smaller module. n_bytes 0 = the whole tensor, which every rank then reads. */
typedef struct davit_quant_range {
    uint64_t struct_size;
    uint64_t off;      /* of the first run, from the tensor's first byte */
    uint64_t n_bytes;  /* of a run */
    uint64_t n_runs;   /* of a plane */
    uint64_t stride;   /* from the start of a run to that of the next */
    uint64_t n_planes; /* experts; 1 where they share the part, or lie without a gap */
    uint64_t plane;    /* from the start of a plane to that of the next */
} davit_quant_range;

/* A box as a module of its own: the same scheme, layout and parts, smaller. */
typedef struct davit_quant_cut {
    uint64_t struct_size;
    davit_quant_desc desc; /* its E, N, K are the box's */
    davit_quant_range ranges[DAVIT_MAX_PARTS]; /* [desc.n_parts] */
} davit_quant_cut;

#define DAVIT_QUANT_OTHER 1 /* answer of check: not this plugin's layout after all */

typedef struct davit_quant_iface {
    uint64_t struct_size; /* DAVIT_END(davit_quant_iface, cut) */

    /* Is a module with these suffixes, dtypes and ranks ours? Asked once per distinct
     * signature. Fills *out (score 0..1000: the highest is asked to check first) and returns
     * DAVIT_OK; a negative status counts as DECLINE. REFUSE = recognised by name but not readable
     * here, with a record. Required. [any thread] */
    int32_t (*claim)(void *self, const davit_quant_module *signature, davit_verdict *out,
                     const davit_sink *sink);

    /* Check one module from headers; fill *out. Returns DAVIT_QUANT_OTHER without a record
     * when the shapes show another layout of the same signature: the next plugin that
     * accepted it is asked. Errors: DAVIT_E_CORRUPT, _MISMATCH, _UNSUPPORTED with records
     * naming tensor, found and expected. Required. [any thread] */
    int32_t (*check)(void *self, const davit_quant_module *module, davit_quant_desc *out,
                     const davit_sink *sink);

    /* Check payload values (scales finite ...) of rows [tile]. Cheap where it can be: a tile
     * of no rows (n_rows 0) asks for the companions that all rows share. Errors: DAVIT_E_CORRUPT
     * with a record that names row and value. NULL = nothing to check. [any thread] */
    int32_t (*verify)(void *self, const davit_quant_tile *tile, const davit_sink *sink);

    /* Decode a tile of a module that passed check and verify, into *out. Cannot fail: it stays
     * inside parts and arrays whatever the bytes are. Pure; the same bits on every machine, any
     * tile equal to that part of the whole. Required. [any thread] */
    void (*decode)(void *self, const davit_quant_tile *tile, davit_quant_out *out);

    /* Make a module of @box of a module that passed check: which bytes of each part it takes, and
     * its description, so that decode of it is that part of the whole. *out comes with struct_size
     * set and zeros. Errors: DAVIT_E_UNSUPPORTED with a record (expected: the unit in which the
     * layout can be cut, found: the box) where a group, block or word would be cut. NULL = rows can
     * be cut where all parts have row_bytes, at multiples of row_unit, columns never. [any thread] */
    int32_t (*cut)(void *self, const davit_quant_desc *desc, const davit_quant_box *box,
                   davit_quant_cut *out, const davit_sink *sink);
} davit_quant_iface;

#ifdef __cplusplus
}
#endif
#endif
