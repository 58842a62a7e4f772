/* SPDX-License-Identifier: Apache-2.0
 * Rows as plain values: float32, or narrowed to the type that the user asked for. */
#include "exec/make.h"

#include <math.h>
#include <string.h>

#include <davit/help/ref.h>

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
static void decode_turned(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                          uint64_t expert, uint64_t row, uint64_t n, float *dst)
{
    const DavitModule *module = item->source->module;
    const uint64_t k = module->desc->n_rows;
    float *tmp = (float *)(void *)davit_lane_take(lane, n * k * sizeof(float));
    davit_quant_tile tile = davit_stage_tile(item, stage, expert, 0, k);
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

static void decode_to(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                      uint64_t expert, uint64_t row, uint64_t n_rows, float *dst)
{
    const DavitSlot *slot = item->slot;
    if (slot->value_ops & DAVIT_VALUE_TRANSPOSE)
        decode_turned(lane, item, stage, expert, row, n_rows, dst);
    else if (slot->perm_heads == 0)
        davit_stage_decode(item, stage, expert, row, n_rows, dst);
    for (uint64_t r = 0; slot->perm_heads && r < n_rows; r++)
        davit_stage_decode(item, stage, expert, davit_stored_row(slot, row + r), 1, dst + r * slot->n_cols);
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

static int32_t narrow_rows(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                           uint64_t expert, uint64_t row, uint64_t n_rows, uint8_t *to)
{
    const uint64_t k = item->slot->n_cols;
    const bool half = strcmp(item->slot->layout, "f16/1") == 0;
    float *x = (float *)(void *)davit_lane_take(lane, k * sizeof(float));
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

int32_t davit_make_decoded(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                            uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows)
{
    const uint64_t off = segment + davit_made_row_off(item->slot, item->source, 0, row);
    const uint64_t n = davit_made_row_off(item->slot, item->source, 0, n_rows);
    uint8_t *to = davit_lane_target(lane, off, n);
    int32_t status = DAVIT_OK;
    if (davit_decoded_value_bytes(item->slot) == 4)
        decode_to(lane, item, stage, expert, row, n_rows, (float *)(void *)to);
    else
        status = narrow_rows(lane, item, stage, expert, row, n_rows, to);
    lane->stats.decoded_bytes += n;
    return status ? status : davit_lane_put(lane, item, off, to, n);
}

