/* SPDX-License-Identifier: Apache-2.0
 * One call made as step.c makes it, apart from its program: inputs are numbers near zero, ids
 * are spread over the experts, and what comes out is not looked at. */
#include "exec/measure.h"

#include <string.h>
#include <time.h>

#include "exec/arena.h"
#include "exec/kv.h"
#include "exec/pool.h"
#include "plugin/running.h"

#define N_BUFFERS (DAVIT_MAX_IN + DAVIT_MAX_OUT + 1) /* inputs, outputs, scratch */
#define MIN_BYTES ((uint64_t)64)
#define MAX_CALLS 65536u

typedef struct Buffer {
    DavitArena arena;
    uint64_t n_bytes;
} Buffer;

struct DavitMeasure {
    const DavitPlan *plan;
    const DavitWeights *weights;
    DavitKv *kv;
    DavitPool *pool;
    uint64_t max_tokens, max_blocks, vocab;
    int32_t *token, *position, *seq, *blocks;
    int32_t query_start[2], ctx_len, zero, none, logit_row;
    davit_batch batch;
    Buffer buffer[N_BUFFERS];
    davit_call call;
    davit_work work;
    const davit_kernel_entry *entry; /* (borrowed) */
    uint64_t n_calls;                /* in a row */
};

DavitMeasure *davit_measure_new(const DavitPlan *plan, const DavitWeights *weights,
                                unsigned n_threads, uint64_t max_tokens, DavitReport *report)
{
    g_autoptr(DavitMeasure) m = g_new0(DavitMeasure, 1);
    m->plan = plan;
    m->weights = weights;
    m->max_tokens = max_tokens;
    m->max_blocks = (max_tokens + plan->block_tokens - 1) / plan->block_tokens;
    m->vocab = MAX(plan->vocab, 1);
    m->kv = davit_kv_new(plan, m->max_blocks, report);
    if (!m->kv)
        return NULL;
    m->pool = davit_pool_new(n_threads);
    m->token = g_new(int32_t, max_tokens);
    m->position = g_new(int32_t, max_tokens);
    m->seq = g_new0(int32_t, max_tokens);
    m->blocks = g_new(int32_t, m->max_blocks);
    for (uint64_t b = 0; b < m->max_blocks; b++)
        m->blocks[b] = (int32_t)b;
    return g_steal_pointer(&m);
}

void davit_measure_free(DavitMeasure *m)
{
    if (!m)
        return;
    for (size_t b = 0; b < N_BUFFERS; b++)
        davit_arena_clear(&m->buffer[b].arena);
    davit_pool_free(m->pool);
    davit_kv_free(m->kv);
    g_free(m->token);
    g_free(m->position);
    g_free(m->seq);
    g_free(m->blocks);
    g_free(m);
}

/* The last @n_tokens of a sequence of max_tokens; the last one is the logit row. */
static void set_batch(DavitMeasure *m, uint64_t n_tokens)
{
    for (uint64_t t = 0; t < n_tokens; t++) {
        m->position[t] = (int32_t)(m->max_tokens - n_tokens + t);
        m->token[t] = (int32_t)(t * 7919 % m->vocab);
    }
    m->query_start[1] = m->logit_row = (int32_t)n_tokens;
    m->logit_row--;
    m->ctx_len = (int32_t)m->max_tokens;
    m->none = -1;
    m->batch = (davit_batch){.struct_size = DAVIT_END(davit_batch, tree_mask),
                             .n_tokens = n_tokens,
                             .n_seqs = 1,
                             .n_rows = 1,
                             .block_tokens = m->plan->block_tokens,
                             .max_blocks = m->max_blocks,
                             .token = m->token,
                             .position = m->position,
                             .seq = m->seq,
                             .query_start = m->query_start,
                             .ctx_len = &m->ctx_len,
                             .block_table = m->blocks,
                             .state_in = &m->zero,
                             .state_out = &m->zero,
                             .rope_n = &m->ctx_len,
                             .adapter = &m->none,
                             .logit_row = &m->logit_row};
}

/* (borrowed) At least @n_bytes; NULL after a record. */
static void *take(Buffer *buffer, uint64_t n_bytes, DavitReport *report)
{
    n_bytes = MAX(n_bytes, MIN_BYTES);
    if (n_bytes > buffer->n_bytes) {
        davit_arena_clear(&buffer->arena);
        buffer->n_bytes = 0;
        if (davit_arena_init(&buffer->arena, n_bytes, false, "measured values", report))
            return NULL;
        buffer->n_bytes = n_bytes;
    }
    return buffer->arena.base;
}

static bool set_value(DavitMeasure *m, davit_value *out, int32_t value, size_t buffer,
                      DavitReport *report)
{
    const DavitValue *v = &m->plan->program->values[value];
    const uint64_t n = v->rows == DAVIT_ROWS_R ? m->batch.n_rows : m->batch.n_tokens;
    *out = (davit_value){.n_rows = n,
                         .width = v->width,
                         .dtype = v->dtype,
                         .data = take(&m->buffer[buffer], n * v->width * 4, report)};
    return out->data != NULL;
}

/* Experts that the ids of a call choose among. */
static uint64_t count_experts(const davit_call *call)
{
    uint64_t n = 1;
    for (uint32_t w = 0; w < call->n_weights; w++)
        if (call->weight[w])
            n = MAX(n, call->weight[w]->n_experts);
    return n;
}

static void fill(const davit_value *value, uint64_t n_experts)
{
    uint32_t seed = 1;
    for (uint64_t r = 0; r < value->n_rows; r++) {
        for (uint64_t k = 0; k < value->width; k++) {
            const uint64_t at = r * value->width + k;
            seed = seed * 1664525u + 1013904223u;
            if (strcmp(value->dtype, "i32/1") == 0)
                ((int32_t *)value->data)[at] = (int32_t)((r + k) % n_experts);
            else
                ((float *)value->data)[at] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
        }
    }
}

static bool set_call(DavitMeasure *m, size_t index, void *self, const void *attr,
                     DavitReport *report)
{
    const DavitInstr *instr = &m->plan->program->instrs[index];
    davit_call *call = &m->call;
    bool good = true;
    *call = (davit_call){.struct_size = DAVIT_END(davit_call, weight),
                         .self = self,
                         .op = instr->op,
                         .attr = attr,
                         .batch = &m->batch,
                         .state = instr->state >= 0 ? &m->kv->states[instr->state] : NULL,
                         .n_in = instr->n_in,
                         .n_out = instr->n_out,
                         .n_weights = instr->n_weights};
    for (uint32_t k = 0; k < instr->n_weights; k++)
        call->weight[k] = instr->weight[k] >= 0
                              ? davit_weights_get(m->weights, (size_t)instr->weight[k])
                              : NULL;
    for (uint32_t k = 0; good && k < instr->n_in; k++) {
        good = set_value(m, &call->in[k], instr->in[k], k, report);
        if (good)
            fill(&call->in[k], count_experts(call));
    }
    for (uint32_t k = 0; good && k < instr->n_out; k++)
        good = set_value(m, &call->out[k], instr->out[k], DAVIT_MAX_IN + k, report);
    return good;
}

/* Phases and tasks; scratch as the entry asks for it. */
static bool set_work(DavitMeasure *m, uint64_t n_tokens, DavitReport *report)
{
    const davit_call *call = &m->call;
    m->work = (davit_work){.struct_size = DAVIT_END(davit_work, n_tasks)};
    if (m->entry->size) {
        m->entry->size(call->self, call, n_tokens, m->batch.n_rows, m->max_tokens, &m->work);
    } else {
        m->work.n_phases = 1;
        m->work.n_tasks[0] = call->n_out ? call->out[0].n_rows : n_tokens;
    }
    const uint64_t shared = davit_align_up(m->work.scratch_bytes, 64);
    m->call.worker_bytes = davit_align_up(m->work.worker_bytes, 64);
    uint8_t *scratch = take(&m->buffer[N_BUFFERS - 1],
                            shared + davit_pool_threads(m->pool) * m->call.worker_bytes, report);
    m->call.scratch = scratch;
    m->call.worker_scratch = scratch ? scratch + shared : NULL;
    return scratch != NULL;
}

/* As in a step: workers stay awake from one call to the next. */
static void run_calls(void *ctx, unsigned worker)
{
    const DavitMeasure *m = ctx;
    uint64_t phase_no = 0, first, count;
    for (uint64_t n = 0; n < m->n_calls; n++) {
        for (uint32_t phase = 0; phase < m->work.n_phases; phase++, phase_no++) {
            while (davit_pool_take(m->pool, phase_no, m->work.n_tasks[phase], &first, &count))
                m->entry->run(&m->call, phase, first, count, worker, NULL);
            davit_pool_barrier(m->pool);
        }
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* (owned) The attributes, with zeros behind them up to what the entry knows. */
static void *padded_attr(const DavitInstr *instr, const davit_kernel_entry *entry)
{
    uint64_t n = 0; /* an attribute struct begins with its size */
    if (!instr->attr)
        return NULL;
    memcpy(&n, instr->attr, sizeof n);
    void *out = g_malloc0(MAX(n, entry->attr_size));
    memcpy(out, instr->attr, n);
    return out;
}

double davit_measure_time(DavitMeasure *m, size_t index, const davit_kernel_entry *entry,
                          void *self, uint64_t n_tokens, uint64_t min_ns, DavitReport *report)
{
    g_autofree void *attr = padded_attr(&m->plan->program->instrs[index], entry);
    uint64_t spent;
    g_assert(n_tokens > 0 && n_tokens <= m->max_tokens);
    set_batch(m, n_tokens);
    m->entry = entry;
    if (!set_call(m, index, self, attr, report) || !set_work(m, n_tokens, report))
        return 0;
    davit_running_set(NULL, m->call.op);
    for (m->n_calls = 1;; m->n_calls *= 4) { /* the short ones warm caches and pages */
        const uint64_t begin = now_ns();
        davit_pool_run(m->pool, run_calls, m);
        spent = now_ns() - begin;
        if (spent >= min_ns || m->n_calls >= MAX_CALLS)
            break;
    }
    davit_running_set(NULL, NULL);
    return MAX((double)spent / (double)m->n_calls, 1.0);
}
