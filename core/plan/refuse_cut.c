/* SPDX-License-Identifier: Apache-2.0
 * Slots that cannot be cut for so many ranks: which, why, and what number would do. */
#include <string.h>

#include "plan/cutter.h"

#define MOST_RANKS 64u /* counts that are tried for the hint */

/* Does slot @i stand for all of its kind: the first of its id, or of another size or
 * layout than the one before it? */
bool davit_cut_is_new_kind(const DavitCutter *c, guint i)
{
    const DavitSlot *slot = davit_cut_slot(c, i);

    for (guint k = i; k > 0; k--) {
        const DavitSlot *other = davit_cut_slot(c, k - 1);

        if (strcmp(other->id, slot->id) != 0)
            continue;
        return !davit_cut_has_bytes(other) || other->n_rows != slot->n_rows ||
               other->n_cols != slot->n_cols || other->n_experts != slot->n_experts ||
               other->stored_layout != slot->stored_layout;
    }
    return true;
}

/* (owned by the report) The first dozen counts up to 64 for which slot @i can be cut, or
 * (everything) all slots. */
static const char *counts_that_work(DavitCutter *c, guint i, bool everything)
{
    const guint first = everything ? 0 : i,
                last = everything ? c->draft->slots->len : i + 1;
    g_autoptr(GString) text = g_string_new("1");
    unsigned shown = 1;

    for (unsigned tp = 2; tp <= MOST_RANKS && shown < 12; tp++) {
        bool fit = true;

        for (guint k = first; fit && k < last; k++)
            fit = c->axes[k].kind == DAVIT_AXIS_KEEP || (everything && !c->kind[k]) ||
                  davit_cut_all_fit(c, k, tp);
        if (!fit)
            continue;
        g_string_append_printf(text, ", %u", tp);
        shown++;
    }
    return davit_report_text(c->draft->report, "%s", text->str);
}

static const char *unit_word(const DavitAxis *axis)
{
    return axis->kind == DAVIT_AXIS_EXPERTS   ? "experts"
           : axis->kind == DAVIT_AXIS_VOCAB   ? "rows of the vocabulary"
           : axis->unit > 1                   ? "heads"
           : axis->kind == DAVIT_AXIS_COLUMNS ? "columns"
                                              : "rows";
}

static void refuse(DavitCutter *c, guint i, uint32_t code, const char *who,
                   const char *expected, const char *found, const char *message)
{
    DavitReport *report = c->draft->report;

    if (!g_hash_table_add(c->told, davit_cut_slot(c, i)->id))
        return;
    if (!c->together)
        c->together = counts_that_work(c, i, true);
    davit_report_add(
        report,
        &(DavitFinding){
            .code = code,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "plan",
            .who = who,
            .subject = davit_cut_slot(c, i)->id,
            .expected = davit_report_text(report, "%s: %s", expected,
                                          counts_that_work(c, i, false)),
            .found = found,
            .message = message,
            .hint = davit_report_text(
                report, "numbers of ranks that the whole model takes: %s", c->together)});
}

static void refuse_count(DavitCutter *c, guint i)
{
    DavitReport *report = c->draft->report;

    refuse(c, i, DAVIT_R_CONFIG_UNSUPPORTED, NULL,
           davit_report_text(report, "a number of ranks that shares out %" PRIu64 " %s",
                             davit_axis_units(&c->axes[i], davit_cut_slot(c, i)),
                             unit_word(&c->axes[i])),
           davit_report_text(report, "--tp %u", c->draft->options->tp),
           "the slot cannot be cut for so many ranks");
}

/* The layout's own record, with the slot's name and the counts. */
void davit_cut_refuse_layout(DavitCutter *c, guint i, const DavitReport *said)
{
    const DavitRecord *r = davit_report_first_error(said, 0);
    DavitReport *report = c->draft->report;

    refuse(c, i, DAVIT_R_QUANT_PARAMS, r ? r->who : NULL,
           davit_report_text(report, "%s; numbers of ranks that fit",
                             r && r->expected ? r->expected : "whole units"),
           davit_report_text(report, "%s with --tp %u",
                             r && r->found ? r->found : "a part", c->draft->options->tp),
           davit_report_text(report, "the stored layout %s cannot be cut there",
                             davit_cut_slot(c, i)->stored_layout));
}

/* The layout's record for the first rank of @tp whose share of @unit it does not take.
 * False: it takes all. */
static bool refuse_shares(DavitCutter *c, guint i)
{
    const unsigned tp = c->draft->options->tp;
    const DavitAxis *axis = &c->axes[i];

    for (unsigned r = 0; r < tp; r++) {
        g_autoptr(DavitReport) said = davit_report_new();
        const uint64_t all = davit_axis_units(axis, davit_cut_slot(c, i));
        uint64_t first = all * r / tp, n = all * (r + 1) / tp - first;

        /* the equal shares are what was wanted; a unit of many rows may be why there are
         * none */
        if (!davit_axis_is_loose(axis) && !davit_cut_share(c, i, tp, r, &first, &n))
            return false;
        if (n == 0 || !davit_cut_try(c, davit_cut_slot(c, i),
                                     axis->kind == DAVIT_AXIS_COLUMNS, first, n, said))
            continue;
        davit_cut_refuse_layout(c, i, said);
        return true;
    }
    return false;
}

/* Slots that share an extent are refused together: the record belongs to those that take
 * no unit even alone; where all would, to the first. */
static bool is_told_by_another(const DavitCutter *c, guint i)
{
    const unsigned tp = c->draft->options->tp;
    const uint64_t all = davit_axis_units(&c->axes[i], davit_cut_slot(c, i));

    if (all < tp || !davit_cut_unit(c, i, tp, true))
        return false;
    for (guint k = 0; k < c->draft->slots->len; k++)
        if (davit_cut_is_of_split(c, k, davit_cut_slot(c, i)->layer, all) &&
            (k < i || (k > i && !davit_cut_unit(c, k, tp, true))))
            return true;
    return false;
}

/* Before anything is cut, for all ranks alike: one record per kind of slot that cannot
 * be. */
bool davit_cut_check(DavitCutter *c, guint i)
{
    const unsigned tp = c->draft->options->tp;
    const bool split =
        c->axes[i].kind != DAVIT_AXIS_EXPERTS && davit_axis_is_loose(&c->axes[i]);

    if (davit_cut_all_fit(c, i, tp))
        return true;
    if (split && is_told_by_another(c, i))
        return false;
    if (c->axes[i].kind == DAVIT_AXIS_EXPERTS || !refuse_shares(c, i))
        refuse_count(c, i);
    return false;
}
