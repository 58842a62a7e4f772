/* SPDX-License-Identifier: Apache-2.0
 * Source texts of slot tables: "self_attn.qkv_proj#rows(0,nh*hd)", "attn_q~perm(nh)".
 * Grammar and meaning of each transform: davit/arch.h, "slots".
 */
#ifndef DAVIT_PLAN_TRANSFORM_H
#define DAVIT_PLAN_TRANSFORM_H

#include "config/expr.h"
#include "plan/draft.h"

typedef enum DavitTransformKind {
    DAVIT_TRANSFORM_ROWS, /* args first, count */
    DAVIT_TRANSFORM_HALF, /* args i[, 1] */
    DAVIT_TRANSFORM_STACK,
    DAVIT_TRANSFORM_PERM, /* args heads */
    DAVIT_TRANSFORM_T,
    DAVIT_TRANSFORM_ADD1,
    DAVIT_TRANSFORM_NEG_EXP,
} DavitTransformKind;

typedef struct DavitTransform {
    DavitTransformKind kind;
    char *args; /* (owned) expressions, NULL = none: they may depend on the layer */
} DavitTransform;

#define DAVIT_MAX_TRANSFORMS 6

/* One alternative of a slot's sources. */
typedef struct DavitSourceSpec {
    char *name;       /* (owned) module name without prefix; may hold "{i}" and one '*' */
    bool star;        /* gathers experts */
    bool layer_named; /* the name holds "{i}" itself */
    bool exact;       /* the name is a tensor's, without an implied ".weight" */
    size_t n_transforms;
    DavitTransform transforms[DAVIT_MAX_TRANSFORMS];
} DavitSourceSpec;

/* Parse the '|'-joined alternatives of @text; @mark is '#' or '~'. @slot names the slot
 * in records. Returns: (owned) DavitSourceSpec, or NULL with records: a fault of the
 * plugin's table. */
GArray *davit_sources_parse(const char *text, char mark, const char *slot,
                            DavitReport *report);

/* Rows of a module that a source takes, before and after transforms. With
 * DAVIT_VALUE_TRANSPOSE rows are stored columns. */
typedef struct DavitWindow {
    uint64_t n_experts;
    uint64_t row, n_rows;
    uint64_t n_cols;
    uint64_t perm_heads;
    uint32_t value_ops;
    bool oriented; /* rows are outputs already: T has nothing to swap */
} DavitWindow;

/* Apply @spec's transforms to @window (filled from the module). Errors name @slot: rows
 * outside the module, heads that do not divide, an order of transforms that is not
 * supported. */
int32_t davit_source_apply(const DavitSourceSpec *spec, const DavitScope *scope,
                           const char *slot, DavitWindow *window, DavitReport *report);

/* True if perm is all that @spec does. */
bool davit_source_only_perm(const DavitSourceSpec *spec);

/* A fault of an architecture's tables or forward, in one record. Returns its status. */
int32_t davit_arch_fault(const char *subject, const char *found, const char *message,
                         DavitReport *report);

#endif
