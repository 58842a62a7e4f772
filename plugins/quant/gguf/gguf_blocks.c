/* SPDX-License-Identifier: Apache-2.0
 * GGUF's block layouts: a module that is one tensor of such a dtype. Bit rules: ggml-quants,
 * in the SDK's reference and gguf_more.c. */
#include <davit/help/quant.h>
#include <davit/help/records.h>
#include <davit/help/ref.h>

#include "gguf_more.h"

static int32_t gguf_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                          const davit_sink *sink)
{
    const davit_ref_layout *layout = davit_ref_module_layout(signature);
    (void)self;
    (void)sink;

    if ((!layout || layout->block_elems == 1) && !gguf_more_is(signature))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

static int32_t gguf_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                          const davit_sink *sink)
{
    const davit_tensor_info *info = module->parts[0]->info;
    (void)self;

    if (gguf_more_is(module))
        return gguf_more_check(module, out, sink);
    if (info->rank < 2)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){
                             .code = DAVIT_R_QUANT_PARAMS,
                             .subject = info->name,
                             .expected = "a matrix or stacked matrices",
                             .found = info->dtype,
                             .message = "a vector in a block layout is not read",
                         });
    return davit_ref_module_describe(module, "gguf/1", out, sink);
}

static int32_t gguf_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    (void)self;
    return gguf_more_has(tile->desc) ? gguf_more_verify(tile, sink)
                                     : davit_ref_module_verify(tile, sink);
}

static void gguf_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    (void)self;
    if (gguf_more_has(tile->desc))
        gguf_more_decode(tile, out);
    else
        davit_ref_module_decode(tile, out);
}

/* The second part, where there is one, is a factor of all or of each expert. */
static int32_t gguf_cut(void *self, const davit_quant_desc *desc, const davit_quant_box *box,
                        davit_quant_cut *out, const davit_sink *sink)
{
    const int32_t status = davit_q_cut_blocks(desc, box, out, sink);
    (void)self;

    if (status == DAVIT_OK && desc->n_parts > 1 && desc->n_experts > 1)
        davit_q_cut_lines(box, 1, &(davit_q_lines){1, 4, 0, 1, 0, 4}, out);
    return status;
}

static const davit_quant_iface gguf_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = gguf_claim,
    .check = gguf_check,
    .verify = gguf_verify,
    .decode = gguf_decode,
    .cut = gguf_cut,
};

DAVIT_COMPONENT(gguf_blocks, DAVIT_KIND_QUANT, "org.davit.quant.gguf",
                "layout=q4_0|q4_1|q5_0|q5_1|q8_0|q2_k|q3_k|q4_k|q5_k|q6_k|iq4_nl|iq4_xs|"
                "tq1_0|tq2_0|gguf.mxfp4|gguf.nvfp4|q1_0|q2_0|iq1_s|iq1_m|iq2_xxs|iq2_xs|iq2_s|"
                "iq3_xxs|iq3_s;"
                "part=q4_0/1|q4_1/1|q5_0/1|q5_1/1|q8_0/1|q2_k/1|q3_k/1|q4_k/1|q5_k/1|q6_k/1|"
                "iq4_nl/1|iq4_xs/1|tq1_0/1|tq2_0/1|gguf.mxfp4/1|gguf.nvfp4/1|q1_0/1|q2_0/1|"
                "iq1_s/1|iq1_m/1|iq2_xxs/1|iq2_xs/1|iq2_s/1|iq3_xxs/1|iq3_s/1",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &gguf_quant);

DAVIT_PLUGIN("org.davit.quant.gguf", "GGUF block layouts", "davit", "0.1.0", "Apache-2.0",
             &gguf_blocks);
