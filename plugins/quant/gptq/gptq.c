/* SPDX-License-Identifier: Apache-2.0
 * GPTQ of AutoGPTQ and GPTQModel: codes packed along the inputs, zeros along the outputs.
 *   W[o][k] = (q[k][o] - z[G][o]) * scales[G][o],  G = g_idx[k], or k / group
 * Version 1 stores z - 1, version 2 stores z; nothing in the tensors says which, unless all
 * zeros are the middle (symmetric files). README.md has params and parts. */
#include <stdio.h>
#include <string.h>

#include <davit/help/bytes.h>

#include "gptq.h"

#define SCALES "f16/1|bf16/1|f32/1"

static int32_t gptq_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                          const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!davit_q_has(signature, "qweight", "i32/1") ||
        !davit_q_has(signature, "scales", SCALES))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

static int is_awq(const davit_tensor_info *w, const davit_tensor_info *s)
{
    return w->shape[1] * 8 == s->shape[1] || w->shape[0] == s->shape[0];
}

static int unsupported(davit_q_check *c, const char *subject, const char *expected,
                       const char *found, const char *message)
{
    return davit_q_fail(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, subject, expected, found,
                        message);
}

/* ---- bits, inputs, groups ---- */

/* Bits of a code: zeros hold as many per output; without them the configuration says it. */
static int read_bits(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *z)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    const uint64_t n = w->shape[1];
    const char *format = set->format ? set->format : "";
    uint64_t bits = (uint64_t)set->bits;

    if (z && z->rank == 2 && n && z->shape[1] < n && z->shape[1] * 32 % n == 0)
        bits = z->shape[1] * 32 / n;
    if (bits == 0)
        return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_CONFIG_MISSING, w->name, "bits",
                            "neither zeros nor a configuration",
                            "the number of bits of a code is stated nowhere");
    davit_q_agree(c, "bits", set->bits, (int64_t)bits);
    c->desc->params[PLANAR] = strcmp(format, "gptq_p") == 0;
    if (bits == 2 || bits == 3 || bits == 4 || bits == 8 ||
        (c->desc->params[PLANAR] && bits >= 2 && bits < 8)) {
        c->desc->params[BITS] = bits;
        return 1;
    }
    return unsupported(c, w->name, "2, 3, 4 or 8 bits", "another number of bits",
                       "GPTQ files have codes of these sizes");
}

static int read_group(davit_q_check *c, const davit_tensor_info *s)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    const uint64_t k = c->desc->n_cols, n = s->shape[0];
    const uint64_t group = set->group > 0 ? (uint64_t)set->group : n && k % n == 0 ? k / n : 0;

    if (n == 1 && set->group <= 0) {
        c->desc->params[GROUP] = k;
        return 1;
    }
    if (group == 0)
        return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_CONFIG_MISSING, s->name,
                            "group_size", "not stated, and the last group is short",
                            "the group size is stated nowhere");
    if ((k - 1) / group + 1 != n) {
        const uint64_t want[] = {(k - 1) / group + 1, s->shape[1]};

        davit_q_agree(c, "group_size", set->group, n ? (int64_t)((k - 1) / n + 1) : 0);
        if (c->status == 0) /* 5 groups of 8 columns are of 2 each too, with one to spare */
            davit_q_shape(c, s, 2, want);
        return 0;
    }
    c->desc->params[GROUP] = group;
    return 1;
}

/* ---- zeros ---- */

static int read_zeros(davit_q_check *c, const davit_tensor_info *z)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    uint64_t *p = c->desc->params;
    const char *format = set->format ? set->format : "gptq";

    p[SYMMETRIC] = set->symmetric == 1;
    if (!z) {
        if (set->symmetric == 1)
            return 1; /* ZEROS_MIDDLE */
        davit_q_need(c, "qzeros", "i32/1");
        return 0;
    }
    if (set->allow & (DAVIT_QUANT_ALLOW_ZEROS_V1 | DAVIT_QUANT_ALLOW_ZEROS_V2)) {
        p[ZEROS] = set->allow & DAVIT_QUANT_ALLOW_ZEROS_V1 ? ZEROS_V1 : ZEROS_V2;
        return 1;
    }
    if (!set->source)
        return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_CONFIG_MISSING, z->name,
                            "checkpoint_format gptq or gptq_v2", "no configuration",
                            "whether zeros are stored less one is stated nowhere");
    if (strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0 &&
        strcmp(format, "gptq_p") != 0 && strcmp(format, "pack") != 0)
        return unsupported(c, z->name, "gptq, gptq_v2 or gptq_p", format,
                           "this GPTQ format is laid out for one kernel");
    p[ZEROS] = strcmp(format, "gptq") == 0 || strcmp(format, "pack") == 0 ? ZEROS_V1 : ZEROS_V2;
    return 1;
}

/* ---- g_idx ---- */

#define MOST_COUNTED 8192u /* groups: counting takes their number times the columns */

/* Do all groups have the same number of columns (the last one may be short)? More groups than any
 * real layer has are not counted: then it decodes to float32 only. */
static int groups_are_full(const uint8_t *idx, uint64_t k, uint64_t group, uint64_t n_groups)
{
    if (n_groups > MOST_COUNTED)
        return 0;
    for (uint64_t g = 0; g < n_groups; g++) {
        uint64_t n = 0;

        for (uint64_t i = 0; i < k; i++)
            n += davit_bytes_u32le(idx + 4 * i) == g;
        if (n != group && !(g == n_groups - 1 && n == k - group * g))
            return 0;
    }
    return 1;
}

/* The order of groups: natural, or by g_idx. All -1 means that nobody set it. */
static int read_order(davit_q_check *c, const davit_tensor_info *idx)
{
    davit_quant_desc *d = c->desc;
    const uint64_t k = d->n_cols, group = d->params[GROUP], n_groups = (k - 1) / group + 1;
    uint64_t n_bytes = 0, n_other = 0, n_unset = 0;
    const uint8_t *p;
    char found[64];

    if (!idx && davit_q_settings(c->module)->act_order == 1 && n_groups > 1)
        return davit_q_need(c, "g_idx", "i32/1") != NULL; /* the natural order would be noise */
    if (!idx || !davit_q_shape(c, idx, 1, &k))
        return !idx;
    p = davit_q_peek(c, "g_idx", &n_bytes);
    if (!p && idx->n_bytes <= DAVIT_QUANT_PEEK)
        return davit_q_fail(c, DAVIT_E_IO, DAVIT_R_IO_FAILED, idx->name, NULL, "a read that failed",
                            "the index of groups cannot be read");
    if (!p || n_bytes != 4 * k)
        return davit_q_fail_count(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, idx->name,
                                  "at most 262144 columns", k, "columns",
                                  "an index of groups this long is not read");
    for (uint64_t i = 0; i < k; i++) {
        const uint32_t g = davit_bytes_u32le(p + 4 * i);

        n_unset += g == UINT32_MAX;
        n_other += g != i / group;
        if (g >= n_groups && g != UINT32_MAX) {
            snprintf(found, sizeof found, "%d at column %llu", (int)g, (unsigned long long)i);
            return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_INDEX_RANGE, idx->name,
                                "indices of groups, or -1 everywhere", found,
                                "an index of groups points nowhere");
        }
    }
    if (n_unset == k || n_other == 0)
        return 1;
    if (n_unset)
        return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_INDEX_RANGE, idx->name,
                            "indices of groups, or -1 everywhere", "some are -1",
                            "an index of groups is half set");
    if (davit_q_settings(c->module)->act_order == 0)
        davit_q_warn(c, DAVIT_R_QUANT_CONFIG_CONFLICT, idx->name, "another order",
                     "desc_act is false, and g_idx is not the natural order: g_idx is used");
    d->params[ORDERED] = 1;
    d->codes.flags |= DAVIT_CODES_MAP;
    d->col_unit = 0;
    if (!groups_are_full(p, k, group, n_groups))
        d->forms = DAVIT_FORM_F32;
    return 1;
}

/* ---- check ---- */

static void describe(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *s,
                     const davit_tensor_info *z, const davit_tensor_info *idx)
{
    davit_quant_desc *d = c->desc;
    const uint64_t bits = d->params[BITS];
    const uint32_t type = (uint32_t)davit_q_scale_type(s->dtype);
    const uint64_t unit = bits == 2 || bits == 4 || bits == 8 ? 32 / bits : 32;

    d->params[SCALE_TYPE] = type;
    d->params[N_OUT] = d->n_rows;
    d->row_unit = z ? unit : 1;
    davit_q_part(c, "weight", w, 0);
    davit_q_part(c, "scale", s, 0);
    if (z)
        davit_q_part(c, "zero", z, 0);
    if (idx && d->params[ORDERED])
        davit_q_part(c, "g_idx", idx, 0);
    d->codes.group = d->params[GROUP] < d->n_cols ? d->params[GROUP] : 0;
    d->codes.bits = (uint32_t)bits;
    d->codes.scale_type = type;
    d->codes.zero_type = d->params[ZEROS] == ZEROS_MIDDLE ? DAVIT_ZERO_CONST
                         : bits > 4                      ? DAVIT_ZERO_U8
                                                         : DAVIT_ZERO_U4;
    d->codes.zero = d->params[ZEROS] == ZEROS_MIDDLE ? (float)(1u << (bits - 1)) : 0;
}

/* Codes end with whole words: those of a column of the weight, those of a group's zeros; and in
 * planes (more than one for 3, 5, 6 and 7 bits) with blocks of 32. */
static int ends_whole(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *z)
{
    const davit_quant_desc *d = c->desc;
    const uint64_t bits = d->params[BITS];
    const int blocks = d->params[PLANAR] && (bits == 3 || bits > 4) && bits != 8;

    if (w->shape[0] * 32 % bits || (blocks && d->n_cols % 32))
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name,
                            "whole codes in its rows", "a part of one",
                            "the packed rows are cut");
    if (z && (d->n_rows * bits % 32 || (blocks && d->n_rows % 32)))
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, z->name,
                            "zeros that end with a word", "outputs that fill a part of one",
                            "the packed zeros are cut");
    return 1;
}

static int32_t gptq_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                          const davit_sink *sink)
{
    const davit_tensor_info *w, *s, *z, *idx;
    davit_q_check c;
    (void)self;

    davit_q_begin(&c, module, "gptq/1", out, sink);
    out->layout = "gptq/1";
    w = davit_q_need(&c, "qweight", "i32/1");
    s = davit_q_need(&c, "scales", SCALES);
    z = davit_q_find(&c, "qzeros");
    idx = davit_q_find(&c, "g_idx");
    if (!w || !s)
        return davit_q_end(&c);
    if (w->rank != 2 || s->rank != 2 || w->shape[1] != s->shape[1] || !w->shape[0] ||
        !w->shape[1] || !s->shape[0]) {
        const uint64_t want[] = {s->shape[0], w->shape[1]};

        if (!idx && w->rank == 2 && s->rank == 2 && is_awq(w, s))
            return DAVIT_QUANT_OTHER;
        davit_q_shape(&c, s, 2, want);
        return c.status ? c.status : DAVIT_QUANT_OTHER;
    }
    if (z)
        z = davit_q_need(&c, "qzeros", "i32/1");
    if (idx)
        idx = davit_q_need(&c, "g_idx", "i32/1");
    out->n_rows = w->shape[1];
    out->col_unit = 1;
    if (c.status || !read_bits(&c, w, z))
        return davit_q_end(&c);
    out->n_cols = w->shape[0] * 32 / out->params[BITS];
    if (c.status == 0 && ends_whole(&c, w, z) && read_group(&c, s) && read_zeros(&c, z)) {
        const uint64_t zeros[] = {s->shape[0], out->n_rows * out->params[BITS] / 32};

        if ((!z || davit_q_shape(&c, z, 2, zeros)) && read_order(&c, idx))
            describe(&c, w, s, z, idx);
    }
    return davit_q_end(&c);
}

/* ---- payload ---- */

/* Symmetric files have one zero everywhere: the middle, in one of the two spellings. */
static int32_t check_convention(const davit_quant_tile *t, const davit_sink *sink)
{
    const uint64_t *p = t->desc->params;
    const uint32_t middle = 1u << (p[BITS] - 1);
    const uint8_t want = (uint8_t)(p[ZEROS] == ZEROS_V1 ? middle - 1 : middle);
    char expected[64], found[64];
    uint8_t is;

    if (p[ZEROS] == ZEROS_MIDDLE || !p[SYMMETRIC])
        return DAVIT_OK;
    is = want;
    for (uint64_t r = 0; is == want && r < (t->n_rows ? t->n_rows : 1); r++)
        is = gptq_stored_zero(t, t->row + r, 0);
    if (is == want)
        return DAVIT_OK;
    snprintf(expected, sizeof expected, "stored zeros %u of version %u", want,
             (unsigned)p[ZEROS]);
    snprintf(found, sizeof found, "%u", is);
    return davit_say(
        sink, DAVIT_E_MISMATCH,
        &(davit_refusal){.code = DAVIT_R_QUANT_ZERO_CONVENTION,
                         .subject = "qzeros",
                         .expected = expected,
                         .found = found,
                         .message = "the stored zeros contradict checkpoint_format or sym",
                         .hint = "the file is probably labelled with the other version: "
                                 "correct checkpoint_format, or run with --gptq-zeros"});
}

static int32_t gptq_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = gptq_view(tile);
    const int32_t status = check_convention(tile, sink);
    (void)self;

    return status ? status : davit_q_verify(&view, tile, sink);
}

static void gptq_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = gptq_view(tile);
    (void)self;

    davit_q_decode(&view, tile, out);
}

/* ---- cuts ---- */

/* Codes that fill whole words, in planes blocks of 32. */
static uint64_t whole_words(const uint64_t *p)
{
    return p[PLANAR] || 32 % p[BITS] ? 32 : 32 / p[BITS];
}

/* In an order of their own the columns of a rank may belong to any group: it keeps all scales and
 * zeros, and its part of g_idx still counts them all. */
static void cut_order(const davit_quant_desc *d, const davit_quant_box *box, uint64_t n_groups,
                      davit_quant_cut *out)
{
    const davit_quant_box all = {.n_experts = 1};

    davit_q_cut_lines(&all, d->n_parts - 1,
                      &(davit_q_lines){1, 4 * d->n_cols, 0, 1, 4 * box->col, 4 * box->n_cols},
                      out);
    if (box->n_cols != d->n_cols)
        davit_q_cut_order(box, n_groups, out);
}

static int32_t gptq_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                        davit_quant_cut *out, const davit_sink *sink)
{
    const uint64_t *p = d->params;
    const uint64_t size = davit_q_scale_bytes((uint32_t)p[SCALE_TYPE]), n = d->n_rows;
    const uint64_t words = whole_words(p), all = (d->n_cols - 1) / p[GROUP] + 1;
    const int whole = p[ORDERED] || all == 1; /* every rank has all groups */
    const uint64_t group = whole ? 0 : box->col / p[GROUP];
    const uint64_t n_groups = whole ? all : (box->col + box->n_cols - 1) / p[GROUP] + 1 - group;
    (void)self;

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_rows_fit(d, box, d->row_unit == 1 ? 1 : words, sink) ||
        !davit_q_cut_cols_fit(d, box, whole ? words : davit_q_multiple(words, p[GROUP]), sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_lines(box, 0,
                      &(davit_q_lines){d->n_cols * p[BITS] / 32, 4 * n, box->col * p[BITS] / 32,
                                       box->n_cols * p[BITS] / 32, 4 * box->row,
                                       4 * box->n_rows},
                      out);
    davit_q_cut_lines(
        box, 1,
        &(davit_q_lines){all, n * size, group, n_groups, box->row * size, box->n_rows * size},
        out);
    if (p[ZEROS] != ZEROS_MIDDLE)
        davit_q_cut_lines(box, 2,
                          &(davit_q_lines){all, n * p[BITS] / 8, group, n_groups,
                                           box->row * p[BITS] / 8, box->n_rows * p[BITS] / 8},
                          out);
    if (p[ORDERED])
        cut_order(d, box, all, out);
    out->desc.params[N_OUT] = box->n_rows;
    if (p[GROUP] >= box->n_cols && !p[ORDERED])
        out->desc.codes.group = 0;
    return DAVIT_OK;
}

static const davit_quant_iface gptq_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = gptq_claim,
    .check = gptq_check,
    .verify = gptq_verify,
    .decode = gptq_decode,
    .cut = gptq_cut,
};

DAVIT_COMPONENT(gptq, DAVIT_KIND_QUANT, "org.davit.quant.gptq", "layout=gptq;part=qweight",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &gptq_quant);

DAVIT_PLUGIN("org.davit.quant.gptq", "GPTQ", "davit", "0.1.0", "Apache-2.0", &gptq);
