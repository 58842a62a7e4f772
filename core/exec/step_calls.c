/* SPDX-License-Identifier: Apache-2.0
 * What a step is made of before it runs: arrays of the batch, call records, memory of values and
 * scratch, each on the device that uses it. */
#include <string.h>

#include "exec/collective.h"
#include "exec/kv.h"
#include "exec/pool.h"
#include "exec/step.h"

/* ---- batch arrays ---- */

/* Lay out the eleven int32 arrays of a step; the same order on every device. */
static void place_arrays(DavitStep *step)
{
    const uint64_t at = davit_batch_elems(step->max_tokens, step->max_seqs, step->max_blocks,
                                          step->max_rows, step->array_off);
    step->n_elems = at;
    step->arrays = g_new0(int32_t, at);
    int32_t **field[DAVIT_BATCH_ARRAYS] = {
        &step->input.token,     &step->input.position,    &step->input.seq,
        &step->input.query_start, &step->input.ctx_len,   &step->input.block_table,
        &step->input.state_in,  &step->input.state_out,   &step->input.rope_n,
        &step->input.adapter,   &step->input.logit_row};
    for (size_t i = 0; i < DAVIT_BATCH_ARRAYS; i++)
        *field[i] = step->arrays + step->array_off[i];
    step->input.max_blocks = step->max_blocks;
}

static void point_batch(const DavitStep *step, const int32_t *base, davit_batch *out)
{
    const uint64_t *off = step->array_off;
    *out = (davit_batch){.struct_size = DAVIT_END(davit_batch, tree_mask),
                         .block_tokens = step->plan->block_tokens,
                         .max_blocks = step->max_blocks,
                         .token = base + off[0],
                         .position = base + off[1],
                         .seq = base + off[2],
                         .query_start = base + off[3],
                         .ctx_len = base + off[4],
                         .block_table = base + off[5],
                         .state_in = base + off[6],
                         .state_out = base + off[7],
                         .rope_n = base + off[8],
                         .adapter = base + off[9],
                         .logit_row = base + off[10]};
}

static int32_t take_arrays(DavitStep *step, uint32_t d, DavitReport *report)
{
    DavitStepDevice *device = &step->devices[d];
    if (d != DAVIT_ON_HOST &&
        !davit_exec_alloc(device->exec, step->n_elems * sizeof(int32_t), "batch arrays", "run",
                          &device->array_mem, report))
        return DAVIT_E_LIMIT;
    point_batch(step, d == DAVIT_ON_HOST ? step->arrays : device->array_mem, &device->batch);
    return DAVIT_OK;
}

/* ---- calls ---- */

static void default_work(uint64_t n_tokens, uint64_t n_rows, const DavitValue *out,
                         davit_work *work)
{
    work->n_phases = 1;
    work->n_tasks[0] = out && out->rows == DAVIT_ROWS_R ? n_rows : n_tokens;
}

static void ask_size(DavitStep *step, size_t i, uint64_t n_tokens, uint64_t n_rows, uint64_t ctx,
                     davit_work *work)
{
    const DavitProgram *program = step->plan->program;
    const DavitInstr *instr = &program->instrs[i];
    const davit_kernel_entry *entry = step->entries[i];
    *work = (davit_work){.struct_size = DAVIT_END(davit_work, n_tasks)};
    if (!entry)
        return; /* a crossing: done before its leg begins */
    if (entry->size)
        entry->size(step->calls[i].self, &step->calls[i], n_tokens, n_rows, ctx, work);
    else
        default_work(n_tokens, n_rows, instr->n_out ? &program->values[instr->out[0]] : NULL,
                     work);
}

static void set_value(davit_value *out, const DavitStep *step, int32_t value)
{
    const DavitValue *v = &step->plan->program->values[value];
    /* sizes are asked before the memory is taken */
    *out = (davit_value){
        .data = step->devices[v->device].value_base ? davit_step_value(step, value) : NULL,
        .width = v->width,
        .dtype = v->dtype};
}

static void make_call(DavitStep *step, size_t i)
{
    const DavitInstr *instr = &step->plan->program->instrs[i];
    DavitStepDevice *device = &step->devices[instr->device];
    davit_call *call = &step->calls[i];
    *call = (davit_call){.struct_size = DAVIT_END(davit_call, weight),
                         .self = instr->entry ? instr->self : step->comm,
                         .op = instr->op,
                         .attr = instr->attr,
                         .batch = &device->batch,
                         .state = instr->state >= 0 ? &step->kv->states[instr->state] : NULL,
                         .n_in = instr->n_in,
                         .n_out = instr->n_out,
                         .n_weights = instr->n_weights,
                         .scratch = device->scratch_base,
                         .worker_scratch = device->scratch_base
                                               ? device->scratch_base + device->shared_bytes
                                               : NULL,
                         .worker_bytes = device->worker_bytes};
    for (uint32_t k = 0; k < instr->n_in; k++)
        set_value(&call->in[k], step, instr->in[k]);
    for (uint32_t k = 0; k < instr->n_out; k++)
        set_value(&call->out[k], step, instr->out[k]);
    for (uint32_t k = 0; k < instr->n_weights; k++)
        call->weight[k] = instr->weight[k] >= 0
                              ? davit_weights_get(step->weights, (size_t)instr->weight[k])
                              : NULL;
}

static void make_calls(DavitStep *step)
{
    const DavitProgram *program = step->plan->program;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        if (davit_is_cross_op(instr->op))
            continue;
        step->entries[i] = instr->entry ? instr->entry : davit_collective_entry(instr->op);
        step->devices[instr->device].has_calls = true;
        make_call(step, i);
    }
}

/* ---- memory ---- */

static int32_t too_large(const char *what, uint64_t n_bytes, DavitReport *report)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                            .status = DAVIT_E_LIMIT,
                                            .stage = "run",
                                            .subject = what,
                                            .expected = davit_report_text(
                                                report, "%" G_GUINT64_FORMAT " bytes", n_bytes),
                                            .message = "memory could not be allocated",
                                            .hint = "use a smaller --ctx"});
}

/* @n_bytes on device @d: *arena of the host's, or *memory. */
static int32_t take_block(DavitStep *step, uint32_t d, DavitArena *arena, void **memory,
                          uint64_t n_bytes, const char *what, DavitReport *report)
{
    if (d == DAVIT_ON_HOST)
        return davit_arena_init(arena, n_bytes, false, what, report);
    return davit_exec_alloc(step->devices[d].exec, n_bytes, what, "run", memory, report)
               ? DAVIT_OK
               : DAVIT_E_LIMIT;
}

static int32_t take_values(DavitStep *step, uint32_t d, DavitReport *report)
{
    DavitStepDevice *device = &step->devices[d];
    const DavitMemoryFor what = {d, step->max_tokens, step->max_rows,
                                 step->plan->devices[d].align};
    const uint64_t n = davit_memory_place(step->plan->program, &what, step->value_off);
    if (n == UINT64_MAX)
        return too_large("values", n, report);
    const int32_t status =
        take_block(step, d, &device->values, &device->value_mem, n, "values", report);
    device->value_base = d == DAVIT_ON_HOST ? device->values.base : device->value_mem;
    return status;
}

static int32_t take_scratch(DavitStep *step, uint32_t d, DavitReport *report)
{
    const DavitProgram *program = step->plan->program;
    const uint64_t align = step->plan->devices[d].align;
    DavitStepDevice *device = &step->devices[d];
    for (size_t i = 0; i < program->n_instrs; i++) {
        davit_work work;
        if (program->instrs[i].device != d)
            continue;
        ask_size(step, i, step->max_tokens, step->max_rows, step->max_ctx, &work);
        device->shared_bytes =
            MAX(device->shared_bytes, davit_align_up(work.scratch_bytes, align));
        device->worker_bytes =
            MAX(device->worker_bytes, davit_align_up(work.worker_bytes, align));
    }
    const uint64_t workers = d == DAVIT_ON_HOST ? davit_pool_threads(step->pool) : 1;
    const int32_t status = take_block(step, d, &device->scratch, &device->scratch_mem,
                                      device->shared_bytes + workers * device->worker_bytes,
                                      "scratch", report);
    device->scratch_base = d == DAVIT_ON_HOST ? device->scratch.base : device->scratch_mem;
    return status;
}

/* Host memory that what devices made passes through. */
static int32_t take_passage(DavitStep *step, DavitReport *report)
{
    const DavitProgram *program = step->plan->program;
    const uint64_t n = davit_staging_bytes(program, step->max_tokens, step->max_rows);
    if (davit_arena_init(&step->staging, n, false, "values between devices", report))
        return DAVIT_E_LIMIT;
    if (program->values[program->output].device == DAVIT_ON_HOST)
        return DAVIT_OK;
    step->host_logits = g_try_malloc_n(step->max_rows * step->vocab, sizeof(float));
    return step->host_logits ? DAVIT_OK
                             : too_large("logits", step->max_rows * step->vocab * 4, report);
}

int32_t davit_step_prepare(DavitStep *step, DavitReport *report)
{
    int32_t status = DAVIT_OK;
    place_arrays(step);
    for (uint32_t d = 0; !status && d < step->plan->n_devices; d++)
        status = take_arrays(step, d, report);
    if (status)
        return status;
    make_calls(step); /* sizes are asked of calls; addresses come with the memory */
    for (uint32_t d = 0; !status && d < step->plan->n_devices; d++) {
        status = take_values(step, d, report);
        if (!status)
            status = take_scratch(step, d, report);
    }
    if (!status)
        status = take_passage(step, report);
    if (!status)
        make_calls(step);
    return status;
}

/* ---- a step's sizes ---- */

static void set_rows(DavitStep *step)
{
    const DavitProgram *program = step->plan->program;
    const uint64_t n_rows = step->input.n_rows, n_tokens = step->input.n_tokens;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        davit_call *call = &step->calls[i];
        for (uint32_t k = 0; k < instr->n_in; k++)
            call->in[k].n_rows =
                program->values[instr->in[k]].rows == DAVIT_ROWS_R ? n_rows : n_tokens;
        for (uint32_t k = 0; k < instr->n_out; k++)
            call->out[k].n_rows =
                program->values[instr->out[k]].rows == DAVIT_ROWS_R ? n_rows : n_tokens;
    }
}

static uint64_t longest_context(const DavitStep *step)
{
    int32_t n = 0;
    for (uint64_t s = 0; s < step->input.n_seqs; s++)
        n = MAX(n, step->input.ctx_len[s]);
    return (uint64_t)n;
}

void davit_step_size(DavitStep *step)
{
    const uint64_t ctx = longest_context(step);
    for (uint32_t d = 0; d < step->plan->n_devices; d++) {
        davit_batch *batch = &step->devices[d].batch;
        batch->n_tokens = step->input.n_tokens;
        batch->n_seqs = step->input.n_seqs;
        batch->n_rows = step->input.n_rows;
    }
    set_rows(step);
    for (size_t i = 0; i < step->plan->program->n_instrs; i++)
        ask_size(step, i, step->input.n_tokens, step->input.n_rows, ctx, &step->work[i]);
}
