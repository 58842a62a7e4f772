/* SPDX-License-Identifier: Apache-2.0
 * Whole-number layouts of compressed-tensors. Its float layouts are what other plugins read:
 * float-quantized and mxfp8 are ../fp8, nvfp4 is ../nvfp4, mxfp4 is ../mxfp4. */
#include <string.h>

#include "ct.h"

static int32_t ct_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                        const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!ct_pack_is(signature) && !ct_int8_is(signature))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

static int32_t ct_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                        const davit_sink *sink)
{
    (void)self;
    return ct_pack_is(module) ? ct_pack_check(module, out, sink)
                              : ct_int8_check(module, out, sink);
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    return strcmp(d->layout, "ct_pack/1") == 0 ? ct_pack_view(d) : ct_int8_view(d);
}

static int32_t ct_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = view_of(tile->desc);
    const int32_t status = davit_q_verify(&view, tile, sink);
    (void)self;

    if (!status && strcmp(tile->desc->layout, "ct_pack/1") == 0)
        ct_pack_padding(tile, sink);
    return status;
}

static void ct_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    davit_q_decode(&view, tile, out);
}

static int32_t ct_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                      davit_quant_cut *out, const davit_sink *sink)
{
    (void)self;
    return strcmp(d->layout, "ct_pack/1") == 0 ? ct_pack_cut(d, box, out, sink)
                                               : ct_int8_cut(d, box, out, sink);
}

static const davit_quant_iface ct_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = ct_claim,
    .check = ct_check,
    .verify = ct_verify,
    .decode = ct_decode,
    .cut = ct_cut,
};

DAVIT_COMPONENT(compressed_tensors, DAVIT_KIND_QUANT, "org.davit.quant.compressed_tensors",
                "layout=ct_pack|int8;part=weight_scale", DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN,
                50, .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &ct_quant);

DAVIT_PLUGIN("org.davit.quant.compressed_tensors", "compressed-tensors, whole numbers", "davit",
             "0.1.0", "Apache-2.0", &compressed_tensors);
