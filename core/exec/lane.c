/* SPDX-License-Identifier: Apache-2.0
 * Chunks of a piece: read, make, put. The quant plugin is told of whole parts, so that the
 * bytes of a few rows are shown to it at the address where row 0 would be. */
#include "exec/lane.h"

#include <math.h>
#include <string.h>

#include <davit/help/ref.h>

#include "exec/arena.h"
#include "plan/layout.h"
#include "plan/module.h"

#define LANE_ALIGN 64u

/* What the stage holds of an item: all parts, at their would-be starts. */
typedef struct Stage {
    davit_quant_bytes part[DAVIT_MAX_PARTS];
    uint64_t whole_used; /* lane memory behind the parts that are read whole */
} Stage;

static const davit_tensor_info *part_tensor(const DavitLane *lane, const DavitItem *item,
                                            size_t part)
{
    const DavitModule *module = item->source->module;
    return davit_checkpoint_tensor(lane->plan->checkpoint,
                                   module->tensor[module->desc.parts[part].index]);
}

/* The plan's arithmetic says that it fits; a piece that does not is a fault of ours. */
static uint8_t *take(DavitLane *lane, uint64_t n_bytes)
{
    uint8_t *p = lane->mem + lane->used;
    lane->used = davit_align_up(lane->used + n_bytes, LANE_ALIGN);
    g_assert(n_bytes <= lane->n_bytes && (uint64_t)(p - lane->mem) <= lane->n_bytes - n_bytes);
    return p;
}

/* ---- reading ---- */

int32_t davit_lane_read(DavitLane *lane, uint32_t file, uint64_t off, uint8_t *to,
                        uint64_t n_bytes)
{
    const int64_t start = g_get_monotonic_time();
    const int32_t status =
        davit_checkpoint_read(lane->plan->checkpoint, file, off, to, n_bytes, lane->report);
    lane->stats.read_seconds += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    if (!status) {
        lane->stats.read_bytes += n_bytes;
        lane->stats.n_reads++;
    }
    return status;
}

static int32_t stage_whole(DavitLane *lane, const DavitItem *item, Stage *stage)
{
    const DavitModule *module = item->source->module;
    lane->used = 0;
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        if (davit_part_by_row(item->slot, module, p))
            continue;
        const davit_tensor_info *t = part_tensor(lane, item, p);
        uint8_t *to = take(lane, t->n_bytes);
        const int32_t status = davit_lane_read(lane, t->file, t->off, to, t->n_bytes);
        if (status)
            return status;
        stage->part[p] = (davit_quant_bytes){to, t->n_bytes};
    }
    stage->whole_used = lane->used;
    return DAVIT_OK;
}

static uint64_t stored_index(const DavitItem *item, uint64_t expert, uint64_t row)
{
    return expert * item->source->module->desc.n_rows + item->source->row + row;
}

static int32_t stage_rows(DavitLane *lane, const DavitItem *item, uint64_t expert, uint64_t row,
                          uint64_t n_rows, Stage *stage)
{
    const DavitModule *module = item->source->module;
    lane->used = stage->whole_used;
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        if (!davit_part_by_row(item->slot, module, p))
            continue;
        const davit_tensor_info *t = part_tensor(lane, item, p);
        const uint64_t row_bytes = module->desc.parts[p].row_bytes;
        const uint64_t off = stored_index(item, expert, row) * row_bytes;
        uint8_t *to = take(lane, n_rows * row_bytes);
        const int32_t status =
            davit_lane_read(lane, t->file, t->off + off, to, n_rows * row_bytes);
        if (status)
            return status;
        stage->part[p] =
            (davit_quant_bytes){(const uint8_t *)((uintptr_t)to - (uintptr_t)off), t->n_bytes};
    }
    return DAVIT_OK;
}

/* First byte of row @row of expert @expert in the stage. */
static const uint8_t *staged(const DavitItem *item, const Stage *stage, size_t part,
                             uint64_t expert, uint64_t row)
{
    const uint64_t row_bytes = item->source->module->desc.parts[part].row_bytes;
    return (const uint8_t *)((uintptr_t)stage->part[part].ptr +
                             (uintptr_t)(stored_index(item, expert, row) * row_bytes));
}

/* ---- rows ---- */

/* Stored row of slot row @row when the converter's rotary order is undone: within a head of d
 * rows the slot's row (half s, index j) is the stored row 2j + s. */
static uint64_t stored_row(const DavitSlot *slot, uint64_t row)
{
    if (slot->perm_heads == 0)
        return row;
    const uint64_t d = slot->n_rows / slot->perm_heads;
    const uint64_t head = row / d, r = row % d;
    return head * d + 2 * (r % (d / 2)) + r / (d / 2);
}

static davit_quant_tile tile_of(const DavitItem *item, const Stage *stage, uint64_t expert,
                                uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    return (davit_quant_tile){.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                              .desc = &module->desc,
                              .parts = stage->part,
                              .expert = expert,
                              .row = item->source->row + row,
                              .n_rows = n_rows,
                              .col = 0,
                              .n_cols = module->desc.n_cols};
}

static void decode_rows(const DavitItem *item, const Stage *stage, uint64_t expert, uint64_t row,
                        uint64_t n_rows, float *dst)
{
    const DavitModule *module = item->source->module;
    davit_quant_tile tile = tile_of(item, stage, expert, row, n_rows);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = dst,
                           .stride = module->desc.n_cols};
    module->iface->decode(module->self, &tile, &out);
}

/* Payload check of the quant plugin over the chunk's rows. */
static int32_t verify(DavitLane *lane, const DavitItem *item, const Stage *stage, uint64_t expert,
                      uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    const davit_quant_tile tile = tile_of(item, stage, expert, row, n_rows);
    if (item->slot->value_ops & DAVIT_VALUE_TRANSPOSE)
        return DAVIT_OK;
    return davit_module_verify(module, &tile, "load", lane->report);
}

/* ---- where made bytes go ---- */

/* Memory to make @n_bytes in that belong at @off of the slot. */
static uint8_t *target(DavitLane *lane, uint64_t off, uint64_t n_bytes)
{
    return lane->base ? lane->base + off : take(lane, n_bytes);
}

static int32_t put(DavitLane *lane, const DavitItem *item, uint64_t off, const uint8_t *bytes,
                   uint64_t n_bytes)
{
    if (lane->base)
        return DAVIT_OK;
    const int32_t status = lane->upload(lane->ctx, item, off, bytes, n_bytes);
    if (!status)
        lane->stats.uploaded_bytes += n_bytes;
    return status;
}

/* ---- copy ---- */

/* Columns of this rank, row by row: only they are read. */
static int32_t copy_columns(DavitLane *lane, const DavitItem *item, size_t part, uint8_t *to)
{
    const davit_tensor_info *t = part_tensor(lane, item, part);
    const uint64_t row_bytes = item->source->module->desc.parts[part].row_bytes;
    const uint64_t run = davit_source_row_bytes(item->source, part);
    uint64_t off = t->off + stored_index(item, item->expert, item->row) * row_bytes +
                   davit_source_col_off(item->source, part);
    for (uint64_t r = 0; r < item->n_rows; r++, off += row_bytes, to += run) {
        const int32_t status = davit_lane_read(lane, t->file, off, to, run);
        if (status)
            return status;
    }
    lane->stats.copied_bytes += item->n_rows * run;
    return DAVIT_OK;
}

static int32_t copy_direct(DavitLane *lane, const DavitItem *item, uint64_t segment)
{
    const DavitModule *module = item->source->module;
    Stage stage = {0};
    int32_t status = DAVIT_OK;
    for (size_t p = 0; !status && p < module->desc.n_parts; p++) {
        const davit_tensor_info *t = part_tensor(lane, item, p);
        const uint64_t row_bytes = module->desc.parts[p].row_bytes;
        const uint64_t n = row_bytes ? item->n_rows * row_bytes : t->n_bytes;
        const uint64_t first = stored_index(item, item->expert, item->row) * row_bytes;
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
    return verify(lane, item, &stage, item->expert, item->row, item->n_rows);
}

static int32_t copy_part(DavitLane *lane, const DavitItem *item, const Stage *stage, size_t part,
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
        row_bytes ? staged(item, stage, part, expert, row) : stage->part[part].ptr;
    lane->stats.copied_bytes += n;
    if (!lane->base && item->slot->perm_heads == 0)
        return put(lane, item, off, from, n);
    uint8_t *to = target(lane, off, n);
    if (item->slot->perm_heads == 0)
        memcpy(to, from, n);
    for (uint64_t r = 0; item->slot->perm_heads && r < n_rows; r++)
        memcpy(to + r * row_bytes,
               staged(item, stage, part, expert, stored_row(item->slot, row + r)), row_bytes);
    return put(lane, item, off, to, n);
}

static int32_t copy_chunk(DavitLane *lane, const DavitItem *item, const Stage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    int32_t status = DAVIT_OK;
    for (size_t p = 0; !status && p < item->source->module->desc.n_parts; p++)
        status = copy_part(lane, item, stage, p, segment, expert, row, n_rows);
    return status;
}

/* ---- pack ---- */

/* Stored rows of one block as the pack gets them; re-ordered ones are gathered. */
static void stored_segment(DavitLane *lane, const DavitItem *item, const Stage *stage,
                           uint64_t expert, uint64_t row, uint64_t n_rows, davit_segment *seg)
{
    const DavitModule *module = item->source->module;
    *seg = (davit_segment){.expert = item->source->slot_expert + expert - item->source->expert,
                           .row = item->source->slot_row + row,
                           .n_rows = n_rows,
                           .n_parts = module->desc.n_parts};
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        const uint64_t row_bytes = module->desc.parts[p].row_bytes;
        seg->row_bytes[p] = row_bytes;
        seg->part[p] = row_bytes ? staged(item, stage, p, expert, row) : stage->part[p].ptr;
        if (item->slot->perm_heads == 0 || row_bytes == 0)
            continue;
        uint8_t *to = take(lane, n_rows * row_bytes);
        for (uint64_t r = 0; r < n_rows; r++)
            memcpy(to + r * row_bytes,
                   staged(item, stage, p, expert, stored_row(item->slot, row + r)), row_bytes);
        seg->part[p] = to;
    }
}

/* Where the rows of a block are decoded to. */
static davit_quant_out decode_buffers(DavitLane *lane, const DavitSlot *slot, uint64_t n_rows)
{
    const uint64_t n_scales = n_rows * davit_pack_groups(slot);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = n_scales ? DAVIT_FORM_CODES : DAVIT_FORM_F32,
                           .stride = slot->n_cols};
    if (n_scales == 0) {
        out.values = (float *)(void *)take(lane, n_rows * slot->n_cols * sizeof(float));
        return out;
    }
    out.cols = (uint32_t *)(void *)take(lane, slot->n_cols * sizeof(uint32_t));
    out.scales = (float *)(void *)take(lane, n_scales * sizeof(float));
    out.zeros = (float *)(void *)take(lane, n_scales * sizeof(float));
    out.codes = take(lane, n_rows * slot->n_cols);
    return out;
}

/* Rows [row, row + n_rows) of the source, through the quant plugin. */
static davit_quant_out decode_block(DavitLane *lane, const DavitItem *item, const Stage *stage,
                                    uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const DavitModule *module = item->source->module;
    const uint64_t n_groups = davit_pack_groups(item->slot);
    const davit_quant_out out = decode_buffers(lane, item->slot, n_rows);
    /* permuted rows lie apart: one at a time */
    const uint64_t step = item->slot->perm_heads ? 1 : n_rows;
    davit_quant_out to = out;
    for (uint64_t i = 0; i < n_rows; i += step) {
        davit_quant_tile tile =
            tile_of(item, stage, expert, stored_row(item->slot, row + i), step);
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

/* Which input each code column belongs to: the same for all rows, so that of the first block
 * is kept. */
static int32_t put_map(DavitLane *lane, const DavitItem *item, const uint32_t *cols,
                       uint64_t segment)
{
    const uint64_t n_cols = item->slot->n_cols, n = n_cols * sizeof *cols;
    const uint64_t off = segment + davit_map_off(lane->plan, item->slot, item->source);
    for (uint64_t i = 0; i < n_cols; i++) {
        if (cols[i] >= n_cols)
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
    lane->stats.packed_bytes += n;
    if (!lane->base)
        return put(lane, item, off, (const uint8_t *)cols, n);
    memcpy(lane->base + off, cols, n);
    return DAVIT_OK;
}

static int32_t pack_block(DavitLane *lane, const DavitItem *item, const Stage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows,
                          uint8_t *dst)
{
    const DavitSlot *slot = item->slot;
    davit_weight weight = {.layout = slot->stored_layout,
                           .n_experts = slot->n_experts,
                           .n_rows = slot->n_rows,
                           .n_cols = slot->n_cols};
    davit_pack_params(slot->pack, slot, weight.params);
    if (davit_pack_from_stored(slot->pack, slot)) {
        davit_segment seg;
        stored_segment(lane, item, stage, expert, row, n_rows, &seg);
        slot->pack->pack(slot->pack_self, &weight, &seg, NULL, n_rows, dst);
        return DAVIT_OK;
    }
    const davit_quant_out out = decode_block(lane, item, stage, expert, row, n_rows);
    slot->pack->pack(slot->pack_self, &weight, NULL, &out, n_rows, dst);
    return row == 0 && davit_pack_map_bytes(slot) ? put_map(lane, item, out.cols, segment)
                                                   : DAVIT_OK;
}

static int32_t pack_chunk(DavitLane *lane, const DavitItem *item, const Stage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const DavitSlot *slot = item->slot;
    const uint64_t block = slot->pack->row_block;
    const uint64_t bytes = davit_pack_block_bytes(slot);
    const uint64_t off = segment + davit_made_row_off(slot, item->source, 0, row);
    const uint64_t n = davit_made_row_off(slot, item->source, 0, n_rows);
    uint8_t *to = target(lane, off, n);
    int32_t status = DAVIT_OK;
    if (!lane->base)
        memset(to, 0, n); /* host memory is fresh */
    const uint64_t used = lane->used;
    for (uint64_t r = 0; !status && r < n_rows; r += block) {
        lane->used = used;
        status = pack_block(lane, item, stage, segment, expert, row + r, MIN(n_rows - r, block),
                            to + r / block * bytes);
    }
    lane->stats.packed_bytes += n;
    return status ? status : put(lane, item, off, to, n);
}

/* ---- decode ---- */

static void apply_value_ops(uint32_t ops, float *x, uint64_t n)
{
    if (ops & DAVIT_VALUE_ADD1)
        for (uint64_t i = 0; i < n; i++)
            x[i] += 1.0f;
    if (ops & DAVIT_VALUE_NEG_EXP)
        for (uint64_t i = 0; i < n; i++)
            x[i] = -expf(x[i]);
}

/* Slot rows are stored columns: decode the columns [row, row + n) of all rows, then turn. */
static void decode_turned(DavitLane *lane, const DavitItem *item, const Stage *stage,
                          uint64_t expert, uint64_t row, uint64_t n, float *dst)
{
    const DavitModule *module = item->source->module;
    const uint64_t k = module->desc.n_rows;
    float *tmp = (float *)(void *)take(lane, n * k * sizeof(float));
    davit_quant_tile tile = tile_of(item, stage, expert, 0, k);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = tmp,
                           .stride = n};
    tile.row = 0;
    tile.col = item->source->row + row;
    tile.n_cols = n;
    module->iface->decode(module->self, &tile, &out);
    for (uint64_t r = 0; r < n; r++)
        for (uint64_t c = 0; c < k; c++)
            dst[r * k + c] = tmp[c * n + r];
}

static void decode_to(DavitLane *lane, const DavitItem *item, const Stage *stage,
                      uint64_t expert, uint64_t row, uint64_t n_rows, float *dst)
{
    const DavitSlot *slot = item->slot;
    if (slot->value_ops & DAVIT_VALUE_TRANSPOSE)
        decode_turned(lane, item, stage, expert, row, n_rows, dst);
    else if (slot->perm_heads == 0)
        decode_rows(item, stage, expert, row, n_rows, dst);
    for (uint64_t r = 0; slot->perm_heads && r < n_rows; r++)
        decode_rows(item, stage, expert, stored_row(slot, row + r), 1, dst + r * slot->n_cols);
    apply_value_ops(slot->value_ops, dst, n_rows * slot->n_cols);
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40); /* stays a NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A value that the type cannot hold is refused, not made infinite. */
static int32_t does_not_fit(DavitLane *lane, const DavitItem *item, uint64_t row, float value)
{
    return davit_report_add(
        lane->report,
        &(DavitFinding){.code = DAVIT_R_VALUE_NOT_FINITE,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "load",
                        .subject = item->source->module->name,
                        .expected = "values within float16's range, up to 65504",
                        .found = davit_report_text(lane->report, "%g in row %" G_GUINT64_FORMAT,
                                                   (double)value, row),
                        .message = "a weight does not fit the type that --dtype asks for",
                        .hint = "use --dtype bf16 or f32"});
}

static int32_t narrow_rows(DavitLane *lane, const DavitItem *item, const Stage *stage,
                           uint64_t expert, uint64_t row, uint64_t n_rows, uint8_t *to)
{
    const uint64_t k = item->slot->n_cols;
    const bool half = strcmp(item->slot->layout, "f16/1") == 0;
    float *x = (float *)(void *)take(lane, k * sizeof(float));
    const uint64_t used = lane->used;
    for (uint64_t r = 0; r < n_rows; r++) {
        lane->used = used;
        decode_to(lane, item, stage, expert, row + r, 1, x);
        for (uint64_t c = 0; c < k; c++) {
            const uint16_t bits = half ? davit_ref_f32_to_f16(x[c]) : to_bf16(x[c]);
            if (half && isfinite(x[c]) && (bits & 0x7c00) == 0x7c00)
                return does_not_fit(lane, item, row + r, x[c]);
            memcpy(to + (r * k + c) * 2, &bits, 2);
        }
    }
    return DAVIT_OK;
}

static int32_t decode_chunk(DavitLane *lane, const DavitItem *item, const Stage *stage,
                            uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const uint64_t off = segment + davit_made_row_off(item->slot, item->source, 0, row);
    const uint64_t n = davit_made_row_off(item->slot, item->source, 0, n_rows);
    uint8_t *to = target(lane, off, n);
    int32_t status = DAVIT_OK;
    if (davit_decoded_value_bytes(item->slot) == 4)
        decode_to(lane, item, stage, expert, row, n_rows, (float *)(void *)to);
    else
        status = narrow_rows(lane, item, stage, expert, row, n_rows, to);
    lane->stats.decoded_bytes += n;
    return status ? status : put(lane, item, off, to, n);
}

/* ---- a piece ---- */

static int32_t make_chunk(DavitLane *lane, const DavitItem *item, Stage *stage, uint64_t segment,
                          uint64_t expert, uint64_t row, uint64_t n_rows)
{
    int32_t status = stage_rows(lane, item, expert, row, n_rows, stage);
    if (!status)
        status = verify(lane, item, stage, expert, row, n_rows);
    if (status)
        return status;
    switch (item->slot->access) {
    case DAVIT_ACCESS_COPY:
        return copy_chunk(lane, item, stage, segment, expert, row, n_rows);
    case DAVIT_ACCESS_PACK:
        return pack_chunk(lane, item, stage, segment, expert, row, n_rows);
    case DAVIT_ACCESS_DECODE:
        return decode_chunk(lane, item, stage, segment, expert, row, n_rows);
    case DAVIT_ACCESS_BORROW:
        break;
    }
    return DAVIT_OK;
}

int32_t davit_lane_make(DavitLane *lane, const DavitItem *item)
{
    Stage stage = {0};
    if (item->slot->way == DAVIT_WAY_DIRECT)
        return copy_direct(lane, item, item->dst_off);
    int32_t status = stage_whole(lane, item, &stage);
    for (uint64_t e = 0; !status && e < item->n_experts; e++) {
        const uint64_t segment = item->dst_off + e * item->dst_stride;
        for (uint64_t r = 0; !status && r < item->n_rows; r += item->chunk_rows)
            status = make_chunk(lane, item, &stage, segment, item->expert + e, item->row + r,
                                MIN(item->chunk_rows, item->n_rows - r));
    }
    return status;
}
