/* SPDX-License-Identifier: Apache-2.0
 * Whole numbers of 8 bits, one byte each: scale per tensor, row or group, zeros of 8 bits.
 *   w = (q - zero) * scale
 * Codes are the bytes with an offset of 128. */
#include <string.h>

#include "ct.h"

enum { GROUP, SCALE_TYPE, ZEROS, N_GROUPS, SHARED }; /* params */

int ct_int8_is(const davit_quant_module *m)
{
    return davit_q_has(m, "weight", "i8/1") && davit_q_has(m, "weight_scale", CT_SCALES);
}

/* Groups per row; 1 with params[SHARED] for one scale of all. */
static int read_scale(davit_q_check *c, const davit_tensor_info *s)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    davit_quant_desc *d = c->desc;
    uint64_t shape[] = {d->n_rows, s->rank == 2 ? s->shape[1] : 1};

    d->params[N_GROUPS] = 1;
    if (davit_q_product(s, 0, s->rank) == 1 && d->n_rows > 1) {
        d->params[SHARED] = 1;
        return 1;
    }
    if (s->rank == 1 && s->shape[0] == d->n_rows)
        return 1;
    if (!davit_q_shape(c, s, 2, shape))
        return 0;
    d->params[N_GROUPS] = shape[1];
    if (shape[1] == 0 || d->n_cols % shape[1])
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, s->name,
                            "groups that divide the inputs", "others",
                            "groups of this format are all of one size");
    if (set->group > 0)
        davit_q_agree(c, "group_size", set->group, (int64_t)(d->n_cols / shape[1]));
    return 1;
}

int32_t ct_int8_check(const davit_quant_module *module, davit_quant_desc *out,
                      const davit_sink *sink)
{
    const davit_tensor_info *w, *s, *z;
    davit_q_check c;
    uint64_t size;

    davit_q_begin(&c, module, "compressed-tensors/1", out, sink);
    out->layout = "int8/1";
    w = davit_q_need(&c, "weight", "i8/1");
    s = davit_q_need(&c, "weight_scale", CT_SCALES);
    z = davit_q_find(&c, "weight_zero_point");
    davit_q_activations(&c);
    if (davit_q_find(&c, "pre_quant_scale"))
        davit_q_fail(&c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, NULL,
                     "weights without pre_quant_scale", "pre_quant_scale",
                     "a factor of the activations is not applied here");
    davit_q_agree(&c, "num_bits", davit_q_settings(module)->bits, 8);
    if (!w || !s || w->rank != 2 || !davit_q_product(w, 0, 2))
        return w && s ? DAVIT_QUANT_OTHER : davit_q_end(&c);
    out->n_rows = w->shape[0];
    out->n_cols = w->shape[1];
    if (z && davit_q_settings(module)->symmetric == 1)
        davit_q_warn(&c, DAVIT_R_QUANT_CONFIG_CONFLICT, z->name, "symmetric: true",
                     "zero points are stored for weights that are said to need none; they count");
    if (!z && davit_q_settings(module)->symmetric == 0)
        davit_q_need(&c, "weight_zero_point", "i8/1");
    if (!read_scale(&c, s) ||
        (z && (!davit_q_need(&c, "weight_zero_point", "i8/1") ||
               !davit_q_shape(&c, z, s->rank, s->shape))))
        return davit_q_end(&c);
    out->params[GROUP] = out->n_cols / out->params[N_GROUPS];
    out->params[SCALE_TYPE] = (uint64_t)davit_q_scale_type(s->dtype);
    out->params[ZEROS] = z != NULL;
    out->col_unit = out->params[N_GROUPS] > 1 ? out->params[GROUP] : 1;
    size = out->params[N_GROUPS] * davit_q_scale_bytes((uint32_t)out->params[SCALE_TYPE]);
    davit_q_part(&c, "weight", w, out->n_cols);
    davit_q_part(&c, "scale", s, out->params[SHARED] ? 0 : size);
    if (z)
        davit_q_part(&c, "zero", z, out->params[SHARED] ? 0 : out->params[N_GROUPS]);
    out->codes = (davit_quant_codes){.group = out->params[N_GROUPS] > 1 ? out->params[GROUP] : 0,
                                     .scale_rows = out->params[SHARED] ? out->n_rows : 1,
                                     .bits = 8,
                                     .scale_type = (uint32_t)out->params[SCALE_TYPE],
                                     .zero_type = z ? DAVIT_ZERO_U8 : DAVIT_ZERO_CONST,
                                     .zero = 128};
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const uint8_t *p = t->parts[0].ptr + row * t->desc->n_cols + col;

    for (uint64_t i = 0; i < n; i++)
        out[i] = p[i] ^ 0x80;
}

static uint64_t cell(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return t->desc->params[SHARED] ? 0 : row * t->desc->params[N_GROUPS] + group;
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return davit_q_scale(t->parts[1].ptr, (uint32_t)t->desc->params[SCALE_TYPE],
                         cell(t, row, group));
}

static float zero(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return t->desc->params[ZEROS] ? (float)(t->parts[2].ptr[cell(t, row, group)] ^ 0x80) : 128;
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const uint64_t *p = t->desc->params;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = cell(t, t->row, group),
                                   .row_step = p[SHARED] ? 0 : p[N_GROUPS],
                                   .group_step = 1,
                                   .type = (uint32_t)p[SCALE_TYPE]},
                   t->n_rows, n, out);
    for (uint64_t r = 0; r < t->n_rows; r++)
        for (uint64_t g = 0; g < n; g++)
            zeros[r * n + g] = zero(t, t->row + r, group + g);
}

davit_q_view ct_int8_view(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .zero = zero,
                          .group = d->params[GROUP],
                          .scales = scales};
}

int32_t ct_int8_cut(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out,
                    const davit_sink *sink)
{
    const uint64_t *p = d->params;
    const uint64_t size = davit_q_scale_bytes((uint32_t)p[SCALE_TYPE]);
    const int one = p[N_GROUPS] == 1; /* for all inputs */
    const uint64_t group = one ? 0 : box->col / p[GROUP];
    const uint64_t n_groups = one ? 1 : box->n_cols / p[GROUP];

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_cols_fit(d, box, one ? 1 : p[GROUP], sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_by_row(d, box, 0, box->col, box->n_cols, out);
    if (!p[SHARED]) {
        davit_q_cut_by_row(d, box, 1, group * size, n_groups * size, out);
        if (p[ZEROS])
            davit_q_cut_by_row(d, box, 2, group, n_groups, out);
    }
    out->desc.params[N_GROUPS] = n_groups;
    if (one)
        out->desc.params[GROUP] = box->n_cols;
    if (n_groups == 1)
        out->desc.codes.group = 0;
    if (p[SHARED])
        out->desc.codes.scale_rows = box->n_rows;
    return DAVIT_OK;
}
