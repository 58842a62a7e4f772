/* SPDX-License-Identifier: Apache-2.0
 * Qwen2 and Qwen2.5 (README.md). */
#include <davit/help/decoder.h>

static const davit_config_row qwen2_config[] = {
    DAVIT_CONFIG_SIZES("151936", "4096", "22016", "32", "32"),
    DAVIT_CONFIG_HEADS("gguf:nh, 32", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("10000", "32768"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    {"use_window", "bool", "use_sliding_window", NULL, "0", NULL, NULL},
    {"full_layers", "int", "max_window_layers", NULL, "28", NULL, "0.."},
    DAVIT_CONFIG_WINDOW("gguf:0, 4096", "=use_window && window > 0 && i >= full_layers"),
    DAVIT_CONFIG_END,
};

static const davit_slot_row qwen2_slots[] = {
    DAVIT_SLOTS_ENDS,          DAVIT_SLOTS_PRE_NORMS, DAVIT_SLOTS_ATTN,
    DAVIT_SLOTS_QKV_BIAS("1"), DAVIT_SLOTS_MLP(NULL), DAVIT_SLOTS_END,
};

/* use_sliding_window false turns the window off even where layer_types names it. */
static void qwen2_layer(const davit_graph *g, uint64_t i, davit_decoder_layer *out)
{
    if (davit_get_int(g, "use_window", -1))
        davit_decoder_window(g, i, out);
}

static int32_t qwen2_build(void *self, const davit_build_suite *build, davit_builder *b,
                           const char *entry, const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = davit_decoder_of(&g);

    (void)entry;
    (void)sink;
    d.layer = qwen2_layer;
    return davit_decoder_build(&g, &d);
}

static const davit_arch_iface qwen2_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "Qwen2ForCausalLM",
    .model_types = "qwen2",
    .gguf = "qwen2",
    DAVIT_ARCH_TABLES(qwen2_config, qwen2_slots),
    .build = qwen2_build,
};

DAVIT_COMPONENT(qwen2, DAVIT_KIND_ARCH, "org.davit.arch.qwen2",
                "hf=Qwen2ForCausalLM;gguf=qwen2",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy,
                .iface = &qwen2_arch);
DAVIT_PLUGIN("org.davit.arch.qwen2", "Qwen2 and Qwen2.5", "davit", "0.1.0", "Apache-2.0",
             &qwen2);
