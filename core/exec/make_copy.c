/* SPDX-License-Identifier: Apache-2.0
 * Rows as they are stored: read into place, or through the stage. */
#include "exec/make.h"

#include <string.h>

#include "plan/part.h"

int32_t davit_make_direct(DavitLane *lane, const DavitItem *item, uint64_t segment)
{
    const DavitModule *module = item->source->module;
    DavitStage stage = {0};
    int32_t status = DAVIT_OK;
    for (size_t p = 0; !status && p < module->desc->n_parts; p++) {
        const uint64_t row_bytes = module->desc->parts[p].row_bytes;
        const uint64_t all = davit_part_bytes(lane->plan, module, p);
        const uint64_t n = row_bytes ? item->n_rows * row_bytes : all;
        const uint64_t first = davit_stored_index(item, item->expert, item->row) * row_bytes;
        uint8_t *to = lane->base + segment +
                      davit_copy_part_off(lane->plan, item->slot, item->source, p) +
                      item->row * row_bytes;
        status = davit_lane_read_part(lane, module, p, first, n, to);
        lane->stats.copied_bytes += status ? 0 : n;
        /* checked where it lies */
        stage.part[p] =
            (davit_quant_bytes){(const uint8_t *)((uintptr_t)to - (uintptr_t)first), all};
    }
    return status ? status
                  : davit_stage_verify(lane, item, &stage, item->expert, item->row, item->n_rows);
}

static int32_t copy_part(DavitLane *lane, const DavitItem *item, const DavitStage *stage, size_t part,
                         uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    const uint64_t row_bytes = module->desc->parts[part].row_bytes;
    const uint64_t off = segment +
                         davit_copy_part_off(lane->plan, item->slot, item->source, part) +
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
    for (size_t p = 0; !status && p < item->source->module->desc->n_parts; p++)
        status = copy_part(lane, item, stage, p, segment, expert, row, n_rows);
    return status;
}

