/* SPDX-License-Identifier: Apache-2.0
 * One step of a program. All workers walk the instructions together; the tasks of a phase are
 * shared out and a barrier ends it. On a device one thread enqueues everything in order and
 * waits once, at the end. */
#include <math.h>
#include <string.h>

#include "exec/ahead.h"
#include "exec/arena.h"
#include "exec/collective.h"
#include "exec/exec.h"
#include "exec/kv.h"
#include "plan/memory.h"
#include "exec/pool.h"
#include "exec/verify.h"
#include "plugin/running.h"

struct DavitStep {
    const DavitPlan *plan;
    const DavitWeights *weights;
    bool drops;              /* layers are given back after they ran */
    DavitAhead *ahead;       /* (owned) reads layers that drop; NULL = none */
    DavitKv *kv;
    DavitPool *pool;
    DavitComm *comm;         /* NULL = one process */
    const davit_kernel_entry **entries; /* [n_instrs] the plan's, or the core's own */
    uint64_t max_tokens, max_rows, max_seqs, max_ctx, max_blocks;
    /* values, scratch */
    DavitArena values;       /* host; or device memory in value_base */
    uint8_t *value_base;
    uint64_t *value_off;
    DavitArena scratch;
    uint8_t *scratch_base;   /* shared part, then the workers' */
    uint64_t shared_bytes, worker_bytes;
    davit_call *calls;       /* [n_instrs], fixed addresses */
    davit_work *work;        /* [n_instrs] of this step */
    davit_batch batch;       /* what kernels see */
    /* batch arrays, host side */
    DavitStepInput input;
    int32_t *arrays;         /* one allocation behind input's pointers */
    uint64_t array_off[DAVIT_BATCH_ARRAYS]; /* elements from arrays */
    uint64_t n_elems;
    /* device only */
    const davit_device_iface *device;
    void *device_self;
    void *queue;
    uint8_t *device_arrays;
    float *host_logits;      /* [max_rows, vocab] */
    uint64_t vocab;
};

/* ---- batch arrays ---- */

/* Lay out the eleven int32 arrays of a step; the same order on host and device. */
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

static void point_batch(DavitStep *step, const int32_t *base)
{
    const uint64_t *off = step->array_off;
    step->batch = (davit_batch){.struct_size = DAVIT_END(davit_batch, tree_mask),
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

/* ---- calls ---- */

static void default_work(const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                         const DavitValue *out, davit_work *work)
{
    (void)call;
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
    if (entry->size)
        entry->size(step->calls[i].self, &step->calls[i], n_tokens, n_rows, ctx, work);
    else
        default_work(&step->calls[i], n_tokens, n_rows,
                     instr->n_out ? &program->values[instr->out[0]] : NULL, work);
}

static void set_value(davit_value *out, const DavitStep *step, int32_t value)
{
    const DavitValue *v = &step->plan->program->values[value];
    /* sizes are asked before the memory is taken */
    *out = (davit_value){.data = step->value_base ? step->value_base + step->value_off[value]
                                                  : NULL,
                         .width = v->width,
                         .dtype = v->dtype};
}

static void make_calls(DavitStep *step, const DavitWeights *weights)
{
    const DavitProgram *program = step->plan->program;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        davit_call *call = &step->calls[i];
        step->entries[i] = instr->entry ? instr->entry : davit_collective_entry(instr->op);
        *call = (davit_call){.struct_size = DAVIT_END(davit_call, weight),
                             .self = instr->entry ? instr->self : step->comm,
                             .op = instr->op,
                             .attr = instr->attr,
                             .batch = &step->batch,
                             .state = instr->state >= 0 ? &step->kv->states[instr->state] : NULL,
                             .n_in = instr->n_in,
                             .n_out = instr->n_out,
                             .n_weights = instr->n_weights};
        for (uint32_t k = 0; k < instr->n_in; k++)
            set_value(&call->in[k], step, instr->in[k]);
        for (uint32_t k = 0; k < instr->n_out; k++)
            set_value(&call->out[k], step, instr->out[k]);
        for (uint32_t k = 0; k < instr->n_weights; k++)
            call->weight[k] = instr->weight[k] >= 0
                                  ? davit_weights_get(weights, (size_t)instr->weight[k])
                                  : NULL;
    }
}

static void set_rows(DavitStep *step)
{
    const DavitProgram *program = step->plan->program;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        davit_call *call = &step->calls[i];
        for (uint32_t k = 0; k < instr->n_in; k++)
            call->in[k].n_rows = program->values[instr->in[k]].rows == DAVIT_ROWS_R
                                     ? step->batch.n_rows
                                     : step->batch.n_tokens;
        for (uint32_t k = 0; k < instr->n_out; k++)
            call->out[k].n_rows = program->values[instr->out[k]].rows == DAVIT_ROWS_R
                                      ? step->batch.n_rows
                                      : step->batch.n_tokens;
    }
}

/* ---- memory ---- */

static int32_t short_of(const char *what, uint64_t n_bytes, DavitReport *report)
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

static int32_t take_block(DavitStep *step, DavitArena *arena, uint8_t **out, uint64_t n_bytes,
                          const char *what, DavitReport *report)
{
    if (!step->device) {
        const int32_t status = davit_arena_init(arena, n_bytes, false, what, report);
        *out = arena->base;
        return status;
    }
    *out = n_bytes ? step->device->alloc(step->device_self, 0, n_bytes) : NULL;
    return *out || n_bytes == 0 ? DAVIT_OK : short_of(what, n_bytes, report);
}

static int32_t take_memory(DavitStep *step, DavitReport *report)
{
    const DavitProgram *program = step->plan->program;
    const uint64_t align = step->plan->device_align;
    const uint64_t n = davit_memory_place(program, step->max_tokens, step->max_rows, align,
                                          step->value_off);
    if (n == 0)
        return short_of("values", UINT64_MAX, report);
    int32_t status =
        take_block(step, &step->values, &step->value_base, n, "values", report);
    if (status)
        return status;

    for (size_t i = 0; i < program->n_instrs; i++) {
        davit_work work;
        ask_size(step, i, step->max_tokens, step->max_rows, step->max_ctx, &work);
        step->shared_bytes = MAX(step->shared_bytes, davit_align_up(work.scratch_bytes, align));
        step->worker_bytes = MAX(step->worker_bytes, davit_align_up(work.worker_bytes, align));
    }
    const uint64_t workers = step->device ? 1 : davit_pool_threads(step->pool);
    return take_block(step, &step->scratch, &step->scratch_base,
                      step->shared_bytes + workers * step->worker_bytes, "scratch", report);
}

static int32_t open_device(DavitStep *step, DavitReport *report)
{
    DavitComponent *component = step->plan->device_kernels;
    const davit_kernels_iface *kernels;
    int32_t status = davit_component_use(component, (const void **)&kernels, &step->device_self,
                                         report);
    if (status)
        return status;
    step->device = kernels->device_iface;
    DavitSink sink;
    davit_sink_init(&sink, report, component->id, "run");
    status = davit_sink_done(
        &sink, step->device->queue_open(step->device_self, 0, &step->queue, &sink.abi));
    if (status)
        return status;
    step->device_arrays = step->device->alloc(step->device_self, 0, step->n_elems * 4);
    if (!step->device_arrays)
        return short_of("batch arrays", step->n_elems * 4, report);
    step->host_logits = g_try_malloc_n(step->max_rows * step->vocab, sizeof(float));
    return step->host_logits ? DAVIT_OK : short_of("logits", step->max_rows * step->vocab * 4,
                                                   report);
}

/* ---- life ---- */

static int32_t step_init(DavitStep *step, const DavitWeights *weights, DavitReport *report)
{
    const DavitProgram *program = step->plan->program;
    step->vocab = program->values[program->output].width;
    step->value_off = g_new0(uint64_t, program->n_values);
    step->calls = g_new0(davit_call, program->n_instrs);
    step->entries = g_new0(const davit_kernel_entry *, program->n_instrs);
    step->work = g_new0(davit_work, program->n_instrs);
    place_arrays(step);
    if (step->plan->device_kernels) {
        const int32_t status = open_device(step, report);
        if (status)
            return status;
    }
    point_batch(step, step->device ? (const int32_t *)(const void *)step->device_arrays
                                   : step->arrays);
    make_calls(step, weights); /* sizes are asked of calls; addresses come with the memory */
    const int32_t status = take_memory(step, report);
    if (status)
        return status;
    make_calls(step, weights);
    for (size_t i = 0; i < program->n_instrs; i++) {
        step->calls[i].scratch = step->scratch_base;
        step->calls[i].worker_scratch =
            step->scratch_base ? step->scratch_base + step->shared_bytes : NULL;
        step->calls[i].worker_bytes = step->worker_bytes;
    }
    return DAVIT_OK;
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
    for (size_t i = 0; i < plan->n_slots; i++)
        step->drops |= plan->slots[i].way == DAVIT_WAY_DEFER;
    if (step->drops)
        step->ahead = davit_ahead_new(plan);
    step->max_blocks = (limits->n_ctx + plan->block_tokens - 1) / plan->block_tokens;
    if (step_init(step, weights, report))
        return NULL;
    return g_steal_pointer(&step);
}

void davit_step_free(DavitStep *step)
{
    if (!step)
        return;
    davit_ahead_free(step->ahead);
    if (step->device) {
        if (step->value_base)
            step->device->free(step->device_self, 0, step->value_base);
        if (step->scratch_base)
            step->device->free(step->device_self, 0, step->scratch_base);
        if (step->device_arrays)
            step->device->free(step->device_self, 0, step->device_arrays);
        if (step->queue)
            step->device->queue_close(step->device_self, step->queue);
    }
    davit_arena_clear(&step->values);
    davit_arena_clear(&step->scratch);
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
    return step->values.n_bytes + step->scratch.n_bytes + step->n_elems * 4;
}

/* ---- running ---- */

static uint64_t longest_context(const DavitStep *step)
{
    int32_t n = 0;
    for (uint64_t s = 0; s < step->input.n_seqs; s++)
        n = MAX(n, step->input.ctx_len[s]);
    return (uint64_t)n;
}

static bool ends_layer(const DavitProgram *program, size_t i)
{
    /* what belongs to no layer, embedding and head, is given back when the step ends */
    if (i + 1 == program->n_instrs)
        return true;
    return program->instrs[i].layer >= 0 &&
           program->instrs[i + 1].layer != program->instrs[i].layer;
}

static bool begins_layer(const DavitProgram *program, size_t i)
{
    return program->instrs[i].layer >= 0 &&
           (i == 0 || program->instrs[i - 1].layer != program->instrs[i].layer);
}

static void run_host(void *ctx, unsigned worker)
{
    DavitStep *step = ctx;
    const DavitProgram *program = step->plan->program;
    uint64_t phase_no = 0, first, count;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const davit_kernel_entry *entry = step->entries[i];
        const davit_work *work = &step->work[i];
        const DavitComponent *kernels = program->instrs[i].kernels;
        if (step->ahead && worker == 0 && begins_layer(program, i))
            davit_ahead_begin(step->ahead, program->instrs[i].layer);
        davit_running_set(kernels ? kernels->id : NULL, program->instrs[i].op);
        for (uint32_t phase = 0; phase < work->n_phases; phase++, phase_no++) {
            while (davit_pool_take(step->pool, phase_no, work->n_tasks[phase], &first, &count))
                entry->run(&step->calls[i], phase, first, count, worker, NULL);
            davit_pool_barrier(step->pool);
        }
        /* behind the barrier: the others may begin with the next layer's ops */
        if (step->drops && worker == 0 && ends_layer(program, i))
            davit_weights_drop_layer(step->weights, program->instrs[i].layer);
    }
    davit_running_set(NULL, NULL);
}

static int32_t run_device(DavitStep *step, DavitReport *report)
{
    const DavitProgram *program = step->plan->program;
    const davit_device_iface *device = step->device;
    DavitSink sink;
    davit_sink_init(&sink, report, step->plan->device_kernels->id, "run");
    int32_t status = device->upload(step->device_self, step->queue, step->device_arrays,
                                    step->arrays, step->n_elems * sizeof(int32_t));
    for (size_t i = 0; !status && i < program->n_instrs; i++)
        for (uint32_t phase = 0; phase < step->work[i].n_phases; phase++)
            step->entries[i]->run(&step->calls[i], phase, 0, 1, 0, step->queue);
    if (!status)
        status = device->download(step->device_self, step->queue, step->host_logits,
                                  step->value_base + step->value_off[program->output],
                                  step->batch.n_rows * step->vocab * sizeof(float));
    if (!status)
        status = device->wait(step->device_self, step->queue, &sink.abi);
    return davit_sink_done(&sink, status);
}

static int32_t check_finite(const DavitStep *step, const float *logits, DavitReport *report)
{
    for (uint64_t r = 0; r < step->batch.n_rows; r++) {
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
    const DavitProgram *program = step->plan->program;
    const DavitStepInput *in = &step->input;
    g_assert(in->n_tokens > 0 && in->n_tokens <= step->max_tokens);
    g_assert(in->n_rows <= step->max_rows && in->n_seqs <= step->max_seqs);
    step->batch.n_tokens = in->n_tokens;
    step->batch.n_seqs = in->n_seqs;
    step->batch.n_rows = in->n_rows;
    set_rows(step);
    const uint64_t ctx = longest_context(step);
    for (size_t i = 0; i < program->n_instrs; i++)
        ask_size(step, i, in->n_tokens, in->n_rows, ctx, &step->work[i]);

    const float *logits = step->host_logits;
    if (step->device) {
        const int32_t status = run_device(step, report);
        if (status)
            return status;
    } else {
        davit_pool_run(step->pool, run_host, step);
        if (step->comm && davit_comm_check(step->comm, report))
            return DAVIT_E_IO;
        logits = (const float *)(const void *)(step->value_base +
                                               step->value_off[program->output]);
    }
    *out_logits = logits;
    return check_finite(step, logits, report);
}
