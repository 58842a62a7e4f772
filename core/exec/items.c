/* SPDX-License-Identifier: Apache-2.0
 * How the private memory of a slot is laid out and cut into pieces. Making them: lane.c. */
#include "exec/items.h"

#include <string.h>

#include "exec/arena.h"
#include "plan/layout.h"
#include "plan/part.h"

static int32_t too_large(const DavitSlot *slot, DavitReport *report)
{
    return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                                    .status = DAVIT_E_LIMIT,
                                                    .stage = "load",
                                                    .subject = slot->id,
                                                    .message = "size of a slot overflows"});
}

int32_t davit_module_part(const DavitPlan *plan, const DavitModule *module, size_t part,
                          uint64_t expert, uint64_t row, const uint8_t **out,
                          DavitReport *report)
{
    const davit_tensor_info *t = davit_part_tensor(plan, module, part);
    const uint64_t row_bytes = module->desc->parts[part].row_bytes;
    /* (expert, row) lie inside the checked module, so pos stays inside the part */
    const uint64_t pos = row_bytes * (expert * module->desc->n_rows + row);
    uint64_t n = 0;
    const uint64_t off = davit_part_off(plan, module, part, pos, &n);
    return davit_checkpoint_view(plan->checkpoint, t->file, off, n, out, report);
}

/* ---- sizes ---- */

/* Bytes of @n_rows rows of the slot in the layout that the kernels get; 0 = overflow. */
static uint64_t rows_bytes(const DavitSlot *slot, const DavitSlotSource *source, size_t part,
                           uint64_t n_rows)
{
    uint64_t n = 0;
    switch (slot->access) {
    case DAVIT_ACCESS_PACK: {
        const uint64_t block = slot->pack->row_block;
        const uint64_t bytes = davit_pack_block_bytes(slot, source);
        return __builtin_mul_overflow((n_rows + block - 1) / block, bytes, &n) ? 0 : n;
    }
    case DAVIT_ACCESS_DECODE:
        return __builtin_mul_overflow(n_rows, slot->n_cols * davit_decoded_value_bytes(slot), &n)
                   ? 0
                   : n;
    default: {
        const uint64_t row_bytes = source->module->desc->parts[part].row_bytes;
        return __builtin_mul_overflow(n_rows, row_bytes, &n) ? 0 : n;
    }
    }
}

static uint64_t align_of(const DavitPlan *plan, const DavitSlot *slot)
{
    return plan->devices[slot->device].align;
}

static uint64_t part_bytes(const DavitPlan *plan, const DavitSlot *slot,
                           const DavitSlotSource *source, size_t part)
{
    const DavitModule *module = source->module;
    return slot->access == DAVIT_ACCESS_COPY && module->desc->parts[part].row_bytes == 0
               ? davit_part_bytes(plan, module, part)
               : rows_bytes(slot, source, part, source->n_rows);
}

uint64_t davit_copy_part_off(const DavitPlan *plan, const DavitSlot *slot,
                             const DavitSlotSource *source, size_t part)
{
    uint64_t at = 0;
    for (size_t p = 0; p < part; p++)
        at = davit_align_up(at + part_bytes(plan, slot, source, p), align_of(plan, slot));
    return at;
}

uint64_t davit_made_row_off(const DavitSlot *slot, const DavitSlotSource *source, size_t part,
                            uint64_t row)
{
    return rows_bytes(slot, source, part, row);
}

uint64_t davit_map_off(const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source)
{
    return davit_align_up(rows_bytes(slot, source, 0, source->n_rows), align_of(plan, slot));
}

/* ---- pieces ---- */

static uint64_t file_key(const DavitPlan *plan, const DavitSlotSource *source, uint64_t expert,
                         uint64_t row)
{
    const DavitModule *module = source->module;
    const uint64_t bytes = davit_part_bytes(plan, module, 0);
    const uint64_t all = module->desc->n_experts * module->desc->n_rows;
    const uint64_t at = bytes / all * (expert * module->desc->n_rows + source->row + row);
    uint64_t n = 0;
    return ((uint64_t)davit_part_tensor(plan, module, 0)->file << 48) +
           (davit_part_off(plan, module, 0, MIN(at, bytes - 1), &n) >> 8);
}

static void cut_pieces(const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source, const DavitPiece *piece, DavitItem item,
                       GArray *items)
{
    for (uint64_t row = 0; row < source->n_rows; row += piece->rows) {
        item.row = row;
        item.n_rows = MIN(source->n_rows - row, piece->rows);
        item.chunk_rows = MIN(piece->chunk_rows, item.n_rows);
        item.file_key = file_key(plan, source, item.expert,
                                 slot->value_ops & DAVIT_VALUE_TRANSPOSE ? 0 : row);
        g_array_append_val(items, item);
    }
}

/* A part that is read whole serves all experts of its source at once. */
static bool reads_whole(const DavitSlot *slot, const DavitSlotSource *source)
{
    for (size_t p = 0; p < source->module->desc->n_parts; p++)
        if (!davit_part_by_row(slot, source->module, p))
            return true;
    return false;
}

static int32_t place_segment(const DavitPlan *plan, const DavitSlot *slot,
                             const DavitSlotSource *source, uint64_t expert, uint64_t *at,
                             GArray *segments, DavitReport *report)
{
    const DavitModule *module = source->module;
    const bool copy = slot->access == DAVIT_ACCESS_COPY;
    DavitPlacedSegment seg = {.expert = source->slot_expert + expert,
                              .row = source->slot_row,
                              .n_rows = source->n_rows,
                              .n_parts = copy ? module->desc->n_parts : 1};
    for (size_t p = 0; p < seg.n_parts; p++) {
        const uint64_t n = part_bytes(plan, slot, source, p);
        uint64_t end;
        if (n == 0 || __builtin_add_overflow(*at, n, &end) || end > UINT64_MAX / 2)
            return too_large(slot, report);
        seg.part_off[p] = *at;
        seg.row_bytes[p] =
            copy ? module->desc->parts[p].row_bytes
                 : rows_bytes(slot, source, 0,
                              slot->access == DAVIT_ACCESS_PACK ? slot->pack->row_block : 1);
        *at = davit_align_up(end, align_of(plan, slot));
    }
    if (davit_pack_map_bytes(slot, source)) {
        seg.part_off[1] = *at;
        seg.n_parts = 2;
        *at = davit_align_up(*at + davit_pack_map_bytes(slot, source), align_of(plan, slot));
    }
    g_array_append_val(segments, seg);
    return DAVIT_OK;
}

int32_t davit_items_place(const DavitPlan *plan, const DavitSlot *slot, GArray *segments,
                          GArray *items, uint64_t *out_bytes, DavitReport *report)
{
    uint64_t at = 0;
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *source = &slot->sources[s];
        const bool whole = reads_whole(slot, source);
        DavitPiece piece;
        davit_piece_of(plan, slot, source, plan->chunk_bytes, &piece);
        const uint64_t start = at;
        for (uint64_t e = 0; e < source->n_experts; e++) {
            DavitItem item = {.slot = slot,
                              .source = source,
                              .expert = source->expert + e,
                              .n_experts = whole ? source->n_experts : 1,
                              .dst_off = at};
            const int32_t status = place_segment(plan, slot, source, e, &at, segments, report);
            if (status)
                return status;
            if (!whole)
                cut_pieces(plan, slot, source, &piece, item, items);
        }
        if (whole)
            cut_pieces(plan, slot, source, &piece,
                       (DavitItem){.slot = slot,
                                   .source = source,
                                   .expert = source->expert,
                                   .n_experts = source->n_experts,
                                   .dst_off = start,
                                   .dst_stride = (at - start) / source->n_experts},
                       items);
    }
    *out_bytes = at;
    return DAVIT_OK;
}
