/* SPDX-License-Identifier: Apache-2.0
 * From an op's name to its definition. */
#include "ref.h"

static const struct {
    const char *name;
    ref_op_fn *run;
} ops[] = {
    {DAVIT_OP_EMBED, ref_embed},
    {DAVIT_OP_LINEAR, ref_linear},
    {DAVIT_OP_RMSNORM, ref_rmsnorm},
    {DAVIT_OP_LAYERNORM, ref_layernorm},
    {DAVIT_OP_ADD, ref_add},
    {DAVIT_OP_SCALE, ref_scale},
    {DAVIT_OP_SOFTCAP, ref_softcap},
    {DAVIT_OP_ACT, ref_act_op},
    {DAVIT_OP_GLU, ref_glu_op},
    {DAVIT_OP_ROPE_ANGLES, ref_rope_angles},
    {DAVIT_OP_ROPE, ref_rope},
    {DAVIT_OP_KV_APPEND, ref_kv_append},
    {DAVIT_OP_ATTN, ref_attn},
    {DAVIT_OP_MOE_ROUTE, ref_moe_route},
    {DAVIT_OP_MOE_FFN, ref_moe_ffn},
    {DAVIT_OP_GATHER_ROWS, ref_gather_rows},
};

void davit_ref_run(const davit_call *call, uint64_t first, uint64_t count, void *work)
{
    for (uint64_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, call->op) == 0) {
            ops[i].run(call, first, count, work);
            return;
        }
}

uint64_t davit_ref_work_bytes(const davit_call *call)
{
    if (strcmp(call->op, DAVIT_OP_ATTN) == 0)
        return ((const davit_attn_attr *)call->attr)->v_dim * sizeof(double);
    if (strcmp(call->op, DAVIT_OP_MOE_FFN) == 0) {
        const uint64_t k = ((const davit_moe_ffn_attr *)call->attr)->top_k;
        return (k * call->weight[2]->n_cols * sizeof(float) + 7) / 8 * 8;
    }
    return 0;
}

uint64_t davit_ref_rows(const davit_call *call)
{
    return call->n_out > 0 ? call->out[0].n_rows : call->in[0].n_rows;
}
