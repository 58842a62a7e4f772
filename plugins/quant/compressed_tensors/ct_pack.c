/* SPDX-License-Identifier: Apache-2.0
 * pack-quantized: whole numbers of 1 to 8 bits, least significant first, row by row, stored
 * with an offset of half their range.
 *   w = (code - 2^(bits-1)) * scale, or (code - zero) * scale
 * Widths that do not divide 32 are packed densely from version 0.17 on, and padded to words
 * before. README.md has params and parts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/bytes.h>

#include "ct.h"

enum { BITS, GROUP, SCALE_TYPE, ZEROS, ORDERED, PADDED, WORDS, N_GROUPS }; /* params */

int ct_pack_is(const davit_quant_module *m)
{
    return davit_q_has(m, "weight_packed", "i32/1") && davit_q_has(m, "weight_scale", CT_SCALES);
}

/* (out, in) of the unpacked weight. */
static int read_size(davit_q_check *c, uint64_t *out_n, uint64_t *out_k)
{
    const davit_tensor_info *t = davit_q_need(c, "weight_shape", "i64/1|i32/1");
    const uint64_t two = 2;
    uint64_t n_bytes = 0;
    const uint8_t *p;
    char found[64];
    int wide;

    if (!t || !davit_q_shape(c, t, 1, &two))
        return 0;
    wide = strcmp(t->dtype, "i64/1") == 0;
    p = davit_q_peek(c, "weight_shape", &n_bytes);
    if (!p || n_bytes != (wide ? 16u : 8u))
        return davit_q_fail(c, DAVIT_E_IO, DAVIT_R_IO_FAILED, t->name, NULL, NULL,
                            "the shape of the weight could not be read");
    *out_n = wide ? davit_bytes_u64le(p) : davit_bytes_u32le(p);
    *out_k = wide ? davit_bytes_u64le(p + 8) : davit_bytes_u32le(p + 4);
    if (*out_n && *out_k && *out_n < 1ull << 40 && *out_k < 1ull << 40)
        return 1;
    snprintf(found, sizeof found, "[%lld, %lld]", (long long)*out_n, (long long)*out_k);
    return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_SHAPE_MISMATCH, t->name,
                        "two sizes above 0 and below 2^40", found, "the stored shape cannot be");
}

/* Is @version before 0.17, when odd widths were padded? -1 = cannot be told. */
static int is_old(const char *version)
{
    unsigned major, minor;

    if (!version || sscanf(version, "%u.%u", &major, &minor) != 2)
        return -1;
    return major == 0 && minor < 17;
}

static uint64_t dense_words(uint64_t k, uint64_t bits)
{
    return (k * bits + 31) / 32;
}

static uint64_t padded_words(uint64_t k, uint64_t bits)
{
    return (k - 1) / (32 / bits) + 1;
}

/* Codes in a word, or that fill whole words. */
static uint64_t whole_words(const uint64_t *p)
{
    return 32 % p[BITS] && !p[PADDED] ? 32 : 32 / p[BITS];
}

/* Bits and packing that give @words words for @k columns. The configuration's bits first. */
static int read_bits(davit_q_check *c, const davit_tensor_info *w, uint64_t k)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    const uint64_t words = w->shape[1];
    uint64_t *p = c->desc->params;
    const uint64_t first = set->bits ? (uint64_t)set->bits : 1;
    const uint64_t last = set->bits ? (uint64_t)set->bits : 8;
    uint64_t n_fits = 0;
    char found[64];

    for (uint64_t bits = first; bits <= last && bits <= 8; bits++) {
        const int dense = dense_words(k, bits) == words, padded = padded_words(k, bits) == words;

        if (!dense && !padded)
            continue;
        n_fits++;
        p[BITS] = bits;
        p[PADDED] = !dense || (padded && 32 % bits && is_old(set->producer) == 1);
        if (dense && padded && 32 % bits && is_old(set->producer) < 0)
            n_fits++;
    }
    p[WORDS] = words;
    if (n_fits == 1)
        return 1;
    snprintf(found, sizeof found, "%llu words for %llu columns", (unsigned long long)words,
             (unsigned long long)k);
    return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_CONFIG_CONFLICT, w->name,
                        "a width that num_bits and the version explain", found,
                        n_fits ? "the packing cannot be told" : "no packing has this width");
}

#define MOST_ORDERED 8192u /* groups; real layers have some hundred */

static int read_order(davit_q_check *c, const davit_tensor_info *idx)
{
    davit_quant_desc *d = c->desc;
    const uint64_t k = d->n_cols, group = d->params[GROUP], n_groups = d->params[N_GROUPS];
    uint64_t n_bytes = 0, n_unset = 0, n_other = 0, n_bad = 0;
    const uint8_t *p;

    if (!idx && davit_q_settings(c->module)->act_order == 1 && n_groups > 1)
        return davit_q_need(c, "weight_g_idx", "i32/1") != NULL; /* the natural order would be noise */
    if (!idx)
        return 1;
    if (!davit_q_need(c, "weight_g_idx", "i32/1") || !davit_q_shape(c, idx, 1, &k))
        return 0;
    p = davit_q_peek(c, "weight_g_idx", &n_bytes);
    for (uint64_t i = 0; p && n_bytes == 4 * k && i < k; i++) {
        const uint32_t g = davit_bytes_u32le(p + 4 * i);

        n_unset += g == UINT32_MAX;
        n_bad += g != UINT32_MAX && g >= n_groups;
        n_other += g != i / group;
    }
    if (!p && idx->n_bytes <= DAVIT_QUANT_PEEK)
        return davit_q_fail(c, DAVIT_E_IO, DAVIT_R_IO_FAILED, idx->name, NULL, "a read that failed",
                            "the index of groups cannot be read");
    if (!p)
        return davit_q_fail_count(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, idx->name,
                                  "at most 262144 columns", k, "columns",
                                  "an index of groups this long is not read");
    if (n_bytes != 4 * k || n_bad || (n_unset && n_unset != k))
        return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_INDEX_RANGE, idx->name,
                            "indices of groups, or -1 everywhere",
                            n_bad ? "indices past the last group" : "some are -1",
                            "an index of groups points nowhere");
    if (n_unset || !n_other)
        return 1;
    if (n_groups > MOST_ORDERED) /* the look below takes their number times the columns */
        return davit_q_fail_count(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, idx->name,
                                  "at most 8192 groups in an order of their own", n_groups,
                                  "groups", "an index of so many groups is not checked");
    for (uint64_t g = 0; g < n_groups; g++) { /* upstream sorts, which needs full groups */
        uint64_t n = 0;

        for (uint64_t i = 0; i < k; i++)
            n += davit_bytes_u32le(p + 4 * i) == g;
        if (n != group) {
            char want[64], found[64];

            snprintf(want, sizeof want, "%" PRIu64 " columns in each group", group);
            snprintf(found, sizeof found, "%" PRIu64 " in group %" PRIu64, n, g);
            return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_INDEX_RANGE, idx->name,
                                want, found,
                                "an index of groups fills them unevenly");
        }
    }
    d->params[ORDERED] = 1;
    d->codes.flags |= DAVIT_CODES_MAP;
    d->col_unit = 0;
    return 1;
}

/* Scales [out, groups], zeros packed along the outputs. */
static int read_groups(davit_q_check *c, const davit_tensor_info *s, const davit_tensor_info *z)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    davit_quant_desc *d = c->desc;
    const uint64_t k = d->n_cols, n = s->rank == 2 ? s->shape[1] : 0;
    const uint64_t scales[] = {d->n_rows, n ? n : 1};
    const uint64_t bits = d->params[BITS];
    const uint64_t zeros[] = {d->params[PADDED] ? padded_words(d->n_rows, bits)
                                                : dense_words(d->n_rows, bits),
                              scales[1]};

    if (!davit_q_shape(c, s, 2, scales))
        return 0;
    if (k % n) {
        char want[64];

        snprintf(want, sizeof want, "groups that divide %" PRIu64 " inputs", k);
        return davit_q_fail_count(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, s->name, want, n,
                                  "groups", "groups of this format are all of one size");
    }
    d->params[GROUP] = k / n;
    d->params[N_GROUPS] = n;
    if (set->group > 0)
        davit_q_agree(c, "group_size", set->group, (int64_t)(k / n));
    d->params[ZEROS] = z != NULL;
    if (set->symmetric == 1 && z)
        davit_q_warn(c, DAVIT_R_QUANT_CONFIG_CONFLICT, z->name, "symmetric: true",
                     "zero points are stored for weights that are said to need none; they count");
    if (set->symmetric == 0 && !z)
        davit_q_need(c, "weight_zero_point", "i32/1");
    return c->status == 0 && (!z || davit_q_shape(c, z, 2, zeros));
}

static void describe(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *s,
                     const davit_tensor_info *z, const davit_tensor_info *idx)
{
    davit_quant_desc *d = c->desc;
    const uint32_t bits = (uint32_t)d->params[BITS];
    const uint32_t type = (uint32_t)davit_q_scale_type(s->dtype);

    d->params[SCALE_TYPE] = type;
    d->row_unit = z ? whole_words(d->params) : 1;
    if (!d->params[ORDERED])
        d->col_unit = d->params[GROUP];
    davit_q_part(c, "weight", w, 4 * d->params[WORDS]);
    davit_q_part(c, "scale", s, d->params[N_GROUPS] * davit_q_scale_bytes(type));
    if (z)
        davit_q_part(c, "zero", z, 0);
    if (idx && d->params[ORDERED])
        davit_q_part(c, "g_idx", idx, 0);
    d->codes.group = d->params[GROUP] < d->n_cols ? d->params[GROUP] : 0;
    d->codes.bits = bits;
    d->codes.scale_type = type;
    d->codes.zero_type = !z ? DAVIT_ZERO_CONST : bits > 4 ? DAVIT_ZERO_U8 : DAVIT_ZERO_U4;
    d->codes.zero = z ? 0 : (float)(1u << (bits - 1));
}

int32_t ct_pack_check(const davit_quant_module *module, davit_quant_desc *out,
                      const davit_sink *sink)
{
    const davit_tensor_info *w, *s, *z, *idx;
    davit_q_check c;

    davit_q_begin(&c, module, "compressed-tensors/1", out, sink);
    out->layout = "ct_pack/1";
    w = davit_q_need(&c, "weight_packed", "i32/1");
    s = davit_q_need(&c, "weight_scale", CT_SCALES);
    z = davit_q_find(&c, "weight_zero_point");
    idx = davit_q_find(&c, "weight_g_idx");
    davit_q_activations(&c);
    if (z)
        z = davit_q_need(&c, "weight_zero_point", "i32/1");
    if (!w || !s || c.status || !read_size(&c, &out->n_rows, &out->n_cols))
        return davit_q_end(&c);
    {
        const uint64_t shape[] = {out->n_rows, w->rank == 2 ? w->shape[1] : 1};

        if (davit_q_shape(&c, w, 2, shape) && read_bits(&c, w, out->n_cols) &&
            read_groups(&c, s, z) && read_order(&c, idx))
            describe(&c, w, s, z, idx);
    }
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static uint8_t code_at(const uint64_t *p, const uint8_t *words, uint64_t i)
{
    const uint32_t bits = (uint32_t)p[BITS];

    if (p[PADDED]) { /* so many whole codes a word */
        const uint64_t each = 32 / bits;

        return davit_q_bits(words + 4 * (i / each), 4, i % each * bits, bits);
    }
    return davit_q_bits(words, 4, i * bits, bits);
}

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const uint64_t *p = t->desc->params;
    const uint8_t *words = t->parts[0].ptr + 4 * p[WORDS] * row;

    if (!p[PADDED]) {
        davit_q_words(words, 4, (uint32_t)p[BITS], col, n, out);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        out[i] = code_at(p, words, col + i);
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const uint64_t *p = t->desc->params;

    return davit_q_scale(t->parts[1].ptr, (uint32_t)p[SCALE_TYPE], row * p[N_GROUPS] + group);
}

static float zero(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const uint64_t *p = t->desc->params;

    if (!p[ZEROS])
        return (float)(1u << (p[BITS] - 1));
    if (p[PADDED]) {
        const uint64_t each = 32 / p[BITS];

        return davit_q_bits(t->parts[2].ptr + 4 * (row / each * p[N_GROUPS] + group), 4,
                            row % each * p[BITS], (uint32_t)p[BITS]);
    }
    return davit_q_bits(t->parts[2].ptr + 4 * group, 4 * p[N_GROUPS], row * p[BITS],
                        (uint32_t)p[BITS]);
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const uint64_t *p = t->desc->params;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = t->row * p[N_GROUPS] + group,
                                   .row_step = p[N_GROUPS],
                                   .group_step = 1,
                                   .type = (uint32_t)p[SCALE_TYPE]},
                   t->n_rows, n, out);
    for (uint64_t r = 0; r < t->n_rows; r++)
        for (uint64_t g = 0; g < n; g++)
            zeros[r * n + g] = zero(t, t->row + r, group + g);
}

/* The index was checked, but the file may have changed since: never past the scales. */
static uint64_t group_of(const davit_quant_tile *t, uint64_t col)
{
    const uint64_t last = t->desc->params[N_GROUPS] - 1;
    const uint64_t group = davit_bytes_u32le(t->parts[t->desc->n_parts - 1].ptr + 4 * col);

    return group < last ? group : last;
}

/* Where the row's bits that no code uses are not 0; NULL = they are. */
static const char *padding_fault(const davit_quant_tile *t, uint64_t row)
{
    const uint64_t *p = t->desc->params;
    const uint8_t *words = t->parts[0].ptr + 4 * p[WORDS] * row;
    const uint64_t each = p[PADDED] ? 32 / p[BITS] : 32, n = t->desc->n_cols;

    if (!p[PADDED])
        return davit_q_bits_clear(words, n * p[BITS], 32 * p[WORDS] - n * p[BITS])
                   ? NULL
                   : "past the last column";
    for (uint64_t w = 0; w < p[WORDS]; w++) {
        const uint64_t used = (n - w * each < each ? n - w * each : each) * p[BITS];

        if (!davit_q_bits_clear(words, 32 * w + used, 32 - used))
            return "past the codes of a word";
    }
    return NULL;
}

void ct_pack_padding(const davit_quant_tile *tile, const davit_sink *sink)
{
    for (uint64_t r = 0; r < tile->n_rows; r++) {
        const char *where = padding_fault(tile, tile->row + r);

        if (!where)
            continue;
        davit_q_warn_padding(tile, tile->row + r, where, sink);
        return; /* one says it */
    }
}

davit_q_view ct_pack_view(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .zero = zero,
                          .group_of = d->params[ORDERED] ? group_of : NULL,
                          .group = d->params[GROUP],
                          .scales = scales,
                          .n_groups = d->params[N_GROUPS]};
}

/* ---- cuts ---- */

/* Words of @n codes, the first at a unit of whole_words. */
static uint64_t words_of(const uint64_t *p, uint64_t n)
{
    return p[PADDED] ? padded_words(n, p[BITS]) : dense_words(n, p[BITS]);
}

/* In an order of their own, as in ../gptq: all groups go with every rank. */
static void cut_order(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out)
{
    const davit_quant_box all = {.n_experts = 1};

    davit_q_cut_lines(&all, d->n_parts - 1,
                      &(davit_q_lines){1, 4 * d->n_cols, 0, 1, 4 * box->col, 4 * box->n_cols},
                      out);
    if (box->n_cols != d->n_cols)
        davit_q_cut_order(box, d->params[N_GROUPS], out);
}

int32_t ct_pack_cut(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out,
                    const davit_sink *sink)
{
    const uint64_t *p = d->params;
    const uint64_t size = davit_q_scale_bytes((uint32_t)p[SCALE_TYPE]), unit = whole_words(p);
    const int whole = p[ORDERED] || p[N_GROUPS] == 1; /* every rank has all groups */
    const uint64_t group = whole ? 0 : box->col / p[GROUP];
    const uint64_t n_groups = whole ? p[N_GROUPS] : box->n_cols / p[GROUP];
    const uint64_t words = words_of(p, box->n_cols);

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_rows_fit(d, box, p[ZEROS] ? unit : 1, sink) ||
        !davit_q_cut_cols_fit(d, box, whole ? unit : davit_q_multiple(unit, p[GROUP]), sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_by_row(d, box, 0, box->col ? 4 * words_of(p, box->col) : 0, 4 * words, out);
    davit_q_cut_by_row(d, box, 1, group * size, n_groups * size, out);
    if (p[ZEROS])
        davit_q_cut_lines(box, 2,
                          &(davit_q_lines){words_of(p, d->n_rows), 4 * p[N_GROUPS],
                                           box->row ? words_of(p, box->row) : 0,
                                           words_of(p, box->n_rows), 4 * group, 4 * n_groups},
                          out);
    if (p[ORDERED])
        cut_order(d, box, out);
    out->desc.params[WORDS] = words;
    out->desc.params[N_GROUPS] = n_groups;
    if (p[N_GROUPS] == 1)
        out->desc.params[GROUP] = box->n_cols;
    if (n_groups == 1)
        out->desc.codes.group = 0;
    return DAVIT_OK;
}
