/* SPDX-License-Identifier: Apache-2.0
 * LLM.int8() of bitsandbytes: bytes with one largest value per row.
 *   w = q * (SCB[row] * (1 / 127))
 * bitsandbytes multiplies q by SCB first, so that its last bit may differ. Outlier columns are
 * a matter of the activations, not of the file. */
#include "bnb.h"

int bnb_int8_is(const davit_quant_module *m)
{
    return davit_q_has(m, "weight", "i8/1") && davit_q_has(m, "SCB", NULL);
}

/* 0 is row after row; 1 to 3 are tiles for one kernel each. */
static void check_order(davit_q_check *c)
{
    const davit_tensor_info *t = davit_q_find(c, "weight_format");
    uint64_t n_bytes = 0;
    const uint8_t *p;

    if (!t || !davit_q_need(c, "weight_format", "u8/1"))
        return;
    p = davit_q_peek(c, "weight_format", &n_bytes);
    if (!p || n_bytes != 1 || *p != 0)
        davit_q_fail(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, t->name,
                     "weight_format 0, row after row", "another order",
                     "weights in tiles of one kernel are not read");
}

int32_t bnb_int8_check(const davit_quant_module *module, davit_quant_desc *out,
                       const davit_sink *sink)
{
    const davit_tensor_info *w, *s;
    davit_q_check c;

    davit_q_begin(&c, module, "bitsandbytes/1", out, sink);
    out->layout = "bnb_int8/1";
    w = davit_q_need(&c, "weight", "i8/1");
    s = davit_q_need(&c, "SCB", "f32/1");
    check_order(&c);
    if (!w || !s)
        return davit_q_end(&c);
    if (w->rank != 2 || !davit_q_product(w, 0, 2)) {
        davit_q_fail(&c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name, "a matrix",
                     "another rank, or an empty axis", "LLM.int8() weights are matrices");
        return davit_q_end(&c);
    }
    out->n_rows = w->shape[0];
    out->n_cols = w->shape[1];
    out->col_unit = 1;
    if (davit_q_product(s, 0, s->rank) != out->n_rows)
        davit_q_shape(&c, s, 1, &out->n_rows);
    davit_q_part(&c, "weight", w, out->n_cols);
    davit_q_part(&c, "scale", s, 4);
    out->codes = (davit_quant_codes){.bits = 8,
                                     .scale_type = DAVIT_SCALE_F32,
                                     .zero_type = DAVIT_ZERO_CONST,
                                     .zero = 128};
    return davit_q_end(&c);
}

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const uint8_t *p = t->parts[0].ptr + row * t->desc->n_cols + col;

    for (uint64_t i = 0; i < n; i++)
        out[i] = p[i] ^ 128; /* two's complement to offset 128 */
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    (void)group;
    return davit_q_scale(t->parts[1].ptr, DAVIT_SCALE_F32, row) * (1.0f / 127.0f);
}

davit_q_view bnb_int8_view(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes, .scale = scale, .group = d->n_cols};
}

int32_t bnb_int8_cut(const davit_quant_desc *d, const davit_quant_box *box, davit_quant_cut *out,
                     const davit_sink *sink)
{
    (void)sink;
    davit_q_cut_begin(d, box, out);
    davit_q_cut_by_row(d, box, 0, box->col, box->n_cols, out);
    davit_q_cut_by_row(d, box, 1, 0, 4, out);
    return DAVIT_OK;
}
