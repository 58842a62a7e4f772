/* SPDX-License-Identifier: Apache-2.0
 * Readers of GPTQ: codes of one row, and of many whose words lie side by side; scales, zeros, groups. */
#include <string.h>

#include <davit/help/bytes.h>

#include "gptq.h"

/* Planar words (GPTQModel): of 32 codes first the low bits, then the rest. */
static uint8_t planar(const uint8_t *words, uint64_t stride, uint64_t i, uint32_t bits)
{
    static const uint8_t planes[8][3] = {{0}, {0}, {2}, {2, 1}, {4}, {4, 1}, {4, 2}, {4, 2, 1}};
    const uint8_t *at = words + i / 32 * bits * stride;
    uint32_t code = 0, shift = 0;

    for (int p = 0; p < 3 && planes[bits][p]; p++) {
        const uint32_t n = planes[bits][p];

        code |= (uint32_t)davit_q_bits(at, stride, i % 32 * n, n) << shift;
        shift += n;
        at += n * stride;
    }
    return (uint8_t)code;
}

static uint8_t code_at(const davit_quant_desc *d, const uint8_t *words, uint64_t stride,
                       uint64_t i)
{
    const uint32_t bits = (uint32_t)d->params[BITS];

    if (d->params[PLANAR] && bits != 8)
        return planar(words, stride, i, bits);
    return davit_q_bits(words, stride, i * bits, bits);
}

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const uint8_t *words = t->parts[0].ptr + 4 * row;
    const uint64_t stride = 4 * t->desc->n_rows;
    const uint32_t bits = (uint32_t)t->desc->params[BITS];

    if (!t->desc->params[PLANAR] || bits == 8) {
        davit_q_words(words, stride, bits, col, n, out);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        out[i] = planar(words, stride, col + i, bits);
}

#define WORDS 32 /* of a row that are taken apart at a time */
#define SIDE  16 /* rows whose words lie side by side in a line of the cache */

/* The same for all rows of the tile: words of neighbouring rows lie side by side, so that lines are read
 * once for as many rows as they have. */
static void rows(const davit_quant_tile *t, uint8_t *out, uint64_t stride)
{
    const uint64_t *p = t->desc->params, line = 4 * t->desc->n_rows;
    const uint32_t bits = (uint32_t)p[BITS];
    uint8_t words[WORDS * SIDE * 4], one[WORDS * 4];
    const uint64_t each = 32 / bits;

    for (uint64_t r = 0; bits != 4 && bits != 8 && r < t->n_rows; r++)
        codes(t, t->row + r, t->col, t->n_cols, out + r * stride);
    for (uint64_t r = 0, n; (bits == 4 || bits == 8) && r < t->n_rows; r += n) {
        n = t->n_rows - r < SIDE ? t->n_rows - r : SIDE;
        for (uint64_t k = 0, m; k < t->n_cols; k += m) {
            const uint64_t at = (t->col + k) % each, left = t->n_cols - k;
            const uint64_t some = (at + left + each - 1) / each, n_words = some < WORDS ? some : WORDS;
            const uint8_t *from = t->parts[0].ptr + (t->col + k) / each * line + 4 * (t->row + r);

            m = some > WORDS ? WORDS * each - at : left;
            for (uint64_t w = 0; w < n_words; w++)
                if (n == SIDE) /* of a known size */
                    memcpy(words + w * SIDE * 4, from + w * line, SIDE * 4);
                else
                    memcpy(words + w * SIDE * 4, from + w * line, n * 4);
            for (uint64_t i = 0; i < n; i++) {
                for (uint64_t w = 0; w < n_words; w++)
                    memcpy(one + 4 * w, words + (w * SIDE + i) * 4, 4);
                davit_q_words(one, 4, bits, at, m, out + (r + i) * stride + k);
            }
        }
    }
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return davit_q_scale(t->parts[1].ptr, (uint32_t)t->desc->params[SCALE_TYPE],
                         group * t->desc->n_rows + row);
}

uint8_t gptq_stored_zero(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const davit_quant_desc *d = t->desc;

    return code_at(d, t->parts[2].ptr + group * (d->n_rows * d->params[BITS] / 8), 4, row);
}

static float zero(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const uint64_t *p = t->desc->params;

    if (p[ZEROS] == ZEROS_MIDDLE)
        return (float)(1u << (p[BITS] - 1));
    /* version 1 wraps: the stored all-ones field is a zero of 0 */
    return (float)((gptq_stored_zero(t, row, group) + (p[ZEROS] == ZEROS_V1)) &
                   ((1u << p[BITS]) - 1));
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const uint64_t *p = t->desc->params, n_out = t->desc->n_rows;
    /* zeros that are stored and read in words; a symmetric module has no such part */
    const int whole = p[ZEROS] != ZEROS_MIDDLE && (p[BITS] == 4 || p[BITS] == 8);
    uint8_t some[SIDE];

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = group * n_out + t->row,
                                   .row_step = 1,
                                   .group_step = n_out,
                                   .type = (uint32_t)p[SCALE_TYPE]},
                   t->n_rows, n, out);
    for (uint64_t g = 0; g < n; g++)
        for (uint64_t r = 0, m; r < t->n_rows; r += m) {
            const uint8_t *line =
                whole ? t->parts[2].ptr + (group + g) * (n_out * p[BITS] / 8) : NULL;

            m = t->n_rows - r < SIDE ? t->n_rows - r : SIDE;
            if (whole)
                davit_q_words(line, 4, (uint32_t)p[BITS], t->row + r, m, some);
            for (uint64_t i = 0; i < m; i++)
                zeros[(r + i) * n + g] =
                    whole ? (float)((some[i] + (p[ZEROS] == ZEROS_V1)) & ((1u << p[BITS]) - 1))
                          : zero(t, t->row + r + i, group + g);
        }
}

/* Stored groups of scales. */
static uint64_t n_groups_of(const davit_quant_tile *t)
{
    const uint64_t size = davit_q_scale_bytes((uint32_t)t->desc->params[SCALE_TYPE]);

    return t->parts[1].n_bytes / (t->desc->n_rows * size);
}

/* The index was checked, but the file may have changed since: never past the scales. */
static uint64_t group_of(const davit_quant_tile *t, uint64_t col)
{
    const uint64_t last = n_groups_of(t) - 1;
    const uint64_t group = davit_bytes_u32le(t->parts[t->desc->n_parts - 1].ptr + 4 * col);

    return group < last ? group : last;
}

davit_q_view gptq_view(const davit_quant_tile *t)
{
    const uint64_t *p = t->desc->params;

    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .zero = zero,
                          .group_of = p[ORDERED] ? group_of : NULL,
                          .group = p[GROUP],
                          .rows = rows,
                          .scales = scales,
                          .n_groups = n_groups_of(t)};
}
