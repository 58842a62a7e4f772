/* SPDX-License-Identifier: Apache-2.0
 * Quant modules that are one tensor whose dtype is its layout: description, tiles, scales. */
#include <stdio.h>

#include <davit/help/records.h>

#include "ref.h"

const davit_ref_layout *davit_ref_module_layout(const davit_quant_module *module)
{
    const davit_quant_part_in *part;

    if (module->n_parts != 1)
        return NULL;
    part = module->parts[0];
    if (strcmp(part->suffix, "weight") != 0 && strcmp(part->suffix, "") != 0)
        return NULL;
    return davit_ref_layout_find(part->dtype);
}

static int32_t mismatch(const davit_tensor_info *info, const char *expected, uint64_t found,
                        const char *message, const davit_sink *sink)
{
    char have[32];

    snprintf(have, sizeof have, "%llu", (unsigned long long)found);
    return davit_say(sink, DAVIT_E_MISMATCH,
                     &(davit_refusal){
                         .code = DAVIT_R_SHAPE_MISMATCH,
                         .subject = info->name,
                         .expected = expected,
                         .found = have,
                         .message = message,
                     });
}

/* *out_n = product of axes [first, last). Returns 0 on overflow or an empty axis. */
static int product(const davit_tensor_info *info, uint32_t first, uint32_t last, uint64_t *out_n)
{
    uint64_t n = 1;

    for (uint32_t i = first; i < last; i++)
        if (info->shape[i] == 0 || __builtin_mul_overflow(n, info->shape[i], &n))
            return 0;
    *out_n = n;
    return 1;
}

/* Axes into [E, N, K]. */
static int32_t read_shape(const davit_tensor_info *info, davit_quant_desc *out,
                          const davit_sink *sink)
{
    const uint32_t rank = info->rank;

    if (rank > DAVIT_MAX_RANK)
        return mismatch(info, "at most 8 axes", rank, "too many axes", sink);
    if (!product(info, 0, rank > 2 ? rank - 2 : 0, &out->n_experts) ||
        !product(info, rank > 2 ? rank - 2 : 0, rank > 1 ? rank - 1 : rank, &out->n_rows) ||
        !product(info, rank > 1 ? rank - 1 : rank, rank, &out->n_cols))
        return mismatch(info, "axes of at least 1", 0, "the tensor is empty or too large", sink);
    return DAVIT_OK;
}

int32_t davit_ref_module_describe(const davit_quant_module *module, const char *scheme,
                                  davit_quant_desc *out, const davit_sink *sink)
{
    const davit_tensor_info *info = module->parts[0]->info;
    const davit_ref_layout *layout = davit_ref_layout_find(info->dtype);
    davit_quant_desc desc = {.struct_size = out->struct_size};
    uint64_t row_bytes, rows;

    const int32_t status = read_shape(info, &desc, sink);
    if (status)
        return status;
    if (desc.n_cols % layout->block_elems != 0) {
        char unit[32];

        snprintf(unit, sizeof unit, "a multiple of %u", layout->block_elems);
        return mismatch(info, unit, desc.n_cols,
                        "the last axis is not whole blocks of the layout", sink);
    }
    if (__builtin_mul_overflow(desc.n_cols / layout->block_elems, layout->block_bytes,
                               &row_bytes) ||
        __builtin_mul_overflow(desc.n_experts, desc.n_rows, &rows) ||
        info->n_bytes / row_bytes != rows || info->n_bytes % row_bytes != 0)
        return mismatch(info, "bytes that follow from shape and dtype", info->n_bytes,
                        "the tensor's bytes do not fit its shape", sink);

    desc.scheme = scheme;
    desc.layout = layout->name;
    desc.row_unit = 1;
    desc.col_unit = layout->block_elems;
    desc.n_parts = 1;
    desc.parts[0] = (davit_quant_part){
        .struct_size = DAVIT_END(davit_quant_part, row_bytes),
        .role = "weight",
        .index = 0,
        .row_bytes = row_bytes,
    };
    desc.forms = DAVIT_FORM_F32 | (layout->codes ? DAVIT_FORM_CODES : 0);
    *out = desc;
    return DAVIT_OK;
}

/* First block of row @row of the tile. */
static const uint8_t *tile_row(const davit_quant_tile *tile, const davit_ref_layout *layout,
                               uint64_t row)
{
    const davit_quant_desc *desc = tile->desc;
    const uint64_t at = tile->expert * desc->n_rows + tile->row + row;

    return tile->parts[0].ptr + at * davit_ref_row_bytes(layout, desc->n_cols) +
           davit_ref_row_bytes(layout, tile->col);
}

void davit_ref_module_decode(const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_ref_layout *layout = davit_ref_layout_find(tile->desc->layout);
    const uint64_t n_blocks = tile->n_cols / layout->block_elems;

    if (out->form == DAVIT_FORM_F32) {
        for (uint64_t r = 0; r < tile->n_rows; r++)
            layout->decode(tile_row(tile, layout, r), n_blocks, out->values + r * out->stride);
        return;
    }
    const uint64_t n_groups = tile->n_cols / layout->group;
    out->group = layout->group;
    out->has_min = layout->has_min;
    for (uint64_t r = 0; r < tile->n_rows; r++)
        layout->codes(tile_row(tile, layout, r), n_blocks, out->codes + r * out->stride,
                      out->scales + r * n_groups, out->zeros + r * n_groups);
}

static int32_t bad_scale(const davit_quant_tile *tile, uint64_t row, uint64_t block,
                         const davit_sink *sink)
{
    char where[96];

    snprintf(where, sizeof where, "expert %llu, row %llu, block %llu",
             (unsigned long long)tile->expert, (unsigned long long)row,
             (unsigned long long)block);
    return davit_say(sink, DAVIT_E_CORRUPT,
                     &(davit_refusal){
                         .code = DAVIT_R_VALUE_NOT_FINITE,
                         .subject = where,
                         .expected = "a finite scale",
                         .found = "NaN or infinity",
                         .message = "a scale of the quantised weight is not finite",
                         .hint = "the file is damaged or was converted wrongly",
                     });
}

/* Where a block's float16 does not lie in one place. */
static int scales_finite(const davit_ref_layout *layout, const uint8_t *block)
{
    uint8_t codes[DAVIT_REF_MAX_BLOCK];
    float scales[DAVIT_REF_MAX_BLOCK / 16], zeros[DAVIT_REF_MAX_BLOCK / 16];

    layout->codes(block, 1, codes, scales, zeros);
    return isfinite(scales[0]) != 0;
}

int32_t davit_ref_module_verify(const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_ref_layout *layout = davit_ref_layout_find(tile->desc->layout);
    const uint64_t n_blocks = tile->n_cols / layout->block_elems;

    for (uint64_t r = 0; r < tile->n_rows; r++) {
        const uint8_t *block = tile_row(tile, layout, r);
        for (uint64_t b = 0; b < n_blocks; b++, block += layout->block_bytes) {
            if (layout->codes && layout->half_at[0] == UINT32_MAX && !scales_finite(layout, block))
                return bad_scale(tile, tile->row + r, tile->col / layout->block_elems + b, sink);
            for (int i = 0; i < 2 && layout->half_at[i] != UINT32_MAX; i++)
                if ((ref_u16le(block + layout->half_at[i]) & 0x7c00) == 0x7c00)
                    return bad_scale(tile, tile->row + r,
                                     tile->col / layout->block_elems + b, sink);
        }
    }
    return DAVIT_OK;
}
