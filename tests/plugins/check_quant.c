/* SPDX-License-Identifier: Apache-2.0
 * A quant layout: bytes times one scale for each row, tensors "codes" and "scales". Sound as it
 * is; FAULT (CMakeLists.txt) breaks one rule that only modules that make no sense show. */
#include <davit/help/bytes.h>
#include <davit/help/records.h>
#include <davit/quant.h>
#include <string.h>

enum { NONE, UNCHECKED_SHAPE, NO_RECORD, DIVIDES, EMPTY_DESC };

static const davit_quant_part_in *part(const davit_quant_module *m, const char *suffix)
{
    for (uint64_t i = 0; i < m->n_parts; i++)
        if (strcmp(m->parts[i]->suffix, suffix) == 0)
            return m->parts[i];
    return NULL;
}

static int32_t bytes_claim(void *self, const davit_quant_module *m, davit_verdict *out,
                           const davit_sink *sink)
{
    const davit_quant_part_in *w = part(m, "qweight"), *s = part(m, "scales");

    (void)self;
    (void)sink;
    return w && s && strcmp(s->dtype, "f32/1") == 0 && strcmp(w->dtype, "u8/1") == 0
               ? davit_accept(out, 400, DAVIT_INSPECT | DAVIT_MAP)
               : davit_decline(out);
}

static int32_t wrong(const davit_quant_module *m, const davit_sink *sink)
{
    if (FAULT == NO_RECORD)
        return DAVIT_E_MISMATCH;
    return davit_say(sink, DAVIT_E_MISMATCH,
                     &(davit_refusal){.code = DAVIT_R_SHAPE_MISMATCH,
                                      .subject = m->name,
                                      .message = "weight and scales do not fit"});
}

static int32_t bytes_check(void *self, const davit_quant_module *m, davit_quant_desc *out,
                           const davit_sink *sink)
{
    const davit_tensor_info *w = part(m, "qweight")->info, *s = part(m, "scales")->info;
    const int fits = w->rank == 2 && s->rank == 1 && s->shape[0] == w->shape[0] && w->shape[0] &&
                     w->shape[1];

    (void)self;
    if (FAULT == DIVIDES && s->shape[0] % w->shape[0])
        return wrong(m, sink);
    if (FAULT != UNCHECKED_SHAPE && FAULT != EMPTY_DESC && !fits)
        return wrong(m, sink);
    if (FAULT == EMPTY_DESC && w->rank != 2)
        return DAVIT_OK;
    out->scheme = "org.example.bytes/1";
    out->layout = "org.example.bytes/1";
    out->n_experts = 1;
    out->n_rows = w->shape[0] ? w->shape[0] : 1;
    out->n_cols = w->rank == 2 && w->shape[1] ? w->shape[1] : 1;
    out->row_unit = out->col_unit = 1;
    out->forms = DAVIT_FORM_F32;
    out->n_parts = 2;
    for (uint32_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i] == part(m, "qweight"))
            out->parts[0] = (davit_quant_part){.role = "weight", .index = i, .row_bytes = out->n_cols};
        if (m->parts[i] == part(m, "scales"))
            out->parts[1] = (davit_quant_part){.role = "scale", .index = i, .row_bytes = 4};
    }
    return DAVIT_OK;
}

static void bytes_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    (void)self;
    for (uint64_t r = 0; r < tile->n_rows; r++)
        for (uint64_t c = 0; c < tile->n_cols; c++) {
            const uint64_t row = tile->row + r;
            float scale;

            memcpy(&scale, tile->parts[1].ptr + 4 * row, sizeof scale);
            out->values[r * out->stride + c] =
                scale * (float)tile->parts[0].ptr[row * tile->desc->n_cols + tile->col + c];
        }
}

static const davit_quant_iface iface = {.struct_size = DAVIT_END(davit_quant_iface, decode),
                                        .claim = bytes_claim,
                                        .check = bytes_check,
                                        .decode = bytes_decode};
DAVIT_COMPONENT(bytes, DAVIT_KIND_QUANT, "org.example.check_quant." NAME, "layout=org.example.bytes",
                DAVIT_INSPECT | DAVIT_MAP, 50, .iface = &iface);
DAVIT_PLUGIN("org.example.bundle.check_quant." NAME, NAME, "Example", "1.0.0", "MIT", &bytes);
