/* SPDX-License-Identifier: Apache-2.0
 * Lists of module names in quantisation configs. Seven dialects that look alike and mean
 * different things (spec: quantised layouts, 1.5).
 */
#ifndef DAVIT_PLAN_QUANT_NAMES_H
#define DAVIT_PLAN_QUANT_NAMES_H

#include <stdbool.h>

#include <glib.h>

#include "base/report.h"

typedef enum DavitNameDialect {
    DAVIT_NAMES_CT,           /* exact name; "re:" anchored at the start; class name */
    DAVIT_NAMES_TRANSFORMERS, /* regex at the start, with or without a further ".", or end */
    DAVIT_NAMES_SUBSTRING,    /* AutoAWQ, bitsandbytes of old */
    DAVIT_NAMES_EXACT,        /* vLLM's ignored_layers */
    DAVIT_NAMES_WILDCARD,     /* ModelOpt: shell wildcards; "name*" is the subtree */
    DAVIT_NAMES_REGEX,        /* GPTQModel's dynamic: regex at the start */
} DavitNameDialect;

/* One entry of a list. */
typedef struct DavitNamePattern DavitNamePattern;

/* Returns: (owned) or NULL with a record when a regex does not compile; @subject names the
 * list. */
DavitNamePattern *davit_name_pattern_new(DavitNameDialect dialect, const char *text,
                                         const char *subject, DavitReport *report);
void davit_name_pattern_free(DavitNamePattern *pattern); /* NULL is fine */

/* (borrowed) the entry's text if it covers just the module of that name (and, in
 * DAVIT_NAMES_WILDCARD, what lies in it); NULL for classes and for entries with special signs. */
const char *davit_name_pattern_plain(const DavitNamePattern *pattern);

/* Does the entry cover module @name? Wrappers put "language_model." before or after "model."
 * on one side only, so that names are tried with and without it. *out_rank (may be NULL): 0
 * exact, 1 pattern, 2 class. */
bool davit_name_pattern_has(const DavitNamePattern *pattern, const char *name,
                            int *out_rank);

#endif
