/* SPDX-License-Identifier: Apache-2.0
 * Plain numbers: a module that is one tensor of F32, F16 or BF16. Other plain dtypes are no
 * weights and are refused by name. Beside a plain weight may lie scales of compressed-tensors that were
 * calibrated and not applied, where quantization_status says so. */
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

/* Index of "weight" where it is plain and all else would be its scales; n_parts = it is not so. */
static uint64_t plain_beside_scales(const davit_quant_module *m)
{
    static const char *const names[] = {"weight_scale",       "weight_zero_point", "weight_g_idx",
                                        "weight_global_scale", "input_scale",      "input_zero_point",
                                        "input_global_scale", "output_scale",      NULL};
    uint64_t at = m->n_parts, n = 0;

    for (uint64_t i = 0; i < m->n_parts; i++) {
        const davit_ref_layout *layout = davit_ref_layout_find(m->parts[i]->dtype);
        size_t k = 0;

        while (names[k] && strcmp(names[k], m->parts[i]->suffix) != 0)
            k++;
        n += names[k] != NULL;
        if (strcmp(m->parts[i]->suffix, "weight") == 0 && layout && layout->block_elems == 1)
            at = i;
    }
    return n > 0 && n + 1 == m->n_parts ? at : m->n_parts;
}

/* The module without its scales, if the settings say that they are left over. */
static int32_t check_frozen(const davit_quant_module *module, davit_quant_desc *out,
                            const davit_sink *sink)
{
    const char *status = davit_q_settings(module)->status;
    const uint64_t at = plain_beside_scales(module);
    davit_quant_module alone = *module;
    int32_t result;

    if (!status || (strcmp(status, "frozen") != 0 && strcmp(status, "dense") != 0) ||
        at == module->n_parts)
        return DAVIT_QUANT_OTHER;
    alone.parts = module->parts + at;
    alone.n_parts = 1;
    result = davit_ref_module_describe(&alone, "dense/1", out, sink);
    out->parts[0].index = at;
    if (result)
        return result;
    davit_say(sink, 0,
              &(davit_refusal){.code = DAVIT_R_QUANT_ORPHAN,
                               .flags = DAVIT_REFUSAL_WARNING,
                               .subject = module->parts[at ? 0 : 1]->info->name,
                               .expected = "no scales beside a plain weight",
                               .found = status,
                               .message = "quantization_status says that the weights were not "
                                          "compressed: their scales are left over and not applied",
                               .hint = "nothing to do, if the model is meant to run unquantised"});
    return DAVIT_OK;
}

static int32_t dense_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                           const davit_sink *sink)
{
    const davit_ref_layout *layout = davit_ref_module_layout(signature);
    (void)self;

    if (layout && layout->block_elems == 1)
        return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
    if (plain_beside_scales(signature) < signature->n_parts)
        return davit_accept(out, 100, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
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
    return module->n_parts > 1 ? check_frozen(module, out, sink)
                               : davit_ref_module_describe(module, "dense/1", out, sink);
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
