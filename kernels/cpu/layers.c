/* SPDX-License-Identifier: Apache-2.0
 * Entries of the AVX2 and AVX-512 layers. Baseline code: structs only. */
#include "layers.h"

#include <davit/help/records.h>

#include "kv.h"

/* tasks of CPU_POINTS values */
static void points_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)ctx;
    /* a value has T or R rows, which the call does not say: the larger covers both, and tasks
     * past the end find nothing to do */
    const uint64_t rows = n_tokens > n_rows ? n_tokens : n_rows;
    out->n_phases = 1;
    out->n_tasks[0] = cpu_ceil_div(rows * call->out[0].width, CPU_POINTS);
}

int32_t cpu_check_gate(const davit_call *call, uint32_t kind, const davit_sink *sink)
{
    if (kind != DAVIT_ACT_SOFTPLUS)
        return DAVIT_OK;
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){
                         .code = DAVIT_R_OP_MISSING,
                         .subject = call->op,
                         .found = "softplus",
                         .message = "this layer has no softplus",
                     });
}

static int32_t check_no_softplus(void *self, const davit_call *call, const davit_sink *sink)
{
    const davit_act_attr *a = call->attr;
    const int32_t status = cpu_check(self, call, sink);

    return status ? status : cpu_check_gate(call, a->kind, sink);
}

#define ENTRY(sym, text, op_, attr_end, cpu_, score_, check_, size_, run_)                \
    const davit_kernel_entry sym = {                                                      \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = op_,                                                                        \
        .name = text,                                                                     \
        .cpu = cpu_,                                                                      \
        .attr_size = attr_end,                                                            \
        .score = score_,                                                                  \
        .check = check_,                                                                  \
        .size = size_,                                                                    \
        .run = run_,                                                                      \
    }

#define SCALE_END DAVIT_END(davit_scale_attr, reserved)
#define ACT_END   DAVIT_END(davit_act_attr, reserved)
#define NORM_END  DAVIT_END(davit_norm_attr, reserved)
#define ROPE_END  DAVIT_END(davit_rope_attr, reserved)

ENTRY(cpu_add_avx2_entry, "add avx2", DAVIT_OP_ADD, SCALE_END, CPU_AVX2, 400, cpu_check,
      points_size, cpu_add_avx2);
ENTRY(cpu_scale_avx2_entry, "scale avx2", DAVIT_OP_SCALE, SCALE_END, CPU_AVX2, 400, cpu_check,
      points_size, cpu_scale_avx2);
ENTRY(cpu_softcap_avx2_entry, "softcap avx2", DAVIT_OP_SOFTCAP, SCALE_END, CPU_AVX2, 400,
      cpu_check, points_size, cpu_softcap_avx2);
ENTRY(cpu_act_avx2_entry, "act avx2", DAVIT_OP_ACT, ACT_END, CPU_AVX2, 400, check_no_softplus,
      points_size, cpu_act_avx2);
ENTRY(cpu_glu_avx2_entry, "glu avx2", DAVIT_OP_GLU, ACT_END, CPU_AVX2, 400, check_no_softplus,
      points_size, cpu_glu_avx2);
ENTRY(cpu_rmsnorm_avx2_entry, "rmsnorm avx2", DAVIT_OP_RMSNORM, NORM_END, CPU_AVX2, 400,
      cpu_check, NULL, cpu_rmsnorm_avx2);
ENTRY(cpu_layernorm_avx2_entry, "layernorm avx2", DAVIT_OP_LAYERNORM, NORM_END, CPU_AVX2, 400,
      cpu_check, NULL, cpu_layernorm_avx2);
ENTRY(cpu_rope_avx2_entry, "rope avx2", DAVIT_OP_ROPE, ROPE_END, CPU_AVX2, 400, cpu_check, NULL,
      cpu_rope_avx2);
ENTRY(cpu_attn_avx2_entry, "attn avx2", DAVIT_OP_ATTN, DAVIT_END(davit_attn_attr, softcap),
      CPU_AVX2, 400, cpu_check, cpu_attn_size_avx2, cpu_attn_avx2);
ENTRY(cpu_kv_append_avx2_entry, "kv_append avx2", DAVIT_OP_KV_APPEND,
      DAVIT_END(davit_none_attr, struct_size), CPU_AVX2, 400, cpu_check, cpu_kv_append_size,
      cpu_kv_append_avx2);
