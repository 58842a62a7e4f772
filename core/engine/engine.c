/* SPDX-License-Identifier: Apache-2.0
 * davit_engine: memory for one sequence, prefill in chunks, a queue of requests served in
 * order. Kernels get the full batch descriptor, so serving several at once changes only this
 * file. */
#include "engine/private.h"
#include "exec/budget.h"
#include "exec/device.h"
#include "exec/pool.h"

#include <string.h>

#include <davit/ops.h>

#include "source/guard.h"

#define DEFAULT_CHUNK 512u
#define DEFAULT_CTX 4096u         /* when the file does not state a maximum */
#define EVAL_BYTES (32ull << 20)  /* logits of one eval step */

static davit_engine *checked(davit_engine *engine)
{
    return engine && engine->magic == DAVIT_MAGIC_ENGINE ? engine : NULL;
}

/* Tokens whose keys and values take three quarters of what is free where they go. */
static uint64_t ctx_that_fits(const DavitPlan *plan)
{
    const DavitProgram *program = plan->program;
    uint64_t least = UINT64_MAX;
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        uint64_t sum = 0;
        for (size_t s = 0; s < program->n_states; s++)
            sum += program->state_device[s] == d ? program->state_block_bytes[s] : 0;
        if (sum == 0)
            continue;
        const uint64_t have =
            d == DAVIT_ON_HOST ? davit_budget_free(NULL) : davit_exec_free_bytes(plan, d);
        least = MIN(least, have / 4 * 3 / (sum / plan->block_tokens + 1));
    }
    return least;
}

/* The context asked for, or the model's maximum as far as it fits three quarters of the free
 * memory. */
static uint64_t choose_ctx(const davit_model *m, uint64_t asked, DavitReport *report)
{
    const uint64_t most = m->plan->max_ctx ? m->plan->max_ctx : DEFAULT_CTX;
    if (asked && m->plan->max_ctx && asked > most)
        davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_CONTEXT_EXCEEDED,
                            .severity = DAVIT_WARNING,
                            .stage = "run",
                            .subject = "ctx",
                            .expected = davit_report_text(report, "at most %" G_GUINT64_FORMAT, most),
                            .found = davit_report_text(report, "%" G_GUINT64_FORMAT, asked),
                            .message = "the context is longer than the model was made for"});
    if (asked)
        return asked;
    const bool placed = g_strcmp0(m->plan->device_map, "auto") == 0;
    const uint64_t fits = placed ? m->plan->ctx : ctx_that_fits(m->plan);
    const uint64_t ctx = MAX(MIN(most, fits), 16);
    if (ctx < most || !m->plan->max_ctx)
        davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_ASSUMED,
                            .severity = DAVIT_NOTE,
                            .stage = "run",
                            .subject = "ctx",
                            .expected = davit_report_text(report, "%" G_GUINT64_FORMAT, most),
                            .found = davit_report_text(report, "%" G_GUINT64_FORMAT, ctx),
                            .message = placed ? "the context is what --device-map auto left room for"
                                       : m->plan->max_ctx
                                           ? "the context was cut to what fits the free memory"
                                           : "the model states no maximum context",
                            .hint = "--ctx sets it"});
    return ctx;
}

/* Ranks of one machine share its processors, unless told otherwise. */
static unsigned threads_of(const davit_model *m, uint32_t asked)
{
    return asked || !m->comm ? asked
                             : MAX(davit_pool_cpus() / davit_comm_size(m->comm), 1);
}

int davit_engine_new(davit_model *model, const davit_engine_params *params,
                     davit_engine **out_engine, davit_records **out_records)
{
    if (!model || model->magic != DAVIT_MAGIC_MODEL || !out_engine)
        return davit_usage("davit_engine_new needs a model and a place for the engine",
                           out_records);
    davit_engine_params p = {0};
    if (params)
        memcpy(&p, params, MIN(sizeof p, params->struct_size));
    DavitReport *report = davit_report_new();
    davit_engine *e = g_new0(davit_engine, 1);
    e->magic = DAVIT_MAGIC_ENGINE;
    e->model = model;
    e->losses = davit_guard_losses();
    e->kv_ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    e->chunk = p.chunk ? p.chunk : DEFAULT_CHUNK;
    e->ctx = choose_ctx(model, p.ctx, report);
    const uint64_t block = model->plan->block_tokens;
    const int32_t agreed = davit_engine_agree(e, report);
    if (agreed) {
        /* said */
    } else if (e->ctx > INT32_MAX - block) {
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_CONTEXT_EXCEEDED,
                                                 .status = DAVIT_E_LIMIT,
                                                 .stage = "run",
                                                 .subject = "ctx",
                                                 .expected = "fewer than 2^31 tokens",
                                                 .found = davit_report_text(
                                                     report, "%" G_GUINT64_FORMAT, e->ctx),
                                                 .message = "a context this long is not supported",
                                                 .hint = "lower --ctx"});
    } else {
        e->kv = davit_kv_new(model->plan, (e->ctx + block - 1) / block, report);
    }
    const bool ok = e->kv != NULL;
    if (ok)
        e->pool = davit_pool_new(threads_of(model, p.n_threads));
    else
        davit_engine_free(e);
    davit_records_give(report, out_records);
    if (!ok)
        return agreed ? agreed : DAVIT_LIB_LIMIT;
    *out_engine = e;
    return DAVIT_LIB_OK;
}

void davit_engine_free(davit_engine *engine)
{
    if (!checked(engine))
        return;
    davit_engine_dismiss(engine);
    for (GList *l = engine->requests.head; l; l = l->next)
        ((davit_request *)l->data)->engine = NULL;
    g_queue_clear(&engine->requests);
    davit_step_free(engine->step);
    davit_kv_free(engine->kv);
    davit_pool_free(engine->pool);
    if (engine->kv_ids)
        g_array_unref(engine->kv_ids);
    engine->magic = 0;
    g_free(engine);
}

uint64_t davit_engine_ctx(const davit_engine *engine)
{
    return engine->ctx;
}

uint32_t davit_engine_threads(const davit_engine *engine)
{
    return davit_pool_threads(engine->pool);
}

uint64_t davit_engine_bytes(const davit_engine *engine)
{
    const uint64_t block = engine->model->plan->block_tokens;
    const uint64_t blocks = (engine->kv_tokens + block - 1) / block;
    return (engine->step ? davit_step_bytes(engine->step) : 0) +
           blocks * davit_kv_bytes_per_block(engine->kv);
}

uint64_t davit_engine_crossed(const davit_engine *engine)
{
    DavitStepStats stats = {0};
    if (engine->step)
        davit_step_stats(engine->step, &stats);
    return engine->crossed_bytes + stats.crossed_bytes;
}

/* ---- steps ---- */

int32_t davit_engine_prepare(davit_engine *engine, uint64_t n_rows, DavitReport *report)
{
    const DavitStepLimits limits = {.n_tokens = MIN(engine->chunk, engine->ctx),
                                    .n_rows = n_rows,
                                    .n_seqs = 1,
                                    .n_ctx = engine->ctx};

    if (engine->step && engine->step_rows >= n_rows)
        return DAVIT_OK;
    engine->crossed_bytes = davit_engine_crossed(engine);
    davit_step_free(engine->step);
    engine->step = davit_step_new(engine->model->plan, engine->model->weights, engine->kv,
                                  engine->pool, engine->model->comm, &limits, report);
    engine->step_rows = engine->step ? n_rows : 0;
    return engine->step ? DAVIT_OK : DAVIT_E_LIMIT;
}

int32_t davit_engine_run(davit_engine *engine, const int32_t *ids, size_t n, size_t at,
                         size_t rope_n, bool all_rows, const float **out_logits,
                         DavitReport *report)
{
    DavitStepInput *in = davit_step_input(engine->step);
    const int32_t led = davit_engine_lead(engine, ids, n, at, rope_n, all_rows, report);
    if (led)
        return led;
    in->n_tokens = n;
    in->n_seqs = 1;
    in->n_rows = all_rows ? n : 1;
    for (size_t t = 0; t < n; t++) {
        in->token[t] = ids[t];
        in->position[t] = (int32_t)(at + t);
        in->seq[t] = 0;
    }
    for (size_t r = 0; r < in->n_rows; r++)
        in->logit_row[r] = (int32_t)(all_rows ? r : n - 1);
    in->query_start[0] = 0;
    in->query_start[1] = (int32_t)n;
    in->ctx_len[0] = (int32_t)(at + n);
    in->rope_n[0] = (int32_t)rope_n;
    in->adapter[0] = -1;
    for (uint64_t b = 0; b < in->max_blocks; b++)
        in->block_table[b] = (int32_t)b;
    engine->kv_tokens = MAX(engine->kv_tokens, at + n);
    g_array_set_size(engine->kv_ids, (guint)MIN(at, engine->kv_ids->len));
    const int32_t status = davit_step_run(engine->step, out_logits, report);
    /* a borrowed page that was lost has read as zeros: the answer is worth nothing */
    if (davit_guard_losses() != engine->losses &&
        davit_checkpoint_check(engine->model->checkpoint, report))
        return DAVIT_E_IO;
    if (!status && engine->kv_ids->len == at) {
        g_array_append_vals(engine->kv_ids, ids, (guint)n);
        engine->kv_rope_n = rope_n;
    }
    return status;
}

/* Do angles depend on the request's length? */
static bool rope_varies(const DavitProgram *program)
{
    for (size_t i = 0; i < program->n_instrs; i++) {
        const davit_rope_angles_attr *attr = program->instrs[i].attr;
        if (strcmp(program->instrs[i].op, DAVIT_OP_ROPE_ANGLES) == 0 && attr &&
            attr->select != DAVIT_ROPE_FIXED)
            return true;
    }
    return false;
}

size_t davit_engine_held(const davit_engine *engine, const int32_t *ids, size_t n,
                         uint64_t rope_n)
{
    const DavitProgram *program = engine->model->plan->program;
    const int32_t *held = (const int32_t *)(void *)engine->kv_ids->data;
    size_t same = 0;
    for (size_t s = 0; s < program->n_states; s++)
        if (program->states[s].kind != DAVIT_STATE_KV)
            return 0; /* what is not kept per token cannot go back to one */
    if (rope_n != engine->kv_rope_n && rope_varies(program))
        return 0;
    while (same < n && same < engine->kv_ids->len && held[same] == ids[same])
        same++;
    return same == n ? n - 1 : same; /* the last one is computed for its logits */
}

static int32_t check_ids(const davit_engine *engine, const int32_t *ids, size_t n,
                         DavitReport *report)
{
    const DavitProgram *program = engine->model->plan->program;
    const uint64_t n_vocab = program->values[program->output].width;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint64_t)ids[i] >= n_vocab)
            return davit_report_add(
                report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                        .status = DAVIT_E_USAGE,
                                        .stage = "run",
                                        .subject = davit_report_text(report, "token %zu", i),
                                        .expected = davit_report_text(
                                            report, "0 to %" G_GUINT64_FORMAT, n_vocab - 1),
                                        .found = davit_report_text(report, "%d", ids[i]),
                                        .message = "token id is outside the vocabulary"});
    return DAVIT_OK;
}

static int32_t check_length(const davit_engine *engine, size_t n_prompt, uint64_t max_tokens,
                            DavitReport *report)
{
    if (n_prompt <= engine->ctx && max_tokens <= engine->ctx - n_prompt)
        return DAVIT_OK;
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_CONTEXT_EXCEEDED,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "run",
                        .subject = "prompt",
                        .expected = davit_report_text(report, "at most %" G_GUINT64_FORMAT
                                                      " tokens", engine->ctx),
                        .found = davit_report_text(report, "%zu prompt + %" G_GUINT64_FORMAT
                                                   " new tokens", n_prompt, max_tokens),
                        .message = "prompt and answer do not fit the context",
                        .hint = "shorten the prompt, lower --max-tokens or raise --ctx"});
}

int davit_engine_eval(davit_engine *engine, const int32_t *ids, size_t n,
                      int (*row)(void *ctx, size_t position, const float *logits), void *ctx,
                      davit_records **out_records)
{
    if (!checked(engine) || !ids || n == 0 || !row)
        return davit_usage("davit_engine_eval needs an engine, ids and a callback", out_records);
    DavitReport *report = davit_report_new();
    const DavitProgram *program = engine->model->plan->program;
    const uint64_t n_vocab = program->values[program->output].width;
    const uint64_t rows =
        CLAMP(EVAL_BYTES / (n_vocab * sizeof(float)), 1, MIN(engine->chunk, engine->ctx));
    int32_t status = check_ids(engine, ids, n, report);
    if (!status)
        status = check_length(engine, n, 0, report);
    if (!status)
        status = davit_engine_prepare(engine, rows, report);
    for (size_t at = 0; !status && at < n; at += rows) {
        const float *logits;
        const size_t count = MIN(rows, n - at);
        status = davit_engine_run(engine, ids + at, count, at, n, true, &logits, report);
        for (size_t r = 0; !status && r < count; r++)
            if (!row(ctx, at + r, logits + r * n_vocab)) {
                davit_records_give(report, out_records);
                return DAVIT_LIB_OK;
            }
    }
    davit_records_give(report, out_records);
    return status;
}

/* ---- queue ---- */

int davit_request_submit(davit_engine *engine, const davit_request_params *params,
                         davit_request **out_request, davit_records **out_records)
{
    if (!checked(engine) || !params || !out_request ||
        params->struct_size < offsetof(davit_request_params, max_tokens))
        return davit_usage("davit_request_submit needs an engine and parameters", out_records);
    davit_request_params p = {0};
    memcpy(&p, params, MIN(sizeof p, params->struct_size));
    if (p.max_tokens == 0)
        p.max_tokens = 16;
    if (!p.prompt || p.n_prompt == 0)
        return davit_usage("the prompt has no tokens", out_records);

    DavitReport *report = davit_report_new();
    int32_t status = check_ids(engine, p.prompt, p.n_prompt, report);
    if (!status)
        status = check_length(engine, p.n_prompt, p.max_tokens, report);
    if (!status) {
        *out_request = davit_request_make(engine, &p);
        g_queue_push_tail(&engine->requests, *out_request);
    }
    davit_records_give(report, out_records);
    return status;
}

int davit_engine_step(davit_engine *engine)
{
    if (!checked(engine))
        return DAVIT_LIB_USAGE;
    davit_request *head = g_queue_peek_head(&engine->requests);
    if (!head)
        return 0;
    davit_request_work(head);
    if (head->state == DAVIT_REQUEST_DONE)
        g_queue_pop_head(&engine->requests);
    return (int)g_queue_get_length(&engine->requests);
}
