/* SPDX-License-Identifier: Apache-2.0
 * Which slots a model has: conditions and shapes of the table, evaluated for this
 * configuration. Where their bytes come from is in bind.c. */
#include "plan/slot.h"

#include <string.h>

#define MAX_LAYERS                                                                       \
    10000 /* no model is near it; bounds the work that a config can ask for */

void davit_slot_clear(DavitSlot *slot)
{
    g_free(slot->id);
    g_free(slot->sources);
    g_free(slot->source_text);
}

static void slot_clear(void *p)
{
    davit_slot_clear(p);
}

DavitSlot *davit_slot_flagged(const DavitDraft *draft, uint32_t flag)
{
    for (guint i = 0; i < draft->slots->len; i++) {
        DavitSlot *slot = &g_array_index(draft->slots, DavitSlot, i);

        if (slot->row.flags & flag)
            return slot;
    }
    return NULL;
}

/* ---- one slot ---- */

static int32_t fill_shape(DavitDraft *draft, const DavitTableRow *row,
                          const DavitScope *scope, DavitSlot *slot)
{
    int64_t dims[3];
    const int32_t n =
        davit_expr_list(row->row.shape, scope, row->row.id, dims, 3, draft->report);

    if (n < 0)
        return n;
    for (int32_t i = 0; i < n; i++) {
        if (dims[i] <= 0)
            return davit_report_add(
                draft->report,
                &(DavitFinding){
                    .code = DAVIT_R_CONFIG_INVALID,
                    .status = DAVIT_E_CORRUPT,
                    .stage = "plan",
                    .subject = row->row.id,
                    .expected = "every axis at least 1",
                    .found = davit_report_text(draft->report, "%" PRId64 " from %s",
                                               dims[i], row->row.shape),
                    .message = "the configuration gives a slot an empty axis"});
        slot->shape[i] = (uint64_t)dims[i];
    }
    slot->rank = (uint32_t)n;
    slot->n_experts = n == 3 ? slot->shape[0] : 1;
    slot->n_rows = n == 3 ? slot->shape[1] : n > 0 ? slot->shape[0] : 1;
    slot->n_cols = n == 3 ? slot->shape[2] : n == 2 ? slot->shape[1] : 1;
    return DAVIT_OK;
}

/* Is a slot with this id and layer there already? Rows of one id exclude each other. */
static bool already_there(const DavitDraft *draft, size_t from, const char *id)
{
    for (size_t i = from; i < draft->slots->len; i++) {
        if (strcmp(g_array_index(draft->slots, DavitSlot, i).id, id) == 0)
            return true;
    }
    return false;
}

/* Add the slot of @row at @layer, if its condition holds. @from: first slot of this
 * layer. */
static void add_slot(DavitDraft *draft, const DavitTableRow *row, int64_t layer,
                     size_t from)
{
    DavitConfigScope at = {draft->plan->config, layer};
    const DavitScope scope = {davit_config_lookup, &at};
    DavitSlot slot = {.layer = layer, .row = row->row, .tied_to = -1};
    int64_t holds = 1;

    if (row->row.when &&
        davit_expr_eval(row->row.when, &scope, row->row.id, &holds, draft->report))
        return;
    if (!holds)
        return;
    if (already_there(draft, from, row->row.id)) {
        davit_arch_fault(row->row.id, NULL,
                         "two rows of the slot table apply at one layer", draft->report);
        return;
    }
    if (fill_shape(draft, row, &scope, &slot))
        return;
    slot.id = g_strdup(row->row.id);
    slot.present = davit_slot_bind(draft, &slot, row);
    if (!slot.present && !(row->row.flags & (DAVIT_SLOT_OPTIONAL | DAVIT_SLOT_HEAD)))
        davit_slot_missing(draft, &slot, row);
    g_array_append_val(draft->slots, slot);
}

static void add_layer(DavitDraft *draft, const GArray *table, int64_t layer)
{
    const size_t from = draft->slots->len;

    for (guint r = 0; r < table->len; r++) {
        const DavitTableRow *row = &g_array_index(table, DavitTableRow, r);

        if (row->per_layer == (layer >= 0))
            add_slot(draft, row, layer, from);
    }
}

static bool uses_layers(const GArray *table)
{
    for (guint r = 0; r < table->len; r++) {
        if (g_array_index(table, DavitTableRow, r).per_layer)
            return true;
    }
    return false;
}

/* How many findings got no record of their own. */
static void report_rest(DavitDraft *draft, uint32_t code, int32_t status, uint64_t n,
                        const char *message)
{
    if (n <= DAVIT_MAX_SINGLE)
        return;
    davit_report_add(draft->report, &(DavitFinding){.code = code,
                                                    .status = status,
                                                    .stage = "plan",
                                                    .subject = "other slots",
                                                    .found = davit_report_text(
                                                        draft->report, "%" PRIu64 " more",
                                                        n - DAVIT_MAX_SINGLE),
                                                    .message = message});
}

void davit_slots_make(DavitDraft *draft, const GArray *table)
{
    const uint64_t n_layers = uses_layers(table) ? draft->plan->n_layers : 0;

    g_array_set_clear_func(draft->slots, slot_clear);
    if (uses_layers(table) && (n_layers == 0 || n_layers > MAX_LAYERS)) {
        davit_report_add(draft->report,
                         &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                         .status = DAVIT_E_CORRUPT,
                                         .stage = "plan",
                                         .subject = "L",
                                         .expected = "1 to 10000 layers",
                                         .found = davit_report_text(draft->report,
                                                                    "%" PRIu64, n_layers),
                                         .message = "number of layers is out of range"});
        return;
    }
    add_layer(draft, table, -1);
    for (uint64_t i = 0; i < n_layers; i++)
        add_layer(draft, table, (int64_t)i);
    davit_slots_tie(draft, table);
    report_rest(draft, DAVIT_R_TENSOR_MISSING, DAVIT_E_CORRUPT, draft->n_missing,
                "more tensors that the architecture needs are not in the checkpoint");
    report_rest(draft, DAVIT_R_SHAPE_MISMATCH, DAVIT_E_MISMATCH, draft->n_mismatched,
                "more tensors have another shape than their slots");
}
