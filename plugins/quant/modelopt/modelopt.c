/* SPDX-License-Identifier: Apache-2.0
 * ModelOpt's four-bit whole numbers (W4A16_AWQ, W4A8_AWQ): byte (r, k) holds rows 2r (low
 * half) and 2r + 1 of column k, two's complement.
 *   w = q * weight_scale
 * Its other families are what ../fp8, ../nvfp4, ../mxfp4 and ../compressed_tensors read. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <davit/help/quant.h>

#define SCALES "f32/1|bf16/1|f16/1"

enum { GROUP, SCALE_TYPE, N_GROUPS, COLUMN_TYPE }; /* params */

static int32_t modelopt_claim(void *self, const davit_quant_module *signature,
                              davit_verdict *out, const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!davit_q_has(signature, "weight", "u8/1") ||
        !davit_q_has(signature, "weight_scale", SCALES))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

/* W4A8's weight_scale_2: the scale of the FP8 copies that its kernels make of decoded weights. The
 * codes are rounded by weight_scale alone (ModelOpt, export/quant_utils.py: to_quantized_weight),
 * so that weights do not depend on it. */
static void check_copies_scale(davit_q_check *c)
{
    const davit_tensor_info *t = davit_q_find(c, "weight_scale_2");
    const uint8_t *bytes;
    uint64_t n_bytes;
    float value;

    if (!t || !davit_q_need(c, "weight_scale_2", SCALES) || !davit_q_one_number(c, t))
        return;
    bytes = davit_q_peek(c, "weight_scale_2", &n_bytes);
    if (!bytes)
        return;
    value = davit_q_scale(bytes, (uint32_t)davit_q_scale_type(t->dtype), 0);
    if (!isfinite(value) || value <= 0)
        davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_SCALE_VALUE, t->name,
                     "a finite number above 0", isnan(value) ? "NaN" : "0 or less, or infinity",
                     "a scale of FP8 copies cannot be this");
}

static int32_t modelopt_check(void *self, const davit_quant_module *module,
                              davit_quant_desc *out, const davit_sink *sink)
{
    const davit_tensor_info *w, *s, *column_scale;
    davit_q_check c;
    (void)self;

    davit_q_begin(&c, module, "modelopt/1", out, sink);
    out->layout = "modelopt_int4/1";
    w = davit_q_need(&c, "weight", "u8/1");
    s = davit_q_need(&c, "weight_scale", SCALES);
    davit_q_activations(&c);
    check_copies_scale(&c);
    if (!w || !s || w->rank != 2 || s->rank != 2 || !davit_q_product(w, 0, 2) ||
        w->shape[0] > UINT64_MAX / 4)
        return w && s && !c.status ? DAVIT_QUANT_OTHER : davit_q_end(&c);
    out->n_rows = 2 * w->shape[0];
    out->n_cols = w->shape[1];
    {
        const uint64_t want[] = {out->n_rows, s->shape[1]};
        const uint64_t n = s->shape[1];
        const uint32_t type = (uint32_t)davit_q_scale_type(s->dtype);

        if (!davit_q_shape(&c, s, 2, want))
            return davit_q_end(&c);
        if (n == 0 || out->n_cols % n) {
            char groups[64];

            snprintf(groups, sizeof groups, "groups that divide %" PRIu64 " inputs", out->n_cols);
            davit_q_fail_count(&c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, s->name, groups, n,
                               "groups", "groups of this format are all of one size");
            return davit_q_end(&c);
        }
        if (davit_q_settings(module)->group > 0)
            davit_q_agree(&c, "group_size", davit_q_settings(module)->group,
                          (int64_t)(out->n_cols / n));
        out->params[GROUP] = out->n_cols / n;
        out->params[SCALE_TYPE] = type;
        out->params[N_GROUPS] = n;
        out->row_unit = 2;
        out->col_unit = out->params[GROUP];
        davit_q_part(&c, "weight", w, 0);
        davit_q_part(&c, "scale", s, n * davit_q_scale_bytes(type));
        if (davit_q_column_scale(&c, &column_scale)) {
            out->params[COLUMN_TYPE] = (uint64_t)davit_q_scale_type(column_scale->dtype) + 1;
            davit_q_part(&c, "column_scale", column_scale, 0);
        }
        out->codes = (davit_quant_codes){.group = n > 1 ? out->params[GROUP] : 0,
                                         .bits = 4,
                                         .scale_type = type,
                                         .zero_type = DAVIT_ZERO_CONST,
                                         .zero = 8,
                                         .flags = out->params[COLUMN_TYPE] ? DAVIT_CODES_FACTORS
                                                                           : 0};
    }
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const uint8_t *p = t->parts[0].ptr + row / 2 * t->desc->n_cols + col;

    for (uint64_t i = 0; i < n; i++)
        out[i] = (uint8_t)((p[i] >> 4 * (row % 2) & 15) ^ 8); /* two's complement to offset 8 */
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return davit_q_scale(t->parts[1].ptr, (uint32_t)t->desc->params[SCALE_TYPE],
                         row * t->desc->params[N_GROUPS] + group);
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const uint64_t *p = t->desc->params;
    (void)zeros;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = t->row * p[N_GROUPS] + group,
                                   .row_step = p[N_GROUPS],
                                   .group_step = 1,
                                   .type = (uint32_t)p[SCALE_TYPE]},
                   t->n_rows, n, out);
}

static float column(const davit_quant_tile *t, uint64_t col)
{
    return davit_q_scale(t->parts[2].ptr, (uint32_t)t->desc->params[COLUMN_TYPE] - 1, col);
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .group = d->params[GROUP],
                          .scales = scales,
                          .column = d->params[COLUMN_TYPE] ? column : NULL};
}

static int32_t modelopt_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    return davit_q_verify(&view, tile, sink);
}

static void modelopt_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    davit_q_decode(&view, tile, out);
}

static int32_t modelopt_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                            davit_quant_cut *out, const davit_sink *sink)
{
    const uint64_t *p = d->params;
    const uint64_t size = davit_q_scale_bytes((uint32_t)p[SCALE_TYPE]);
    const int one = p[N_GROUPS] == 1; /* for all inputs */
    const uint64_t group = one ? 0 : box->col / p[GROUP];
    const uint64_t n_groups = one ? 1 : box->n_cols / p[GROUP];
    (void)self;

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_rows_fit(d, box, 2, sink) ||
        !davit_q_cut_cols_fit(d, box, one ? 1 : p[GROUP], sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_lines(box, 0,
                      &(davit_q_lines){d->n_rows / 2, d->n_cols, box->row / 2, box->n_rows / 2,
                                       box->col, box->n_cols},
                      out);
    davit_q_cut_by_row(d, box, 1, group * size, n_groups * size, out);
    if (p[COLUMN_TYPE])
        davit_q_cut_columns(d, box, 2, (uint32_t)p[COLUMN_TYPE] - 1, out);
    out->desc.params[N_GROUPS] = n_groups;
    if (one)
        out->desc.params[GROUP] = out->desc.col_unit = box->n_cols;
    if (n_groups == 1)
        out->desc.codes.group = 0;
    return DAVIT_OK;
}

static const davit_quant_iface modelopt_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = modelopt_claim,
    .check = modelopt_check,
    .verify = modelopt_verify,
    .decode = modelopt_decode,
    .cut = modelopt_cut,
};

DAVIT_COMPONENT(modelopt, DAVIT_KIND_QUANT, "org.davit.quant.modelopt", "layout=modelopt_int4;part=weight_scale",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &modelopt_quant);

DAVIT_PLUGIN("org.davit.quant.modelopt", "ModelOpt int4", "davit", "0.1.0", "Apache-2.0",
             &modelopt);
