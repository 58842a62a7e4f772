/* SPDX-License-Identifier: Apache-2.0
 * Who gets what. Rows and columns that mean no heads, such as those of an MLP, may be
 * shared out unevenly where a group or block of the layout would be cut: all slots of one
 * layer with that many then begin at the same units, so that what one gives the other
 * takes. */
#include <string.h>

#include "plan/cutter.h"

/* What all slots do with an extent of one layer. */
typedef struct DavitSplit {
    int64_t layer;
    uint64_t whole, unit; /* unit 0 = no unit fits all of them */
    unsigned tp;
} DavitSplit;

DavitSlot *davit_cut_slot(const DavitCutter *c, guint i)
{
    return &g_array_index(c->draft->slots, DavitSlot, i);
}

bool davit_cut_has_bytes(const DavitSlot *slot)
{
    return slot->present && slot->tied_to < 0 && slot->n_sources;
}

/* ---- boxes ---- */

/* Rows [first, first + n) or columns of @slot that @source gives, in its module. False:
 * none. */
bool davit_cut_box(const DavitSlot *slot, const DavitSlotSource *source, bool columns,
                   uint64_t first, uint64_t n, davit_quant_box *out)
{
    const davit_quant_desc *d = source->module->desc;
    const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;
    uint64_t row = source->row, n_rows = source->n_rows, col = 0;
    uint64_t n_cols = turned ? d->n_rows : d->n_cols;

    if (columns) {
        col = first;
        n_cols = n;
    } else {
        const uint64_t from = MAX(source->slot_row, first);
        const uint64_t to = MIN(source->slot_row + source->n_rows, first + n);

        if (from >= to)
            return false;
        row += from - source->slot_row;
        n_rows = to - from;
    }
    *out = (davit_quant_box){.struct_size = DAVIT_END(davit_quant_box, n_cols),
                             .expert = source->expert,
                             .n_experts = source->n_experts,
                             .row = turned ? col : row,
                             .n_rows = turned ? n_cols : n_rows,
                             .col = turned ? row : col,
                             .n_cols = turned ? n_rows : n_cols};
    return true;
}

/* Can every source be cut there? Its record goes to @report. */
int32_t davit_cut_try(const DavitCutter *c, const DavitSlot *slot, bool columns,
                      uint64_t first, uint64_t n, DavitReport *report)
{
    const DavitModule *last = NULL;

    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *source = &slot->sources[s];
        davit_quant_box box;
        int32_t status;

        /* experts of one slot are alike, and there may be hundreds */
        if (last && last->desc->layout == source->module->desc->layout &&
            memcmp(last->desc->params, source->module->desc->params,
                   sizeof last->desc->params) == 0 &&
            last->desc->n_rows == source->module->desc->n_rows)
            continue;
        last = source->module;
        if (!davit_cut_box(slot, source, columns, first, n, &box))
            continue;
        status = davit_module_cut(c->draft, source->module, &box, NULL, report);
        if (status)
            return status;
    }
    return DAVIT_OK;
}

bool davit_cut_fits(const DavitCutter *c, const DavitSlot *slot, bool columns,
                    uint64_t first, uint64_t n)
{
    g_autoptr(DavitReport) said = davit_report_new();

    return davit_cut_try(c, slot, columns, first, n, said) == DAVIT_OK;
}

GArray *davit_splits_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(DavitSplit));
}

/* ---- extents that may be shared out unevenly ---- */

bool davit_cut_is_of_split(const DavitCutter *c, guint i, int64_t layer, uint64_t whole)
{
    const DavitSlot *slot = davit_cut_slot(c, i);
    const DavitAxis *axis = &c->axes[i];

    return davit_cut_has_bytes(slot) && slot->layer == layer &&
           axis->kind != DAVIT_AXIS_EXPERTS && davit_axis_is_loose(axis) &&
           davit_axis_units(axis, slot) == whole;
}

/* Does slot @i take shares of @tp ranks that begin at multiples of @unit? */
static bool unit_fits_slot(const DavitCutter *c, guint i, uint64_t whole, uint64_t unit,
                           unsigned tp)
{
    static const DavitAxis loose = {DAVIT_AXIS_ROWS, 1, false};
    const bool columns = c->axes[i].kind == DAVIT_AXIS_COLUMNS;

    for (unsigned r = 0; r < tp; r++) {
        uint64_t first, n;

        if (!davit_axis_share(&loose, whole / unit, tp, r, &first, &n) ||
            !davit_cut_fits(c, davit_cut_slot(c, i), columns, first * unit, n * unit))
            return false;
    }
    return true;
}

/* The same for all slots of the extent; @alone: for slot @near. */
static bool unit_fits(const DavitCutter *c, guint near, int64_t layer, uint64_t whole,
                      uint64_t unit, unsigned tp, bool alone)
{
    guint from = near;

    if (alone)
        return unit_fits_slot(c, near, whole, unit, tp);
    while (from > 0 && davit_cut_slot(c, from - 1)->layer == layer)
        from--;
    for (guint i = from; i < c->draft->slots->len && davit_cut_slot(c, i)->layer == layer;
         i++)
        if (davit_cut_is_of_split(c, i, layer, whole) &&
            !unit_fits_slot(c, i, whole, unit, tp))
            return false;
    return true;
}

/* Equal shares where they fit, else the finest unit that does; 0 = none. */
uint64_t davit_cut_unit(const DavitCutter *c, guint near, unsigned tp, bool alone)
{
    const int64_t layer = davit_cut_slot(c, near)->layer;
    const uint64_t whole = davit_axis_units(&c->axes[near], davit_cut_slot(c, near));

    if (whole % tp == 0 && unit_fits(c, near, layer, whole, whole / tp, tp, alone))
        return whole / tp;
    for (uint64_t unit = 1; unit <= whole / tp; unit++) {
        if (whole % unit == 0 && unit_fits(c, near, layer, whole, unit, tp, alone))
            return unit;
    }
    return 0;
}

static uint64_t split_unit(DavitCutter *c, guint i, unsigned tp)
{
    const DavitSlot *slot = davit_cut_slot(c, i);
    DavitSplit split = {
        .layer = slot->layer, .whole = davit_axis_units(&c->axes[i], slot), .tp = tp};

    for (guint k = c->splits->len; k > 0; k--) {
        const DavitSplit *known = &g_array_index(c->splits, DavitSplit, k - 1);

        if (known->layer == split.layer && known->whole == split.whole && known->tp == tp)
            return known->unit;
    }
    split.unit = davit_cut_unit(c, i, tp, false);
    g_array_append_val(c->splits, split);
    return split.unit;
}

/* ---- what a rank gets ---- */

/* Rows, columns or experts of slot @i for @rank of @tp. False: they cannot be shared out.
 */
bool davit_cut_share(DavitCutter *c, guint i, unsigned tp, unsigned rank, uint64_t *first,
                     uint64_t *n)
{
    const DavitSlot *slot = davit_cut_slot(c, i);
    const DavitAxis *axis = &c->axes[i];
    uint64_t unit = axis->unit, all = davit_axis_units(axis, slot);

    if (axis->kind ==
        DAVIT_AXIS_VOCAB) { /* equal shares in units of the layout, the last shorter */
        unit = MAX(slot->sources[0].module->desc->row_unit, 1);
        *n = ((slot->n_rows + tp - 1) / tp + unit - 1) / unit * unit;
        *first = rank * *n;
        if ((tp - 1) * *n >= slot->n_rows)
            return false;
        *n = MIN(*n, slot->n_rows - *first);
        return true;
    }
    if (axis->kind != DAVIT_AXIS_EXPERTS && davit_axis_is_loose(axis)) {
        unit = all < tp ? 0 : split_unit(c, i, tp);
        if (unit == 0)
            return false;
        all /= unit;
    }
    if (!davit_axis_share(axis, all, tp, rank, first, n))
        return false;
    *first *= unit;
    *n *= unit;
    return true;
}

bool davit_cut_all_fit(DavitCutter *c, guint i, unsigned tp)
{
    const bool columns = c->axes[i].kind == DAVIT_AXIS_COLUMNS;

    for (unsigned r = 0; r < tp; r++) {
        uint64_t first, n;

        if (!davit_cut_share(c, i, tp, r, &first, &n))
            return false;
        if (c->axes[i].kind != DAVIT_AXIS_EXPERTS &&
            !davit_cut_fits(c, davit_cut_slot(c, i), columns, first, n))
            return false;
    }
    return true;
}
