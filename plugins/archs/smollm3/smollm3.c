/* SPDX-License-Identifier: Apache-2.0
 * SmolLM3: Llama with layers that do not rotate (README.md). */
#include <davit/help/decoder.h>

static const davit_config_row smollm3_config[] = {
    DAVIT_CONFIG_SIZES("128256", "2048", "11008", "36", "16"),
    DAVIT_CONFIG_HEADS("gguf:nh, 4", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("2000000", "32768"),
    DAVIT_CONFIG_TIE("1"),
    DAVIT_CONFIG_ACT("silu"),
    {"every", "int", "no_rope_layer_interval", NULL, "4", NULL, "1.."},
    {"rotates", "int*", "no_rope_layers", NULL, "(i + 1) % every != 0", NULL, "0..1"},
    {"use_window", "bool", "use_sliding_window", NULL, "0", NULL, NULL},
    DAVIT_CONFIG_WINDOW("0", "=use_window && window > 0 && !rotates"),
    DAVIT_CONFIG_END,
};

static const davit_slot_row smollm3_slots[] = {
    DAVIT_SLOTS_ENDS,      DAVIT_SLOTS_PRE_NORMS, DAVIT_SLOTS_ATTN_PERM,
    DAVIT_SLOTS_MLP(NULL), DAVIT_SLOTS_END,
};

static void smollm3_layer(const davit_graph *g, uint64_t i, davit_decoder_layer *out)
{
    if (davit_get_int(g, "use_window", -1))
        davit_decoder_window(g, i, out);
    out->rope = davit_get_int(g, "rotates", (int64_t)i) ? "" : NULL;
}

static int32_t smollm3_build(void *self, const davit_build_suite *build, davit_builder *b,
                             const char *entry, const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = davit_decoder_of(&g);

    (void)entry;
    (void)sink;
    d.layer = smollm3_layer;
    return davit_decoder_build(&g, &d);
}

static const davit_arch_iface smollm3_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "SmolLM3ForCausalLM",
    .model_types = "smollm3",
    .gguf = "smollm3",
    DAVIT_ARCH_TABLES(smollm3_config, smollm3_slots),
    .build = smollm3_build,
};

DAVIT_COMPONENT(smollm3, DAVIT_KIND_ARCH, "org.davit.arch.smollm3",
                "hf=SmolLM3ForCausalLM;gguf=smollm3",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy,
                .iface = &smollm3_arch);
DAVIT_PLUGIN("org.davit.arch.smollm3", "SmolLM3", "davit", "0.1.0", "Apache-2.0",
             &smollm3);
