/* SPDX-License-Identifier: Apache-2.0
 * StableLM as a third party would add it: LayerNorm with bias, rotary embedding on a part of
 * each head, optional biases of q, k, v, optional parallel block.
 * Facts: transformers 5.24, models/stablelm (class defaults are StableLmConfig's). */
#include <davit/help/decoder.h>
#include <davit/help/records.h>

static const davit_config_row stablelm_config[] = {
    DAVIT_CONFIG_SIZES("50304", "2560", "6912", "32", "32"),
    DAVIT_CONFIG_HEADS("32", "H/nh"),
    {"eps", "float", "layer_norm_eps", "attention.layer_norm_epsilon", "1e-5", NULL, "0..1"},
    DAVIT_CONFIG_ROPE("10000", "4096"),
    /* a symbol of this name tells davit that the architecture rotates a part of the head */
    {"partial", "float", "partial_rotary_factor|rope_parameters.partial_rotary_factor|rope_pct",
     NULL, "0.25", NULL, "0..1"},
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    {"qkv_bias", "bool", "use_qkv_bias", NULL, "0", NULL, NULL},
    {"head_norm", "bool", "qk_layernorm", NULL, "0", NULL, NULL},
    {"parallel", "bool", "use_parallel_residual", "use_parallel_residual", "0", NULL, NULL},
    DAVIT_CONFIG_END,
};

#define NORM(id, scope, when, hf, gguf)                                                   \
    {id, scope, when, "H", hf, gguf, "rep", "norm", 0, 0},                                \
    {id ".bias", scope, when, "H", hf ".bias", gguf ".bias", "rep", "f32", 0, 0}

static const davit_slot_row stablelm_slots[] = {
    DAVIT_SLOTS_ENDS,
    NORM("norm", "G", NULL, "norm", "output_norm"),
    NORM("attn.norm", "L", NULL, "input_layernorm", "attn_norm"),
    NORM("ffn.norm", "L", "!parallel", "post_attention_layernorm", "ffn_norm"),
    DAVIT_SLOTS_ATTN,
    DAVIT_SLOTS_QKV_BIAS("qkv_bias"),
    DAVIT_SLOTS_MLP(NULL),
    DAVIT_SLOTS_END,
};

/* A norm of every head with gains of its own is not built: no released model has it on. */
static int32_t stablelm_check(void *self, const davit_config *config, const davit_sink *sink)
{
    if (!davit_arch_config(self)->flag(config, "head_norm", -1))
        return DAVIT_OK;
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){.code = DAVIT_R_CONFIG_UNSUPPORTED,
                                      .subject = "qk_layernorm",
                                      .expected = "false",
                                      .found = "true",
                                      .message = "this plugin has no norm of single heads"});
}

static int32_t stablelm_build(void *self, const davit_build_suite *build, davit_builder *b,
                              const char *entry, const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = davit_decoder_of(&g);

    (void)entry;
    (void)sink;
    d.norm = DAVIT_NORM_LAYER;
    d.placement = davit_get_int(&g, "parallel", -1) ? DAVIT_PLACE_PARALLEL : DAVIT_PLACE_PRE;
    return davit_decoder_build(&g, &d);
}

static const davit_arch_iface stablelm_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "StableLmForCausalLM",
    .model_types = "stablelm",
    .gguf = "stablelm",
    DAVIT_ARCH_TABLES(stablelm_config, stablelm_slots),
    .check = stablelm_check,
    .build = stablelm_build,
};

DAVIT_COMPONENT(stablelm, DAVIT_KIND_ARCH, "org.example.arch.stablelm",
                "hf=StableLmForCausalLM;gguf=stablelm",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy,
                .iface = &stablelm_arch);
DAVIT_PLUGIN("org.example.arch.stablelm", "StableLM", "Example", "1.0.0", "Apache-2.0",
             &stablelm);
