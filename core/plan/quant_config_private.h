/* SPDX-License-Identifier: Apache-2.0
 * What DavitQuantConfig holds. For quant_config.c, quant_groups.c and their tests only.
 */
#ifndef DAVIT_PLAN_QUANT_CONFIG_PRIVATE_H
#define DAVIT_PLAN_QUANT_CONFIG_PRIVATE_H

#include <jansson.h>

#include "plan/quant_config.h"
#include "plan/quant_names.h"

/* A list entry, and the group of settings that it selects. */
typedef struct DavitQuantPattern {
    DavitNamePattern *pattern; /* (owned) */
    size_t group;              /* into DavitQuantConfig.groups */
} DavitQuantPattern;

/* A list with what makes finding fast: a checkpoint may have a hundred thousand modules and name
 * each of them. */
typedef struct DavitQuantList {
    GArray *patterns;  /* (owned) DavitQuantPattern in order */
    GHashTable *plain; /* (owned) text without special signs (pattern's) -> index + 1; once each */
    GArray *rest;      /* (owned) guint: patterns that are not in @plain */
} DavitQuantList;

/* Called with each pattern of a list that covers the module. Returns: true to stop. */
typedef bool (*DavitQuantHit)(const DavitQuantPattern *p, int rank, void *ctx);

/* Fills plain and rest once all patterns are there. */
void davit_quant_list_index(DavitQuantList *list);
void davit_quant_list_clear(DavitQuantList *list);
/* Every pattern of @list that covers @module, plain ones first, the rest in order. */
void davit_quant_list_find(const DavitQuantList *list, const char *module, DavitQuantHit hit,
                           void *ctx);

struct DavitQuantConfig {
    GStringChunk *texts; /* (owned) every text of the settings */
    davit_quant_settings base;
    DavitQuantCache cache;
    DavitQuantList ignore;  /* modules that are left plain */
    DavitQuantList targets; /* empty = everything is a target */
    GArray *groups;   /* (owned) davit_quant_settings of groups and overrides */
    bool first_hit;   /* targets: the first that matches wins, not the best rank */
    bool only_listed; /* modules that no target names are plain */
};

GArray *davit_quant_patterns_new(void);

/* @other states the same facts again: check them, take what @q lacks. */
void davit_quant_config_merge(DavitQuantConfig *q, DavitQuantConfig *other, DavitReport *report);

/* Groups of compressed-tensors, layers of ModelOpt, overrides of GPTQModel. */
void davit_quant_read_groups(DavitQuantConfig *q, const json_t *block,
                             DavitReport *report);

/* Lower-case text of @key, kept by @q; NULL = absent or null. */
const char *davit_quant_text(DavitQuantConfig *q, const json_t *object, const char *key,
                             DavitReport *report);
/* Whole number >= @least and not 0; 0 = absent or null. */
int64_t davit_quant_number(DavitQuantConfig *q, const json_t *object, const char *key,
                           int64_t least, DavitReport *report);
int32_t davit_quant_flag(DavitQuantConfig *q, const json_t *object, const char *key,
                         DavitReport *report);
void davit_quant_value_fault(DavitQuantConfig *q, const char *key, const char *expected,
                             const json_t *found, DavitReport *report);
void davit_quant_unsupported(DavitQuantConfig *q, const char *key, const char *found,
                             const char *message, DavitReport *report);
void davit_quant_add_pattern(DavitQuantConfig *q, DavitNameDialect dialect,
                             const json_t *entry, const char *key, GArray *out,
                             size_t group, DavitReport *report);

#endif
