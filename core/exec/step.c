/* SPDX-License-Identifier: Apache-2.0
 * One step of a program: made once, run again and again. */
#include "exec/step.h"

#include <math.h>

#include "exec/verify.h"

/* ---- life ---- */

static void note_deferred(DavitStep *step)
{
    const DavitPlan *plan = step->plan;
    step->drops_layer = g_new0(bool, plan->n_layers + 1);
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];
        if (slot->way != DAVIT_WAY_DEFER)
            continue;
        step->drops = true;
        if (slot->layer >= 0 && (uint64_t)slot->layer < plan->n_layers)
            step->drops_layer[slot->layer] = true;
    }
    if (step->drops)
        step->ahead = davit_ahead_new(plan);
}

/* (owned) "layers 3 to 5" */
static char *text_of_leg(const DavitLeg *leg)
{
    if (leg->first_layer < 0)
        return g_strdup("embedding or head");
    return leg->first_layer == leg->last_layer
               ? g_strdup_printf("layer %" G_GINT64_FORMAT, leg->first_layer)
               : g_strdup_printf("layers %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                                 leg->first_layer, leg->last_layer);
}

static int32_t step_init(DavitStep *step, DavitReport *report)
{
    const DavitPlan *plan = step->plan;
    const DavitProgram *program = plan->program;
    step->vocab = program->values[program->output].width;
    step->value_off = g_new0(uint64_t, program->n_values);
    step->calls = g_new0(davit_call, program->n_instrs);
    step->entries = g_new0(const davit_kernel_entry *, program->n_instrs);
    step->work = g_new0(davit_work, program->n_instrs);
    step->devices = g_new0(DavitStepDevice, plan->n_devices);
    step->legs = davit_legs(program);
    step->leg_text = g_new0(char *, step->legs->len + 1);
    for (guint l = 0; l < step->legs->len; l++)
        step->leg_text[l] = text_of_leg(&g_array_index(step->legs, DavitLeg, l));
    step->exec = davit_exec_devices_open(plan, true, "run", report);
    if (!step->exec)
        return DAVIT_E_IO;
    for (uint32_t d = 0; d < plan->n_devices; d++)
        step->devices[d].exec = &step->exec[d];
    note_deferred(step);
    return davit_step_prepare(step, report);
}

DavitStep *davit_step_new(const DavitPlan *plan, const DavitWeights *weights, DavitKv *kv,
                          DavitPool *pool, DavitComm *comm, const DavitStepLimits *limits,
                          DavitReport *report)
{
    g_autoptr(DavitStep) step = g_new0(DavitStep, 1);
    step->plan = plan;
    step->kv = kv;
    step->pool = pool;
    step->comm = comm;
    step->max_tokens = limits->n_tokens;
    step->max_rows = limits->n_rows;
    step->max_seqs = limits->n_seqs;
    step->max_ctx = limits->n_ctx;
    step->weights = weights;
    step->max_blocks = (limits->n_ctx + plan->block_tokens - 1) / plan->block_tokens;
    if (step_init(step, report))
        return NULL;
    return g_steal_pointer(&step);
}

static void device_clear(DavitStepDevice *device)
{
    davit_arena_clear(&device->values);
    davit_arena_clear(&device->scratch);
    davit_exec_free(device->exec, device->value_mem);
    davit_exec_free(device->exec, device->scratch_mem);
    davit_exec_free(device->exec, device->array_mem);
}

void davit_step_free(DavitStep *step)
{
    if (!step)
        return;
    davit_ahead_free(step->ahead);
    for (uint32_t d = 0; d < step->plan->n_devices; d++)
        device_clear(&step->devices[d]);
    davit_exec_devices_close(step->plan, step->exec);
    davit_arena_clear(&step->staging);
    g_array_unref(step->legs);
    g_strfreev(step->leg_text);
    g_free(step->drops_layer);
    g_free(step->devices);
    g_free(step->value_off);
    g_free(step->calls);
    g_free(step->entries);
    g_free(step->work);
    g_free(step->arrays);
    g_free(step->host_logits);
    g_free(step);
}

DavitStepInput *davit_step_input(DavitStep *step)
{
    return &step->input;
}

uint64_t davit_step_bytes(const DavitStep *step)
{
    const DavitStepDevice *host = &step->devices[DAVIT_ON_HOST];
    const uint64_t logits =
        step->host_logits ? step->max_rows * step->vocab * sizeof(float) : 0;
    return host->values.n_bytes + host->scratch.n_bytes + step->n_elems * sizeof(int32_t) +
           step->staging.n_bytes + logits;
}

void davit_step_stats(const DavitStep *step, DavitStepStats *out)
{
    *out = step->stats;
}

/* ---- running ---- */

static int32_t check_finite(const DavitStep *step, const float *logits, DavitReport *report)
{
    for (uint64_t r = 0; r < step->input.n_rows; r++) {
        const float *row = logits + r * step->vocab;
        uint64_t n_bad = 0;
        for (uint64_t v = 0; v < step->vocab; v++)
            n_bad += isfinite(row[v]) == 0;
        if (!n_bad)
            continue;
        const int32_t t = step->input.logit_row[r];
        const int32_t status = davit_borrowed_verify(step->plan, report);
        if (status)
            return status; /* the weight that is damaged, by name */
        return davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_NON_FINITE_LOGITS,
                            .status = DAVIT_E_CORRUPT,
                            .stage = "run",
                            .subject = davit_report_text(report, "position %d",
                                                         step->input.position[t]),
                            .found = davit_report_text(report,
                                                       "%" G_GUINT64_FORMAT
                                                       " of %" G_GUINT64_FORMAT " logits",
                                                       n_bad, (guint64)step->vocab),
                            .message = "the model produced NaN or infinity",
                            .hint = "a weight may be damaged: compare the file's checksum"});
    }
    return DAVIT_OK;
}

int32_t davit_step_run(DavitStep *step, const float **out_logits, DavitReport *report)
{
    const DavitStepInput *in = &step->input;
    g_assert(in->n_tokens > 0 && in->n_tokens <= step->max_tokens);
    g_assert(in->n_rows <= step->max_rows && in->n_seqs <= step->max_seqs);
    davit_step_size(step);
    const int32_t status = davit_step_legs(step, report);
    if (status)
        return status;
    if (step->comm && davit_comm_check(step->comm, report))
        return DAVIT_E_IO;
    const int32_t output = step->plan->program->output;
    *out_logits = step->host_logits
                      ? step->host_logits
                      : (const float *)(const void *)davit_step_value(step, output);
    return check_finite(step, *out_logits, report);
}
