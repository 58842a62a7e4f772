/* SPDX-License-Identifier: Apache-2.0
 * Two places that state the same quantisation: where they contradict each other is told, and the first
 * takes what it lacks. */
#include <inttypes.h>
#include <string.h>

#include "plan/quant_config_private.h"

static void conflict(const DavitQuantConfig *a, const DavitQuantConfig *b, const char *what,
                     const char *x, const char *y, DavitReport *report)
{
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_QUANT_CONFIG_CONFLICT,
                                     .status = DAVIT_E_MISMATCH,
                                     .stage = "config",
                                     .subject = what,
                                     .expected = davit_report_text(report, "%s in %s", x,
                                                                   a->base.source),
                                     .found = davit_report_text(report, "%s in %s", y,
                                                                b->base.source),
                                     .message = "two places contradict each other about the "
                                                "quantisation",
                                     .hint = "correct the one that is not as the tensors are"});
}

static void compare_texts(const DavitQuantConfig *a, const DavitQuantConfig *b,
                          const char *what, const char *x, const char *y,
                          DavitReport *report)
{
    if (x && y && strcmp(x, y) != 0)
        conflict(a, b, what, x, y, report);
}

static void compare_numbers(const DavitQuantConfig *a, const DavitQuantConfig *b,
                            const char *what, int64_t x, int64_t y, DavitReport *report)
{
    if (x && y && x != y)
        conflict(a, b, what, davit_report_text(report, "%" PRId64, x),
                 davit_report_text(report, "%" PRId64, y), report);
}

/* Nothing is read by these alone, so that the model may run: the tensors decide. */
static void compare_flags(const DavitQuantConfig *a, const DavitQuantConfig *b, const char *what,
                          int32_t x, int32_t y, DavitReport *report)
{
    static const char *const words[] = {"false", "true"};

    if (x < 0 || y < 0 || x == y)
        return;
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_QUANT_CONFIG_CONFLICT,
                                     .severity = DAVIT_WARNING,
                                     .stage = "config",
                                     .subject = what,
                                     .expected = davit_report_text(report, "%s in %s", words[x],
                                                                   a->base.source),
                                     .found = davit_report_text(report, "%s in %s", words[y],
                                                                b->base.source),
                                     .message = "two places contradict each other about the "
                                                "quantisation; the first counts",
                                     .hint = "make them agree: other programs read the other one"});
}

/* Groups of two blocks of one file: a copy that is not one. Files of two kinds state theirs in
 * different words. */
static void compare_groups(const DavitQuantConfig *a, const DavitQuantConfig *b, DavitReport *report)
{
    compare_numbers(a, b, "config_groups, number", a->groups->len, b->groups->len, report);
    for (guint i = 0; i < MIN(a->groups->len, b->groups->len); i++) {
        const davit_quant_settings *x = &g_array_index(a->groups, davit_quant_settings, i);
        const davit_quant_settings *y = &g_array_index(b->groups, davit_quant_settings, i);

        compare_texts(a, b, "config_groups: format", x->format, y->format, report);
        compare_texts(a, b, "config_groups: type", x->type, y->type, report);
        compare_texts(a, b, "config_groups: strategy", x->strategy, y->strategy, report);
        compare_numbers(a, b, "config_groups: num_bits", x->bits, y->bits, report);
        compare_numbers(a, b, "config_groups: group_size", x->group, y->group, report);
        compare_flags(a, b, "config_groups: symmetric", x->symmetric, y->symmetric, report);
    }
}

void davit_quant_config_merge(DavitQuantConfig *q, DavitQuantConfig *other, DavitReport *report)
{
    const davit_quant_settings *b = &other->base;
    davit_quant_settings *a = &q->base;

    compare_texts(q, other, "quant_method", a->method, b->method, report);
    compare_texts(q, other, "format", a->format, b->format, report);
    compare_texts(q, other, "kv_cache", q->cache.type, other->cache.type, report);
    compare_numbers(q, other, "bits", a->bits, b->bits, report);
    compare_numbers(q, other, "group_size", a->group, b->group, report);
    compare_numbers(q, other, "weight_block_size, rows", a->block_rows, b->block_rows, report);
    compare_numbers(q, other, "weight_block_size, columns", a->block_cols, b->block_cols, report);
    compare_flags(q, other, "sym", a->symmetric, b->symmetric, report);
    compare_flags(q, other, "desc_act", a->act_order, b->act_order, report);
    if (g_str_has_prefix(b->source, "config.json:"))
        compare_groups(q, other, report);
    if (!q->cache.type && other->cache.type)
        q->cache.type = g_string_chunk_insert_const(q->texts, other->cache.type);
    if (!q->cache.strategy && other->cache.strategy)
        q->cache.strategy = g_string_chunk_insert_const(q->texts, other->cache.strategy);
    if (!a->format && b->format)
        a->format = g_string_chunk_insert_const(q->texts, b->format);
    a->bits = a->bits ? a->bits : b->bits;
    a->group = a->group ? a->group : b->group;
    if (!a->block_rows) {
        a->block_rows = b->block_rows;
        a->block_cols = b->block_cols;
    }
    a->symmetric = a->symmetric >= 0 ? a->symmetric : b->symmetric;
    a->act_order = a->act_order >= 0 ? a->act_order : b->act_order;
    if (q->ignore.patterns->len == 0) { /* the other file's list, which nobody repeats */
        GArray *none = q->ignore.patterns;

        q->ignore.patterns = other->ignore.patterns;
        other->ignore.patterns = none;
    }
}
