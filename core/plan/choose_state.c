/* SPDX-License-Identifier: Apache-2.0
 * States of a program: storage type, component, bytes of a block. */
#include "plan/choose_state.h"

#include <string.h>

#include "plan/kv_scale.h"

/* Sum of the best scores of @tool's entries for the ops on @state; 0 = it lacks one. */
static uint64_t score_tool(DavitChooser *c, int32_t state, const DavitTool *tool)
{
    const GArray *instrs = c->state_instrs[state];
    uint64_t sum = 1;

    for (guint i = 0; i < instrs->len; i++) {
        const uint32_t at = g_array_index(instrs, uint32_t, i);
        uint64_t score;

        if (!davit_entry_best(c, &c->program->instrs[at], tool, true, &score))
            return 0;
        sum += score;
    }
    return sum;
}

/* Bytes of a block of the state as @tool keeps it, 0 = it does not. */
static uint64_t block_bytes(DavitChooser *c, const davit_state_spec *spec,
                            const DavitTool *tool)
{
    const davit_kernels_iface *iface = tool->iface;
    uint64_t n;
    DavitSink sink;

    if (!iface->state_size)
        return 0;
    davit_sink_init(&sink, c->scratch, tool->component->id, "plan");
    n = iface->state_size(tool->self, spec, c->draft->plan->block_tokens, &sink.abi);
    davit_report_truncate(c->scratch, 0);
    return n;
}

/* Returns: true when some component keeps @state as its spec's dtype says. */
static bool choose_one(DavitChooser *c, int32_t state)
{
    uint64_t most = 0;

    for (guint k = 0; k < c->draft->tools->kernels->len; k++) {
        const DavitTool *tool = &g_array_index(c->draft->tools->kernels, DavitTool, k);
        const uint64_t bytes = block_bytes(c, &c->program->states[state], tool);
        const uint64_t score = bytes ? score_tool(c, state, tool) : 0;

        if (score <= most)
            continue;
        most = score;
        c->state_tool[state] = tool;
        c->program->state_block_bytes[state] = bytes;
    }
    return most > 0;
}

/* Why @tool cannot have @state. (owned by the report) */
static const char *tool_fault(DavitChooser *c, int32_t state, const DavitTool *tool)
{
    if (!block_bytes(c, &c->program->states[state], tool))
        return "does not keep a state of this kind and type";
    for (guint i = 0; i < c->state_instrs[state]->len; i++) {
        const uint32_t at = g_array_index(c->state_instrs[state], uint32_t, i);
        uint64_t score;

        if (!davit_entry_best(c, &c->program->instrs[at], tool, true, &score))
            return davit_report_text(c->draft->report, "has no usable entry for %s",
                                     c->program->instrs[at].op);
    }
    return "fits";
}

static int32_t refuse_state(DavitChooser *c, int32_t state)
{
    DavitReport *report = c->draft->report;
    const davit_state_spec *spec = &c->program->states[state];
    const int32_t status = davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_OP_MISSING,
            .status = DAVIT_E_UNSUPPORTED,
            .purposes = DAVIT_RUN,
            .stage = "plan",
            .subject = "state",
            .expected = davit_report_text(report, "a kernels component on %s",
                                          c->draft->plan->device),
            .found = davit_report_text(
                report, "kind %u, %" PRIu64 " heads of %" PRIu64 " and %" PRIu64 ", %s",
                spec->kind, spec->n_heads, spec->k_dim, spec->v_dim, spec->dtype),
            .message = "no kernels component keeps this state and has the ops on it"});

    for (guint k = 0; k < c->draft->tools->kernels->len; k++) {
        const DavitTool *tool = &g_array_index(c->draft->tools->kernels, DavitTool, k);

        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_OP_MISSING,
                                                 .severity = DAVIT_NOTE,
                                                 .stage = "plan",
                                                 .who = tool->component->id,
                                                 .subject = "state",
                                                 .message = tool_fault(c, state, tool)});
    }
    return status;
}

static bool choose_all(DavitChooser *c, const char *dtype, int32_t *out_failed)
{
    for (size_t s = 0; s < c->program->n_states; s++) {
        c->program->states[s].dtype = davit_intern(dtype);
        if (!choose_one(c, (int32_t)s)) {
            *out_failed = (int32_t)s;
            return false;
        }
    }
    return true;
}

int32_t davit_choose_states(DavitChooser *c)
{
    const DavitPlanOptions *options = c->draft->options;
    const char *wanted = options->kv_dtype;
    int32_t failed = -1;

    if (wanted && !choose_all(c, wanted, &failed))
        return refuse_state(c, failed);
    if (wanted && strcmp(wanted, DAVIT_KV_FP8) == 0)
        return davit_kv_scales(c->draft, c->program);
    if (wanted)
        return DAVIT_OK;
    if (options->activations != DAVIT_ACTIVATIONS_F32 && choose_all(c, "f16/1", &failed))
        return DAVIT_OK;
    /* a component that keeps float32 only is no reason to refuse */
    return choose_all(c, "f32/1", &failed) ? DAVIT_OK : refuse_state(c, failed);
}
