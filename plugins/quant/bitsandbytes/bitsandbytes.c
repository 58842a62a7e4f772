/* SPDX-License-Identifier: Apache-2.0
 * bitsandbytes: nf4 and fp4 with plain or coded scales (bnb_nibbles.c, bnb_state.c), and
 * LLM.int8() (bnb_int8.c). Here: the door. README.md has params and parts. */
#include <stdlib.h>
#include <string.h>

#include "bnb.h"

typedef struct Plugin {
    const davit_json_suite *json; /* (borrowed) the host's */
    void *host_ctx;
} Plugin;

static int32_t bnb_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                          const davit_sink *sink)
{
    Plugin *plugin = malloc(sizeof *plugin);
    (void)bundle_ctx;

    if (!plugin)
        return davit_say(sink, DAVIT_E_LIMIT,
                         &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY,
                                          .subject = in->component,
                                          .message = "no memory for the plugin"});
    *plugin = (Plugin){in->host->suite(in->host->ctx, "json", 1, 0), in->host->ctx};
    *out_self = plugin;
    return 0;
}

static void bnb_destroy(void *self)
{
    free(self);
}

static int32_t bnb_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                         const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!bnb_int8_is(signature) && !bnb_nibbles_state(signature) &&
        !davit_q_has(signature, "weight.absmax", NULL))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

static int32_t bnb_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                         const davit_sink *sink)
{
    const Plugin *plugin = self;

    if (bnb_int8_is(module))
        return bnb_int8_check(module, out, sink);
    return bnb_nibbles_check(plugin ? plugin->json : NULL, plugin ? plugin->host_ctx : NULL,
                             module, out, sink);
}

static int is_nibbles(const davit_quant_desc *d)
{
    return strcmp(d->layout, "bnb_4bit/1") == 0;
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    return is_nibbles(d) ? bnb_nibbles_view(d) : bnb_int8_view(d);
}

static int32_t bnb_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    if (is_nibbles(tile->desc) && bnb_nibbles_nested(tile->desc))
        return davit_q_verify_finite(&view, tile, sink);
    return davit_q_verify(&view, tile, sink);
}

static void bnb_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    davit_q_decode(&view, tile, out);
}

static int32_t bnb_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                       davit_quant_cut *out, const davit_sink *sink)
{
    (void)self;
    return is_nibbles(d) ? bnb_nibbles_cut(d, box, out, sink) : bnb_int8_cut(d, box, out, sink);
}

static const davit_quant_iface bnb_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = bnb_claim,
    .check = bnb_check,
    .verify = bnb_verify,
    .decode = bnb_decode,
    .cut = bnb_cut,
};

DAVIT_COMPONENT(bitsandbytes, DAVIT_KIND_QUANT, "org.davit.quant.bitsandbytes",
                "layout=bnb_4bit|bnb_int8;part=SCB|weight.absmax|weight.quant_state.bitsandbytes__nf4|"
                "weight.quant_state.bitsandbytes__fp4",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .create = bnb_create,
                .destroy = bnb_destroy, .iface = &bnb_quant);

DAVIT_PLUGIN("org.davit.quant.bitsandbytes", "bitsandbytes", "davit", "0.1.0", "Apache-2.0",
             &bitsandbytes);
