/* SPDX-License-Identifier: Apache-2.0
 * Reading a slot table: what a plugin author may have got wrong is said here, once,
 * before any tensor is looked at. */
#include "plan/table.h"

#include <string.h>

#define MAX_ROWS 4096u

static void row_clear(void *p)
{
    DavitTableRow *row = p;

    g_clear_pointer(&row->specs, g_array_unref);
}

static const char *row_fault(const davit_slot_row *row)
{
    if (!row->scope || (strcmp(row->scope, "G") != 0 && strcmp(row->scope, "L") != 0))
        return "scope is neither G nor L";
    if (!row->shape || !*row->shape)
        return "no shape";
    if (!row->hf && !row->gguf)
        return "no source at all";
    if (!row->cls || !davit_words_have("lin|embed|norm|f32|exp", row->cls))
        return "class is none of lin embed norm f32 exp";
    return NULL;
}

static bool read_row(const davit_slot_row *row, bool gguf, DavitTableRow *out,
                     DavitReport *report)
{
    const char *fault = row_fault(row);
    const char *text = gguf ? row->gguf : row->hf;

    if (fault) {
        davit_arch_fault(row->id, fault, "row of the slot table is not valid", report);
        return false;
    }
    *out = (DavitTableRow){
        .row = *row,
        .per_layer = row->scope[0] == 'L',
        .is_vector = davit_words_have("norm|f32", row->cls),
    };
    out->specs = text && *text
                     ? davit_sources_parse(text, gguf ? '~' : '#', row->id, report)
                     : g_array_new(FALSE, TRUE, sizeof(DavitSourceSpec));
    return out->specs != NULL;
}

GArray *davit_table_read(const davit_arch_iface *arch, bool gguf, DavitReport *report)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, TRUE, sizeof(DavitTableRow));
    const size_t stride = (size_t)arch->slot_stride;
    const uint8_t *at = (const uint8_t *)arch->slots;
    bool good = true;

    g_array_set_clear_func(rows, row_clear);
    if (!at || stride < DAVIT_END(davit_slot_row, flags) ||
        stride > 64 * sizeof(davit_slot_row)) {
        davit_arch_fault("slots", NULL, "the slot table is absent or its stride is wrong",
                         report);
        return NULL;
    }
    for (size_t n = 0; n < MAX_ROWS; n++, at += stride) {
        davit_slot_row row = {0};
        DavitTableRow read;

        memcpy(&row, at, MIN(stride, sizeof row));
        if (!row.id)
            return good ? g_steal_pointer(&rows) : NULL;
        if (read_row(&row, gguf, &read, report))
            g_array_append_val(rows, read);
        else
            good = false;
    }
    davit_arch_fault("slots", NULL, "the slot table has no end", report);
    return NULL;
}
