/* SPDX-License-Identifier: Apache-2.0
 * Tiles from readers: float32 in canonical order, and codes. What may not stand in a file: verify.c. */
#include <string.h>

#include "tile.h"

#define CHUNK 256
#define ROWS  16 /* whose columns are put in another order at a time */
#define NOWHERE UINT64_MAX

static void decode_row(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                       float *out)
{
    const common all = common_of(view, tile);
    uint8_t codes[CHUNK];
    uint64_t group = UINT64_MAX;
    float scale = 0, zero = 0;

    for (uint64_t at = 0; at < tile->n_cols; at += CHUNK) {
        const uint64_t n = tile->n_cols - at < CHUNK ? tile->n_cols - at : CHUNK;

        view->codes(tile, row, tile->col + at, n, codes);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t g = group_at(view, tile, tile->col + at + i);

            if (g != group) {
                group = g;
                scale = scale_at(view, tile, &all, row, g);
                zero = zero_at(view, tile, row, g);
            }
            out[at + i] = value_of(&tile->desc->codes, codes[i], scale, zero);
            if (view->column)
                out[at + i] *= view->column(tile, tile->col + at + i);
        }
    }
}

/* ---- columns in an order of their own ---- */

/* Columns sorted by group. Where every group has view->group of them (checked), it begins at a multiple of
 * that; groups of any size are filled up to whole units of codes.group columns. Until the scales come their
 * arrays, which have a number per unit and so at least one per group, keep how many columns of a group are
 * placed and, of filled ones, the unit that it begins with. */
typedef struct order {
    uint64_t unit, n_units, n_cols; /* of code columns */
    int filled;
} order;

static void begin_order(const davit_q_view *view, const davit_quant_tile *tile, const order *o,
                        davit_quant_out *out)
{
    uint64_t next = 0;

    for (uint64_t u = 0; u < o->n_units; u++)
        out->scales[u] = 0;
    for (uint64_t j = 0; j < o->n_cols; j++)
        out->cols[j] = DAVIT_CODES_NONE;
    for (uint64_t k = 0; o->filled && k < tile->n_cols; k++)
        if (group_at(view, tile, k) < o->n_units)
            out->scales[group_at(view, tile, k)] += 1;
    for (uint64_t g = 0; o->filled && g < o->n_units; g++) {
        out->zeros[g] = (float)next;
        next += ((uint64_t)out->scales[g] + o->unit - 1) / o->unit;
        out->scales[g] = 0;
    }
}

/* Code columns of the columns [at, at + n), which are the next. A file that changes after it was checked may
 * say anything: none is past the end, and one that nobody writes stays DAVIT_CODES_NONE. */
static void place_columns(const davit_q_view *view, const davit_quant_tile *tile, const order *o,
                          uint64_t at, uint64_t n, davit_quant_out *out, uint64_t *place)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t g = group_at(view, tile, at + i);

        place[i] = NOWHERE;
        if (g >= o->n_units)
            continue;
        const uint64_t to = (o->filled ? (uint64_t)out->zeros[g] : g) * o->unit +
                            (uint64_t)out->scales[g];
        out->scales[g] += 1;
        if (to >= o->n_cols)
            continue;
        place[i] = to;
        out->cols[to] = (uint32_t)(at + i);
    }
}

/* Codes [col, col + n) of rows [row, row + n_rows) of the tile, @stride apart. */
static void codes_of(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                     uint64_t n_rows, uint64_t col, uint64_t n, uint8_t *out, uint64_t stride)
{
    davit_quant_tile part = *tile;

    part.row += row;
    part.n_rows = n_rows;
    part.col += col;
    part.n_cols = n;
    if (view->rows) {
        view->rows(&part, out, stride);
        return;
    }
    for (uint64_t r = 0; r < n_rows; r++)
        view->codes(tile, part.row + r, part.col, n, out + r * stride);
}

/* @codes [n_rows][CHUNK] of @n columns each to their places in rows that are @stride apart. */
static void put_codes(const uint8_t *codes, uint64_t n_rows, const uint64_t *place, uint64_t n,
                      uint8_t *out, uint64_t stride)
{
    for (uint64_t r = 0; r < n_rows; r++)
        for (uint64_t i = 0; i < n; i++)
            if (place[i] != NOWHERE)
                out[r * stride + place[i]] = codes[r * CHUNK + i];
}

static void ordered_codes(const davit_q_view *view, const davit_quant_tile *tile, const order *o,
                          davit_quant_out *out)
{
    uint64_t place[CHUNK];
    uint8_t codes[ROWS * CHUNK];

    begin_order(view, tile, o, out);
    for (uint64_t r = 0; r < tile->n_rows; r++)
        memset(out->codes + r * out->stride, 0, o->n_cols);
    for (uint64_t at = 0; at < tile->n_cols; at += CHUNK) {
        const uint64_t n = tile->n_cols - at < CHUNK ? tile->n_cols - at : CHUNK;

        place_columns(view, tile, o, at, n, out, place);
        for (uint64_t r = 0, rows; r < tile->n_rows; r += rows) {
            rows = tile->n_rows - r < ROWS ? tile->n_rows - r : ROWS;
            codes_of(view, tile, r, rows, at, n, codes, CHUNK);
            put_codes(codes, rows, place, n, out->codes + r * out->stride, out->stride);
        }
    }
}

/* ---- codes ---- */

/* Stored group of the code columns from @at on; a unit without inputs may have any. */
static uint64_t group_of_unit(const davit_q_view *view, const davit_quant_tile *tile,
                              const uint32_t *cols, uint64_t at)
{
    return cols[at] == DAVIT_CODES_NONE ? 0 : group_at(view, tile, cols[at]);
}

/* Scales and zeros of all rows, after the columns have their places. */
static void decode_scales(const davit_q_view *view, const davit_quant_tile *tile, const order *o,
                          davit_quant_out *out)
{
    const uint64_t first = tile->col / o->unit, n = o->n_units;

    for (uint64_t i = 0; !view->zero && i < tile->n_rows * n; i++)
        out->zeros[i] = tile->desc->codes.zero;
    if (view->scales && !o->filled) {
        view->scales(tile, first, n, out->scales, view->zero ? out->zeros : NULL);
        return;
    }
    for (uint64_t r = 0; r < tile->n_rows; r++)
        for (uint64_t g = 0; g < n; g++) {
            const uint64_t stored =
                o->filled ? group_of_unit(view, tile, out->cols, g * o->unit) : first + g;

            out->scales[r * n + g] = view->scale(tile, tile->row + r, stored);
            out->zeros[r * n + g] = zero_at(view, tile, tile->row + r, stored);
        }
}

static void decode_codes(const davit_q_view *view, const davit_quant_tile *tile,
                         davit_quant_out *out)
{
    const davit_quant_codes *codes = &tile->desc->codes;
    const int map = (codes->flags & DAVIT_CODES_MAP) && out->cols;
    order o = {.unit = view->group, .n_cols = tile->n_cols, .filled = map && codes->n_cols};

    if (o.filled) {
        o.unit = codes->group;
        o.n_cols = codes->n_cols;
    }
    o.n_units = (o.n_cols + o.unit - 1) / o.unit;
    out->group = o.unit;
    out->has_min = 0;
    out->factor = view->factor ? view->factor(tile, &out->divide) : 1.0f;
    for (uint64_t k = 0; out->factors && view->column && k < tile->n_cols; k++)
        out->factors[k] = view->column(tile, tile->col + k);
    if (map)
        ordered_codes(view, tile, &o, out);
    else
        codes_of(view, tile, 0, tile->n_rows, 0, tile->n_cols, out->codes, out->stride);
    decode_scales(view, tile, &o, out);
}

void davit_q_decode(const davit_q_view *view, const davit_quant_tile *tile,
                    davit_quant_out *out)
{
    if (out->form == DAVIT_FORM_CODES) {
        decode_codes(view, tile, out);
        return;
    }
    for (uint64_t r = 0; r < tile->n_rows; r++)
        decode_row(view, tile, tile->row + r, out->values + r * out->stride);
}
