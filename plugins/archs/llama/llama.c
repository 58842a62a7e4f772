/* SPDX-License-Identifier: Apache-2.0
 * Llama and the architectures that run on its tables (README.md). */
#include <davit/help/decoder.h>

static const davit_config_row llama_config[] = {
    DAVIT_CONFIG_SIZES("mistral:32000, ministral:32000, seed_oss:155136, 32000", "4096",
                       "mistral:14336, ministral:14336, seed_oss:27648, 11008",
                       "mistral:32, ministral:32, seed_oss:64, 32",
                       "seed_oss:80, mistral:32, 32"),
    DAVIT_CONFIG_HEADS("mistral:8, ministral:8, seed_oss:8, internlm3:2, nh",
                       "seed_oss:128, cwm:128, H/nh"),
    DAVIT_CONFIG_RMS("cwm:1e-5, 1e-6"),
    /* Cwm's class default is a scaled rope: a file that omits it is refused */
    DAVIT_CONFIG_ROPE("cwm:, 10000", "mistral:131072, ministral:131072, seed_oss:524288, "
                                     "internlm3:32768, 2048"),
    DAVIT_CONFIG_TIE("0"),
    DAVIT_CONFIG_ACT("silu"),
    /* Mistral windows every layer */
    DAVIT_CONFIG_WINDOW(
        "mistral_native:0, mistral:4096, ministral:4096, cwm:8192, 0",
        "mistral:=1, ministral:=1, cwm:=i % 4 != 0, gguf:=window > 0, =0"),
    {"qkv_bias", "bool", "attention_bias|qkv_bias", NULL, "seed_oss:1, 0", NULL, NULL},
    {"o_bias", "bool", "attention_out_bias|bias", NULL,
     "seed_oss:0, internlm3:0, qkv_bias", NULL, NULL},
    {"mlp_bias", "bool", "mlp_bias|bias", NULL, "0", NULL, NULL},
    DAVIT_CONFIG_END,
};

static const davit_slot_row llama_slots[] = {
    DAVIT_SLOTS_ENDS,
    DAVIT_SLOTS_PRE_NORMS,
    {"rope.freqs", "G", NULL, "ceildiv(hd, 2)", NULL, "rope_freqs", "rep", "f32",
     DAVIT_SLOT_OPTIONAL, 0},
    DAVIT_SLOTS_ATTN_PERM,
    DAVIT_SLOT_BIAS("attn.q.bias", "qkv_bias", "nh*hd", "self_attn.q_proj.bias",
                    "attn_q.bias~perm(nh)", "col:hd", DAVIT_SLOT_ROPE),
    DAVIT_SLOT_BIAS("attn.k.bias", "qkv_bias", "nkv*hd", "self_attn.k_proj.bias",
                    "attn_k.bias~perm(nkv)", "col:hd", DAVIT_SLOT_ROPE),
    DAVIT_SLOT_BIAS("attn.v.bias", "qkv_bias", "nkv*hd", "self_attn.v_proj.bias",
                    "attn_v.bias", "col:hd", 0),
    DAVIT_SLOTS_O_BIAS("o_bias"),
    DAVIT_SLOTS_MLP(NULL),
    DAVIT_SLOT_BIAS("ffn.gate.bias", "mlp_bias", "I", "mlp.gate_proj.bias",
                    "ffn_gate.bias", "col", 0),
    DAVIT_SLOT_BIAS("ffn.up.bias", "mlp_bias", "I", "mlp.up_proj.bias", "ffn_up.bias",
                    "col", 0),
    DAVIT_SLOT_BIAS("ffn.down.bias", "mlp_bias", "H", "mlp.down_proj.bias",
                    "ffn_down.bias", "rep", 0),
    DAVIT_SLOTS_END,
};

static const davit_arch_iface llama_arch = {
    .struct_size = DAVIT_END(davit_arch_iface, build),
    .hf = "LlamaForCausalLM|LLaMAForCausalLM|MistralForCausalLM|MinistralForCausalLM|"
          "InternLM3ForCausalLM|SeedOssForCausalLM|CwmForCausalLM|TeleChat3ForCausalLM|"
          "IQuestCoderForCausalLM|NanbeigeForCausalLM",
    .model_types = "llama|mistral|ministral|internlm3|seed_oss|cwm",
    .gguf = "llama",
    DAVIT_ARCH_TABLES(llama_config, llama_slots),
    .build = davit_decoder_build_plain,
};

DAVIT_COMPONENT(
    llama, DAVIT_KIND_ARCH, "org.davit.arch.llama",
    "hf=LlamaForCausalLM|LLaMAForCausalLM|MistralForCausalLM|MinistralForCausalLM|"
    "InternLM3ForCausalLM|SeedOssForCausalLM|CwmForCausalLM|TeleChat3ForCausalLM|"
    "IQuestCoderForCausalLM|NanbeigeForCausalLM;gguf=llama",
    DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
    .create = davit_arch_create, .destroy = davit_arch_destroy, .iface = &llama_arch);
DAVIT_PLUGIN("org.davit.arch.llama", "Llama and its aliases", "davit", "0.1.0",
             "Apache-2.0", &llama);
