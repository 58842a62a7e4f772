/* SPDX-License-Identifier: Apache-2.0
 * Rows as they are stored: read into place, or through the stage. */
#include "exec/make.h"

#include <string.h>

/* Columns of this rank, row by row: only they are read. */
static int32_t copy_columns(DavitLane *lane, const DavitItem *item, size_t part, uint8_t *to)
{
    const davit_tensor_info *t = davit_item_tensor(lane, item, part);
    const uint64_t row_bytes = item->source->module->desc.parts[part].row_bytes;
    const uint64_t run = davit_source_row_bytes(item->source, part);
    uint64_t off = t->off + davit_stored_index(item, item->expert, item->row) * row_bytes +
                   davit_source_col_off(item->source, part);
    for (uint64_t r = 0; r < item->n_rows; r++, off += row_bytes, to += run) {
        const int32_t status = davit_lane_read(lane, t->file, off, to, run);
        if (status)
            return status;
    }
    lane->stats.copied_bytes += item->n_rows * run;
    return DAVIT_OK;
}

int32_t davit_make_direct(DavitLane *lane, const DavitItem *item, uint64_t segment)
{
    const DavitModule *module = item->source->module;
    DavitStage stage = {0};
    int32_t status = DAVIT_OK;
    for (size_t p = 0; !status && p < module->desc.n_parts; p++) {
        const davit_tensor_info *t = davit_item_tensor(lane, item, p);
        const uint64_t row_bytes = module->desc.parts[p].row_bytes;
        const uint64_t n = row_bytes ? item->n_rows * row_bytes : t->n_bytes;
        const uint64_t first = davit_stored_index(item, item->expert, item->row) * row_bytes;
        uint8_t *to = lane->base + segment + davit_copy_part_off(lane->plan, item->source, p) +
                      item->row * davit_source_row_bytes(item->source, p);
        if (item->source->n_cols) {
            status = copy_columns(lane, item, p, to);
            continue;
        }
        status = davit_lane_read(lane, t->file, t->off + first, to, n);
        lane->stats.copied_bytes += status ? 0 : n;
        /* checked where it lies */
        stage.part[p] = (davit_quant_bytes){
            (const uint8_t *)((uintptr_t)to - (uintptr_t)first), t->n_bytes};
    }
    if (status || item->source->n_cols)
        return status;
    return davit_stage_verify(lane, item, &stage, item->expert, item->row, item->n_rows);
}

static int32_t copy_part(DavitLane *lane, const DavitItem *item, const DavitStage *stage, size_t part,
                         uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    const uint64_t row_bytes = module->desc.parts[part].row_bytes;
    const uint64_t off = segment + davit_copy_part_off(lane->plan, item->source, part) +
                         row * row_bytes;
    const uint64_t n = row_bytes ? n_rows * row_bytes : stage->part[part].n_bytes;
    if (row_bytes == 0 && row > 0)
        return DAVIT_OK; /* went with the first rows */
    const uint8_t *from =
        row_bytes ? davit_stage_row(item, stage, part, expert, row) : stage->part[part].ptr;
    lane->stats.copied_bytes += n;
    if (!lane->base && item->slot->perm_heads == 0)
        return davit_lane_put(lane, item, off, from, n);
    uint8_t *to = davit_lane_target(lane, off, n);
    if (item->slot->perm_heads == 0)
        memcpy(to, from, n);
    for (uint64_t r = 0; item->slot->perm_heads && r < n_rows; r++)
        memcpy(to + r * row_bytes,
               davit_stage_row(item, stage, part, expert, davit_stored_row(item->slot, row + r)), row_bytes);
    return davit_lane_put(lane, item, off, to, n);
}

int32_t davit_make_copied(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    int32_t status = DAVIT_OK;
    for (size_t p = 0; !status && p < item->source->module->desc.n_parts; p++)
        status = copy_part(lane, item, stage, p, segment, expert, row, n_rows);
    return status;
}

