/* SPDX-License-Identifier: Apache-2.0
 * Work list of a load: every private byte of the plan as a piece of bounded size.
 *
 * A piece knows where in its slot's memory its rows go, so that pieces can be made in file
 * order by any lane.
 */
#ifndef DAVIT_EXEC_ITEMS_H
#define DAVIT_EXEC_ITEMS_H

#include "exec/exec.h"
#include "plan/piece.h"

/* Rows [row, row + n_rows) of experts [expert, expert + n_experts) of one source of a slot.
 * More than one expert only where a part must be read whole. */
typedef struct DavitItem {
    const DavitSlot *slot;
    const DavitSlotSource *source;
    uint64_t expert;      /* within the source's module */
    uint64_t n_experts;
    uint64_t row;         /* within the source: 0 .. source->n_rows */
    uint64_t n_rows;
    uint64_t dst_off;     /* of the segment of the first expert, in the slot's memory */
    uint64_t dst_stride;  /* from one expert's segment to the next */
    uint64_t chunk_rows;
    uint64_t file_key;    /* (file, offset) it reads first: the order of work */
} DavitItem;

/* One segment of a slot in private memory (parts follow one another). */
typedef struct DavitPlacedSegment {
    uint64_t expert, row, n_rows;
    uint64_t n_parts;
    uint64_t part_off[DAVIT_MAX_PARTS]; /* from the start of the slot's memory */
    uint64_t row_bytes[DAVIT_MAX_PARTS];
} DavitPlacedSegment;

/* Lay out the private memory of @slot (access other than BORROW): appends its segments to
 * @segments (DavitPlacedSegment) and its pieces to @items (DavitItem). *out_bytes = size of
 * the slot's memory, plan's private_bytes. Errors: sizes overflow. */
int32_t davit_items_place(const DavitPlan *plan, const DavitSlot *slot, GArray *segments,
                          GArray *items, uint64_t *out_bytes, DavitReport *report);

/* Offset of part @part within a segment of a COPY slot, and of row @row in the layout that
 * is made, both from the segment's start. */
uint64_t davit_copy_part_off(const DavitPlan *plan, const DavitSlot *slot,
                             const DavitSlotSource *source, size_t part);
uint64_t davit_made_row_off(const DavitSlot *slot, const DavitSlotSource *source, size_t part,
                            uint64_t row);

/* Where the column map of a packed segment starts, from the segment's start. */
uint64_t davit_map_off(const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source);

/* Start of part @part's bytes for row @row of expert @expert, in the file's mapping. */
int32_t davit_module_part(const DavitPlan *plan, const DavitModule *module, size_t part,
                          uint64_t expert, uint64_t row, const uint8_t **out,
                          DavitReport *report);

#endif
