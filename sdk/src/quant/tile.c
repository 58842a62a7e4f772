/* SPDX-License-Identifier: Apache-2.0
 * Tiles from readers: float32 in canonical order, codes, and what may not stand in a file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <davit/help/quant.h>

#define CHUNK 256

static uint64_t group_at(const davit_q_view *view, const davit_quant_tile *tile, uint64_t col)
{
    return view->group_of ? view->group_of(tile, col) : col / view->group;
}

static float zero_at(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                     uint64_t group)
{
    return view->zero ? view->zero(tile, row, group) : tile->desc->codes.zero;
}

/* What all scales of a tile are multiplied with, or divided by. */
typedef struct common {
    float factor;
    uint32_t divide, is_there;
} common;

static common common_of(const davit_q_view *view, const davit_quant_tile *tile)
{
    common c = {1.0f, 0, view->factor != NULL};

    if (view->factor)
        c.factor = view->factor(tile, &c.divide);
    return c;
}

/* Scale of a group as the weights are multiplied with it. */
static float scale_at(const davit_q_view *view, const davit_quant_tile *tile, const common *c,
                      uint64_t row, uint64_t group)
{
    const float scale = view->scale(tile, row, group);

    if (!c->is_there)
        return scale;
    return c->divide ? scale / c->factor : scale * c->factor;
}

static float value_of(const davit_quant_codes *codes, uint8_t code, float scale, float zero)
{
    if (codes->kind == DAVIT_CODE_UINT)
        return ((float)code - zero) * scale;
    return davit_q_value(codes->kind, code) * scale;
}

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

/* A file that changes after it was checked may say anything: no column is written past the end, and
 * one that nobody writes stays DAVIT_CODES_NONE. */
static void put_column(davit_quant_out *out, uint64_t at, uint64_t n_cols, uint64_t col)
{
    if (at < n_cols)
        out->cols[at] = (uint32_t)col;
}

/* Columns sorted by group. Every group has view->group columns (checked), so that only the
 * number already placed is needed; the scales' array keeps it until the scales come. */
static void sort_columns(const davit_q_view *view, const davit_quant_tile *tile,
                         uint64_t n_groups, davit_quant_out *out)
{
    for (uint64_t g = 0; g < n_groups; g++)
        out->scales[g] = 0;
    for (uint64_t j = 0; j < tile->n_cols; j++)
        out->cols[j] = DAVIT_CODES_NONE;
    for (uint64_t k = 0; k < tile->n_cols; k++) {
        const uint64_t g = group_at(view, tile, k);

        if (g >= n_groups)
            continue;
        put_column(out, g * view->group + (uint64_t)out->scales[g], tile->n_cols, k);
        out->scales[g] += 1;
    }
}

/* The same for groups of any size, each filled up to whole units of codes.group columns. The arrays
 * of scales and zeros, which have a number per unit and so at least one per group, keep how many
 * columns a group has and the unit it begins with until the scales come. */
static void sort_columns_filled(const davit_q_view *view, const davit_quant_tile *tile,
                                davit_quant_out *out)
{
    const uint64_t unit = tile->desc->codes.group, n_units = tile->desc->codes.n_cols / unit;
    uint64_t next = 0;

    for (uint64_t u = 0; u < n_units; u++)
        out->scales[u] = 0;
    for (uint64_t k = 0; k < tile->n_cols; k++)
        if (group_at(view, tile, k) < n_units)
            out->scales[group_at(view, tile, k)] += 1;
    for (uint64_t g = 0; g < n_units; g++) {
        out->zeros[g] = (float)next;
        next += ((uint64_t)out->scales[g] + unit - 1) / unit;
        out->scales[g] = 0;
    }
    for (uint64_t j = 0; j < n_units * unit; j++)
        out->cols[j] = DAVIT_CODES_NONE;
    for (uint64_t k = 0; k < tile->n_cols; k++) {
        const uint64_t g = group_at(view, tile, k);

        if (g >= n_units)
            continue;
        put_column(out, (uint64_t)out->zeros[g] * unit + (uint64_t)out->scales[g],
                   n_units * unit, k);
        out->scales[g] += 1;
    }
}

static void codes_of_row(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                         const uint32_t *cols, uint64_t n_cols, uint8_t *out)
{
    if (!cols) {
        view->codes(tile, row, tile->col, tile->n_cols, out);
        return;
    }
    for (uint64_t j = 0; j < n_cols; j++) {
        if (cols[j] == DAVIT_CODES_NONE)
            out[j] = 0;
        else
            view->codes(tile, row, cols[j], 1, out + j);
    }
}

/* Stored group of the code columns from @at on; a unit without inputs may have any. */
static uint64_t group_of_unit(const davit_q_view *view, const davit_quant_tile *tile,
                              const uint32_t *cols, uint64_t at)
{
    return cols[at] == DAVIT_CODES_NONE ? 0 : group_at(view, tile, cols[at]);
}

static void decode_codes(const davit_q_view *view, const davit_quant_tile *tile,
                         davit_quant_out *out)
{
    const davit_quant_codes *codes = &tile->desc->codes;
    const int map = (codes->flags & DAVIT_CODES_MAP) && out->cols, filled = map && codes->n_cols;
    const uint64_t unit = filled ? codes->group : view->group;
    const uint64_t n_cols = filled ? codes->n_cols : tile->n_cols;
    const uint64_t first = tile->col / unit, n_groups = (n_cols + unit - 1) / unit;

    out->group = unit;
    out->has_min = 0;
    out->factor = view->factor ? view->factor(tile, &out->divide) : 1.0f;
    if (filled)
        sort_columns_filled(view, tile, out);
    else if (map)
        sort_columns(view, tile, n_groups, out);
    for (uint64_t k = 0; out->factors && view->column && k < tile->n_cols; k++)
        out->factors[k] = view->column(tile, tile->col + k);
    if (!map && view->rows)
        view->rows(tile, out->codes, out->stride);
    for (uint64_t r = 0; r < tile->n_rows; r++) {
        const uint64_t row = tile->row + r;

        if (map || !view->rows)
            codes_of_row(view, tile, row, map ? out->cols : NULL, n_cols,
                         out->codes + r * out->stride);
        for (uint64_t g = 0; g < n_groups; g++) {
            const uint64_t stored =
                filled ? group_of_unit(view, tile, out->cols, g * unit) : first + g;

            out->scales[r * n_groups + g] = view->scale(tile, row, stored);
            out->zeros[r * n_groups + g] = zero_at(view, tile, row, stored);
        }
    }
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

/* ---- payload ---- */

static int32_t bad(const davit_quant_tile *tile, uint32_t code, uint64_t row, uint64_t col,
                   const char *expected, const char *found, const char *message,
                   const davit_sink *sink)
{
    char where[96];

    snprintf(where, sizeof where, "expert %" PRIu64 ", row %" PRIu64 ", column %" PRIu64,
             tile->expert, row, col);
    return davit_say(sink, DAVIT_E_CORRUPT,
                     &(davit_refusal){.code = code,
                                      .subject = where,
                                      .expected = expected,
                                      .found = found,
                                      .message = message,
                                      .hint = "the file is damaged or was converted wrongly"});
}

static void warn(const davit_quant_tile *tile, uint32_t code, uint64_t row, const char *expected,
                 const char *found, const char *message, const davit_sink *sink)
{
    char where[96];

    snprintf(where, sizeof where, "expert %" PRIu64 ", row %" PRIu64, tile->expert, row);
    davit_say(sink, DAVIT_OK,
              &(davit_refusal){.code = code,
                               .flags = DAVIT_REFUSAL_WARNING,
                               .subject = where,
                               .expected = expected,
                               .found = found,
                               .message = message,
                               .hint = "the file may be damaged, or of another writer"});
}

void davit_q_warn_padding(const davit_quant_tile *tile, uint64_t row, const char *where,
                          const davit_sink *sink)
{
    warn(tile, DAVIT_R_QUANT_LAYOUT, row, "zeros", where,
         "bits that no code uses are set; they are not read", sink);
}

int davit_q_bits_clear(const uint8_t *p, uint64_t bit, uint64_t n)
{
    for (uint64_t i = bit; i < bit + n; i++)
        if (p[i / 8] >> i % 8 & 1)
            return 0;
    return 1;
}

static const char *scale_fault(float scale)
{
    return isnan(scale) ? "NaN" : isinf(scale) ? "infinity" : scale < 0 ? "below 0" : NULL;
}

/* Scale and zero of a group of a row, as they are checked and as codes are checked with them. */
typedef struct group_values {
    float scale, zero;
} group_values;

static int32_t verify_group(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                            uint64_t col, const group_values *v, int *told, const davit_sink *sink)
{
    const int full = tile->desc->codes.scale_type == DAVIT_SCALE_F32 && !view->factor;

    if (scale_fault(v->scale))
        return bad(tile, DAVIT_R_QUANT_SCALE_VALUE, row, col, "a finite scale, 0 or more",
                   scale_fault(v->scale), "a scale of the quantised weight cannot be this", sink);
    if (full && !*told && fpclassify(v->scale) == FP_SUBNORMAL) {
        *told = 1;
        warn(tile, DAVIT_R_QUANT_SCALE_VALUE, row, "a scale of 2^-126 or more, or 0",
             "a subnormal number", "a float32 scale has lost digits", sink);
    }
    return DAVIT_OK;
}

/* Could a code of this group be no number, or one that its scale erases? Tables of four bits and
 * whole numbers with a finite zero have none. */
static int codes_matter(const davit_quant_codes *codes, const group_values *v)
{
    return v->scale == 0 || !isfinite(v->zero) || codes->kind == DAVIT_CODE_E4M3 ||
           codes->kind == DAVIT_CODE_E5M2;
}

/* Is one of the @n codes an E4M3 that is no number? A loop that compilers make vectors of. */
static int any_e4m3_nan(const uint8_t *codes, uint64_t n)
{
    uint8_t any = 0;

    for (uint64_t i = 0; i < n; i++)
        any |= (uint8_t)((codes[i] & 0x7f) == 0x7f);
    return any;
}

/* Columns [col, end) of one group. */
static int32_t verify_codes(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                            uint64_t col, uint64_t end, const group_values *v,
                            const davit_sink *sink)
{
    uint8_t codes[CHUNK];

    for (uint64_t n; col < end; col += n) {
        n = end - col < CHUNK ? end - col : CHUNK;
        view->codes(tile, row, col, n, codes);
        if (v->scale != 0 && tile->desc->codes.kind == DAVIT_CODE_E4M3 && !any_e4m3_nan(codes, n))
            continue;
        for (uint64_t i = 0; i < n; i++) {
            const float value = value_of(&tile->desc->codes, codes[i], 1.0f, v->zero);

            if (!isfinite(value))
                return bad(tile, DAVIT_R_QUANT_WEIGHT_NAN, row, col + i, "a finite number",
                           "NaN or infinity", "a quantised weight is no number", sink);
            if (v->scale == 0 && value != 0)
                return bad(tile, DAVIT_R_QUANT_SCALE_VALUE, row, col + i,
                           "a scale above 0 where a code is not 0", "0",
                           "a scale of 0 would erase weights", sink);
        }
    }
    return DAVIT_OK;
}

static int32_t verify_row(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                          int *told, const davit_sink *sink)
{
    const uint64_t last = tile->col + tile->n_cols;
    const common all = common_of(view, tile);
    uint64_t group = UINT64_MAX;
    group_values v = {0, 0};

    for (uint64_t col = tile->col, end; col < last; col = end) {
        const uint64_t g = group_at(view, tile, col);
        int32_t status = DAVIT_OK;

        end = view->group_of ? col + 1 : (g + 1) * view->group;
        if (end > last)
            end = last;
        if (g != group) {
            group = g;
            v.scale = scale_at(view, tile, &all, row, g);
            v.zero = zero_at(view, tile, row, g);
            status = verify_group(view, tile, row, col, &v, told, sink);
        }
        if (!status && codes_matter(&tile->desc->codes, &v))
            status = verify_codes(view, tile, row, col, end, &v, sink);
        if (status)
            return status;
    }
    return DAVIT_OK;
}

int32_t davit_q_verify_finite(const davit_q_view *view, const davit_quant_tile *tile,
                              const davit_sink *sink)
{
    const common all = common_of(view, tile);

    for (uint64_t r = 0; r < (tile->n_rows ? tile->n_rows : 1); r++) {
        uint64_t group = UINT64_MAX;

        for (uint64_t c = 0, end; c < tile->n_cols; c = end) {
            const uint64_t g = group_at(view, tile, tile->col + c);
            float scale;

            end = view->group_of ? c + 1 : (g + 1) * view->group - tile->col;
            if (g == group)
                continue;
            group = g;
            scale = scale_at(view, tile, &all, tile->row + r, g);
            if (!isfinite(scale))
                return bad(tile, DAVIT_R_QUANT_SCALE_VALUE, tile->row + r, tile->col + c,
                           "a finite scale", isnan(scale) ? "NaN" : "infinity",
                           "a scale of the quantised weight cannot be this", sink);
        }
    }
    return DAVIT_OK;
}

int32_t davit_q_verify_bytes(const davit_q_view *view, const davit_quant_tile *tile,
                             const uint8_t *scales, uint64_t n, const davit_sink *sink)
{
    const int e4m3 = tile->desc->codes.scale_type == DAVIT_SCALE_E4M3;
    const common all = common_of(view, tile);
    /* E4M3: least and largest numbers above 0, which stay so; E8M0: 2^-127 to 2^127 */
    const float least = all.divide ? 0x1p-9f / all.factor : 0x1p-9f * all.factor;
    const float most = all.divide ? 448.0f / all.factor : 448.0f * all.factor;
    const uint8_t first = e4m3 ? 1 : 0, last = e4m3 ? 0x7e : 0xfe;
    const group_values v = {1.0f, tile->desc->codes.zero};
    uint8_t any = 0;

    for (uint64_t i = 0; i < n; i++) /* compilers make vectors of it */
        any |= (uint8_t)((uint8_t)(scales[i] - first) > (uint8_t)(last - first));
    if (!any && tile->n_cols == tile->desc->n_cols && !codes_matter(&tile->desc->codes, &v) &&
        (!e4m3 || (least > 0 && most > 0 && isfinite(most))))
        return DAVIT_OK;
    return davit_q_verify(view, tile, sink);
}

int32_t davit_q_verify(const davit_q_view *view, const davit_quant_tile *tile,
                       const davit_sink *sink)
{
    const uint64_t n = tile->n_rows ? tile->n_rows : 1;
    int told = 0;

    for (uint64_t r = 0; r < n; r++) {
        const int32_t status = verify_row(view, tile, tile->row + r, &told, sink);

        if (status)
            return status;
    }
    return DAVIT_OK;
}
