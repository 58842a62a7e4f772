/* SPDX-License-Identifier: Apache-2.0
 * One slot at a time. The axis is written in the slot table: "col:UNIT" rows of outputs,
 * "row:UNIT" columns of inputs, both in whole units; "vocab" rows in equal shares, the last one
 * shorter; "exp" experts; "rep" nothing. */
#include "plan/cut.h"

#include <string.h>

#define MOST_RANKS 64u /* counts that are tried for the hint */

typedef struct Axis {
    enum { KEEP, ROWS, COLUMNS, VOCAB, EXPERTS } kind;
    uint64_t unit;
    bool heads; /* a unit was named: it means something, and several ranks may hold the same */
} Axis;

static int32_t read_axis(DavitDraft *draft, const DavitSlot *slot, Axis *out)
{
    static const char *const words[] = {"rep", "col", "row", "vocab", "exp"};
    const char *text = slot->row.tp ? slot->row.tp : "rep";
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    DavitConfigScope at = {draft->plan->config, slot->layer};
    const DavitScope scope = {davit_config_lookup, &at};
    int64_t unit = 1;

    for (int k = 0; k < (int)G_N_ELEMENTS(words); k++) {
        if (strlen(words[k]) != n || strncmp(words[k], text, n) != 0)
            continue;
        if (colon && davit_expr_eval(colon + 1, &scope, slot->id, &unit, draft->report))
            return DAVIT_E_UNSUPPORTED;
        out->kind = k;
        out->unit = unit > 0 ? (uint64_t)unit : 1;
        out->heads = colon != NULL;
        return DAVIT_OK;
    }
    return davit_arch_fault(slot->id, text, "the slot table names no known axis",
                            draft->report);
}

/* ---- how many units each rank gets ---- */

/* Units [*first, *first + *n) of @all for @rank of @tp. False: they cannot be shared out. */
static bool share(uint64_t all, unsigned tp, unsigned rank, bool may_share, uint64_t *first,
                  uint64_t *n)
{
    if (all % tp == 0) {
        *n = all / tp;
        *first = rank * *n;
        return true;
    }
    if (may_share && all < tp && tp % all == 0) {
        *n = 1;
        *first = rank / (tp / all);
        return true;
    }
    return false;
}

/* The first dozen counts up to 64 that share out @all units. (owned by the report) */
static const char *counts_that_work(uint64_t all, bool may_share, DavitReport *report)
{
    g_autoptr(GString) text = g_string_new(NULL);
    uint64_t first, n;
    unsigned shown = 0;

    for (unsigned tp = 1; tp <= MOST_RANKS && shown < 12; tp++) {
        if (!share(all, tp, 0, may_share, &first, &n))
            continue;
        g_string_append_printf(text, "%s%u", text->len ? ", " : "", tp);
        shown++;
    }
    return davit_report_text(report, "%s", text->str);
}

static bool same_kind_told(GHashTable *told, const DavitSlot *slot)
{
    return !g_hash_table_add(told, slot->id);
}

static void refuse(DavitDraft *draft, GHashTable *told, const DavitSlot *slot, uint64_t all,
                   const char *what, bool may_share)
{
    DavitReport *report = draft->report;

    if (same_kind_told(told, slot))
        return;
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_CONFIG_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "plan",
            .subject = slot->id,
            .expected = davit_report_text(report, "a number of ranks that shares out %" PRIu64
                                                  " %s: %s",
                                          all, what,
                                          counts_that_work(all, may_share, report)),
            .found = davit_report_text(report, "--tp %u", draft->options->tp),
            .message = "the slot cannot be cut for so many ranks",
            .hint = "give --tp a number that every one of these slots lists"});
}

static void refuse_layout(DavitDraft *draft, GHashTable *told, const DavitSlot *slot,
                          const char *expected, uint64_t found)
{
    if (same_kind_told(told, slot))
        return;
    davit_report_add(draft->report,
                     &(DavitFinding){.code = DAVIT_R_QUANT_PARAMS,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "plan",
                                     .subject = slot->id,
                                     .expected = expected,
                                     .found = davit_report_text(
                                         draft->report, "%" PRIu64 " for each of %u ranks",
                                         found, draft->options->tp),
                                     .message = davit_report_text(
                                         draft->report,
                                         "the stored layout %s cannot be cut there",
                                         slot->stored_layout)});
}

/* ---- cuts ---- */

static bool rows_may_be_cut(const DavitSlot *slot, uint64_t first, uint64_t n)
{
    for (size_t s = 0; s < slot->n_sources; s++) {
        const davit_quant_desc *d = &slot->sources[s].module->desc;
        const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;
        const uint64_t unit = turned ? d->col_unit : d->row_unit;
        const uint64_t whole = turned ? d->n_cols : d->n_rows;
        const uint64_t from = slot->sources[s].row + first, to = from + n;

        if (unit == 0 || from % unit || (to % unit && to != whole))
            return false;
        for (uint32_t p = 0; p < d->n_parts; p++) {
            if (d->parts[p].row_bytes == 0)
                return false;
        }
    }
    return true;
}

static void set_cut(DavitSlot *slot, const char *how, uint64_t first, uint64_t whole)
{
    slot->cut = how;
    slot->cut_first = first;
    slot->cut_whole = whole;
}

static void cut_rows(DavitDraft *draft, GHashTable *told, DavitSlot *slot, uint64_t first,
                     uint64_t n, const char *how)
{
    const uint64_t whole = slot->n_rows;

    if (!rows_may_be_cut(slot, first, n)) {
        refuse_layout(draft, told, slot, "rows that can be cut at whole units", n);
        return;
    }
    if (slot->perm_heads)
        slot->perm_heads = slot->perm_heads * n / whole;
    for (size_t s = 0; s < slot->n_sources; s++) {
        slot->sources[s].row += first;
        slot->sources[s].n_rows = n;
    }
    slot->n_rows = n;
    slot->shape[slot->rank == 3 ? 1 : 0] = n;
    set_cut(slot, how, first, whole);
}

static void cut_columns(DavitDraft *draft, GHashTable *told, DavitSlot *slot, uint64_t first,
                        uint64_t n)
{
    const uint64_t whole = slot->n_cols;

    for (size_t s = 0; s < slot->n_sources; s++) {
        const davit_quant_desc *d = &slot->sources[s].module->desc;

        if (slot->value_ops || slot->perm_heads || d->n_parts != 1 || d->parts[0].row_bytes == 0 ||
            d->col_unit == 0 || first % d->col_unit || n % d->col_unit ||
            d->n_cols % d->col_unit) {
            refuse_layout(draft, told, slot,
                          davit_report_text(draft->report,
                                            "one part, and columns in multiples of %" PRIu64,
                                            d->col_unit),
                          n);
            return;
        }
    }
    for (size_t s = 0; s < slot->n_sources; s++) {
        slot->sources[s].col = first;
        slot->sources[s].n_cols = n;
    }
    slot->n_cols = n;
    slot->shape[slot->rank - 1] = n;
    set_cut(slot, "columns", first, whole);
}

/* Equal shares of the vocabulary, in whole units of the layout; the last is shorter. */
static void cut_vocabulary(DavitDraft *draft, GHashTable *told, DavitSlot *slot)
{
    const unsigned tp = draft->options->tp;
    const uint64_t unit = slot->n_sources ? slot->sources[0].module->desc.row_unit : 1;
    const uint64_t share_rows =
        ((slot->n_rows + tp - 1) / tp + unit - 1) / MAX(unit, 1) * MAX(unit, 1);
    const uint64_t first = draft->options->rank * share_rows;

    if ((tp - 1) * share_rows >= slot->n_rows) {
        refuse(draft, told, slot, slot->n_rows, "rows of the vocabulary", false);
        return;
    }
    cut_rows(draft, told, slot, first, MIN(share_rows, slot->n_rows - first),
             "vocabulary rows");
}

static void cut_experts(DavitSlot *slot, uint64_t first, uint64_t n)
{
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
    set_cut(slot, "experts", first, slot->n_experts);
    slot->n_experts = n;
    slot->shape[0] = n;
}

static void cut_slot(DavitDraft *draft, GHashTable *told, DavitSlot *slot)
{
    const unsigned tp = draft->options->tp, rank = draft->options->rank;
    Axis axis = {0};
    uint64_t all, first, n;
    bool shared;

    if (read_axis(draft, slot, &axis) || axis.kind == KEEP)
        return;
    /* Heads of keys and values may be fewer than the ranks. Which slots those are is not told by
     * names: queries cannot be shared because the matrix that takes the heads' output is cut by
     * columns, and what the forward does with the rest is followed by ranks.c. */
    shared = axis.kind == ROWS && axis.heads;
    if (axis.kind == VOCAB) {
        cut_vocabulary(draft, told, slot);
        return;
    }
    all = axis.kind == EXPERTS  ? slot->n_experts
          : axis.kind == COLUMNS ? slot->n_cols / axis.unit
                                 : slot->n_rows / axis.unit;
    if (!share(all, tp, rank, shared, &first, &n)) {
        refuse(draft, told, slot, all,
               axis.kind == EXPERTS ? "experts" : axis.unit > 1 ? "heads" : "rows", shared);
        return;
    }
    if (axis.kind == EXPERTS)
        cut_experts(slot, first, n);
    else if (axis.kind == COLUMNS)
        cut_columns(draft, told, slot, first * axis.unit, n * axis.unit);
    else
        cut_rows(draft, told, slot, first * axis.unit, n * axis.unit,
                 all < tp ? "rows, shared" : "rows");
}

void davit_cut_slots(DavitDraft *draft)
{
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);

    draft->plan->tp = MAX(draft->options->tp, 1);
    draft->plan->rank = draft->options->rank;
    if (draft->plan->tp == 1)
        return;
    for (guint i = 0; i < draft->slots->len; i++) {
        DavitSlot *slot = &g_array_index(draft->slots, DavitSlot, i);

        if (slot->present && slot->tied_to < 0 && slot->n_sources)
            cut_slot(draft, told, slot);
    }
    /* a tied slot has the shape of what it shares */
    for (guint i = 0; i < draft->slots->len; i++) {
        DavitSlot *slot = &g_array_index(draft->slots, DavitSlot, i);
        const DavitSlot *owner =
            slot->tied_to < 0 ? NULL
                              : &g_array_index(draft->slots, DavitSlot, slot->tied_to);

        if (!owner || !owner->cut)
            continue;
        slot->n_rows = owner->n_rows;
        memcpy(slot->shape, owner->shape, sizeof slot->shape);
        set_cut(slot, owner->cut, owner->cut_first, owner->cut_whole);
    }
}
