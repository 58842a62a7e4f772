/* SPDX-License-Identifier: Apache-2.0
 * NVFP4: 16 floats of four bits share an E4M3 scale, and all of them one float32.
 *   w = e2m1(code) * (e4m3(scale) * g)   ModelOpt: weight_scale_2 multiplies
 *   w = e2m1(code) * (e4m3(scale) / G)   compressed-tensors: weight_global_scale divides
 * README.md has params and parts. */
#include <math.h>
#include <string.h>

#include <davit/help/quant.h>

#define GROUP 16

/* params; GLOBALS: one per expert; GLOBAL_TYPE: DAVIT_SCALE_ */
enum { DIVIDES, GLOBALS, COLUMN_TYPE, GLOBAL_TYPE };

static int is_ct(const davit_quant_module *m)
{
    return davit_q_has(m, "weight_packed", "u8/1|f4/1");
}

static int32_t nvfp4_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                           const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if ((!is_ct(signature) && !davit_q_has(signature, "weight", "u8/1|f4/1")) ||
        !davit_q_has(signature, "weight_scale", "f8_e4m3/1"))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

static int read_shape(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *s)
{
    davit_quant_desc *d = c->desc;
    const uint64_t each = strcmp(w->dtype, "f4/1") == 0 ? 1 : 2;
    uint64_t shape[DAVIT_MAX_RANK];

    if (w->rank < 2 || w->rank > 3 || !davit_q_product(w, 0, w->rank))
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name,
                            "a matrix or stacked matrices", "another rank, or an empty axis",
                            "NVFP4 weights are matrices");
    d->n_experts = w->rank == 3 ? w->shape[0] : 1;
    d->n_rows = w->shape[w->rank - 2];
    d->n_cols = w->shape[w->rank - 1] * each;
    if (d->n_cols % GROUP)
        return davit_q_fail_count(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name,
                                  "a multiple of 16 inputs", d->n_cols, "inputs",
                                  "NVFP4's groups are all whole");
    memcpy(shape, w->shape, sizeof shape);
    shape[w->rank - 1] = d->n_cols / GROUP;
    if (s->rank == 1 || (s->rank == w->rank && s->shape[s->rank - 2] > d->n_rows))
        return davit_q_fail(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, s->name,
                            "scales row by row", "another rank or more rows",
                            "scales that are swizzled for one kernel are not read");
    return davit_q_shape(c, s, w->rank, shape);
}

/* One number for all, or one per expert. */
static int read_global(davit_q_check *c, const char *suffix, const davit_tensor_info **out)
{
    const davit_tensor_info *g = davit_q_need(c, suffix, NULL);
    uint64_t n_bytes = 0;
    const uint8_t *p;

    *out = g;
    if (!g)
        return 0;
    c->desc->params[GLOBALS] =
        c->desc->n_experts > 1 && davit_q_product(g, 0, g->rank) == c->desc->n_experts;
    if (c->desc->params[GLOBALS] ? !davit_q_need(c, suffix, "f32/1") : !davit_q_one_number(c, g))
        return 0;
    c->desc->params[GLOBAL_TYPE] = (uint64_t)davit_q_scale_type(g->dtype);
    p = davit_q_peek(c, suffix, &n_bytes);
    for (uint64_t i = 0; p && i < (c->desc->params[GLOBALS] ? c->desc->n_experts : 1); i++) {
        const float value = davit_q_scale(p, (uint32_t)c->desc->params[GLOBAL_TYPE], i);

        if (!isfinite(value) || value <= 0)
            return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_SCALE_VALUE, g->name,
                                "a finite number above 0",
                                isnan(value) ? "NaN" : "0 or less, or infinity",
                                "the global scale of a weight cannot be this");
    }
    return 1;
}

static int32_t nvfp4_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                           const davit_sink *sink)
{
    const int ct = is_ct(module);
    const davit_tensor_info *w, *s, *factors, *g = NULL;
    davit_q_check c;
    (void)self;

    davit_q_begin(&c, module, "nvfp4/1", out, sink);
    out->layout = "nvfp4/1";
    w = davit_q_need(&c, ct ? "weight_packed" : "weight", "u8/1|f4/1");
    s = davit_q_need(&c, "weight_scale", "f8_e4m3/1");
    davit_q_activations(&c);
    davit_q_agree(&c, "group_size",
                  davit_q_settings(module)->group > 0 ? davit_q_settings(module)->group : 0,
                  GROUP);
    if (!w || !s || !read_shape(&c, w, s)) {
        davit_q_need(&c, ct ? "weight_global_scale" : "weight_scale_2", NULL);
        return davit_q_end(&c);
    }
    out->params[DIVIDES] = (uint64_t)ct;
    if (read_global(&c, ct ? "weight_global_scale" : "weight_scale_2", &g)) {
        const uint64_t row = out->n_cols / 2, scales = out->n_cols / GROUP;

        out->col_unit = GROUP;
        davit_q_part(&c, "weight", w, row);
        davit_q_part(&c, "scale", s, scales);
        davit_q_part(&c, "global_scale", g, 0);
        if (davit_q_column_scale(&c, &factors)) {
            out->params[COLUMN_TYPE] = (uint64_t)davit_q_scale_type(factors->dtype) + 1;
            davit_q_part(&c, "column_scale", factors, 0);
        }
        out->codes = (davit_quant_codes){.group = GROUP,
                                         .bits = 4,
                                         .kind = DAVIT_CODE_E2M1,
                                         .scale_type = DAVIT_SCALE_E4M3,
                                         .flags = out->params[COLUMN_TYPE] ? DAVIT_CODES_FACTORS
                                                                           : 0};
    }
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const davit_quant_desc *d = t->desc;

    davit_q_u4(t->parts[0].ptr + (t->expert * d->n_rows + row) * (d->n_cols / 2), col,
               n, out);
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const davit_quant_desc *d = t->desc;

    return davit_q_e4m3(
        t->parts[1].ptr[(t->expert * d->n_rows + row) * (d->n_cols / GROUP) + group]);
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const davit_quant_desc *d = t->desc;
    const uint64_t each = d->n_cols / GROUP;
    (void)zeros;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = (t->expert * d->n_rows + t->row) * each + group,
                                   .row_step = each,
                                   .group_step = 1,
                                   .type = DAVIT_SCALE_E4M3},
                   t->n_rows, n, out);
}

static float factor(const davit_quant_tile *t, uint32_t *out_divide)
{
    const uint64_t *p = t->desc->params;

    *out_divide = (uint32_t)p[DIVIDES];
    return davit_q_scale(t->parts[2].ptr, (uint32_t)p[GLOBAL_TYPE], p[GLOBALS] ? t->expert : 0);
}

static float column(const davit_quant_tile *t, uint64_t col)
{
    return davit_q_scale(t->parts[3].ptr, (uint32_t)t->desc->params[COLUMN_TYPE] - 1, col);
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .factor = factor,
                          .group = GROUP,
                          .scales = scales,
                          .column = d->params[COLUMN_TYPE] ? column : NULL};
}

static int32_t nvfp4_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_quant_desc *d = tile->desc;
    const davit_q_view view = view_of(d);
    const uint64_t each = d->n_cols / GROUP; /* scales of a row */
    (void)self;

    return davit_q_verify_bytes(&view, tile,
                                tile->parts[1].ptr + (tile->expert * d->n_rows + tile->row) * each,
                                (tile->n_rows ? tile->n_rows : 1) * each, sink);
}

static void nvfp4_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    davit_q_decode(&view, tile, out);
}

/* The global scale goes with every rank; one per expert, with its expert. */
static int32_t nvfp4_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                         davit_quant_cut *out, const davit_sink *sink)
{
    const int32_t status = davit_q_cut_nibbles(d, box, GROUP, out, sink);
    (void)self;

    if (status)
        return status;
    if (d->params[GLOBALS])
        davit_q_cut_lines(box, 2, &(davit_q_lines){1, 4, 0, 1, 0, 4}, out);
    if (d->params[COLUMN_TYPE])
        davit_q_cut_columns(d, box, 3, (uint32_t)d->params[COLUMN_TYPE] - 1, out);
    return DAVIT_OK;
}

static const davit_quant_iface nvfp4_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = nvfp4_claim,
    .check = nvfp4_check,
    .verify = nvfp4_verify,
    .decode = nvfp4_decode,
    .cut = nvfp4_cut,
};

DAVIT_COMPONENT(nvfp4, DAVIT_KIND_QUANT, "org.davit.quant.nvfp4", "layout=nvfp4;part=weight_scale",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &nvfp4_quant);

DAVIT_PLUGIN("org.davit.quant.nvfp4", "NVFP4", "davit", "0.1.0", "Apache-2.0", &nvfp4);
