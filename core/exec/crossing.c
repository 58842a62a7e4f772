/* SPDX-License-Identifier: Apache-2.0
 * Copies where the device changes. Queues run later than they are filled, so host memory that a
 * queue reads stays as it is until that queue was waited for: the host's values until the host
 * computes again, the staging memory until something else is to go through it. */
#include "exec/step.h"

static const DavitInstr *instr_at(const DavitStep *step, size_t i)
{
    return &step->plan->program->instrs[i];
}

static uint32_t source_of(const DavitStep *step, const DavitInstr *cross)
{
    return step->plan->program->values[cross->in[0]].device;
}

static uint64_t bytes_of(const DavitStep *step, const DavitInstr *cross)
{
    return davit_value_bytes(&step->plan->program->values[cross->in[0]], step->input.n_tokens,
                             step->input.n_rows);
}

/* Wait for all whose queues read values of the host. */
static int32_t settle_host(DavitStep *step, DavitReport *report)
{
    int32_t status = DAVIT_OK;
    for (uint32_t d = 0; !status && d < step->plan->n_devices; d++)
        if (step->devices[d].reads_host)
            status = davit_step_wait(&step->devices[d], report);
    return status;
}

/* The staging memory is free for what device @source's queue writes to it: its own queue is in
 * order. */
static int32_t settle_staging(DavitStep *step, uint32_t source, DavitReport *report)
{
    int32_t status = DAVIT_OK;
    for (uint32_t d = 0; !status && d < step->plan->n_devices; d++)
        if (d != source && step->devices[d].reads_staging)
            status = davit_step_wait(&step->devices[d], report);
    return status;
}

/* What comes from devices, into values of the host or the staging memory, and is there after. */
static int32_t fetch(DavitStep *step, const DavitLeg *leg, DavitReport *report)
{
    uint64_t at = 0;
    int32_t status = DAVIT_OK;
    for (size_t i = leg->first; !status && i < leg->begin; i++) {
        const DavitInstr *cross = instr_at(step, i);
        const uint32_t source = source_of(step, cross);
        DavitStepDevice *from = &step->devices[source];
        const DavitDoing doing = {"run", from->doing};
        const uint64_t n = bytes_of(step, cross);
        if (source == DAVIT_ON_HOST)
            continue;
        uint8_t *to = davit_step_value(step, cross->out[0]);
        if (leg->device != DAVIT_ON_HOST) {
            status = settle_staging(step, source, report);
            to = step->staging.base + at;
            at += davit_align_up(n, DAVIT_STAGING_ALIGN);
        }
        if (!status)
            status = davit_exec_download(from->exec, to, davit_step_value(step, cross->in[0]), n,
                                         &doing, report);
        from->is_busy = true;
    }
    for (size_t i = leg->first; !status && i < leg->begin; i++) {
        const uint32_t source = source_of(step, instr_at(step, i));
        if (source != DAVIT_ON_HOST)
            status = davit_step_wait(&step->devices[source], report);
    }
    return status;
}

/* To the device of @leg, out of the host's values or the staging memory. */
static int32_t send(DavitStep *step, const DavitLeg *leg, DavitReport *report)
{
    DavitStepDevice *to = &step->devices[leg->device];
    const DavitDoing doing = {"run", to->doing};
    uint64_t at = 0;
    int32_t status = DAVIT_OK;
    for (size_t i = leg->first; !status && i < leg->begin; i++) {
        const DavitInstr *cross = instr_at(step, i);
        const bool from_host = source_of(step, cross) == DAVIT_ON_HOST;
        const uint64_t n = bytes_of(step, cross);
        const uint8_t *from = from_host ? davit_step_value(step, cross->in[0])
                                        : step->staging.base + at;
        if (!from_host)
            at += davit_align_up(n, DAVIT_STAGING_ALIGN);
        status = davit_exec_upload(to->exec, davit_step_value(step, cross->out[0]), from, n,
                                   &doing, report);
        to->is_busy = true;
        to->reads_host |= from_host;
        to->reads_staging |= !from_host;
    }
    return status;
}

int32_t davit_step_cross(DavitStep *step, const DavitLeg *leg, DavitReport *report)
{
    int32_t status = DAVIT_OK;
    if (leg->device == DAVIT_ON_HOST)
        status = settle_host(step, report);
    if (!status)
        status = fetch(step, leg, report);
    if (!status && leg->device != DAVIT_ON_HOST)
        status = send(step, leg, report);
    step->stats.n_crossings += leg->begin - leg->first;
    step->stats.crossed_bytes += davit_leg_bytes(step->plan->program, leg, step->input.n_tokens,
                                                 step->input.n_rows);
    return status;
}
