/* SPDX-License-Identifier: Apache-2.0
 * Plain numbers: a module that is one tensor of F32, F16 or BF16. Other plain dtypes are no
 * weights and are refused by name. */
#include <string.h>

#include <davit/help/quant.h>
#include <davit/help/records.h>
#include <davit/help/ref.h>

/* Plain dtypes that are recognised and not taken; what to do about them. */
static const struct {
    const char *dtype, *message, *hint;
} refused[] = {
    {"f64/1", "float64 weights are not read", "cast them to float32 and save again"},
    {"c64/1", "complex numbers are not weights", NULL},
    {"i64/1", "integers are not weights", "a buffer, or a layout whose companions are absent"},
    {"i32/1", "integers are not weights", "a buffer, or a layout whose companions are absent"},
    {"i16/1", "integers are not weights", "a buffer, or a layout whose companions are absent"},
    {"i8/1", "8-bit weights need scales", "a tensor with the scales is absent"},
    {"u64/1", "integers are not weights", "a buffer, or a layout whose companions are absent"},
    {"u32/1", "integers are not weights", "a buffer, or a layout whose companions are absent"},
    {"u16/1", "integers are not weights", "a buffer, or a layout whose companions are absent"},
    {"u8/1", "8-bit weights need scales", "a tensor with the scales is absent"},
    {"bool/1", "truth values are not weights", NULL},
};

static int is_alone(const davit_quant_module *m)
{
    return m->n_parts == 1 && (strcmp(m->parts[0]->suffix, "weight") == 0 ||
                               strcmp(m->parts[0]->suffix, "") == 0);
}

static int32_t dense_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                           const davit_sink *sink)
{
    const davit_ref_layout *layout = davit_ref_module_layout(signature);
    (void)self;

    if (layout && layout->block_elems == 1)
        return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
    if (!is_alone(signature))
        return davit_decline(out);

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (strcmp(refused[i].dtype, signature->parts[0]->dtype) != 0)
            continue;
        davit_say(sink, 0,
                  &(davit_refusal){
                      .code = DAVIT_R_QUANT_UNKNOWN,
                      .subject = signature->parts[0]->suffix,
                      .expected = "f32/1, f16/1 or bf16/1",
                      .found = refused[i].dtype,
                      .message = refused[i].message,
                      .hint = refused[i].hint,
                  });
        return davit_refuse(out, 0);
    }
    return davit_decline(out);
}

static int32_t dense_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                           const davit_sink *sink)
{
    (void)self;
    return davit_ref_module_describe(module, "dense/1", out, sink);
}

static void dense_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    (void)self;
    davit_ref_module_decode(tile, out);
}

static int32_t dense_cut(void *self, const davit_quant_desc *desc, const davit_quant_box *box,
                         davit_quant_cut *out, const davit_sink *sink)
{
    (void)self;
    return davit_q_cut_blocks(desc, box, out, sink);
}

static const davit_quant_iface dense_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = dense_claim,
    .check = dense_check,
    .decode = dense_decode,
    .cut = dense_cut,
};

DAVIT_COMPONENT(dense, DAVIT_KIND_QUANT, "org.davit.quant.dense", "layout=f32|f16|bf16",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &dense_quant);

DAVIT_PLUGIN("org.davit.quant.dense", "Plain numbers", "davit", "0.1.0", "Apache-2.0", &dense);
