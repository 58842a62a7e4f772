/* SPDX-License-Identifier: Apache-2.0
 * What decoding and checking tiles share. Private to the helpers. */
#ifndef DAVIT_SDK_QUANT_TILE_H
#define DAVIT_SDK_QUANT_TILE_H

#include <davit/help/quant.h>

static inline uint64_t group_at(const davit_q_view *view, const davit_quant_tile *tile,
                                uint64_t col)
{
    return view->group_of ? view->group_of(tile, col) : col / view->group;
}

static inline float zero_at(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                            uint64_t group)
{
    return view->zero ? view->zero(tile, row, group) : tile->desc->codes.zero;
}

/* What all scales of a tile are multiplied with, or divided by. */
typedef struct common {
    float factor;
    uint32_t divide, is_there;
} common;

static inline common common_of(const davit_q_view *view, const davit_quant_tile *tile)
{
    common c = {1.0f, 0, view->factor != NULL};

    if (view->factor)
        c.factor = view->factor(tile, &c.divide);
    return c;
}

/* @scale as the weights are multiplied with it. */
static inline float whole_scale(const common *c, float scale)
{
    if (!c->is_there)
        return scale;
    return c->divide ? scale / c->factor : scale * c->factor;
}

static inline float scale_at(const davit_q_view *view, const davit_quant_tile *tile,
                             const common *c, uint64_t row, uint64_t group)
{
    return whole_scale(c, view->scale(tile, row, group));
}

static inline float value_of(const davit_quant_codes *codes, uint8_t code, float scale, float zero)
{
    if (codes->kind == DAVIT_CODE_UINT)
        return ((float)code - zero) * scale;
    return davit_q_value(codes->kind, code) * scale;
}

#endif
