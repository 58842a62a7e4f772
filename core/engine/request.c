/* SPDX-License-Identifier: Apache-2.0
 * davit_request: one prompt, its tokens so far, its events. */
#include "engine/private.h"

#include <string.h>

static davit_request *checked(davit_request *request)
{
    return request && request->magic == DAVIT_MAGIC_REQUEST ? request : NULL;
}

static void event_free(void *data)
{
    DavitEvent *event = data;
    g_free(event->text);
    g_free(event);
}

davit_request *davit_request_make(davit_engine *engine, const davit_request_params *p)
{
    const davit_model *model = engine->model;
    const DavitProgram *program = model->plan->program;
    davit_request *r = g_new0(davit_request, 1);
    r->magic = DAVIT_MAGIC_REQUEST;
    r->engine = engine;
    r->model = engine->model;
    r->ids = g_array_sized_new(FALSE, FALSE, sizeof(int32_t), (guint)p->n_prompt);
    g_array_append_vals(r->ids, p->prompt, (guint)p->n_prompt);
    r->n_prompt = p->n_prompt;
    r->max_tokens = p->max_tokens;
    r->ignore_eos = p->ignore_eos;
    r->reuse_prefix = p->reuse_prefix;
    r->stop_ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    if (p->stop_ids)
        g_array_append_vals(r->stop_ids, p->stop_ids, (guint)p->n_stop_ids);
    const DavitSampling sampling = {.temperature = p->temperature,
                                    .top_p = p->top_p > 0 ? p->top_p : 1,
                                    .min_p = p->min_p,
                                    .top_k = p->top_k,
                                    .repeat_penalty = p->repeat_penalty > 0 ? p->repeat_penalty : 1,
                                    .presence_penalty = p->presence_penalty,
                                    .seed = p->seed};
    r->sampler = davit_sampler_new(&sampling, program->values[program->output].width);
    r->stop = davit_stop_new(p->stop);
    pthread_mutex_init(&r->lock, NULL);
    g_queue_init(&r->events);

    /* The decoder has seen the prompt, so that the first word keeps its blank. */
    g_autoptr(GString) sink = g_string_new(NULL);
    if (model->tokenizer)
        r->decoder = davit_decoder_new(model->tokenizer, true);
    for (size_t i = 0; i < p->n_prompt; i++) {
        davit_sampler_saw(r->sampler, p->prompt[i]);
        if (r->decoder)
            davit_decoder_push(r->decoder, p->prompt[i], sink);
    }
    return r;
}

/* ---- events ---- */

static void emit(davit_request *r, uint32_t kind, int32_t id, GString *text, const char *reason)
{
    DavitEvent *event = g_new0(DavitEvent, 1);
    event->kind = kind;
    event->id = id;
    event->len = text ? text->len : 0;
    event->text = text ? g_string_free(text, FALSE) : NULL;
    event->reason = reason;
    pthread_mutex_lock(&r->lock);
    g_queue_push_tail(&r->events, event);
    pthread_mutex_unlock(&r->lock);
}

static void finish(davit_request *r, const char *reason)
{
    GString *text = g_string_new(NULL);
    if (r->decoder && strcmp(reason, "stop string") != 0) {
        g_autoptr(GString) tail = g_string_new(NULL);
        davit_decoder_flush(r->decoder, tail);
        if (!davit_stop_push(r->stop, tail->str, tail->len, text))
            davit_stop_flush(r->stop, text);
    }
    r->stats.decode_seconds =
        r->t_first ? (double)(g_get_monotonic_time() - r->t_first) / G_USEC_PER_SEC : 0;
    r->state = DAVIT_REQUEST_DONE;
    emit(r, DAVIT_EVENT_FINISH, -1, text,
         strcmp(reason, "stop string") == 0 ? "stop" : reason);
}

static void fail(davit_request *r, DavitReport *report)
{
    r->state = DAVIT_REQUEST_DONE;
    r->error.report = report;
    emit(r, DAVIT_EVENT_ERROR, -1, NULL, NULL);
}

/* ---- work ---- */

static bool is_eos(const davit_request *r, int32_t id)
{
    size_t n;
    const int32_t *eos = davit_settings_eos_ids(r->model->settings, &n);
    for (size_t i = 0; i < n; i++)
        if (eos[i] == id)
            return true;
    for (guint i = 0; i < r->stop_ids->len; i++)
        if (g_array_index(r->stop_ids, int32_t, i) == id)
            return true;
    return false;
}

/* A new token was chosen: text, events, and whether the request goes on. */
static void accept_token(davit_request *r, int32_t id)
{
    g_array_append_val(r->ids, id);
    davit_sampler_saw(r->sampler, id);
    r->stats.decode_tokens++;
    const bool eos = !r->ignore_eos && is_eos(r, id);

    GString *shown = g_string_new(NULL);
    bool stopped = false;
    if (r->decoder && !eos) {
        g_autoptr(GString) text = g_string_new(NULL);
        davit_decoder_push(r->decoder, id, text);
        stopped = davit_stop_push(r->stop, text->str, text->len, shown);
    }
    emit(r, DAVIT_EVENT_TOKEN, id, shown, NULL);
    if (eos)
        finish(r, "stop");
    else if (stopped)
        finish(r, "stop string");
    else if (r->stats.decode_tokens >= r->max_tokens)
        finish(r, "length");
}

static void begin(davit_request *r)
{
    r->state = DAVIT_REQUEST_RUNNING;
    r->t_start = g_get_monotonic_time();
    r->stats.prompt_tokens = r->n_prompt;
    if (r->reuse_prefix)
        r->n_done = davit_engine_held(r->engine, (const int32_t *)(void *)r->ids->data,
                                      r->n_prompt, r->n_prompt + r->max_tokens);
    r->stats.reused_tokens = r->n_done;
}

void davit_request_work(davit_request *r)
{
    davit_engine *engine = r->engine;
    if (r->state == DAVIT_REQUEST_WAITING)
        begin(r);
    if (atomic_load(&r->cancelled)) {
        finish(r, "cancelled");
        return;
    }
    DavitReport *report = davit_report_new();
    if (davit_engine_prepare(engine, 1, report)) {
        fail(r, report);
        return;
    }
    const size_t n = MIN(r->ids->len - r->n_done, (size_t)engine->chunk);
    const int32_t *ids = &g_array_index(r->ids, int32_t, r->n_done);
    const float *logits;
    if (davit_engine_run(engine, ids, n, r->n_done, r->n_prompt + r->max_tokens, false, &logits,
                         report)) {
        fail(r, report);
        return;
    }
    davit_report_free(report);
    r->n_done += n;
    if (r->n_done < r->ids->len)
        return; /* more prompt to come */
    const int32_t id = davit_sampler_pick(r->sampler, logits, r->ids->len);
    if (!r->t_first) {
        r->t_first = g_get_monotonic_time();
        r->stats.prompt_seconds = (double)(r->t_first - r->t_start) / G_USEC_PER_SEC;
    }
    accept_token(r, id);
}

/* ---- the caller's side ---- */

int davit_request_next(davit_request *request, davit_event *out)
{
    if (!checked(request) || !out)
        return 0;
    pthread_mutex_lock(&request->lock);
    DavitEvent *event = g_queue_pop_head(&request->events);
    if (event) {
        g_free(request->last_text);
        request->last_text = event->text;
        event->text = NULL;
    }
    pthread_mutex_unlock(&request->lock);
    if (!event)
        return 0;
    const davit_event full = {.struct_size = out->struct_size,
                              .kind = event->kind,
                              .id = event->id,
                              .text = request->last_text ? request->last_text : "",
                              .text_len = event->len,
                              .finish_reason = event->reason,
                              .records = event->kind == DAVIT_EVENT_ERROR ? &request->error : NULL};
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    event_free(event);
    return 1;
}

void davit_request_cancel(davit_request *request)
{
    if (checked(request))
        atomic_store(&request->cancelled, 1);
}

void davit_request_free(davit_request *request)
{
    if (!checked(request))
        return;
    if (request->engine)
        g_queue_remove(&request->engine->requests, request);
    g_queue_clear_full(&request->events, event_free);
    pthread_mutex_destroy(&request->lock);
    davit_sampler_free(request->sampler);
    davit_stop_free(request->stop);
    davit_decoder_free(request->decoder);
    davit_report_free(request->error.report);
    g_array_unref(request->ids);
    g_array_unref(request->stop_ids);
    g_free(request->last_text);
    request->magic = 0;
    g_free(request);
}

int davit_request_describe(const davit_request *request, davit_request_stats *out)
{
    if (!request || request->magic != DAVIT_MAGIC_REQUEST || !out)
        return DAVIT_LIB_USAGE;
    davit_request_stats full = request->stats;
    full.struct_size = out->struct_size;
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    return DAVIT_LIB_OK;
}

davit_records *davit_request_take_error(davit_request *request)
{
    if (!checked(request) || !request->error.report)
        return NULL;
    davit_records *out;
    davit_records_give(g_steal_pointer(&request->error.report), &out);
    return out;
}

int davit_request_wait(davit_engine *engine, davit_request *request,
                       int (*event)(void *ctx, const davit_event *event), void *ctx)
{
    if (!checked(request) || !engine || request->engine != engine)
        return DAVIT_LIB_USAGE;
    for (;;) {
        davit_event e = {.struct_size = sizeof e};
        bool any = false;
        while (davit_request_next(request, &e)) {
            any = true;
            if (event && !event(ctx, &e))
                davit_request_cancel(request);
            if (e.kind == DAVIT_EVENT_FINISH)
                return DAVIT_LIB_OK;
            if (e.kind == DAVIT_EVENT_ERROR) {
                const DavitRecord *r = davit_report_first_error(request->error.report, 0);
                return r && r->status ? r->status : DAVIT_LIB_IO;
            }
        }
        const davit_event none = {.struct_size = sizeof none, .kind = DAVIT_EVENT_NONE, .text = ""};
        if (!any && event && request->state == DAVIT_REQUEST_RUNNING && !event(ctx, &none))
            davit_request_cancel(request);
        davit_engine_step(engine);
    }
}
