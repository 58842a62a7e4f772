/* SPDX-License-Identifier: Apache-2.0
 * The op table: name and attributes of each op of a program. 0.x with the kinds arch, kernels.
 *
 * T = tokens of a step, R = rows that need logits, D, K, N = widths. Values are row-major
 * [T, width] or [R, width]; float32 unless said. Attribute structs hold plain numbers, start
 * with struct_size (DAVIT_END of the last field) and are only appended to; zero means "off" or
 * the neutral value that the comment names; reserved fields are 0. `w?` = may be absent (-1 in a
 * program, NULL in a call). An op without a struct of its own takes davit_none_attr. Weights that
 * are matrices come in any layout of the entry, vectors as float32. Eps, scales and caps are
 * dimensionless, positions and windows count tokens. The scalar definition of each op is in
 * sdk/src/ref/.
 */
#ifndef DAVIT_OPS_H
#define DAVIT_OPS_H

#include "suites.h"

#ifdef __cplusplus
extern "C" {
#endif

/* embed/1: out y[T,D]; weights W[V,D]. y[t] = scale * W[token[t] + row_offset]. With PART
 * other ranks hold other rows: where token[t] + row_offset is no row of W, y[t] is zero. */
#define DAVIT_OP_EMBED "embed/1"
#define DAVIT_EMBED_PART 1u
typedef struct davit_embed_attr {
    uint64_t struct_size;
    int64_t row_offset; /* rows, added to the id; the sum is in [0, V) but with PART */
    float scale;        /* 0 = 1 */
    uint32_t reserved;
    uint64_t flags;     /* DAVIT_EMBED_ */
} davit_embed_attr;

/* linear/1: in x[T,K]; weights W[N,K], bias?[N] f32; out y[T,N].
 * y = (x . W^T) * out_scale + bias, added to what y holds if ADD. */
#define DAVIT_OP_LINEAR "linear/1"
#define DAVIT_LINEAR_ADD 1u
typedef struct davit_linear_attr {
    uint64_t struct_size;
    float out_scale; /* 0 = 1 */
    uint32_t flags;  /* DAVIT_LINEAR_ */
} davit_linear_attr;

/* rmsnorm/1: in x[T,g*D]; weights w?[D] or [g*D] f32; out y (may be x).
 * Per row and group: y = x * w / sqrt(mean(x^2) + eps). The +1 of Gemma-style norms is in w
 * already (slot transform add1). */
#define DAVIT_OP_RMSNORM "rmsnorm/1"
/* layernorm/1: in x[T,g*D]; weights w?, b? ([D] or [g*D]) f32; out y (may be x).
 * Per row and group: y = (x - mean) / sqrt(var + eps) * w + b, biased variance. */
#define DAVIT_OP_LAYERNORM "layernorm/1"
typedef struct davit_norm_attr {
    uint64_t struct_size;
    uint64_t n_groups; /* g: equal parts of a row, each with its own mean; 0 = 1 */
    float eps;         /* > 0, added to the mean square or the variance */
    uint32_t reserved;
} davit_norm_attr;

/* add/1: in x[T,D], y[T,D]; out y (the same value): y += scale * x. */
#define DAVIT_OP_ADD "add/1"
/* scale/1: in x; out y (may be x): y = scale * x. */
#define DAVIT_OP_SCALE "scale/1"
/* softcap/1: in x; out y (may be x): y = scale * tanh(x / scale). */
#define DAVIT_OP_SOFTCAP "softcap/1"
typedef struct davit_scale_attr {
    uint64_t struct_size;
    float scale; /* 0 = 1 */
    uint32_t reserved;
} davit_scale_attr;

/* Activation functions. */
#define DAVIT_ACT_NONE      0u
#define DAVIT_ACT_SILU      1u
#define DAVIT_ACT_GELU_TANH 2u
#define DAVIT_ACT_GELU_ERF  3u
#define DAVIT_ACT_RELU      4u
#define DAVIT_ACT_RELU2     5u
#define DAVIT_ACT_SIGMOID   6u
#define DAVIT_ACT_TANH      7u
#define DAVIT_ACT_SOFTPLUS  8u
/* Gated kinds only: (u + 1) * g * sigmoid(alpha * g), g <= limit, |u| <= limit (gpt-oss). */
#define DAVIT_ACT_OAI_CLAMP 9u

/* act/1: in x; out y (may be x): y = f(x). */
#define DAVIT_OP_ACT "act/1"
/* glu/1: in g[T,D], u[T,D]; out y[T,D] (may be g): y = f(g) * u. */
#define DAVIT_OP_GLU "glu/1"
typedef struct davit_act_attr {
    uint64_t struct_size;
    uint32_t kind; /* DAVIT_ACT_ */
    float limit;   /* OAI_CLAMP */
    float alpha;   /* OAI_CLAMP */
    uint32_t reserved;
} davit_act_attr;

/* rope_angles/1: out a[T, rot_dim]: cos in the first half, sin in the second, both times
 * the attention factor of the variant; weights F[n_variants, rot_dim/2] f32 inverse
 * frequencies, div?[rot_dim/2] f32 divisors of them (GGUF rope_freqs).
 * angle = position * (F[variant][j] / div[j]), each step rounded to float32. Variant by n =
 * rope_n of the token's sequence: FIXED 0; LONG 0 if n <= original_max else 1; NTK is FIXED
 * until n > max_positions, then F[j] = base'^(-2j/rot_dim) with
 * base' = theta * ((factor * n / max) - (factor - 1))^(rot_dim / (rot_dim - 2)). */
#define DAVIT_OP_ROPE_ANGLES "rope_angles/1"
#define DAVIT_ROPE_FIXED 0u
#define DAVIT_ROPE_LONG  1u
#define DAVIT_ROPE_NTK   2u /* dynamic */
typedef struct davit_rope_angles_attr {
    uint64_t struct_size;
    double theta;          /* NTK only */
    double factor;         /* NTK only */
    double max_positions;  /* NTK: max_position_embeddings; LONG: original_max */
    uint64_t rot_dim;      /* even, > 0 */
    float attention[2];    /* attention factor of variant 0 and 1 */
    uint32_t select;       /* DAVIT_ROPE_FIXED, _LONG, _NTK */
    uint32_t n_variants;   /* rows of F: 1 or 2 */
} davit_rope_angles_attr;

/* rope/1: in x[T, n_heads*head_dim], a[T, rot_dim] from rope_angles; out x in place.
 * Rotates dims [rot_off, rot_off + rot_dim) of every head: pair (p, q) ->
 * (p*cos - q*sin, q*cos + p*sin). HALF pairs (j, j + rot_dim/2), INTER (2j, 2j+1). */
#define DAVIT_OP_ROPE "rope/1"
#define DAVIT_PAIR_HALF  0u
#define DAVIT_PAIR_INTER 1u
typedef struct davit_rope_attr {
    uint64_t struct_size;
    uint64_t n_heads;  /* >= 1 */
    uint64_t head_dim; /* elements of a head */
    uint64_t rot_off;  /* first element that is rotated */
    uint64_t rot_dim;  /* elements that are, even; rot_off + rot_dim <= head_dim */
    uint32_t pairing;  /* DAVIT_PAIR_ */
    uint32_t reserved;
} davit_rope_attr;

/* kv_append/1: in k[T, nkv*dk], v[T, nkv*dv]; one kv state. Stores the rows of every token
 * at its index in its sequence: ctx_len - tokens of the step + offset. No output value, no
 * attributes. */
#define DAVIT_OP_KV_APPEND "kv_append/1"
typedef struct davit_none_attr {
    uint64_t struct_size;
} davit_none_attr;

/* attn/1: in q[T, nh*dk]; one kv state; weights sinks?[nh] f32; out o[T, nh*dv].
 * Head h reads KV head floor(h * nkv / nh). Key k is visible to query q iff 0 <= q - k, and
 * q - k < window when window > 0 (q and k are indices in the sequence, not positions). With a
 * tree mask, query row t sees the step's own token u iff tree_mask[t, u] is not 0, and all
 * earlier tokens of its sequence within the window. score = softcap(scale * q.k); sinks add
 * one logit per head to the softmax's denominator. */
#define DAVIT_OP_ATTN "attn/1"
typedef struct davit_attn_attr {
    uint64_t struct_size;
    uint64_t n_heads;    /* nh */
    uint64_t n_kv_heads; /* nkv, divides nh */
    uint64_t k_dim;      /* dk */
    uint64_t v_dim;      /* dv */
    uint64_t window;     /* 0 = none; counts the current token */
    float scale;         /* required, > 0 */
    float softcap;       /* 0 = none */
} davit_attn_attr;

/* moe_route/1: in logits[T,E]; weights bias?[E] f32; out ids[T,k] i32, w[T,k].
 * Scores by kind; the k best (ties: lower id) by score, or score + bias with BIAS; weights
 * are the scores, divided by their sum if RENORM, times factor. */
#define DAVIT_OP_MOE_ROUTE "moe_route/1"
#define DAVIT_ROUTE_SOFTMAX      0u /* softmax over all E, then top k */
#define DAVIT_ROUTE_SIGMOID      1u
#define DAVIT_ROUTE_TOPK_SOFTMAX 2u /* top k of the logits, softmax over the k */
#define DAVIT_ROUTE_RENORM 1u
typedef struct davit_moe_route_attr {
    uint64_t struct_size;
    uint64_t n_experts; /* E */
    uint64_t top_k;     /* k, 1..E */
    uint32_t kind;      /* DAVIT_ROUTE_ */
    uint32_t flags;     /* DAVIT_ROUTE_RENORM */
    float factor;       /* 0 = 1 */
    float renorm_eps;   /* added to the sum */
} davit_moe_route_attr;

/* moe_ffn/1: in x[T,K], ids[T,k] i32, w[T,k]; weights gate[E,I,K], up[E,I,K], down[E,N,I];
 * out y[T,N]: y = sum_k w_k * down_e(f(gate_e x) * up_e x), k ascending. With PART the
 * weights are those of experts [first_expert, first_expert + E) of n_experts; choices outside
 * add nothing. With gate_up ALTERNATE gate and up are one weight [E,2I,K], named twice: its row
 * 2i is row i of gate, 2i+1 of up. With biases three more weights follow, each may be absent:
 * gate's [E,I], up's [E,I], down's [E,N] f32, added to what the matrix gives (before f, before
 * w_k); ALTERNATE: gate's and up's are one [E,2I], named twice. */
#define DAVIT_OP_MOE_FFN "moe_ffn/1"
#define DAVIT_MOE_PART 1u
#define DAVIT_GATE_UP_APART     0u
#define DAVIT_GATE_UP_ALTERNATE 1u
typedef struct davit_moe_ffn_attr {
    uint64_t struct_size;
    uint64_t n_experts; /* E */
    uint64_t top_k;     /* k, 1..E; ids are below E, without repetition in a row */
    uint32_t kind; /* DAVIT_ACT_ of the gate */
    float limit;   /* OAI_CLAMP */
    float alpha;   /* OAI_CLAMP */
    uint32_t reserved;
    uint64_t first_expert; /* PART: the model's number of the weights' first expert */
    uint64_t flags;        /* DAVIT_MOE_ */
    uint32_t gate_up;      /* DAVIT_GATE_UP_ */
    uint32_t biases;       /* 1 = weights 3 to 5 are biases */
} davit_moe_ffn_attr;

/* gather_rows/1: in x[T,D]; out y[R,D]: y[r] = x[logit_row[r]]. No attributes. */
#define DAVIT_OP_GATHER_ROWS "gather_rows/1"

#ifdef __cplusplus
}
#endif
#endif
