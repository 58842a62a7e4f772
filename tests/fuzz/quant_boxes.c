/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/quant_boxes.h"

#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "quant/cuts.h"

#define MOST_VALUES 1024 /* that are decoded of a module */

typedef struct Whole {
    const davit_quant_iface *iface;
    void *self;
    const davit_quant_desc *d;
    const davit_quant_bytes *parts;
    const davit_sink *sink;
} Whole;

static davit_quant_tile tile_of(const davit_quant_desc *d, const davit_quant_bytes *parts)
{
    return (davit_quant_tile){.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                              .desc = d,
                              .parts = parts,
                              .n_rows = d->n_rows,
                              .n_cols = d->n_cols};
}

/* Codes that are described, without which nobody asks for them. */
static bool has_codes(const davit_quant_desc *d)
{
    return d->forms & DAVIT_FORM_CODES && d->codes.bits;
}

/* (owned, free) */
static float *decode(const Whole *w, const davit_quant_tile *tile)
{
    float *values = malloc(tile->n_rows * tile->n_cols * sizeof *values);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = values,
                           .stride = tile->n_cols};

    w->iface->decode(w->self, tile, &out);
    return values;
}

/* ---- boxes ---- */

/* A part of @all: @from and @to as 255ths of it, in units of 1 to 32. */
static void draw(uint64_t all, uint8_t from, uint8_t to, uint64_t *out_from, uint64_t *out_n)
{
    const uint64_t unit = 1u << from % 6, n_units = (all + unit - 1) / unit;
    const uint64_t first = n_units * from / 256, last = first + (n_units - first) * to / 256;

    *out_from = first * unit;
    *out_n = MIN((last + 1) * unit, all) - *out_from;
}

/* (owned, free) The bytes of a range, of exactly its size. */
static uint8_t *gather(const davit_quant_range *r, const davit_quant_bytes *part, uint64_t *out_n)
{
    const uint64_t n = r->n_bytes ? r->n_bytes * r->n_runs * r->n_planes : part->n_bytes;
    uint8_t *bytes, *to;

    g_assert_cmpuint(n, <=, part->n_bytes);
    bytes = to = malloc(n ? n : 1);
    *out_n = n;
    if (!r->n_bytes)
        return memcpy(bytes, part->ptr, n);
    for (uint64_t p = 0; p < r->n_planes; p++)
        for (uint64_t k = 0; k < r->n_runs; k++, to += r->n_bytes)
            memcpy(to, part->ptr + r->off + p * r->plane + k * r->stride, r->n_bytes);
    return bytes;
}

static void compare(const Whole *w, const davit_quant_box *box, const davit_quant_cut *cut,
                    const davit_quant_bytes *parts, const float *values)
{
    const davit_quant_tile tile = tile_of(&cut->desc, parts);
    float *have;

    g_assert_cmpuint(cut->desc.n_rows, ==, box->n_rows);
    g_assert_cmpuint(cut->desc.n_cols, ==, box->n_cols);
    have = decode(w, &tile);
    for (uint64_t r = 0; r < box->n_rows; r++)
        g_assert_true(memcmp(have + r * box->n_cols,
                             values + (box->row + r) * w->d->n_cols + box->col,
                             box->n_cols * sizeof *have) == 0);
    if (has_codes(&cut->desc))
        g_assert_true(codes_agree(w->iface, w->self, &cut->desc, parts, 0, have));
    free(have);
}

/* @values: of expert @expert. */
static void check_box(const Whole *w, uint64_t expert, const float *values, const uint8_t where[4])
{
    davit_quant_cut cut = {.struct_size = DAVIT_END(davit_quant_cut, ranges)};
    davit_quant_box box = {
        .struct_size = DAVIT_END(davit_quant_box, n_cols), .expert = expert, .n_experts = 1};
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    uint8_t *bytes[DAVIT_MAX_PARTS];

    draw(w->d->n_rows, where[0], where[1], &box.row, &box.n_rows);
    draw(w->d->n_cols, where[2], where[3], &box.col, &box.n_cols);
    if (w->iface->cut(w->self, w->d, &box, &cut, w->sink) != DAVIT_OK)
        return;
    g_assert_cmpuint(cut.desc.n_parts, ==, w->d->n_parts);
    for (uint32_t p = 0; p < cut.desc.n_parts; p++) {
        bytes[p] = gather(&cut.ranges[p], &w->parts[p], &parts[p].n_bytes);
        parts[p].ptr = bytes[p];
    }
    compare(w, &box, &cut, parts, values);
    for (uint32_t p = 0; p < cut.desc.n_parts; p++)
        free(bytes[p]);
}

void fuzz_boxes(const davit_quant_iface *iface, void *self, const davit_quant_desc *d,
                const davit_quant_bytes *parts, const uint8_t where[4], const davit_sink *sink)
{
    const Whole w = {iface, self, d, parts, sink};
    davit_quant_tile tile = tile_of(d, parts);
    float *values;

    /* what the core blames on a plugin (plan/claim.c) */
    g_assert_true(d->n_experts && d->n_rows && d->n_cols && d->n_parts && d->row_unit);
    if (d->n_cols > MOST_VALUES)
        return;
    tile.expert = d->n_experts - 1; /* its last rows: where a buffer would end */
    tile.n_rows = MIN(d->n_rows, MOST_VALUES / d->n_cols);
    tile.row = d->n_rows - tile.n_rows;
    if (iface->verify(self, &tile, sink))
        return;
    values = decode(&w, &tile);
    if (tile.row == 0 && d->n_experts == 1 && has_codes(d))
        g_assert_true(codes_agree(iface, self, d, parts, d->n_rows - 1,
                                  values + (d->n_rows - 1) * d->n_cols));
    if (tile.row == 0)
        check_box(&w, tile.expert, values, where);
    free(values);
}
