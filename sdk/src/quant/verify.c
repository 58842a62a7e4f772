/* SPDX-License-Identifier: Apache-2.0
 * What may not stand in a file: scales, zeros and codes of tiles. Numbers are looked at side by side first;
 * rows in which one could be a fault are then gone through group by group, which is the definition. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tile.h"

#define CHUNK 256
#define BATCH 1024 /* numbers that are looked at side by side */

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

/* ---- side by side ---- */

/* The bits of numbers that are no fault: finite, above 0, and not subnormal where @full. A loop that
 * compilers make vectors of, as those below. */
static int scales_are_sound(const float *scales, uint64_t n, int full)
{
    const uint32_t least = full ? 0x00800000u : 1u;
    uint32_t any = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, scales + i, sizeof bits);
        any |= bits - least >= 0x7f800000u - least;
    }
    return !any;
}

static int all_finite(const float *zeros, uint64_t n)
{
    uint32_t any = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, zeros + i, sizeof bits);
        any |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !any;
}

static int any_e5m2_nan(const uint8_t *codes, uint64_t n)
{
    uint8_t any = 0;

    for (uint64_t i = 0; i < n; i++)
        any |= (uint8_t)((codes[i] & 0x7f) >= 0x7c);
    return any;
}

/* Scales and zeros of the groups that the tile's columns have, or of all. @finite: scales may be
 * anything finite. */
static int heads_are_sound(const davit_q_view *view, const davit_quant_tile *tile, int finite)
{
    const int full = tile->desc->codes.scale_type == DAVIT_SCALE_F32 && !view->factor;
    const uint64_t first = view->group_of ? 0 : tile->col / view->group;
    const uint64_t end = view->group_of ? view->n_groups
                                        : (tile->col + tile->n_cols - 1) / view->group + 1;
    const common all = common_of(view, tile);
    float scales[BATCH], zeros[BATCH];

    for (uint64_t g = first, n; g < end; g += n) {
        n = end - g < BATCH / tile->n_rows ? end - g : BATCH / tile->n_rows;
        view->scales(tile, g, n, scales, view->zero ? zeros : NULL);
        for (uint64_t i = 0; all.is_there && i < tile->n_rows * n; i++)
            scales[i] = whole_scale(&all, scales[i]);
        if (!(finite ? all_finite(scales, tile->n_rows * n)
                     : scales_are_sound(scales, tile->n_rows * n, full)) ||
            (view->zero && !all_finite(zeros, tile->n_rows * n)))
            return 0;
    }
    return isfinite(tile->desc->codes.zero);
}

/* Codes of the row's columns. */
static int codes_are_sound(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row)
{
    const uint32_t kind = tile->desc->codes.kind;
    uint8_t some[CHUNK];

    if (kind != DAVIT_CODE_E4M3 && kind != DAVIT_CODE_E5M2)
        return 1;
    for (uint64_t col = 0, n; col < tile->n_cols; col += n) {
        const uint8_t *codes = some;

        n = view->bytes || tile->n_cols - col < CHUNK ? tile->n_cols - col : CHUNK;
        if (view->bytes)
            codes = view->bytes(tile, row) + tile->col;
        else
            view->codes(tile, row, tile->col + col, n, some);
        if (kind == DAVIT_CODE_E4M3 ? any_e4m3_nan(codes, n) : any_e5m2_nan(codes, n))
            return 0;
    }
    return 1;
}

/* Is there nothing in these rows, at most BATCH, that must be looked at group by group? */
static int rows_are_sound(const davit_q_view *view, const davit_quant_tile *tile)
{
    if (!view->scales || tile->n_cols == 0 || !heads_are_sound(view, tile, 0))
        return 0;
    for (uint64_t r = 0; r < tile->n_rows; r++)
        if (!codes_are_sound(view, tile, tile->row + r))
            return 0;
    return 1;
}

/* Rows that are looked at together: their numbers fill a batch. */
static uint64_t batch_rows(const davit_q_view *view, const davit_quant_tile *tile)
{
    const uint64_t groups = tile->n_cols / view->group + 1;

    return groups >= BATCH / 8 ? 8 : BATCH / groups < 64 ? BATCH / groups : 64;
}

int32_t davit_q_verify(const davit_q_view *view, const davit_quant_tile *tile,
                       const davit_sink *sink)
{
    const uint64_t n = tile->n_rows ? tile->n_rows : 1, most = batch_rows(view, tile);
    davit_quant_tile part = *tile;
    int told = 0;

    for (uint64_t r = 0; r < n; r += part.n_rows) {
        part.row = tile->row + r;
        part.n_rows = n - r < most ? n - r : most;
        if (rows_are_sound(view, &part))
            continue;
        for (uint64_t i = 0; i < part.n_rows; i++) {
            const int32_t status = verify_row(view, tile, part.row + i, &told, sink);

            if (status)
                return status;
        }
    }
    return DAVIT_OK;
}

static int32_t verify_row_finite(const davit_q_view *view, const davit_quant_tile *tile, uint64_t row,
                                 const davit_sink *sink)
{
    const common all = common_of(view, tile);
    uint64_t group = UINT64_MAX;

    for (uint64_t c = 0, end; c < tile->n_cols; c = end) {
        const uint64_t g = group_at(view, tile, tile->col + c);
        float scale;

        end = view->group_of ? c + 1 : (g + 1) * view->group - tile->col;
        if (g == group)
            continue;
        group = g;
        scale = scale_at(view, tile, &all, row, g);
        if (!isfinite(scale))
            return bad(tile, DAVIT_R_QUANT_SCALE_VALUE, row, tile->col + c, "a finite scale",
                       isnan(scale) ? "NaN" : "infinity",
                       "a scale of the quantised weight cannot be this", sink);
    }
    return DAVIT_OK;
}

int32_t davit_q_verify_finite(const davit_q_view *view, const davit_quant_tile *tile,
                              const davit_sink *sink)
{
    const uint64_t n = tile->n_rows ? tile->n_rows : 1, most = batch_rows(view, tile);
    davit_quant_tile part = *tile;

    for (uint64_t r = 0; r < n; r += part.n_rows) {
        part.row = tile->row + r;
        part.n_rows = n - r < most ? n - r : most;
        if (view->scales && tile->n_cols && heads_are_sound(view, &part, 1))
            continue;
        for (uint64_t i = 0; i < part.n_rows; i++) {
            const int32_t status = verify_row_finite(view, tile, part.row + i, sink);

            if (status)
                return status;
        }
    }
    return DAVIT_OK;
}
