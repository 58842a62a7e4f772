/* SPDX-License-Identifier: Apache-2.0
 * A dense decoder from a descriptor: what most architectures differ in, as fields. An
 * architecture that does not fit calls the ops of build.h itself; both can be mixed,
 * since davit_decoder_attn and davit_decoder_ffn are there alone.
 *
 * Vocabulary of slot ids (whatever is absent from the table or the file is left out):
 *
 *   tok_embd [V,H]  norm [H]  norm.bias  head [V,H]  rope.freqs [rot/2] (GGUF divisors)
 *
 * and per layer:
 *
 *   attn.norm attn.norm.bias      before attention (PRE, SANDWICH, PARALLEL)
 *   attn.q attn.k attn.v attn.o   each with .bias
 *   attn.q_norm attn.k_norm       with a qk_norm
 *   attn.post_norm                on the attention's output (POST, SANDWICH)
 *   ffn.norm ffn.norm.bias        before the MLP (PRE, SANDWICH; PARALLEL: absent = attn.norm's)
 *   ffn.gate ffn.up ffn.down      each with .bias; without ffn.gate the MLP is down(act(up))
 *   ffn.post_norm                 on the MLP's output (POST, SANDWICH)
 *   attn.sinks [nh]               one logit more per head in the softmax's denominator
 *   moe.router [E,H]  moe.gate moe.up [E,Im,H]  moe.down [E,H,Im]    there = the layer is MoE
 *   moe.gate_up [E,2 Im,H]        instead of gate and up: their rows alternate
 *   moe.router.bias [E]  moe.gate.bias moe.up.bias [E,Im]  moe.gate_up.bias [E,2 Im]
 *   moe.down.bias [E,H]
 *
 * Sizes come from the slots, so they are right on every tensor-parallel rank.
 */
#ifndef DAVIT_HELP_DECODER_H
#define DAVIT_HELP_DECODER_H

#include <davit/help/build.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the descriptor; zero is the Llama default of every field but eps ---- */

#define DAVIT_NORM_RMS   0u
#define DAVIT_NORM_LAYER 1u

#define DAVIT_PLACE_PRE      0u /* x += f(norm x) */
#define DAVIT_PLACE_POST     1u /* x += norm(f x) */
#define DAVIT_PLACE_SANDWICH 2u /* x += post_norm(f(norm x)) */
#define DAVIT_PLACE_PARALLEL 3u /* x += attn(attn.norm x) + mlp(ffn.norm x) */

#define DAVIT_QK_NONE 0u
#define DAVIT_QK_HEAD 1u /* over each head; the gain has head_dim or all values */
#define DAVIT_QK_FULL 2u /* over the whole projection */

typedef struct davit_decoder davit_decoder;

/* What may differ from layer to layer. */
typedef struct davit_decoder_layer {
    const char *rope; /* layer type for the config suite, "" = the only one; NULL = no rope */
    uint64_t window;  /* attention window in tokens, 0 = none */
} davit_decoder_layer;

struct davit_decoder {
    uint32_t norm;        /* DAVIT_NORM_ of all but the q/k norms */
    uint32_t placement;   /* DAVIT_PLACE_ */
    uint32_t qk_norm;     /* DAVIT_QK_ */
    uint32_t qk_kind;     /* DAVIT_NORM_ of the q/k norms */
    uint32_t act;         /* DAVIT_ACT_ of the MLP's gate, or of the plain MLP */
    uint32_t route;       /* DAVIT_ROUTE_ kind of MoE layers */
    uint32_t route_flags; /* DAVIT_ROUTE_RENORM */
    uint32_t reserved;
    uint64_t n_layers;
    uint64_t head_dim;
    uint64_t top_k; /* experts per token of MoE layers */
    float eps;
    float qk_eps;         /* 0 = eps */
    float embed_scale;    /* 0 = 1 */
    float residual_scale; /* of every branch as it is added; 0 = 1 */
    float logit_scale;    /* 0 = 1 */
    float logit_softcap;  /* 0 = none */
    float attn_scale;     /* 0 = head_dim^-1/2 */
    float attn_softcap;   /* 0 = none */
    float route_factor;   /* 0 = 1 */
    float route_eps;      /* added to the sum when renormalising */
    float act_limit;      /* OAI_CLAMP, of experts */
    float act_alpha;
    /* Fill *out for layer @i (zeroed: rope ""). NULL = rope "" and no window everywhere.
     */
    void (*layer)(const davit_graph *g, uint64_t i, davit_decoder_layer *out);
};

/* n_layers, head_dim and eps from the symbols L, hd and eps; act from the symbol act. */
davit_decoder davit_decoder_of(const davit_graph *g);

/* A layer callback for tables with DAVIT_CONFIG_WINDOW: the window where `windowed` is.
 */
void davit_decoder_window(const davit_graph *g, uint64_t i, davit_decoder_layer *out);

/* build of an architecture whose descriptor is davit_decoder_of and nothing more, but for
 * davit_decoder_window. */
int32_t davit_decoder_build_plain(void *self, const davit_build_suite *build,
                                  davit_builder *b, const char *entry,
                                  const davit_sink *sink);

/* Record the whole forward. Returns DAVIT_OK; errors are sticky in the builder. */
int32_t davit_decoder_build(const davit_graph *g, const davit_decoder *d);

/* Rope angles of the model's layer types, each recorded once. Zero-initialise. */
#define DAVIT_DECODER_ROPES 4
typedef struct davit_decoder_ropes {
    const char *type[DAVIT_DECODER_ROPES];
    int32_t angles[DAVIT_DECODER_ROPES];
} davit_decoder_ropes;

/* One block: self-attention or MLP/MoE of the normed @x. Returns a new value [T, H]. */
int32_t davit_decoder_attn(const davit_graph *g, const davit_decoder *d, uint64_t i,
                           const davit_decoder_ropes *ropes, int32_t x);
int32_t davit_decoder_ffn(const davit_graph *g, const davit_decoder *d, uint64_t i,
                          int32_t x);

/* ---- rows that most tables share ---- */

/* clang-format off */

/* A bias that condition @when requires; without it, used where the file has it. */
#define DAVIT_SLOT_BIAS(id, when, shape, hf, gguf, tp, flags)                            \
    {id, "L", when, shape, hf, gguf, tp, "f32", flags, 0},                               \
    {id, "L", "!(" when ")", shape, hf, gguf, tp, "f32", (flags) | DAVIT_SLOT_OPTIONAL, 0}

/* Embedding and head. */
#define DAVIT_SLOTS_ENDS                                                                 \
    {"tok_embd", "G", NULL, "V,H", "embed_tokens|tok_embeddings", "token_embd", "vocab", \
     "embed", DAVIT_SLOT_EMBED, 0},                                                      \
    {"head", "G", NULL, "V,H", "lm_head|output", "output", "vocab", "lin",               \
     DAVIT_SLOT_HEAD, 0}

/* Norms of a PRE block. */
#define DAVIT_SLOTS_PRE_NORMS                                                            \
    {"norm", "G", NULL, "H", "norm", "output_norm", "rep", "norm", 0, 0},                \
    {"attn.norm", "L", NULL, "H", "input_layernorm|attention_norm", "attn_norm", "rep",  \
     "norm", 0, 0},                                                                      \
    {"ffn.norm", "L", NULL, "H", "post_attention_layernorm|ffn_norm", "ffn_norm", "rep", \
     "norm", 0, 0}

/* Attention matrices in Hugging Face's names. DAVIT_SLOTS_ATTN_PERM: the GGUF converter
 * of this architecture changes the rotary row order (archs that llama.cpp calls NORM). */
#define DAVIT_SLOTS_ATTN                                                                 \
    {"attn.q", "L", NULL, "nh*hd,H", "self_attn.q_proj", "attn_q", "col:hd", "lin", 0,   \
     0},                                                                                 \
    {"attn.k", "L", NULL, "nkv*hd,H", "self_attn.k_proj", "attn_k", "col:hd", "lin", 0,  \
     0},                                                                                 \
    DAVIT_SLOTS_ATTN_VO
#define DAVIT_SLOTS_ATTN_PERM                                                            \
    {"attn.q", "L", NULL, "nh*hd,H", "self_attn.q_proj|attention.wq#perm(nh)",           \
     "attn_q~perm(nh)", "col:hd", "lin", DAVIT_SLOT_ROPE, 0},                            \
    {"attn.k", "L", NULL, "nkv*hd,H", "self_attn.k_proj|attention.wk#perm(nkv)",         \
     "attn_k~perm(nkv)", "col:hd", "lin", DAVIT_SLOT_ROPE, 0},                           \
    DAVIT_SLOTS_ATTN_VO
#define DAVIT_SLOTS_ATTN_VO                                                              \
    {"attn.v", "L", NULL, "nkv*hd,H", "self_attn.v_proj|attention.wv", "attn_v",         \
     "col:hd",                                                                           \
     "lin", 0, 0},                                                                       \
    {"attn.o", "L", NULL, "H,nh*hd", "self_attn.o_proj|attention.wo", "attn_output",     \
     "row:hd", "lin", 0, 0}

/* Biases of q, k, v that condition @when requires. */
#define DAVIT_SLOTS_QKV_BIAS(when)                                                       \
    DAVIT_SLOT_BIAS("attn.q.bias", when, "nh*hd", "self_attn.q_proj.bias",               \
     "attn_q.bias",                                                                      \
                    "col:hd", 0),                                                        \
    DAVIT_SLOT_BIAS("attn.k.bias", when, "nkv*hd", "self_attn.k_proj.bias",              \
     "attn_k.bias",                                                                      \
                    "col:hd", 0),                                                        \
    DAVIT_SLOT_BIAS("attn.v.bias", when, "nkv*hd", "self_attn.v_proj.bias",              \
     "attn_v.bias",                                                                      \
                    "col:hd", 0)
#define DAVIT_SLOTS_O_BIAS(when)                                                         \
    DAVIT_SLOT_BIAS("attn.o.bias", when, "H", "self_attn.o_proj.bias",                   \
     "attn_output.bias",                                                                 \
                    "rep", 0)

/* Gated MLP where condition @when holds (NULL = everywhere). */
#define DAVIT_SLOTS_MLP(when)                                                            \
    {"ffn.gate", "L", when, "I,H", "mlp.gate_proj|feed_forward.w1", "ffn_gate", "col",   \
     "lin", 0, 0},                                                                       \
    {"ffn.up", "L", when, "I,H", "mlp.up_proj|feed_forward.w3", "ffn_up", "col", "lin",  \
     0,                                                                                  \
     0},                                                                                 \
    {"ffn.down", "L", when, "H,I", "mlp.down_proj|feed_forward.w2", "ffn_down", "row",   \
     "lin", 0, 0}

/* Rows of the config table: sizes, heads, norm, rope, tie flag, activation. */
#define DAVIT_CONFIG_SIZES(v, h, i, l, heads)                                            \
    {"V", "int", "vocab_size", "vocab_size", v, NULL, "1..2147483647"},                  \
    {"H", "int", "hidden_size|dim|n_embd", "embedding_length", h, NULL, "1..1048576"},   \
    {"I", "int", "intermediate_size|hidden_dim", "feed_forward_length", i, NULL,         \
     "1..16777216"},                                                                     \
    {"L", "int", "num_hidden_layers|n_layers|n_layer", "block_count", l, NULL,           \
     "1..65536"},                                                                        \
    {"nh", "int", "num_attention_heads|n_heads|n_head", "attention.head_count", heads,   \
     NULL, "1..65536"}
#define DAVIT_CONFIG_HEADS(kv_heads, width)                                              \
    {"nkv", "int", "num_key_value_heads|n_kv_heads", "attention.head_count_kv",          \
     kv_heads,                                                                           \
     "nh", "1..nh"},                                                                     \
    {"hd", "int", "head_dim", "attention.key_length", width, "H/nh", "1..65536"}
#define DAVIT_CONFIG_RMS(eps)                                                            \
    {"eps", "float", "rms_norm_eps|norm_eps|layer_norm_eps",                             \
     "attention.layer_norm_rms_epsilon", eps, NULL, "0..1"}
#define DAVIT_CONFIG_ROPE(theta, max_pos)                                                \
    {"max_pos", "int", "max_position_embeddings|max_seq_len", "context_length", max_pos, \
     NULL, "1..4294967296"},                                                             \
    {"theta", "float",                                                                   \
     "rope_parameters.rope_theta|rope_parameters.full_attention.rope_theta|rope_theta|"  \
     "rotary_emb_base|rope_base",                                                        \
     "rope.freq_base", theta, NULL, NULL}
#define DAVIT_CONFIG_TIE(tied)                                                           \
    {"tie", "bool", "tie_word_embeddings|tie_embedding", NULL, tied, NULL, NULL}
#define DAVIT_CONFIG_ACT(word)                                                           \
    {"act", "str", "hidden_act|hidden_activation", NULL, word, NULL, DAVIT_ACT_WORDS}

/* Sliding window: tokens, and by layer (index 1 = windowed); @by_layer as in absent. */
#define DAVIT_CONFIG_WINDOW(tokens, by_layer)                                            \
    {"window", "int", "sliding_window", "attention.sliding_window", tokens, "0",         \
     "0..4294967296"},                                                                   \
    {"windowed", "str*", "layer_types", "attention.sliding_window_pattern", by_layer,    \
     NULL, "full_attention|sliding_attention"}

#define DAVIT_CONFIG_END {NULL, NULL, NULL, NULL, NULL, NULL, NULL}
#define DAVIT_SLOTS_END  {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0}
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
