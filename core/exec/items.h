/* SPDX-License-Identifier: Apache-2.0
 * Work list of a load: every private byte of the plan as a piece of bounded size.
 *
 * A slot's private memory is the concatenation of its pieces' results, so that pieces can be
 * made in file order by any worker, straight into the arena or through a staging buffer.
 */
#ifndef DAVIT_EXEC_ITEMS_H
#define DAVIT_EXEC_ITEMS_H

#include "exec/exec.h"

/* Rows [row, row + n_rows) of one expert of one source of a slot. */
typedef struct DavitItem {
    const DavitSlot *slot;
    const DavitSlotSource *source;
    uint64_t expert;   /* within the source's module */
    uint64_t row;      /* within the source: 0 .. source->n_rows */
    uint64_t n_rows;   /* 0 = the column map of a packed segment */
    uint64_t dst_off;  /* bytes from the start of the slot's private memory */
    uint64_t n_bytes;  /* that the piece writes */
    uint64_t file_key; /* (file, offset) it reads first: the order of work */
} DavitItem;

/* One segment of a slot in private memory (parts follow one another). */
typedef struct DavitPlacedSegment {
    uint64_t expert, row, n_rows;
    uint64_t n_parts;
    uint64_t part_off[DAVIT_MAX_PARTS]; /* from the start of the slot's memory */
    uint64_t row_bytes[DAVIT_MAX_PARTS];
} DavitPlacedSegment;

/* Lay out the private memory of @slot (access other than BORROW): appends its segments to
 * @segments (DavitPlacedSegment) and, when @items is not NULL, its pieces (DavitItem).
 * *out_bytes = size of the slot's memory. Errors: sizes overflow. */
int32_t davit_items_place(const DavitPlan *plan, const DavitSlot *slot, GArray *segments,
                          GArray *items, uint64_t *out_bytes, DavitReport *report);

/* Produce one piece at @dst (item->n_bytes, zeroed). @scratch: GByteArray that grows to what
 * the piece needs and is kept by the caller; its largest size is the window. */
int32_t davit_items_make(const DavitPlan *plan, const DavitItem *item, uint8_t *dst,
                         GByteArray *scratch, DavitLoadStats *stats, DavitReport *report);

/* Bytes of one logical row of part @part of @module, 0 if its rows are not contiguous. */
uint64_t davit_module_row_bytes(const DavitModule *module, size_t part);
/* Start of part @part's bytes for row @row of expert @expert. */
int32_t davit_module_part(const DavitPlan *plan, const DavitModule *module, size_t part,
                          uint64_t expert, uint64_t row, const uint8_t **out,
                          DavitReport *report);

#endif
