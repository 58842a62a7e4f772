/* SPDX-License-Identifier: Apache-2.0
 * gpt-oss (README.md). */
#include <davit/help/decoder.h>

static const davit_config_row gpt_oss_config[] = {
    DAVIT_CONFIG_SIZES("201088", "2880", "2880", "36", "64"),
    DAVIT_CONFIG_HEADS("gguf:nh, 8", "64"),
    DAVIT_CONFIG_RMS("1e-5"),
    DAVIT_CONFIG_ROPE("150000", "131072"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_WINDOW("128", "=window > 0 && i % 2 == 0"),
    {"E", "int", "num_local_experts|num_experts", "expert_count", "128", NULL,
     "1..65536"},
    {"k", "int", "num_experts_per_tok|experts_per_token", "expert_used_count", "4", NULL,
     "1..E"},
    {"bias", "bool", "attention_bias", NULL, "1", NULL, NULL},
    {"limit", "float", "swiglu_limit", NULL, "7", NULL, "0..1000000"},
    {"alpha", "float", "swiglu_alpha", NULL, "1.702", NULL, "0..1000000"},
    /* GGUF has no key for it; the published models do not round yarn's band */
    {"truncate", "bool", NULL, NULL, "gguf:0, 1", NULL, NULL},
    DAVIT_CONFIG_END,
};

/* In one kind of file only: absent from the other. */
#define ONE_KIND DAVIT_SLOT_OPTIONAL

static const davit_slot_row gpt_oss_slots[] = {
    DAVIT_SLOTS_ENDS,
    {"norm", "G", NULL, "H", "norm", "output_norm", "rep", "norm", 0, 0},
    {"attn.norm", "L", NULL, "H", "input_layernorm", "attn_norm", "rep", "norm", 0, 0},
    DAVIT_SLOTS_ATTN,
    DAVIT_SLOTS_QKV_BIAS("bias"),
    DAVIT_SLOTS_O_BIAS("bias"),
    {"attn.sinks", "L", NULL, "nh", "self_attn.sinks!", "attn_sinks", "col:1", "f32", 0,
     0},
    {"ffn.norm", "L", NULL, "H", "post_attention_layernorm", "post_attention_norm", "rep",
     "norm", 0, 0},
    {"moe.router", "L", NULL, "E,H", "mlp.router", "ffn_gate_inp", "rep", "lin", 0, 0},
    {"moe.router.bias", "L", NULL, "E", "mlp.router.bias", "ffn_gate_inp.bias", "rep",
     "f32", 0, 0},
    {"moe.gate_up", "L", NULL, "E,2*I,H", "mlp.experts.gate_up_proj!#T", NULL, "exp",
     "exp", ONE_KIND, 0},
    {"moe.gate_up.bias", "L", NULL, "E,2*I", "mlp.experts.gate_up_proj_bias!", NULL,
     "exp", "f32", ONE_KIND, 0},
    {"moe.gate", "L", NULL, "E,I,H", NULL, "ffn_gate_exps", "exp", "exp", ONE_KIND, 0},
    {"moe.gate.bias", "L", NULL, "E,I", NULL, "ffn_gate_exps.bias", "exp", "f32",
     ONE_KIND, 0},
    {"moe.up", "L", NULL, "E,I,H", NULL, "ffn_up_exps", "exp", "exp", ONE_KIND, 0},
    {"moe.up.bias", "L", NULL, "E,I", NULL, "ffn_up_exps.bias", "exp", "f32", ONE_KIND,
     0},
    {"moe.down", "L", NULL, "E,H,I", "mlp.experts.down_proj!#T", "ffn_down_exps", "exp",
     "exp", 0, 0},
    {"moe.down.bias", "L", NULL, "E,H", "mlp.experts.down_proj_bias!",
     "ffn_down_exps.bias", "exp", "f32", 0, 0},
    DAVIT_SLOTS_END,
};

/* hidden_act says silu and is not what experts compute; transformers does not read it either. */
static int32_t gpt_oss_build(void *self, const davit_build_suite *build, davit_builder *b,
                             const char *entry, const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = {.n_layers = (uint64_t)davit_get_int(&g, "L", -1),
                       .head_dim = (uint64_t)davit_get_int(&g, "hd", -1),
                       .eps = davit_get_float(&g, "eps", -1)};

    (void)entry;
    (void)sink;
    d.act = DAVIT_ACT_OAI_CLAMP;
    d.act_limit = davit_get_float(&g, "limit", -1);
    d.act_alpha = davit_get_float(&g, "alpha", -1);
    d.top_k = (uint64_t)davit_get_int(&g, "k", -1);
    d.route = DAVIT_ROUTE_TOPK_SOFTMAX;
    d.layer = davit_decoder_window;
    return davit_decoder_build(&g, &d);
}

static const davit_arch_iface gpt_oss_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "GptOssForCausalLM",
    .model_types = "gpt_oss",
    .gguf = "gpt-oss",
    DAVIT_ARCH_TABLES(gpt_oss_config, gpt_oss_slots),
    .build = gpt_oss_build,
};

DAVIT_COMPONENT(gpt_oss, DAVIT_KIND_ARCH, "org.davit.arch.gpt_oss",
                "hf=GptOssForCausalLM;gguf=gpt-oss",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy,
                .iface = &gpt_oss_arch);
DAVIT_PLUGIN("org.davit.arch.gpt_oss", "gpt-oss", "davit", "0.1.0",
             "Apache-2.0", &gpt_oss);
