/* SPDX-License-Identifier: Apache-2.0
 * Legs of a step. On the host all workers walk the instructions together: the tasks of a phase are
 * shared out and a barrier ends it. For a device one thread enqueues everything in order. */
#include "exec/pool.h"
#include "exec/step.h"
#include "plugin/running.h"

static bool ends_layer(const DavitProgram *program, size_t i)
{
    return program->instrs[i].layer >= 0 &&
           (i + 1 == program->n_instrs ||
            program->instrs[i + 1].layer != program->instrs[i].layer);
}

static bool begins_layer(const DavitProgram *program, size_t i)
{
    return program->instrs[i].layer >= 0 &&
           (i == 0 || program->instrs[i - 1].layer != program->instrs[i].layer);
}

/* Layers on disk: the next is read while this one is computed, wherever that is. */
static void note_begin(const DavitStep *step, size_t i)
{
    if (step->ahead && begins_layer(step->plan->program, i))
        davit_ahead_begin(step->ahead, step->plan->program->instrs[i].layer);
}

static void note_end(const DavitStep *step, size_t i)
{
    const int64_t layer = step->plan->program->instrs[i].layer;
    if (step->drops && ends_layer(step->plan->program, i) &&
        (uint64_t)layer < step->plan->n_layers && step->drops_layer[layer])
        davit_weights_drop_layer(step->weights, layer);
}

/* ---- the host ---- */

typedef struct HostLeg {
    DavitStep *step;
    const DavitLeg *leg;
} HostLeg;

static void run_host(void *ctx, unsigned worker)
{
    const HostLeg *job = ctx;
    DavitStep *step = job->step;
    const DavitProgram *program = step->plan->program;
    uint64_t phase_no = 0, first, count;
    for (size_t i = job->leg->first; i < job->leg->end; i++) {
        const davit_kernel_entry *entry = step->entries[i];
        const davit_work *work = &step->work[i];
        const DavitComponent *kernels = program->instrs[i].kernels;
        if (worker == 0)
            note_begin(step, i);
        davit_running_set(kernels ? kernels->id : NULL, program->instrs[i].op);
        for (uint32_t phase = 0; phase < work->n_phases; phase++, phase_no++) {
            while (davit_pool_take(step->pool, phase_no, work->n_tasks[phase], &first, &count))
                entry->run(&step->calls[i], phase, first, count, worker, NULL);
            davit_pool_barrier(step->pool);
        }
        /* behind the barrier: the others may begin with the next layer's ops */
        if (worker == 0)
            note_end(step, i);
    }
    davit_running_set(NULL, NULL);
}

/* ---- devices ---- */

static int32_t send_arrays(DavitStep *step, DavitReport *report)
{
    const DavitDoing doing = {"run", "the batch"};
    int32_t status = DAVIT_OK;
    for (uint32_t d = DAVIT_ON_HOST + 1; !status && d < step->plan->n_devices; d++) {
        DavitStepDevice *device = &step->devices[d];
        if (!device->has_calls)
            continue;
        device->doing = doing.what;
        device->is_busy = true;
        status = davit_exec_upload(device->exec, device->array_mem, step->arrays,
                                   step->n_elems * sizeof(int32_t), &doing, report);
    }
    return status;
}

static void enqueue(DavitStep *step, const DavitLeg *leg)
{
    DavitStepDevice *device = &step->devices[leg->device];
    device->is_busy = true;
    for (size_t i = leg->first; i < leg->end; i++) {
        note_begin(step, i);
        for (uint32_t phase = 0; phase < step->work[i].n_phases; phase++)
            step->entries[i]->run(&step->calls[i], phase, 0, 1, 0, device->exec->queue);
        note_end(step, i);
    }
}

static int32_t fetch_logits(DavitStep *step, DavitReport *report)
{
    const int32_t output = step->plan->program->output;
    const uint32_t d = step->plan->program->values[output].device;
    const uint64_t n = step->input.n_rows * step->vocab * sizeof(float);
    const DavitDoing doing = {"run", step->devices[d].doing};
    if (d == DAVIT_ON_HOST)
        return DAVIT_OK;
    step->devices[d].is_busy = true;
    step->stats.logit_bytes += n;
    return davit_exec_download(step->devices[d].exec, step->host_logits,
                               davit_step_value(step, output), n, &doing, report);
}

int32_t davit_step_wait(DavitStepDevice *device, DavitReport *report)
{
    const DavitDoing doing = {"run", device->doing};
    if (!device->is_busy)
        return DAVIT_OK;
    device->is_busy = device->reads_host = device->reads_staging = false;
    return davit_exec_wait(device->exec, &doing, report);
}

/* ---- all of them ---- */

static int32_t run_leg(DavitStep *step, guint l, DavitReport *report)
{
    const DavitLeg *leg = &g_array_index(step->legs, DavitLeg, l);
    HostLeg job = {step, leg};
    step->devices[leg->device].doing = step->leg_text[l];
    const int32_t status = davit_step_cross(step, leg, report);
    if (status)
        return status;
    if (leg->device == DAVIT_ON_HOST)
        davit_pool_run(step->pool, run_host, &job);
    else
        enqueue(step, leg);
    return DAVIT_OK;
}

int32_t davit_step_legs(DavitStep *step, DavitReport *report)
{
    int32_t status = send_arrays(step, report);
    for (guint l = 0; !status && l < step->legs->len; l++)
        status = run_leg(step, l, report);
    if (!status)
        status = fetch_logits(step, report);
    /* calls and arrays are theirs until then, whatever has failed */
    for (uint32_t d = 0; d < step->plan->n_devices; d++)
        status = davit_worse(status, davit_step_wait(&step->devices[d], report));
    /* embedding and head belong to no layer */
    if (step->drops)
        davit_weights_drop_layer(step->weights, -1);
    return status;
}
