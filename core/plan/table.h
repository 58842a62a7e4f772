/* SPDX-License-Identifier: Apache-2.0
 * An architecture's slot table, read once: rows of any stride, sources parsed.
 */
#ifndef DAVIT_PLAN_TABLE_H
#define DAVIT_PLAN_TABLE_H

#include "plan/transform.h"

typedef struct DavitTableRow {
    davit_slot_row row; /* strings borrowed from the plugin */
    bool per_layer;     /* scope L */
    bool is_vector;     /* class norm or f32: kernels get float32 */
    GArray *specs; /* (owned) DavitSourceSpec of this checkpoint's naming; empty = none */
} DavitTableRow;

/* @gguf selects the column of sources. Returns: (owned) DavitTableRow, or NULL with
 * records: every fault of the table. */
GArray *davit_table_read(const davit_arch_iface *arch, bool gguf, DavitReport *report);

#endif
