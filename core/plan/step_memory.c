/* SPDX-License-Identifier: Apache-2.0
 * What a step takes, before anything is loaded: kernels answer from shapes alone. */
#include <string.h>

#include "plan/cross.h"
#include "plan/layout.h"
#include "plan/memory.h"

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

uint64_t davit_batch_elems(uint64_t max_tokens, uint64_t max_seqs, uint64_t max_blocks,
                           uint64_t max_rows, uint64_t out_off[DAVIT_BATCH_ARRAYS])
{
    const uint64_t t = max_tokens, s = max_seqs, r = max_rows;
    const uint64_t len[DAVIT_BATCH_ARRAYS] = {t, t, t, s + 1, s, s * max_blocks, s, s, s, s, r};
    uint64_t at = 0;

    for (size_t i = 0; i < DAVIT_BATCH_ARRAYS; i++) {
        out_off[i] = at;
        at = align_up(at + len[i], 16); /* 64 bytes */
    }
    return at;
}

/* A weight without its bytes. */
static void fill_weight(const DavitPlan *plan, const DavitWeightRef *ref, davit_weight *out)
{
    const DavitSlot *slot = ref->slot < 0 ? NULL : &plan->slots[ref->slot];

    if (!slot) {
        *out = (davit_weight){.layout = davit_intern("f32/1"),
                              .n_experts = 1,
                              .n_rows = ref->n_rows,
                              .n_cols = ref->n_cols};
        return;
    }
    if (slot->tied_to >= 0)
        slot = &plan->slots[slot->tied_to];
    *out = (davit_weight){.layout = slot->layout,
                          .n_experts = slot->n_experts,
                          .n_rows = slot->n_rows,
                          .n_cols = slot->n_cols};
    if (slot->n_sources > 0 && slot->access == DAVIT_ACCESS_PACK)
        davit_pack_params(slot->pack, slot, &slot->sources[0], out->params);
    else if (slot->n_sources > 0 && slot->access != DAVIT_ACCESS_DECODE)
        memcpy(out->params, slot->sources[0].module->desc->params, sizeof out->params);
}

typedef struct Asking {
    const DavitPlan *plan;
    const davit_batch *batch;
    davit_state *states;   /* [n_states] */
    davit_weight *weights; /* [n_weights] */
    uint64_t tokens, ctx;
} Asking;

static void ask(const Asking *a, const DavitInstr *instr, davit_work *work)
{
    const DavitProgram *program = a->plan->program;
    davit_call call = {.struct_size = DAVIT_END(davit_call, weight),
                       .self = instr->self,
                       .op = instr->op,
                       .attr = instr->attr,
                       .batch = a->batch,
                       .state = instr->state >= 0 ? &a->states[instr->state] : NULL,
                       .n_in = instr->n_in,
                       .n_out = instr->n_out,
                       .n_weights = instr->n_weights};

    *work = (davit_work){.struct_size = DAVIT_END(davit_work, n_tasks)};
    if (!instr->entry || !instr->entry->size)
        return; /* an op of the core, or one without scratch */
    for (uint32_t k = 0; k < instr->n_in; k++)
        call.in[k] = (davit_value){.width = program->values[instr->in[k]].width,
                                   .dtype = program->values[instr->in[k]].dtype};
    for (uint32_t k = 0; k < instr->n_out; k++)
        call.out[k] = (davit_value){.width = program->values[instr->out[k]].width,
                                    .dtype = program->values[instr->out[k]].dtype};
    for (uint32_t k = 0; k < instr->n_weights; k++)
        call.weight[k] = instr->weight[k] >= 0 ? &a->weights[instr->weight[k]] : NULL;
    instr->entry->size(instr->self, &call, a->tokens, 1, a->ctx, work);
}

/* Most that a call on device @d asks for, all workers together. */
static uint64_t scratch_bytes(const Asking *a, uint32_t d, unsigned n_workers)
{
    const DavitProgram *program = a->plan->program;
    const uint64_t align = a->plan->devices[d].align;
    uint64_t shared = 0, worker = 0;

    for (size_t i = 0; i < program->n_instrs; i++) {
        davit_work work;

        if (program->instrs[i].device != d)
            continue;
        ask(a, &program->instrs[i], &work);
        shared = MAX(shared, align_up(work.scratch_bytes, align));
        worker = MAX(worker, align_up(work.worker_bytes, align));
    }
    return shared + (d == DAVIT_ON_HOST ? n_workers : 1) * worker;
}

static uint64_t state_bytes(const DavitPlan *plan, uint32_t d, uint64_t n_blocks)
{
    uint64_t sum = 0;

    for (size_t s = 0; s < plan->program->n_states; s++)
        sum += plan->program->state_device[s] == d ? plan->program->state_block_bytes[s] : 0;
    return sum * n_blocks;
}

/* What device @d takes; @array_bytes of a batch. False on overflow. */
static bool memory_of(const Asking *a, uint32_t d, unsigned n_workers, uint64_t array_bytes,
                      DavitStepMemory *out)
{
    const DavitProgram *program = a->plan->program;
    const DavitMemoryFor what = {d, a->tokens, 1, a->plan->devices[d].align};
    g_autofree uint64_t *value_off = g_new0(uint64_t, program->n_values + 1);

    *out = (DavitStepMemory){.value_bytes = davit_memory_place(program, &what, value_off),
                             .scratch_bytes = scratch_bytes(a, d, n_workers),
                             .array_bytes = align_up(array_bytes, what.align),
                             .state_bytes = state_bytes(a->plan, d, a->batch->max_blocks)};
    if (d == DAVIT_ON_HOST) {
        const DavitValue *output = &program->values[program->output];

        out->staging_bytes = davit_staging_bytes(program, a->tokens, 1);
        out->logit_bytes = output->device == d ? 0 : output->width * sizeof(float);
    }
    return out->value_bytes != UINT64_MAX;
}

bool davit_step_memory(const DavitPlan *plan, uint64_t max_tokens, uint64_t ctx,
                       unsigned n_workers, DavitStepMemory *out)
{
    const DavitProgram *program = plan->program;
    const uint64_t n_blocks = (ctx + plan->block_tokens - 1) / plan->block_tokens;
    const davit_batch batch = {.struct_size = DAVIT_END(davit_batch, tree_mask),
                               .block_tokens = plan->block_tokens,
                               .max_blocks = n_blocks};
    g_autofree davit_state *states = g_new0(davit_state, program->n_states + 1);
    g_autofree davit_weight *weights = g_new0(davit_weight, program->n_weights + 1);
    const Asking asking = {plan, &batch, states, weights, max_tokens, ctx};
    uint64_t array_off[DAVIT_BATCH_ARRAYS];
    const uint64_t array_bytes = 4 * davit_batch_elems(max_tokens, 1, n_blocks, 1, array_off);
    bool fits = true;

    for (size_t s = 0; s < program->n_states; s++)
        states[s] = (davit_state){.block_bytes = program->state_block_bytes[s],
                                  .spec = &program->states[s]};
    for (size_t w = 0; w < program->n_weights; w++)
        fill_weight(plan, &program->weights[w], &weights[w]);
    for (uint32_t d = 0; d < plan->n_devices; d++)
        fits &= memory_of(&asking, d, n_workers, array_bytes, &out[d]);
    return fits;
}

uint64_t davit_step_memory_sum(const DavitStepMemory *memory)
{
    return memory->value_bytes + memory->scratch_bytes + memory->array_bytes +
           memory->staging_bytes + memory->logit_bytes;
}
