/* SPDX-License-Identifier: Apache-2.0
 * The axis is written in the slot table: "col:UNIT" rows of outputs, "row:UNIT" columns
 * of inputs, both in whole units; "vocab" rows; "exp" experts; "rep" nothing. */
#include "plan/axis.h"

#include <string.h>

#include "plan/transform.h"

int32_t davit_axis_read(DavitDraft *draft, const DavitSlot *slot, DavitAxis *out)
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

uint64_t davit_axis_units(const DavitAxis *axis, const DavitSlot *slot)
{
    /* a table of two axes, as experts' biases are, has them as rows */
    return axis->kind == DAVIT_AXIS_EXPERTS   ? (slot->rank == 3 ? slot->n_experts : slot->n_rows)
           : axis->kind == DAVIT_AXIS_COLUMNS ? slot->n_cols / axis->unit
                                              : slot->n_rows / axis->unit;
}

bool davit_axis_is_loose(const DavitAxis *axis)
{
    return axis->kind == DAVIT_AXIS_EXPERTS ||
           ((axis->kind == DAVIT_AXIS_ROWS || axis->kind == DAVIT_AXIS_COLUMNS) &&
            !axis->heads);
}

bool davit_axis_share(const DavitAxis *axis, uint64_t all, unsigned tp, unsigned rank,
                      uint64_t *first, uint64_t *n)
{
    if (davit_axis_is_loose(axis) && all >= tp) {
        *first = all * rank / tp;
        *n = all * (rank + 1) / tp - *first;
        return true;
    }
    if (all % tp == 0 && all > 0) {
        *n = all / tp;
        *first = rank * *n;
        return true;
    }
    /* Heads of keys and values may be fewer than the ranks. Which slots those are is not
     * told by names: queries cannot be shared because the matrix that takes the heads'
     * output is cut by columns, and what the forward does with the rest is followed by
     * ranks.c. */
    if (axis->kind == DAVIT_AXIS_ROWS && axis->heads && all > 0 && all < tp &&
        tp % all == 0) {
        *n = 1;
        *first = rank / (tp / all);
        return true;
    }
    return false;
}
