/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of the reference; not installed. */
#ifndef DAVIT_SRC_REF_H
#define DAVIT_SRC_REF_H

#include <math.h>
#include <string.h>

#include <davit/help/ref.h>

static inline uint16_t ref_u16le(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t ref_u32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline float ref_half_at(const uint8_t *p)
{
    return davit_ref_f16_to_f32(ref_u16le(p));
}

/* Legacy 32-element blocks and plain numbers. */
void ref_f32_decode(const uint8_t *src, uint64_t n_blocks, float *out);
void ref_f16_decode(const uint8_t *src, uint64_t n_blocks, float *out);
void ref_bf16_decode(const uint8_t *src, uint64_t n_blocks, float *out);

/* One function per block type that gives codes; values follow from codes by the rule of
 * davit_ref_layout, with the roundings of GGUF's reference. */
typedef void ref_codes_fn(const uint8_t *src, uint64_t n_blocks, uint8_t *codes, float *scales,
                          float *zeros);
ref_codes_fn ref_q4_0_codes;
ref_codes_fn ref_q4_1_codes;
ref_codes_fn ref_q5_0_codes;
ref_codes_fn ref_q5_1_codes;
ref_codes_fn ref_q8_0_codes;
ref_codes_fn ref_q2_k_codes;
ref_codes_fn ref_q3_k_codes;
ref_codes_fn ref_q4_k_codes;
ref_codes_fn ref_q5_k_codes;
ref_codes_fn ref_q6_k_codes;
ref_codes_fn ref_iq1_s_codes;
ref_codes_fn ref_iq1_m_codes;
ref_codes_fn ref_iq2_xxs_codes;
ref_codes_fn ref_iq2_xs_codes;
ref_codes_fn ref_iq2_s_codes;
ref_codes_fn ref_iq3_xxs_codes;
ref_codes_fn ref_iq3_s_codes;
ref_codes_fn ref_iq4_xs_codes;
ref_codes_fn ref_tq1_0_codes;
ref_codes_fn ref_q1_0_codes;

/* One function per op: rows [first, first + count). Contracts: ops.h. */
typedef void ref_op_fn(const davit_call *call, uint64_t first, uint64_t count, void *work);
ref_op_fn ref_embed;
ref_op_fn ref_linear;
ref_op_fn ref_rmsnorm;
ref_op_fn ref_layernorm;
ref_op_fn ref_add;
ref_op_fn ref_scale;
ref_op_fn ref_softcap;
ref_op_fn ref_act_op;
ref_op_fn ref_glu_op;
ref_op_fn ref_rope_angles;
ref_op_fn ref_rope;
ref_op_fn ref_kv_append;
ref_op_fn ref_attn;
ref_op_fn ref_moe_route;
ref_op_fn ref_moe_ffn;
ref_op_fn ref_gather_rows;

/* sum_k a[k] * row[k] of a stored row, in double. */
double ref_dot_row(const davit_ref_layout *layout, const uint8_t *row, const float *x,
                   uint64_t n_cols);

static inline const float *ref_in(const davit_call *call, uint32_t i, uint64_t row)
{
    return (const float *)call->in[i].data + row * call->in[i].width;
}

static inline float *ref_out(const davit_call *call, uint32_t i, uint64_t row)
{
    return (float *)call->out[i].data + row * call->out[i].width;
}

/* Zero means one for factors. */
static inline float ref_or_one(float factor)
{
    return factor == 0.0f ? 1.0f : factor;
}

#endif
