/* SPDX-License-Identifier: Apache-2.0
 * One slot at a time. A rank's part of a slot is a box of each of its modules, which the
 * quant plugin turns into a module of its own; so what follows in the plan knows nothing
 * of ranks. */
#include "plan/cut.h"

#include <string.h>

#include "plan/cutter.h"

static void set_cut(DavitSlot *slot, const char *how, uint64_t first, uint64_t whole)
{
    slot->cut = how;
    slot->cut_first = first;
    slot->cut_whole = whole;
}

/* The sources of @slot become those of the box. */
static int32_t cut_sources(DavitCutter *c, DavitSlot *slot, bool columns, uint64_t first,
                           uint64_t n, DavitReport *said)
{
    const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;
    size_t kept = 0;

    for (size_t s = 0; s < slot->n_sources; s++) {
        DavitSlotSource source = slot->sources[s];
        davit_quant_box box;
        int32_t status;

        if (!davit_cut_box(slot, &source, columns, first, n, &box))
            continue;
        status = davit_module_cut(c->draft, source.module, &box, &source.module, said);
        if (status)
            return status;
        source.expert = 0;
        source.row = 0;
        if (!columns) {
            source.slot_row = source.slot_row > first ? source.slot_row - first : 0;
            source.n_rows = turned ? box.n_cols : box.n_rows;
        }
        slot->sources[kept++] = source;
    }
    slot->n_sources = kept;
    return DAVIT_OK;
}

static void cut_matrix(DavitCutter *c, guint i, uint64_t first, uint64_t n)
{
    const DavitAxis *axis = &c->axes[i];
    const bool columns = axis->kind == DAVIT_AXIS_COLUMNS;
    DavitSlot *slot = davit_cut_slot(c, i);
    const uint64_t whole = columns ? slot->n_cols : slot->n_rows;
    g_autoptr(DavitReport) said = davit_report_new();

    if (davit_cut_try(c, slot, columns, first, n, said) ||
        cut_sources(c, slot, columns, first, n, said)) {
        davit_cut_refuse_layout(c, i, said);
        return;
    }
    if (columns) {
        slot->n_cols = slot->shape[slot->rank - 1] = n;
        set_cut(slot, "columns", first, whole);
        return;
    }
    if (slot->perm_heads)
        slot->perm_heads = slot->perm_heads * n / whole;
    slot->n_rows = slot->shape[slot->rank == 3 ? 1 : 0] = n;
    set_cut(slot,
            axis->kind == DAVIT_AXIS_VOCAB               ? "vocabulary rows"
            : axis->kind == DAVIT_AXIS_EXPERTS           ? "experts"
            : whole / axis->unit < c->draft->options->tp ? "rows, shared"
                                                         : "rows",
            first, whole);
}

/* Experts of a module that has several are a box of it as well. */
static void cut_experts(DavitCutter *c, guint i, uint64_t first, uint64_t n)
{
    DavitSlot *slot = davit_cut_slot(c, i);
    g_autoptr(DavitReport) said = davit_report_new();
    size_t kept = 0;

    for (size_t s = 0; s < slot->n_sources; s++) {
        DavitSlotSource source = slot->sources[s];
        const uint64_t from = MAX(source.slot_expert, first);
        const uint64_t to = MIN(source.slot_expert + source.n_experts, first + n);

        if (from >= to)
            continue;
        source.expert += from - source.slot_expert;
        source.n_experts = to - from;
        source.slot_expert = from - first;
        slot->sources[kept++] = source;
    }
    slot->n_sources = kept;
    if (cut_sources(c, slot, false, 0, slot->n_rows, said)) {
        davit_cut_refuse_layout(c, i, said);
        return;
    }
    set_cut(slot, "experts", first, slot->n_experts);
    slot->n_experts = n;
    slot->shape[0] = n;
}

static void cut_slot(DavitCutter *c, guint i)
{
    uint64_t first, n;

    if (c->axes[i].kind == DAVIT_AXIS_KEEP ||
        !davit_cut_share(c, i, c->draft->options->tp, c->draft->options->rank, &first,
                         &n))
        return;
    if (c->axes[i].kind == DAVIT_AXIS_EXPERTS && davit_cut_slot(c, i)->rank == 3)
        cut_experts(c, i, first, n);
    else
        cut_matrix(c, i, first, n);
}

/* Rows of a matrix that is fused on disk, where they do not lie one after another: as a
 * module of their own they are read without the others. Where the layout cannot, they are
 * read with them. */
static void cut_windows(DavitCutter *c)
{
    for (guint i = 0; i < c->draft->slots->len; i++) {
        DavitSlot *slot = davit_cut_slot(c, i);
        const DavitModule *module =
            davit_cut_has_bytes(slot) ? slot->sources[0].module : NULL;
        bool apart = false;

        if (!module || slot->value_ops || slot->perm_heads ||
            slot->sources[0].n_rows == module->desc->n_rows)
            continue;
        for (uint32_t p = 0; p < module->desc->n_parts; p++)
            apart |= module->desc->parts[p].row_bytes == 0;
        if (apart && davit_cut_fits(c, slot, false, 0, slot->n_rows)) {
            g_autoptr(DavitReport) said = davit_report_new();

            cut_sources(c, slot, false, 0, slot->n_rows, said); /* just tried */
        }
    }
}

/* A tied slot has the shape of what it shares. */
static void follow_ties(DavitCutter *c)
{
    for (guint i = 0; i < c->draft->slots->len; i++) {
        DavitSlot *slot = davit_cut_slot(c, i);
        const DavitSlot *owner =
            slot->tied_to < 0 ? NULL : davit_cut_slot(c, (guint)slot->tied_to);

        if (!owner || !owner->cut)
            continue;
        slot->n_rows = owner->n_rows;
        memcpy(slot->shape, owner->shape, sizeof slot->shape);
        set_cut(slot, owner->cut, owner->cut_first, owner->cut_whole);
    }
}

static void cut_ranks(DavitCutter *c)
{
    bool fits_all = true;

    for (guint i = 0; i < c->draft->slots->len; i++) {
        if (!davit_cut_has_bytes(davit_cut_slot(c, i)) ||
            davit_axis_read(c->draft, davit_cut_slot(c, i), &c->axes[i]))
            c->axes[i].kind = DAVIT_AXIS_KEEP;
        c->kind[i] = c->axes[i].kind != DAVIT_AXIS_KEEP && davit_cut_is_new_kind(c, i);
    }
    for (guint i = 0; i < c->draft->slots->len; i++)
        if (c->kind[i])
            fits_all &= davit_cut_check(c, i);
    for (guint i = 0; fits_all && i < c->draft->slots->len; i++)
        cut_slot(c, i);
    follow_ties(c);
}

void davit_cut_slots(DavitDraft *draft)
{
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GArray) splits = davit_splits_new();
    g_autofree DavitAxis *axes = g_new0(DavitAxis, draft->slots->len + 1);
    g_autofree bool *kind = g_new0(bool, draft->slots->len + 1);
    DavitCutter c = {
        .draft = draft, .axes = axes, .splits = splits, .kind = kind, .told = told};

    draft->plan->tp = MAX(draft->options->tp, 1);
    draft->plan->rank = draft->options->rank;
    if (draft->plan->tp == 1)
        cut_windows(&c);
    else
        cut_ranks(&c);
}
