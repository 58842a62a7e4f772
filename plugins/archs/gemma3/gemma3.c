/* SPDX-License-Identifier: Apache-2.0
 * Gemma 3, text (README.md). */
#include <math.h>

#include <davit/help/decoder.h>

static const davit_config_row gemma3_config[] = {
    DAVIT_CONFIG_SIZES("262208", "2304", "9216", "26", "8"),
    DAVIT_CONFIG_HEADS("gguf:nh, 4", "256"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("1000000", "131072"),
    {"theta_local", "float",
     "rope_parameters.sliding_attention.rope_theta|rope_local_base_freq",
     "rope.freq_base_swa", "10000", NULL, NULL},
    DAVIT_CONFIG_TIE("1"),
    {"act", "str", "hidden_activation", NULL, "gelu_pytorch_tanh", NULL, DAVIT_ACT_WORDS},
    {"qpas", "float", "query_pre_attn_scalar", NULL,
     "gguf:hd + (ceildiv(H, nh) - hd) * (L == 62), 256", NULL, "1.."},
    {"pattern", "int", "sliding_window_pattern|_sliding_window_pattern", NULL, "6", NULL,
     "1.."},
    DAVIT_CONFIG_WINDOW("4096", "=window > 0 && (i + 1) % pattern != 0"),
    {"final_cap", "float", "final_logit_softcapping", "final_logit_softcapping", "0", "0",
     "0.."},
    {"attn_cap", "float", "attn_logit_softcapping", "attn_logit_softcapping", "0", "0",
     NULL},
    {"bias", "bool", "attention_bias", NULL, "0", NULL, NULL},
    DAVIT_CONFIG_END,
};

static const davit_slot_row gemma3_slots[] = {
    DAVIT_SLOTS_ENDS,
    {"norm", "G", NULL, "H", "norm#add1", "output_norm", "rep", "norm", 0, 0},
    {"attn.norm", "L", NULL, "H", "input_layernorm#add1", "attn_norm", "rep", "norm", 0,
     0},
    DAVIT_SLOTS_ATTN,
    {"attn.q_norm", "L", NULL, "hd", "self_attn.q_norm#add1", "attn_q_norm", "rep",
     "norm", 0, 0},
    {"attn.k_norm", "L", NULL, "hd", "self_attn.k_norm#add1", "attn_k_norm", "rep",
     "norm", 0, 0},
    DAVIT_SLOTS_QKV_BIAS("bias"),
    DAVIT_SLOTS_O_BIAS("bias"),
    {"attn.post_norm", "L", NULL, "H", "post_attention_layernorm#add1",
     "post_attention_norm", "rep", "norm", 0, 0},
    {"ffn.norm", "L", NULL, "H", "pre_feedforward_layernorm#add1", "ffn_norm", "rep",
     "norm", 0, 0},
    DAVIT_SLOTS_MLP(NULL),
    {"ffn.post_norm", "L", NULL, "H", "post_feedforward_layernorm#add1", "post_ffw_norm",
     "rep", "norm", 0, 0},
    DAVIT_SLOTS_END,
};

static void gemma3_layer(const davit_graph *g, uint64_t i, davit_decoder_layer *out)
{
    davit_decoder_window(g, i, out);
    out->rope = davit_get_text(g, "windowed", (int64_t)i);
}

static int32_t gemma3_build(void *self, const davit_build_suite *build, davit_builder *b,
                            const char *entry, const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = davit_decoder_of(&g);

    (void)entry;
    (void)sink;
    d.placement = DAVIT_PLACE_SANDWICH;
    d.qk_norm = DAVIT_QK_HEAD;
    d.embed_scale = (float)sqrt((double)davit_get_int(&g, "H", -1));
    d.attn_scale = (float)(1 / sqrt(g.get->number(g.config, "qpas", -1)));
    d.logit_softcap = davit_get_float(&g, "final_cap", -1);
    (void)davit_get_float(&g, "attn_cap", -1); /* read: known to have no effect */
    d.layer = gemma3_layer;
    return davit_decoder_build(&g, &d);
}

static const davit_arch_iface gemma3_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "Gemma3ForCausalLM|Gemma3ForConditionalGeneration",
    .model_types = "gemma3_text|gemma3",
    .gguf = "gemma3",
    DAVIT_ARCH_TABLES(gemma3_config, gemma3_slots),
    .build = gemma3_build,
};

DAVIT_COMPONENT(gemma3, DAVIT_KIND_ARCH, "org.davit.arch.gemma3",
                "hf=Gemma3ForCausalLM|Gemma3ForConditionalGeneration;gguf=gemma3",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy,
                .iface = &gemma3_arch);
DAVIT_PLUGIN("org.davit.arch.gemma3", "Gemma 3", "davit", "0.1.0", "Apache-2.0", &gemma3);
