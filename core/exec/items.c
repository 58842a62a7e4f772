/* SPDX-License-Identifier: Apache-2.0
 * How the pieces of a load are cut and made: copy, pack or decode of row ranges. */
#include "exec/items.h"

#include <math.h>
#include <string.h>

#include "exec/arena.h"
#include "plan/layout.h"

#define PIECE_BYTES (4u << 20) /* aimed size of a piece: small enough for progress and caches */

static int32_t too_large(const DavitSlot *slot, DavitReport *report)
{
    return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                                    .status = DAVIT_E_LIMIT,
                                                    .stage = "load",
                                                    .subject = slot->id,
                                                    .message = "size of a slot overflows"});
}

static const davit_tensor_info *part_tensor(const DavitPlan *plan, const DavitModule *module,
                                            size_t part)
{
    const size_t index = (size_t)module->desc.parts[part].index;
    return davit_checkpoint_tensor(plan->checkpoint, module->tensor[index]);
}

uint64_t davit_module_row_bytes(const DavitModule *module, size_t part)
{
    return module->desc.parts[part].row_bytes;
}

int32_t davit_module_part(const DavitPlan *plan, const DavitModule *module, size_t part,
                          uint64_t expert, uint64_t row, const uint8_t **out,
                          DavitReport *report)
{
    const davit_tensor_info *t = part_tensor(plan, module, part);
    const uint64_t row_bytes = module->desc.parts[part].row_bytes;
    /* (expert, row) lie inside the checked module, so off stays inside the tensor */
    const uint64_t off = row_bytes * (expert * module->desc.n_rows + row);
    return davit_checkpoint_view(plan->checkpoint, t->file, t->off + off, t->n_bytes - off,
                                 out, report);
}

static int32_t whole_parts(const DavitPlan *plan, const DavitModule *module,
                           davit_quant_bytes *parts, DavitReport *report)
{
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        const davit_tensor_info *t = part_tensor(plan, module, p);
        const int32_t status = davit_checkpoint_view(plan->checkpoint, t->file, t->off,
                                                     t->n_bytes, &parts[p].ptr, report);
        if (status)
            return status;
        parts[p].n_bytes = t->n_bytes;
    }
    return DAVIT_OK;
}

/* ---- placement ---- */

/* Bytes of @n_rows rows of the slot in the layout that the kernels get; 0 = overflow. */
static uint64_t rows_bytes(const DavitSlot *slot, const DavitModule *module, size_t part,
                           uint64_t n_rows)
{
    uint64_t n = 0;
    switch (slot->access) {
    case DAVIT_ACCESS_PACK: {
        const uint64_t block = slot->pack->row_block;
        uint64_t params[8];
        davit_pack_params(slot->pack, slot, params);
        const uint64_t bytes = slot->pack->block_bytes(slot->pack_self, slot->n_cols, params);
        return __builtin_mul_overflow((n_rows + block - 1) / block, bytes, &n) ? 0 : n;
    }
    case DAVIT_ACCESS_DECODE:
        return __builtin_mul_overflow(n_rows, slot->n_cols * sizeof(float), &n) ? 0 : n;
    default: {
        const uint64_t row_bytes = module->desc.parts[part].row_bytes;
        return __builtin_mul_overflow(n_rows, row_bytes, &n) ? 0 : n;
    }
    }
}

/* Rows of one piece: whole row blocks of a pack, whole heads when rows are permuted. */
static uint64_t piece_rows(const DavitSlot *slot, const DavitSlotSource *source, uint64_t row_size)
{
    uint64_t unit = 1;
    if (slot->access == DAVIT_ACCESS_PACK)
        unit = slot->pack->row_block;
    if (row_size == 0)
        return source->n_rows;
    const uint64_t rows = PIECE_BYTES / row_size / unit * unit;
    return rows < unit ? unit : rows;
}

/* Pieces of one segment that lies at [base, end) of the slot's memory. The last one reaches to
 * @end, so that padding is written, too, and the pieces add up to the private bytes. */
static void cut_pieces(const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source, uint64_t expert, uint64_t base,
                       uint64_t end, GArray *items)
{
    const DavitModule *module = source->module;
    const davit_tensor_info *t = part_tensor(plan, module, 0);
    const uint64_t one = rows_bytes(slot, module, 0, 1);
    /* several parts lie one after another per segment, so such segments are one piece */
    const bool single = module->desc.n_parts == 1 || slot->access != DAVIT_ACCESS_COPY;
    const uint64_t step = single ? piece_rows(slot, source, one) : source->n_rows;

    for (uint64_t row = 0; row < source->n_rows; row += step) {
        const uint64_t n = source->n_rows - row < step ? source->n_rows - row : step;
        const uint64_t off = rows_bytes(slot, module, 0, row);
        DavitItem item = {.slot = slot,
                          .source = source,
                          .expert = expert,
                          .row = row,
                          .n_rows = n,
                          .dst_off = base + off,
                          .n_bytes = row + n < source->n_rows ? rows_bytes(slot, module, 0, n)
                                                              : end - base - off,
                          .file_key = ((uint64_t)t->file << 48) +
                                      ((t->off + t->n_bytes / (module->desc.n_experts *
                                                               module->desc.n_rows) *
                                                     (expert * module->desc.n_rows +
                                                      source->row + row)) >>
                                       8)};
        g_array_append_val(items, item);
    }
}

/* The column map of a packed segment: part 1, one more piece. Returns the segment's new end. */
static uint64_t place_map(const DavitPlan *plan, const DavitSlot *slot,
                          const DavitSlotSource *source, uint64_t expert, uint64_t at,
                          DavitPlacedSegment *seg, GArray *items)
{
    const uint64_t n = davit_pack_map_bytes(slot);
    const uint64_t end = davit_align_up(at + n, plan->device_align);
    const DavitItem item = {.slot = slot,
                            .source = source,
                            .expert = expert,
                            .dst_off = at,
                            .n_bytes = end - at};
    if (n == 0)
        return at;
    seg->part_off[1] = at;
    seg->n_parts = 2;
    if (items)
        g_array_append_val(items, item);
    return end;
}

int32_t davit_items_place(const DavitPlan *plan, const DavitSlot *slot, GArray *segments,
                          GArray *items, uint64_t *out_bytes, DavitReport *report)
{
    uint64_t at = 0;
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *source = &slot->sources[s];
        const DavitModule *module = source->module;
        const bool copy = slot->access == DAVIT_ACCESS_COPY;
        for (uint64_t e = 0; e < source->n_experts; e++) {
            DavitPlacedSegment seg = {.expert = source->slot_expert + e,
                                      .row = source->slot_row,
                                      .n_rows = source->n_rows,
                                      .n_parts = copy ? module->desc.n_parts : 1};
            const uint64_t base = at;
            for (size_t p = 0; p < seg.n_parts; p++) {
                const uint64_t n = copy && module->desc.parts[p].row_bytes == 0
                                       ? part_tensor(plan, module, p)->n_bytes
                                       : rows_bytes(slot, module, p, source->n_rows);
                uint64_t end;
                if (n == 0 || __builtin_add_overflow(at, n, &end) || end > UINT64_MAX / 2)
                    return too_large(slot, report);
                seg.part_off[p] = at;
                seg.row_bytes[p] = copy ? module->desc.parts[p].row_bytes
                                   : slot->access == DAVIT_ACCESS_PACK
                                       ? rows_bytes(slot, module, 0, slot->pack->row_block)
                                       : slot->n_cols * sizeof(float);
                at = davit_align_up(end, plan->device_align);
            }
            if (items)
                cut_pieces(plan, slot, source, e, base, at, items);
            at = place_map(plan, slot, source, e, at, &seg, items);
            g_array_append_val(segments, seg);
        }
    }
    *out_bytes = at;
    return DAVIT_OK;
}

/* ---- making ---- */

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

static uint8_t *scratch_take(GByteArray *scratch, uint64_t n_bytes)
{
    if (scratch->len < n_bytes)
        g_byte_array_set_size(scratch, (guint)n_bytes);
    return scratch->data;
}

static int32_t make_copy(const DavitPlan *plan, const DavitItem *item, uint8_t *dst,
                         DavitReport *report)
{
    const DavitModule *module = item->source->module;
    uint64_t at = 0;
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        const uint64_t row_bytes = module->desc.parts[p].row_bytes;
        const uint8_t *src;
        int32_t status = davit_module_part(plan, module, p, item->expert, item->source->row,
                                           &src, report);
        if (status)
            return status;
        if (row_bytes == 0) {
            const uint64_t n = part_tensor(plan, module, p)->n_bytes;
            memcpy(dst + at, src, n);
            at = davit_align_up(at + n, plan->device_align);
        } else if (item->slot->perm_heads == 0) {
            memcpy(dst + at, src + item->row * row_bytes, item->n_rows * row_bytes);
            at = davit_align_up(at + item->n_rows * row_bytes, plan->device_align);
        } else {
            for (uint64_t r = 0; r < item->n_rows; r++)
                memcpy(dst + at + r * row_bytes,
                       src + stored_row(item->slot, item->row + r) * row_bytes, row_bytes);
            at = davit_align_up(at + item->n_rows * row_bytes, plan->device_align);
        }
    }
    return DAVIT_OK;
}

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
static void decode_transposed(const DavitItem *item, const davit_quant_bytes *parts, float *dst,
                              GByteArray *scratch)
{
    const DavitModule *module = item->source->module;
    const uint64_t n = item->n_rows, k = module->desc.n_rows;
    float *tmp = (float *)(void *)scratch_take(scratch, n * k * sizeof(float));
    davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                             .desc = &module->desc,
                             .parts = parts,
                             .expert = item->expert,
                             .row = 0,
                             .n_rows = k,
                             .col = item->source->row + item->row,
                             .n_cols = n};
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = tmp,
                           .stride = n};
    module->iface->decode(module->self, &tile, &out);
    for (uint64_t r = 0; r < n; r++)
        for (uint64_t c = 0; c < k; c++)
            dst[r * k + c] = tmp[c * n + r];
}

static void decode_rows(const DavitItem *item, const davit_quant_bytes *parts, uint64_t row,
                        uint64_t n_rows, float *dst)
{
    const DavitModule *module = item->source->module;
    davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                             .desc = &module->desc,
                             .parts = parts,
                             .expert = item->expert,
                             .row = item->source->row + row,
                             .n_rows = n_rows,
                             .col = 0,
                             .n_cols = module->desc.n_cols};
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = dst,
                           .stride = module->desc.n_cols};
    module->iface->decode(module->self, &tile, &out);
}

static int32_t make_decode(const DavitPlan *plan, const DavitItem *item, float *dst,
                           GByteArray *scratch, DavitReport *report)
{
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    const int32_t status = whole_parts(plan, item->source->module, parts, report);
    if (status)
        return status;

    const DavitSlot *slot = item->slot;
    if (slot->value_ops & DAVIT_VALUE_TRANSPOSE) {
        decode_transposed(item, parts, dst, scratch);
    } else if (slot->perm_heads == 0) {
        decode_rows(item, parts, item->row, item->n_rows, dst);
    } else {
        for (uint64_t r = 0; r < item->n_rows; r++)
            decode_rows(item, parts, stored_row(slot, item->row + r), 1, dst + r * slot->n_cols);
    }
    apply_value_ops(slot->value_ops, dst, item->n_rows * slot->n_cols);
    return DAVIT_OK;
}

/* Stored rows of one block side by side in slot order; used when rows are permuted. */
static int32_t gather_block(const DavitPlan *plan, const DavitItem *item, uint64_t row,
                            uint64_t n_rows, davit_segment *seg, GByteArray *scratch,
                            DavitReport *report)
{
    const DavitModule *module = item->source->module;
    uint64_t total = 0;
    for (size_t p = 0; p < module->desc.n_parts; p++)
        total += n_rows * module->desc.parts[p].row_bytes;
    uint8_t *at = scratch_take(scratch, total);
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        const uint64_t row_bytes = module->desc.parts[p].row_bytes;
        const uint8_t *src;
        const int32_t status = davit_module_part(plan, module, p, item->expert,
                                                 item->source->row, &src, report);
        if (status)
            return status;
        seg->part[p] = row_bytes ? at : src;
        for (uint64_t r = 0; row_bytes && r < n_rows; r++, at += row_bytes)
            memcpy(at, src + stored_row(item->slot, row + r) * row_bytes, row_bytes);
    }
    return DAVIT_OK;
}

static int32_t stored_segment(const DavitPlan *plan, const DavitItem *item, uint64_t row,
                              uint64_t n_rows, davit_segment *seg, GByteArray *scratch,
                              DavitReport *report)
{
    const DavitModule *module = item->source->module;
    *seg = (davit_segment){.expert = item->source->slot_expert + item->expert,
                           .row = item->source->slot_row + row,
                           .n_rows = n_rows,
                           .n_parts = module->desc.n_parts};
    for (size_t p = 0; p < module->desc.n_parts; p++)
        seg->row_bytes[p] = module->desc.parts[p].row_bytes;
    if (item->slot->perm_heads)
        return gather_block(plan, item, row, n_rows, seg, scratch, report);
    for (size_t p = 0; p < module->desc.n_parts; p++) {
        const int32_t status = davit_module_part(plan, module, p, item->expert,
                                                 item->source->row + row, &seg->part[p], report);
        if (status)
            return status;
    }
    return DAVIT_OK;
}

/* Where the rows of a block are decoded to: one allocation, grown on first use. */
static davit_quant_out decode_buffers(const DavitSlot *slot, uint64_t n_rows, uint64_t n_groups,
                                      GByteArray *scratch)
{
    const uint64_t n = n_rows * slot->n_cols, n_scales = n_rows * n_groups;
    const uint64_t map = slot->n_cols * sizeof(uint32_t);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = n_groups ? DAVIT_FORM_CODES : DAVIT_FORM_F32,
                           .stride = slot->n_cols};
    if (n_groups == 0) {
        out.values = (float *)(void *)scratch_take(scratch, n * sizeof(float));
        return out;
    }
    uint8_t *at = scratch_take(scratch, map + 2 * n_scales * sizeof(float) + n);
    out.cols = (uint32_t *)(void *)at;
    out.scales = (float *)(void *)(at + map);
    out.zeros = out.scales + n_scales;
    out.codes = (uint8_t *)(out.zeros + n_scales);
    return out;
}

/* Groups of a row's codes; 0 = the pack takes float32. */
static uint64_t groups_of(const DavitSlot *slot, const DavitModule *module)
{
    const uint64_t group = module->desc.codes.group;

    if (!(slot->pack->forms & module->desc.forms & DAVIT_FORM_CODES))
        return 0;
    return group == 0 ? 1 : (slot->n_cols + group - 1) / group;
}

/* Rows [row, row + n_rows) of the source, through the quant plugin. */
static davit_quant_out decode_block(const DavitItem *item, const davit_quant_bytes *parts,
                                    uint64_t row, uint64_t n_rows, GByteArray *scratch)
{
    const DavitModule *module = item->source->module;
    const uint64_t n_groups = groups_of(item->slot, module);
    const davit_quant_out out = decode_buffers(item->slot, n_rows, n_groups, scratch);
    /* permuted rows lie apart: one at a time */
    const uint64_t step = item->slot->perm_heads ? 1 : n_rows;
    davit_quant_out to = out;
    davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                             .desc = &module->desc,
                             .parts = parts,
                             .expert = item->expert,
                             .n_rows = step,
                             .n_cols = module->desc.n_cols};
    for (uint64_t i = 0; i < n_rows; i += step) {
        tile.row = item->source->row + stored_row(item->slot, row + i);
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

/* Which input each code column belongs to; the same for all rows, so that of one is asked. */
static int32_t make_map(const DavitPlan *plan, const DavitItem *item, uint8_t *dst,
                        GByteArray *scratch, DavitReport *report)
{
    const DavitModule *module = item->source->module;
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    const int32_t status = whole_parts(plan, module, parts, report);
    if (status)
        return status;
    const davit_quant_out out = decode_block(item, parts, 0, 1, scratch);
    for (uint64_t i = 0; i < item->slot->n_cols; i++) {
        if (out.cols[i] >= item->slot->n_cols)
            return davit_report_add(
                report, &(DavitFinding){.code = DAVIT_R_QUANT_PARAMS,
                                        .status = DAVIT_E_CORRUPT,
                                        .stage = "load",
                                        .subject = module->name,
                                        .expected = davit_report_text(
                                            report, "columns below %" G_GUINT64_FORMAT,
                                            item->slot->n_cols),
                                        .found = davit_report_text(report, "%u", out.cols[i]),
                                        .message = "a column map points outside the matrix"});
    }
    memcpy(dst, out.cols, item->slot->n_cols * sizeof *out.cols);
    return DAVIT_OK;
}

static int32_t make_pack(const DavitPlan *plan, const DavitItem *item, uint8_t *dst,
                         GByteArray *scratch, DavitReport *report)
{
    const DavitSlot *slot = item->slot;
    const DavitModule *module = item->source->module;
    const bool stored = davit_pack_from_stored(slot->pack, slot);
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    davit_weight weight = {.layout = slot->stored_layout,
                           .n_experts = slot->n_experts,
                           .n_rows = slot->n_rows,
                           .n_cols = slot->n_cols};
    int32_t status = stored ? DAVIT_OK : whole_parts(plan, module, parts, report);

    davit_pack_params(slot->pack, slot, weight.params);
    const uint64_t block = slot->pack->row_block;
    const uint64_t bytes = slot->pack->block_bytes(slot->pack_self, slot->n_cols, weight.params);
    for (uint64_t r = 0; !status && r < item->n_rows; r += block, dst += bytes) {
        const uint64_t n = item->n_rows - r < block ? item->n_rows - r : block;
        davit_segment seg = {0};
        davit_quant_out out = {0};
        if (stored)
            status = stored_segment(plan, item, item->row + r, n, &seg, scratch, report);
        else
            out = decode_block(item, parts, item->row + r, n, scratch);
        if (!status)
            slot->pack->pack(slot->pack_self, &weight, stored ? &seg : NULL,
                             stored ? NULL : &out, n, dst);
    }
    return status;
}

/* Payload check of the quant plugin over the piece's rows. */
static int32_t verify(const DavitPlan *plan, const DavitItem *item, DavitReport *report)
{
    const DavitModule *module = item->source->module;
    if (!module->iface->verify || (item->slot->value_ops & DAVIT_VALUE_TRANSPOSE) ||
        item->slot->perm_heads)
        return DAVIT_OK;
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    int32_t status = whole_parts(plan, module, parts, report);
    if (status)
        return status;
    davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                             .desc = &module->desc,
                             .parts = parts,
                             .expert = item->expert,
                             .row = item->source->row + item->row,
                             .n_rows = item->n_rows,
                             .col = 0,
                             .n_cols = module->desc.n_cols};
    DavitSink sink;
    davit_sink_init(&sink, report, module->quant ? module->quant->id : "core", "load");
    return davit_sink_done(&sink, module->iface->verify(module->self, &tile, &sink.abi));
}

int32_t davit_items_make(const DavitPlan *plan, const DavitItem *item, uint8_t *dst,
                         GByteArray *scratch, DavitLoadStats *stats, DavitReport *report)
{
    int32_t status = item->n_rows ? verify(plan, item, report) : DAVIT_OK;
    if (status)
        return status;
    switch (item->slot->access) {
    case DAVIT_ACCESS_COPY:
        stats->copied_bytes += item->n_bytes;
        status = make_copy(plan, item, dst, report);
        break;
    case DAVIT_ACCESS_PACK:
        stats->packed_bytes += item->n_bytes;
        status = item->n_rows ? make_pack(plan, item, dst, scratch, report)
                              : make_map(plan, item, dst, scratch, report);
        break;
    case DAVIT_ACCESS_DECODE:
        stats->decoded_bytes += item->n_bytes;
        status = make_decode(plan, item, (float *)(void *)dst, scratch, report);
        break;
    case DAVIT_ACCESS_BORROW:
        break;
    }
    const DavitModule *module = item->source->module;
    for (size_t p = 0; p < module->desc.n_parts; p++)
        stats->read_bytes += item->n_rows * module->desc.parts[p].row_bytes;
    return status;
}
