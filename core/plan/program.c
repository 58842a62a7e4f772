/* SPDX-License-Identifier: Apache-2.0
 * Checks of a finished recording. Kernels rely on them: a value that is read was written,
 * a required weight is there. */
#include "plan/program.h"

#include <string.h>

/* Operands that an op of davit/ops.h cannot do without. */
static const struct {
    const char *op;
    uint32_t n_in, n_out;
    uint32_t n_weights; /* leading weights that are required */
    bool state;
} known_ops[] = {
    {DAVIT_OP_EMBED, 0, 1, 1, false},   {DAVIT_OP_LINEAR, 1, 1, 1, false},
    {DAVIT_OP_RMSNORM, 1, 1, 0, false}, {DAVIT_OP_LAYERNORM, 1, 1, 0, false},
    {DAVIT_OP_ADD, 2, 1, 0, false},     {DAVIT_OP_SCALE, 1, 1, 0, false},
    {DAVIT_OP_SOFTCAP, 1, 1, 0, false}, {DAVIT_OP_ACT, 1, 1, 0, false},
    {DAVIT_OP_GLU, 2, 1, 0, false},     {DAVIT_OP_ROPE_ANGLES, 0, 1, 1, false},
    {DAVIT_OP_ROPE, 2, 1, 0, false},    {DAVIT_OP_KV_APPEND, 2, 0, 0, true},
    {DAVIT_OP_ATTN, 1, 1, 0, true},     {DAVIT_OP_MOE_ROUTE, 1, 2, 0, false},
    {DAVIT_OP_MOE_FFN, 3, 1, 3, false}, {DAVIT_OP_GATHER_ROWS, 1, 1, 0, false},
};

void davit_program_free(DavitProgram *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->n_values; i++)
        g_free(program->values[i].name);
    for (size_t i = 0; i < program->n_instrs; i++)
        g_free(program->instrs[i].attr);
    for (size_t i = 0; i < program->n_weights; i++) {
        if (!program->weights[i].is_copy)
            g_free(program->weights[i].constant);
    }
    g_free(program->values);
    g_free(program->instrs);
    g_free(program->weights);
    for (size_t s = 0; s < program->n_states; s++) {
        g_free(program->state_part[s].k_scales);
        g_free(program->state_part[s].v_scales);
    }
    g_free(program->states);
    g_free(program->state_part);
    g_free(program->state_block_bytes);
    g_free(program->state_device);
    g_free(program);
}

static int32_t fault(const char *who, size_t instr, const DavitInstr *in,
                     const char *message, DavitReport *report)
{
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_FORWARD_ABSENT,
                        .status = DAVIT_E_UNSUPPORTED,
                        .purposes = DAVIT_RUN,
                        .stage = "plan",
                        .who = who,
                        .subject = in ? in->op : "program",
                        .found = in ? davit_report_text(report, "op %zu, layer %" PRId64,
                                                        instr, in->layer)
                                    : NULL,
                        .message = message,
                        .hint = "this is a fault of the architecture plugin"});
}

/* Returns: what @instr lacks of its op's operands, or NULL. */
static const char *operand_fault(const DavitInstr *instr)
{
    for (size_t k = 0; k < G_N_ELEMENTS(known_ops); k++) {
        if (strcmp(known_ops[k].op, instr->op) != 0)
            continue;
        if (instr->n_in < known_ops[k].n_in || instr->n_out < known_ops[k].n_out)
            return "a forward gives an op fewer values than it needs";
        if (known_ops[k].state && instr->state < 0)
            return "a forward gives an op no state that it needs";
        for (uint32_t w = 0; w < known_ops[k].n_weights; w++) {
            if (w >= instr->n_weights || instr->weight[w] < 0)
                return "a forward gives an op no weight that it needs";
        }
        return NULL;
    }
    return NULL; /* an op of somebody else: its kernels check the call */
}

static void touch(DavitValue *value, size_t at)
{
    if (value->first < 0)
        value->first = (int32_t)at;
    value->last = (int32_t)at;
}

static int32_t check_instr(DavitProgram *program, size_t at, const char *who,
                           DavitReport *report)
{
    const DavitInstr *instr = &program->instrs[at];
    const char *lack = operand_fault(instr);

    if (lack)
        return fault(who, at, instr, lack, report);
    for (uint32_t i = 0; i < instr->n_in; i++) {
        DavitValue *value = &program->values[instr->in[i]];

        if (value->first < 0)
            return fault(who, at, instr,
                         "a forward reads a value that nothing has written", report);
        touch(value, at);
    }
    for (uint32_t i = 0; i < instr->n_out; i++)
        touch(&program->values[instr->out[i]], at);
    return DAVIT_OK;
}

static int32_t check_output(DavitProgram *program, uint64_t vocab, const char *who,
                            DavitReport *report)
{
    const DavitValue *out;

    if (program->output < 0)
        return fault(who, 0, NULL, "a forward names no output", report);
    out = &program->values[program->output];
    if (out->first < 0)
        return fault(who, 0, NULL, "nothing writes the output", report);
    if (out->rows != DAVIT_ROWS_R || strcmp(out->dtype, "f32/1") != 0)
        return fault(who, 0, NULL,
                     "the output is not float32 with a row per wanted logit row", report);
    if (vocab && out->width != vocab)
        return davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_SHAPE_MISMATCH,
                            .status = DAVIT_E_MISMATCH,
                            .purposes = DAVIT_RUN,
                            .stage = "plan",
                            .who = who,
                            .subject = "output",
                            .expected = davit_report_text(report, "%" PRIu64, vocab),
                            .found = davit_report_text(report, "%" PRIu64, out->width),
                            .message = "logits are not as wide as the vocabulary"});
    program->values[program->output].last = (int32_t)program->n_instrs;
    return DAVIT_OK;
}

int32_t davit_program_finish(DavitProgram *program, uint64_t vocab, const char *who,
                             DavitReport *report)
{
    int32_t worst = DAVIT_OK;

    for (size_t v = 0; v < program->n_values; v++)
        program->values[v].first = program->values[v].last = -1;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const int32_t status = check_instr(program, i, who, report);

        worst = status ? status : worst;
    }
    if (worst)
        return worst; /* what follows would repeat the same fault */
    return check_output(program, vocab, who, report);
}
