/* SPDX-License-Identifier: Apache-2.0
 * The ops of the SDK's reference as X(symbol, op, layouts, attribute bytes).
 */
#ifndef MEMDEV_ENTRIES_H
#define MEMDEV_ENTRIES_H

#include <davit/help/ref.h>

#define MEMDEV_OPS(X)                                                                     \
    X(embed, DAVIT_OP_EMBED, DAVIT_REF_LAYOUTS, DAVIT_END(davit_embed_attr, flags))       \
    X(linear, DAVIT_OP_LINEAR, DAVIT_REF_LAYOUTS, DAVIT_END(davit_linear_attr, flags))    \
    X(rmsnorm, DAVIT_OP_RMSNORM, NULL, DAVIT_END(davit_norm_attr, reserved))              \
    X(layernorm, DAVIT_OP_LAYERNORM, NULL, DAVIT_END(davit_norm_attr, reserved))          \
    X(add, DAVIT_OP_ADD, NULL, DAVIT_END(davit_scale_attr, reserved))                     \
    X(scale, DAVIT_OP_SCALE, NULL, DAVIT_END(davit_scale_attr, reserved))                 \
    X(softcap, DAVIT_OP_SOFTCAP, NULL, DAVIT_END(davit_scale_attr, reserved))             \
    X(act, DAVIT_OP_ACT, NULL, DAVIT_END(davit_act_attr, reserved))                       \
    X(glu, DAVIT_OP_GLU, NULL, DAVIT_END(davit_act_attr, reserved))                       \
    X(rope_angles, DAVIT_OP_ROPE_ANGLES, NULL,                                            \
      DAVIT_END(davit_rope_angles_attr, n_variants))                                      \
    X(rope, DAVIT_OP_ROPE, NULL, DAVIT_END(davit_rope_attr, reserved))                    \
    X(kv_append, DAVIT_OP_KV_APPEND, NULL, DAVIT_END(davit_none_attr, struct_size))       \
    X(attn, DAVIT_OP_ATTN, NULL, DAVIT_END(davit_attn_attr, softcap))                     \
    X(moe_route, DAVIT_OP_MOE_ROUTE, NULL, DAVIT_END(davit_moe_route_attr, renorm_eps))   \
    X(moe_ffn, DAVIT_OP_MOE_FFN, DAVIT_REF_LAYOUTS, DAVIT_END(davit_moe_ffn_attr, biases)) \
    X(gather_rows, DAVIT_OP_GATHER_ROWS, NULL, 0)

#endif
