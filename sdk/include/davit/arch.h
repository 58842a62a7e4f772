/* SPDX-License-Identifier: Apache-2.0
 * Kind "arch", interface 0.1: what a model is made of, and its forward as a program.
 *
 * An architecture is three tables (settings, slots, tensors to ignore) and one function that
 * records the forward once, at plan time. The core plans, checks, sizes and runs; plugin code
 * never runs in the hot path. build NULL = declared only: inspect, plan and dump work.
 */
#ifndef DAVIT_ARCH_H
#define DAVIT_ARCH_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ----
 *
 * One row per symbol. Symbols are what shapes and conditions are written in.
 * Expressions: integers, symbols, + - * / (exact division), ( ), ceildiv(a,b), roundup(a,b),
 * min(a,b), max(a,b); conditions also == != < <= > >= && || ! %. `i` is the layer index.
 * In an expression a bool is 0 or 1, a str with a bound list its index in that list, and a
 * per-layer symbol its value for layer `i`; floats and other strs cannot be used.
 *
 * Rows are evaluated in order; an expression uses earlier rows only. Symbols that the core
 * itself reads: V vocabulary, L layers (required, before the first per-layer row), max_pos
 * context, tie (bool), hd head width, and for rotary embedding theta, theta_local (there =
 * sliding_attention layers use it unscaled unless the file nests its rope), partial (there =
 * the architecture reads partial_rotary_factor), truncate (yarn's, where the file does not say). */
typedef struct davit_config_row { /* all strings (static) */
    const char *sym;  /* "nkv": letters, digits and _, at most 63, once per table */
    /* "int" "float" "bool" "str", or with a trailing '*' a per-layer array (one value in the
     * file stands for all layers); "layers" = a list of layer indexes, the symbol is 1 for
     * those layers and 0 for the others */
    const char *type;
    const char *json; /* spellings in config.json, '|'-joined, first that is not null wins;
                       * '.' nests; NULL = none */
    const char *gguf; /* key after "<arch>.", '|'-joined; a leading '/' = whole key; NULL = none.
                       * A str may be a number there: its index in the bound list */
    /* Value when the key is absent: an expression, a decimal number for float, a word for str
     * ("=EXPR" = index in the bound list); "" = required. Class defaults:
     * "mistral:4096, qwen2:0, 1" = by model_type (innermost first; of a GGUF its architecture,
     * then the word gguf), the last without a colon for all others ("mistral:4096, " =
     * required for all others). A float default may be the symbol of an earlier float. */
    const char *absent;
    const char *null; /* value when the key is null, same grammar; NULL = as absent */
    const char *bound; /* "lo..hi" inclusive for numbers, each an expression or, for float, a
                        * decimal number; "a|b|c" for str; NULL = any. A str outside its list
                        * is refused as config-unsupported. */
} davit_config_row;

/* ---- slots ----
 *
 * Several rows may have one id when their conditions exclude each other (a bias that a flag
 * requires, and the same bias optional without the flag).
 *
 * Transforms are written after '#' (Hugging Face) or '~' (GGUF), left to right, and take the
 * stored tensor to the slot:
 *   rows(a,n)   rows a .. a+n-1                     row: legal on every quantised layout
 *   half(i)     i-th half of the rows; half(i,1) of axis 1 of a stacked tensor       row
 *   stack       gather '*' = expert index into [E,...]                               row
 *   perm(h)     undo the converter's rotary row order of h heads                     row
 *   T           swap the last two axes; not where quantised: rows are outputs there  value
 *   add1        x + 1;  neg_exp  -exp(x)                                             value
 * A slot whose only transform is perm and whose row flags hold DAVIT_SLOT_ROPE may stay in
 * stored order; slot_flags then says DAVIT_SLOT_INTERLEAVED and the forward uses INTER. */
typedef struct davit_slot_row { /* all strings (static) */
    const char *id;    /* "attn.q" */
    const char *scope; /* "G" one for the model, "L" one per layer */
    const char *when;  /* condition; NULL = always */
    const char *shape; /* "nh*hd,H" outermost first */
    /* Sources without prefix, '|' = alternatives, first present wins. ".weight" is implied
     * unless the name ends in ".bias" or '!' (exact); "layers.{i}." is implied in scope L
     * unless the name holds "{i}" itself. */
    const char *hf;
    const char *gguf;  /* "attn_q~perm(nh)"; "blk.{i}." and ".weight" implied likewise; NULL = none */
    const char *tp;    /* tensor-parallel axis: "rep" "col:hd" "row:hd" "vocab" "exp" */
    const char *cls;   /* "lin" matrix for linear, "embed", "norm" and "f32" vectors kept as
                        * float32, "exp" stacked expert matrices */
    uint32_t flags;    /* DAVIT_SLOT_ */
    uint32_t reserved;
} davit_slot_row;

#define DAVIT_SLOT_OPTIONAL    1u /* absent in the file is no error */
#define DAVIT_SLOT_ROPE        2u /* rows may stay in rotary inter order */
#define DAVIT_SLOT_HEAD        4u /* output head: falls back to the embedding by the tie rule */
#define DAVIT_SLOT_EMBED       8u /* the embedding that a tied head uses */
/* answered by slot_flags only */
#define DAVIT_SLOT_INTERLEAVED 16u

/* ---- program builder ----
 *
 * Handles are >= 0; -1 = absent. Errors are sticky: after the first, every call returns -1
 * or 0 and the program is refused with the record, so a forward checks nothing. Structs, strings
 * and arrays that are passed in are copied. Valid during build only, on its thread. */
typedef struct davit_builder davit_builder;

#define DAVIT_ROWS_T 0u /* one row per token */
#define DAVIT_ROWS_R 1u /* one row per wanted logit row */

typedef struct davit_op_rec {
    uint64_t struct_size; /* DAVIT_END(davit_op_rec, weight) */
    const char *op;       /* "linear/1" */
    const void *attr;     /* copied; its first field is struct_size; NULL = none */
    int32_t state;        /* handle, -1 = none */
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_weights;
    int32_t in[DAVIT_MAX_IN];          /* values read */
    int32_t out[DAVIT_MAX_OUT];        /* values written; may also be in `in` (in place) */
    int32_t weight[DAVIT_MAX_WEIGHTS]; /* slots or constants, -1 = optional one absent */
} davit_op_rec;

typedef struct davit_build_suite {
    uint64_t struct_size;
    /* (borrowed) build: for the "config" suite. Never NULL. */
    const davit_config *(*config)(davit_builder *b);
    /* Slot @id of @layer (-1 for scope G). -1 if it is optional and absent, its condition does
     * not hold there, or the table has no such id: an op that needs it is then refused. */
    int32_t (*slot)(davit_builder *b, const char *id, int64_t layer);
    /* Size of axis @axis of a slot or constant, 0 = outermost, already cut for this rank. Error:
     * the slot is absent, or has no such axis. */
    uint64_t (*slot_dim)(davit_builder *b, int32_t slot, uint32_t axis);
    uint32_t (*slot_flags)(davit_builder *b, int32_t slot); /* DAVIT_SLOT_; 0 if absent */
    /* A float32 table computed by the plugin, [n_rows, n_cols], at most 2^28 elements; stands
     * where an op takes a vector or table as weight. Error: empty, too large, no memory. */
    int32_t (*constant)(davit_builder *b, const float *data, uint64_t n_rows, uint64_t n_cols);
    /* A new value of @width elements in each row. @dtype "f32/1" or "i32/1"; @rows DAVIT_ROWS_T
     * or _R. Error: another dtype, width 0 or above 2^32. */
    int32_t (*value)(davit_builder *b, const char *dtype, uint32_t rows, uint64_t width);
    uint64_t (*value_width)(davit_builder *b, int32_t value); /* Error: no such value */
    /* A new state; dtype is the host's to choose. Error: a struct without sizes. */
    int32_t (*state)(davit_builder *b, const davit_state_spec *spec);
    /* What follows belongs to layer @i; -1 = to no layer. */
    void (*layer)(davit_builder *b, int64_t i);
    /* Append an op. Error: a handle that is absent where one is needed, or of another kind. */
    void (*op)(davit_builder *b, const davit_op_rec *rec);
    /* Name a value for taps and messages: "layer", "logits". Error: no such value. */
    void (*name)(davit_builder *b, int32_t value, const char *name);
    /* The program's result, [R, V] logits; the last call counts. Error: no such value. */
    void (*output)(davit_builder *b, int32_t value);
    /* Refuse the program with @record, as an error of the plugin's own. */
    void (*fail)(davit_builder *b, const davit_refusal *record);
} davit_build_suite;

/* ---- the interface ---- */

typedef struct davit_arch_iface {
    uint64_t struct_size;    /* DAVIT_END(davit_arch_iface, build) */
    const char *hf;          /* architectures[] names, '|'-joined */
    const char *model_types; /* model_type values, '|'-joined */
    const char *gguf;        /* general.architecture values, '|'-joined; NULL = none */
    const davit_config_row *config; /* rows; the last has sym NULL */
    uint64_t config_stride;  /* sizeof(davit_config_row) of the author's header */
    const davit_slot_row *slots; /* rows; the last has id NULL */
    uint64_t slot_stride;    /* sizeof(davit_slot_row) */
    const char *const *ignore; /* globs of tensor names skipped by rule, each "glob  reason";
                                * beyond those that core skips for all; NULL = none */
    /* Refuse settings that ask for unknown math. @config (borrowed) the call: read it through the
     * "config" suite; every symbol is within its bounds, what they do together is not known.
     * DAVIT_OK, or DAVIT_E_UNSUPPORTED with a record. NULL = nothing to refuse. [any thread] */
    int32_t (*check)(void *self, const davit_config *config, const davit_sink *sink);
    /* Record entry @entry ("decode") into @b with @build, all (borrowed) the call. NULL = declared
     * only. Returns DAVIT_OK, or a negative status with a record (DAVIT_E_UNSUPPORTED for another
     * entry); sticky builder errors count without it. The same program for the same settings and
     * slots. [any thread] */
    int32_t (*build)(void *self, const davit_build_suite *build, davit_builder *b,
                     const char *entry, const davit_sink *sink);
} davit_arch_iface;

#ifdef __cplusplus
}
#endif
#endif
