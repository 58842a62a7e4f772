/* SPDX-License-Identifier: Apache-2.0
 * Ops whose task is one row of output, scalar: the definitions of the SDK as they are. */
#include <davit/help/ref.h>

#include "cpu.h"

int32_t cpu_check(void *self, const davit_call *call, const davit_sink *sink)
{
    (void)self;
    return davit_ref_check(call, sink);
}

static void run_reference(const davit_call *call, uint32_t phase, uint64_t first,
                          uint64_t count, uint32_t worker, void *queue)
{
    (void)phase;
    (void)worker;
    (void)queue;
    davit_ref_run(call, first, count, NULL);
}

#define SCALAR(sym, op_, attr_end, layouts_)                                              \
    const davit_kernel_entry cpu_##sym = {                                               \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = op_,                                                                        \
        .name = #sym,                                                                     \
        .layouts = layouts_,                                                              \
        .attr_size = attr_end,                                                            \
        .score = 100,                                                                     \
        .check = cpu_check,                                                               \
        .run = run_reference,                                                             \
    }

SCALAR(embed_scalar, DAVIT_OP_EMBED, DAVIT_END(davit_embed_attr, flags), DAVIT_REF_LAYOUTS);
SCALAR(rmsnorm_scalar, DAVIT_OP_RMSNORM, DAVIT_END(davit_norm_attr, reserved), NULL);
SCALAR(layernorm_scalar, DAVIT_OP_LAYERNORM, DAVIT_END(davit_norm_attr, reserved), NULL);
SCALAR(add_scalar, DAVIT_OP_ADD, DAVIT_END(davit_scale_attr, reserved), NULL);
SCALAR(scale_scalar, DAVIT_OP_SCALE, DAVIT_END(davit_scale_attr, reserved), NULL);
SCALAR(softcap_scalar, DAVIT_OP_SOFTCAP, DAVIT_END(davit_scale_attr, reserved), NULL);
SCALAR(act_scalar, DAVIT_OP_ACT, DAVIT_END(davit_act_attr, reserved), NULL);
SCALAR(glu_scalar, DAVIT_OP_GLU, DAVIT_END(davit_act_attr, reserved), NULL);
SCALAR(rope_angles_scalar, DAVIT_OP_ROPE_ANGLES, DAVIT_END(davit_rope_angles_attr, n_variants),
       NULL);
SCALAR(rope_scalar, DAVIT_OP_ROPE, DAVIT_END(davit_rope_attr, reserved), NULL);
SCALAR(moe_route_scalar, DAVIT_OP_MOE_ROUTE, DAVIT_END(davit_moe_route_attr, renorm_eps), NULL);
SCALAR(gather_rows_scalar, DAVIT_OP_GATHER_ROWS, 0, NULL);
