/* SPDX-License-Identifier: Apache-2.0
 * Qwen3 with experts (README.md). */
#include <davit/help/decoder.h>

static const davit_config_row qwen3_moe_config[] = {
    DAVIT_CONFIG_SIZES("151936", "2048", "6144", "24", "32"),
    DAVIT_CONFIG_HEADS("gguf:nh, 4", "H/nh"),
    DAVIT_CONFIG_RMS("1e-6"),
    DAVIT_CONFIG_ROPE("10000", "32768"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    {"bias", "bool", "attention_bias", NULL, "0", NULL, NULL},
    {"use_window", "bool", "use_sliding_window", NULL, "0", NULL, NULL},
    DAVIT_CONFIG_WINDOW("gguf:0, 4096", "=use_window && window > 0"),
    {"E", "int", "num_experts|num_local_experts|n_routed_experts", "expert_count", "128",
     NULL, "1..65536"},
    {"k", "int", "num_experts_per_tok|num_experts_per_token", "expert_used_count", "8",
     NULL, "1..E"},
    {"Im", "int", "moe_intermediate_size", "expert_feed_forward_length", "768", NULL,
     "1..16777216"},
    {"renorm", "bool", "norm_topk_prob", "expert_weights_norm", "gguf:1, 0", NULL, NULL},
    {"step", "int", "decoder_sparse_step", NULL, "1", NULL, "1.."},
    {"dense", "layers", "mlp_only_layers", NULL, "0", NULL, NULL},
    {"moe", "int*", NULL, NULL, "!dense && (i + 1) % step == 0", NULL,
     NULL}, /* derived */
    DAVIT_CONFIG_END,
};

static const davit_slot_row qwen3_moe_slots[] = {
    DAVIT_SLOTS_ENDS,
    DAVIT_SLOTS_PRE_NORMS,
    DAVIT_SLOTS_ATTN,
    {"attn.q_norm", "L", NULL, "hd", "self_attn.q_norm", "attn_q_norm", "rep", "norm", 0,
     0},
    {"attn.k_norm", "L", NULL, "hd", "self_attn.k_norm", "attn_k_norm", "rep", "norm", 0,
     0},
    DAVIT_SLOTS_QKV_BIAS("bias"),
    DAVIT_SLOTS_O_BIAS("bias"),
    DAVIT_SLOTS_MLP("!moe"),
    {"moe.router", "L", "moe", "E,H", "mlp.gate", "ffn_gate_inp", "rep", "lin", 0, 0},
    {"moe.gate", "L", "moe", "E,Im,H",
     "mlp.experts.*.gate_proj#stack|mlp.experts.gate_up_proj!#half(0,1)", "ffn_gate_exps",
     "exp", "exp", 0, 0},
    {"moe.up", "L", "moe", "E,Im,H",
     "mlp.experts.*.up_proj#stack|mlp.experts.gate_up_proj!#half(1,1)", "ffn_up_exps",
     "exp", "exp", 0, 0},
    {"moe.down", "L", "moe", "E,H,Im",
     "mlp.experts.*.down_proj#stack|mlp.experts.down_proj!", "ffn_down_exps", "exp",
     "exp", 0, 0},
    DAVIT_SLOTS_END,
};

/* use_sliding_window false turns the window off even where layer_types names it. */
static void qwen3_moe_layer(const davit_graph *g, uint64_t i, davit_decoder_layer *out)
{
    if (davit_get_int(g, "use_window", -1))
        davit_decoder_window(g, i, out);
}

static int32_t qwen3_moe_build(void *self, const davit_build_suite *build,
                               davit_builder *b, const char *entry,
                               const davit_sink *sink)
{
    davit_graph g = davit_graph_open(self, build, b);
    davit_decoder d = davit_decoder_of(&g);

    (void)entry;
    (void)sink;
    d.qk_norm = DAVIT_QK_HEAD;
    d.top_k = (uint64_t)davit_get_int(&g, "k", -1);
    d.route = DAVIT_ROUTE_SOFTMAX;
    d.route_flags = davit_get_int(&g, "renorm", -1) ? DAVIT_ROUTE_RENORM : 0;
    d.layer = qwen3_moe_layer;
    return davit_decoder_build(&g, &d);
}

static const davit_arch_iface qwen3_moe_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "Qwen3MoeForCausalLM",
    .model_types = "qwen3_moe",
    .gguf = "qwen3moe",
    DAVIT_ARCH_TABLES(qwen3_moe_config, qwen3_moe_slots),
    .build = qwen3_moe_build,
};

DAVIT_COMPONENT(qwen3_moe, DAVIT_KIND_ARCH, "org.davit.arch.qwen3_moe",
                "hf=Qwen3MoeForCausalLM;gguf=qwen3moe",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .create = davit_arch_create, .destroy = davit_arch_destroy,
                .iface = &qwen3_moe_arch);
DAVIT_PLUGIN("org.davit.arch.qwen3_moe", "Qwen3 with experts", "davit", "0.1.0",
             "Apache-2.0", &qwen3_moe);
