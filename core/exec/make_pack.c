/* SPDX-License-Identifier: Apache-2.0
 * Rows through the pack of a kernel, a row block at a time. */
#include "exec/make.h"

#include <string.h>

#include "exec/arena.h"
#include "plan/layout.h"

/* Stored rows of one block as the pack gets them; re-ordered ones are gathered. */
static void stored_segment(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                           uint64_t expert, uint64_t row, uint64_t n_rows, davit_segment *seg)
{
    const DavitModule *module = item->source->module;
    *seg = (davit_segment){.expert = item->source->slot_expert + expert - item->source->expert,
                           .row = item->source->slot_row + row,
                           .n_rows = n_rows,
                           .n_parts = module->desc->n_parts};
    for (size_t p = 0; p < module->desc->n_parts; p++) {
        const uint64_t row_bytes = module->desc->parts[p].row_bytes;
        seg->row_bytes[p] = row_bytes;
        seg->part[p] = row_bytes ? davit_stage_row(item, stage, p, expert, row) : stage->part[p].ptr;
        if (item->slot->perm_heads == 0 || row_bytes == 0)
            continue;
        uint8_t *to = davit_lane_take(lane, n_rows * row_bytes);
        for (uint64_t r = 0; r < n_rows; r++)
            memcpy(to + r * row_bytes,
                   davit_stage_row(item, stage, p, expert, davit_stored_row(item->slot, row + r)), row_bytes);
        seg->part[p] = to;
    }
}

/* Where the rows of a block are decoded to. */
static davit_quant_out decode_buffers(DavitLane *lane, const DavitItem *item, uint64_t n_rows)
{
    const DavitSlot *slot = item->slot;
    const uint64_t n_scales = n_rows * davit_pack_groups(slot, item->source);
    const uint64_t n_cols = davit_pack_cols(slot, item->source);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, factors),
                           .form = n_scales ? DAVIT_FORM_CODES : DAVIT_FORM_F32,
                           .stride = n_cols};
    if (n_scales == 0) {
        out.values = (float *)(void *)davit_lane_take(lane, n_rows * slot->n_cols * sizeof(float));
        return out;
    }
    out.cols = (uint32_t *)(void *)davit_lane_take(lane, n_cols * sizeof(uint32_t));
    out.scales = (float *)(void *)davit_lane_take(lane, n_scales * sizeof(float));
    out.zeros = (float *)(void *)davit_lane_take(lane, n_scales * sizeof(float));
    if (davit_pack_factor_bytes(slot, item->source))
        out.factors =
            (float *)(void *)davit_lane_take(lane, davit_pack_factor_bytes(slot, item->source));
    out.codes = davit_lane_take(lane, n_rows * n_cols);
    return out;
}

/* Rows [row, row + n_rows) of the source, through the quant plugin. */
static davit_quant_out decode_block(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                                    uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    const uint64_t n_groups = davit_pack_groups(item->slot, item->source);
    const davit_quant_out out = decode_buffers(lane, item, n_rows);
    /* permuted rows lie apart: one at a time */
    const uint64_t step = item->slot->perm_heads ? 1 : n_rows;
    davit_quant_out to = out;
    for (uint64_t i = 0; i < n_rows; i += step) {
        davit_quant_tile tile =
            davit_stage_tile(item, stage, expert, davit_stored_row(item->slot, row + i), step);
        if (out.values)
            to.values = out.values + i * out.stride;
        if (out.codes) {
            to.codes = out.codes + i * out.stride;
            to.scales = out.scales + i * n_groups;
            to.zeros = out.zeros + i * n_groups;
        }
        module->iface->decode(module->self, &tile, &to);
    }
    to.values = out.values;
    to.codes = out.codes;
    to.scales = out.scales;
    to.zeros = out.zeros;
    return to;
}

/* Bytes of part 1 of the segment, from @at of it on. */
static int32_t put_part1(DavitLane *lane, const DavitItem *item, uint64_t segment, uint64_t at,
                         const void *bytes, uint64_t n)
{
    const uint64_t off = segment + davit_map_off(lane->plan, item->slot, item->source) + at;
    lane->stats.packed_bytes += n;
    if (!lane->base)
        return davit_lane_put(lane, item, off, bytes, n);
    memcpy(lane->base + off, bytes, n);
    return DAVIT_OK;
}

/* Which input each code column belongs to, and the inputs' factors: the same for all rows, so that
 * those of the first block are kept. */
static int32_t put_map(DavitLane *lane, const DavitItem *item, const davit_quant_out *out,
                       uint64_t segment)
{
    const uint64_t n_factors = davit_pack_factor_bytes(item->slot, item->source);
    const uint64_t n = davit_pack_map_bytes(item->slot, item->source) - n_factors;
    const uint64_t n_cols = item->slot->n_cols;
    const uint32_t *cols = out->cols;
    const bool filled = item->source->module->desc->codes.n_cols != 0;
    for (uint64_t i = 0; i < n / sizeof *cols; i++) {
        if (cols[i] >= n_cols && !(filled && cols[i] == DAVIT_CODES_NONE))
            return davit_report_add(
                lane->report,
                &(DavitFinding){.code = DAVIT_R_QUANT_PARAMS,
                                .status = DAVIT_E_CORRUPT,
                                .stage = "load",
                                .subject = item->source->module->name,
                                .expected = davit_report_text(
                                    lane->report, "columns below %" G_GUINT64_FORMAT, n_cols),
                                .found = davit_report_text(lane->report, "%u", cols[i]),
                                .message = "a column map points outside the matrix"});
    }
    int32_t status = n ? put_part1(lane, item, segment, 0, cols, n) : DAVIT_OK;
    if (!status && n_factors)
        status = put_part1(lane, item, segment, n, out->factors, n_factors);
    return status;
}

static void pack_stored(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                        const davit_weight *weight, uint64_t expert, uint64_t row, uint64_t n_rows,
                        uint8_t *dst)
{
    const DavitSlot *slot = item->slot;
    const uint64_t block = slot->pack->row_block, used = lane->used;
    const uint64_t bytes = davit_pack_block_bytes(slot, item->source);
    for (uint64_t r = 0; r < n_rows; r += block, dst += bytes) {
        davit_segment seg;
        lane->used = used;
        stored_segment(lane, item, stage, expert, row + r, MIN(n_rows - r, block), &seg);
        slot->pack->pack(slot->pack_self, weight, &seg, NULL, seg.n_rows, dst);
    }
}

/* What was decoded from row @row on. */
static davit_quant_out decoded_rows(const davit_quant_out *all, uint64_t row, uint64_t n_groups)
{
    davit_quant_out out = *all;
    if (out.values)
        out.values += row * out.stride;
    if (out.codes) {
        out.codes += row * out.stride;
        out.scales += row * n_groups;
        out.zeros += row * n_groups;
    }
    return out;
}

static int32_t pack_decoded(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                            const davit_weight *weight, uint64_t segment, uint64_t expert,
                            uint64_t row, uint64_t n_rows, uint8_t *dst)
{
    const DavitSlot *slot = item->slot;
    const uint64_t block = slot->pack->row_block, step = davit_decode_rows(slot, item->source);
    const uint64_t bytes = davit_pack_block_bytes(slot, item->source);
    const uint64_t n_groups = davit_pack_groups(slot, item->source);
    const bool has_map = davit_pack_map_bytes(slot, item->source) != 0;
    const uint64_t used = lane->used;
    int32_t status = DAVIT_OK;
    for (uint64_t r = 0, n; !status && r < n_rows; r += n) {
        lane->used = used;
        n = MIN(n_rows - r, step);
        const davit_quant_out out = decode_block(lane, item, stage, expert, row + r, n);
        for (uint64_t b = 0; b < n; b += block, dst += bytes) {
            const davit_quant_out part = decoded_rows(&out, b, n_groups);
            slot->pack->pack(slot->pack_self, weight, NULL, &part, MIN(n - b, block), dst);
        }
        if (row + r == 0 && has_map)
            status = put_map(lane, item, &out, segment);
    }
    return status;
}

int32_t davit_make_packed(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const DavitSlot *slot = item->slot;
    const uint64_t off = segment + davit_made_row_off(slot, item->source, 0, row);
    const uint64_t n = davit_made_row_off(slot, item->source, 0, n_rows);
    uint8_t *to = davit_lane_target(lane, off, n);
    int32_t status = DAVIT_OK;
    davit_weight weight = {.layout = item->source->module->desc->layout,
                           .n_experts = slot->n_experts,
                           .n_rows = slot->n_rows,
                           .n_cols = slot->n_cols};
    davit_pack_params(slot->pack, slot, item->source, weight.params);
    if (!lane->base)
        memset(to, 0, n); /* host memory is fresh */
    if (davit_pack_from_stored(slot->pack, slot))
        pack_stored(lane, item, stage, &weight, expert, row, n_rows, to);
    else
        status = pack_decoded(lane, item, stage, &weight, segment, expert, row, n_rows, to);
    lane->stats.packed_bytes += n;
    return status ? status : davit_lane_put(lane, item, off, to, n);
}
