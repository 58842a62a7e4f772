/* SPDX-License-Identifier: Apache-2.0
 * Reading what a chunk of rows needs. The quant plugin is told of whole parts, so that the
 * bytes of a few rows are shown to it at the address where row 0 would be. */
#include "exec/stage.h"

#include "exec/arena.h"
#include "plan/module.h"
#include "plan/part.h"

#define LANE_ALIGN 64u

/* The plan's arithmetic says that it fits; a piece that does not is a fault of ours. */
uint8_t *davit_lane_take(DavitLane *lane, uint64_t n_bytes)
{
    uint8_t *p = lane->mem + lane->used;
    lane->used = davit_align_up(lane->used + n_bytes, LANE_ALIGN);
    g_assert(n_bytes <= lane->n_bytes && (uint64_t)(p - lane->mem) <= lane->n_bytes - n_bytes);
    return p;
}

/* ---- reading ---- */

/* Count what was read in the call that began at @start. */
static int32_t count_read(DavitLane *lane, int64_t start, uint64_t n_bytes, int32_t status)
{
    lane->stats.read_seconds += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    if (!status) {
        lane->stats.read_bytes += n_bytes;
        lane->stats.n_reads++;
    }
    return status;
}

/* Bytes of a file in memory of the lane. */
static int32_t stage_bytes(DavitLane *lane, uint32_t file, uint64_t off, uint64_t n_bytes,
                           const uint8_t **out)
{
    lane->used = davit_align_up(lane->used, DAVIT_DIRECT_ALIGN);
    uint8_t *mem = davit_lane_take(lane, n_bytes + DAVIT_READ_SLACK);
    const int64_t start = g_get_monotonic_time();
    return count_read(lane, start, n_bytes,
                      davit_reader_stage(lane->reader, file, off, n_bytes, mem, out,
                                         &lane->stats, lane->report));
}

int32_t davit_lane_read(DavitLane *lane, uint32_t file, uint64_t off, uint8_t *to,
                        uint64_t n_bytes)
{
    const uint64_t used = davit_align_up(lane->used, DAVIT_DIRECT_ALIGN);
    const uint64_t room = lane->n_bytes > used ? lane->n_bytes - used : 0;
    const int64_t start = g_get_monotonic_time();
    return count_read(lane, start, n_bytes,
                      davit_reader_read(lane->reader, file, off, n_bytes, to,
                                        &(DavitBounce){lane->mem + used, room}, &lane->stats,
                                        lane->report));
}

int32_t davit_lane_read_part(DavitLane *lane, const DavitModule *module, size_t part, uint64_t pos,
                             uint64_t n_bytes, uint8_t *to)
{
    const uint32_t file = davit_part_tensor(lane->plan, module, part)->file;
    while (n_bytes > 0) {
        uint64_t n = 0;
        const uint64_t off = davit_part_off(lane->plan, module, part, pos, &n);
        n = MIN(n, n_bytes);
        const int32_t status = davit_lane_read(lane, file, off, to, n);
        if (status)
            return status;
        pos += n;
        to += n;
        n_bytes -= n;
    }
    return DAVIT_OK;
}

/* Bytes [pos, pos + n_bytes) of a part in memory of the lane: one range of the file, or gathered. */
static int32_t stage_part(DavitLane *lane, const DavitModule *module, size_t part, uint64_t pos,
                          uint64_t n_bytes, const uint8_t **out)
{
    uint64_t run = 0;
    const uint64_t off = davit_part_off(lane->plan, module, part, pos, &run);
    if (run >= n_bytes)
        return stage_bytes(lane, davit_part_tensor(lane->plan, module, part)->file, off, n_bytes,
                           out);
    uint8_t *to = davit_lane_take(lane, n_bytes);
    *out = to;
    return davit_lane_read_part(lane, module, part, pos, n_bytes, to);
}

int32_t davit_stage_whole(DavitLane *lane, const DavitItem *item, DavitStage *stage)
{
    const DavitModule *module = item->source->module;
    lane->used = 0;
    for (size_t p = 0; p < module->desc->n_parts; p++) {
        if (davit_part_by_row(item->slot, module, p))
            continue;
        const uint64_t n = davit_part_bytes(lane->plan, module, p);
        const uint8_t *at;
        const int32_t status = stage_part(lane, module, p, 0, n, &at);
        if (status)
            return status;
        stage->part[p] = (davit_quant_bytes){at, n};
    }
    stage->whole_used = lane->used;
    return DAVIT_OK;
}

uint64_t davit_stored_index(const DavitItem *item, uint64_t expert, uint64_t row)
{
    return expert * item->source->module->desc->n_rows + item->source->row + row;
}

int32_t davit_stage_rows(DavitLane *lane, const DavitItem *item, uint64_t expert, uint64_t row,
                          uint64_t n_rows, DavitStage *stage)
{
    const DavitModule *module = item->source->module;
    lane->used = stage->whole_used;
    for (size_t p = 0; p < module->desc->n_parts; p++) {
        if (!davit_part_by_row(item->slot, module, p))
            continue;
        const uint64_t row_bytes = module->desc->parts[p].row_bytes;
        const uint64_t pos = davit_stored_index(item, expert, row) * row_bytes;
        const uint8_t *at;
        const int32_t status = stage_part(lane, module, p, pos, n_rows * row_bytes, &at);
        if (status)
            return status;
        stage->part[p] =
            (davit_quant_bytes){(const uint8_t *)((uintptr_t)at - (uintptr_t)pos),
                                davit_part_bytes(lane->plan, module, p)};
    }
    return DAVIT_OK;
}

/* First byte of row @row of expert @expert in the stage. */
const uint8_t *davit_stage_row(const DavitItem *item, const DavitStage *stage, size_t part,
                             uint64_t expert, uint64_t row)
{
    const uint64_t row_bytes = item->source->module->desc->parts[part].row_bytes;
    return (const uint8_t *)((uintptr_t)stage->part[part].ptr +
                             (uintptr_t)(davit_stored_index(item, expert, row) * row_bytes));
}

/* ---- rows ---- */

/* Stored row of slot row @row when the converter's rotary order is undone: within a head of d
 * rows the slot's row (half s, index j) is the stored row 2j + s. */
uint64_t davit_stored_row(const DavitSlot *slot, uint64_t row)
{
    if (slot->perm_heads == 0)
        return row;
    const uint64_t d = slot->n_rows / slot->perm_heads;
    const uint64_t head = row / d, r = row % d;
    return head * d + 2 * (r % (d / 2)) + r / (d / 2);
}

davit_quant_tile davit_stage_tile(const DavitItem *item, const DavitStage *stage, uint64_t expert,
                                uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    return (davit_quant_tile){.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                              .desc = module->desc,
                              .parts = stage->part,
                              .expert = expert,
                              .row = item->source->row + row,
                              .n_rows = n_rows,
                              .col = 0,
                              .n_cols = module->desc->n_cols};
}

void davit_stage_decode(const DavitItem *item, const DavitStage *stage, uint64_t expert, uint64_t row,
                        uint64_t n_rows, float *dst)
{
    const DavitModule *module = item->source->module;
    davit_quant_tile tile = davit_stage_tile(item, stage, expert, row, n_rows);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = dst,
                           .stride = module->desc->n_cols};
    module->iface->decode(module->self, &tile, &out);
}

/* Payload check of the quant plugin over the chunk's rows. */
int32_t davit_stage_verify(DavitLane *lane, const DavitItem *item, const DavitStage *stage, uint64_t expert,
                      uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    const davit_quant_tile tile = davit_stage_tile(item, stage, expert, row, n_rows);
    if (item->slot->value_ops & DAVIT_VALUE_TRANSPOSE)
        return DAVIT_OK;
    return davit_module_verify(module, &tile, "load", lane->report);
}

