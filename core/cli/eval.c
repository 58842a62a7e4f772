/* SPDX-License-Identifier: Apache-2.0
 * davit eval: logits of given ids, perplexity of a text. Activations are float32 unless asked
 * otherwise: this is the reference path. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/repair.h"
#include "cli/run.h"

static const DavitFlag flags[] = {
    {"ids", 0, DAVIT_FLAG_TEXT, "\"1 2 3\"", "token ids to evaluate", NULL, NULL, false},
    {"logits", 0, DAVIT_FLAG_TEXT, "OUT.npy", "write float32 [T, V] logits, a row per position",
     NULL, NULL, false},
    {"ppl", 0, DAVIT_FLAG_TEXT, "FILE", "perplexity of a text file", NULL, NULL, false},
    {"ctx", 0, DAVIT_FLAG_COUNT, "N", "window of --ppl, 0 = 512", NULL, "0", false},
    {"chunk", 0, DAVIT_FLAG_COUNT, "N", "tokens computed at a time", NULL, "512", false},
    {"activations", 0, DAVIT_FLAG_CHOICE, "HOW", "precision of activations", "auto|f32|int8", "f32",
     false},
    {"layout", 0, DAVIT_FLAG_CHOICE, "HOW", "layout of weights in memory", "auto|stored|packed",
     "auto", false},
    {"kv-dtype", 0, DAVIT_FLAG_CHOICE, "TYPE",
     "storage of keys and values; without it f16, f32 under --activations f32", "f32|f16|fp8", NULL, false},
    {"block-tokens", 0, DAVIT_FLAG_COUNT, "N", "tokens per block of keys and values, 0 = default",
     NULL, "0", false},
    DAVIT_REPAIR_FLAGS,
    DAVIT_LOADING_FLAGS,
    DAVIT_PAGE_CACHE_FLAG,
    DAVIT_RANK_FLAGS,
    {"allow-draft", 0, DAVIT_FLAG_SWITCH, NULL, "take components of draft kinds", NULL, NULL,
     false},
    {0},
};
static const char *const examples[] = {
    "davit eval model/ --ids \"1 450 7483\" --logits out.npy", "logits of three positions",
    "davit eval model.gguf --ppl text.txt", "perplexity over windows of 512 tokens", NULL};

#define PPL_WINDOW 512u

typedef struct Rows {
    DavitCall *call;
    FILE *file;        /* NULL = none */
    const int32_t *ids;
    size_t n, n_vocab;
    double nll;        /* of ids[1..n) */
    int32_t *argmax;   /* [n] */
    bool bad;          /* a write failed */
} Rows;

static double log_sum_exp(const float *x, size_t n)
{
    double most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        most = MAX(most, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

static int take_row(void *ctx, size_t position, const float *logits)
{
    Rows *r = ctx;
    if (r->file && fwrite(logits, sizeof(float), r->n_vocab, r->file) != r->n_vocab)
        r->bad = true;
    if (r->argmax) {
        size_t best = 0;
        for (size_t i = 1; i < r->n_vocab; i++)
            if (logits[i] > logits[best])
                best = i;
        r->argmax[position] = (int32_t)best;
    }
    if (position + 1 < r->n && !r->argmax)
        r->nll += log_sum_exp(logits, r->n_vocab) - logits[r->ids[position + 1]];
    return !r->bad && !davit_interrupted();
}

static davit_engine *open_engine(DavitCall *call, davit_model *model, uint64_t ctx)
{
    const davit_engine_params params = {
        .struct_size = sizeof params,
        .n_threads = (uint32_t)MIN(davit_call_count(call, "threads"), 1024),
        .chunk = (uint32_t)MIN(davit_call_count(call, "chunk"), 65536),
        .ctx = ctx};
    davit_engine *engine = NULL;
    davit_records *records = NULL;
    davit_engine_new(model, &params, &engine, &records);
    davit_call_take_records(call, records);
    return engine;
}

static int eval_ids(DavitCall *call, davit_model *model, const GArray *ids)
{
    davit_model_info info = {.struct_size = sizeof info};
    davit_model_describe(model, &info);
    davit_engine *engine = open_engine(call, model, ids->len);
    if (!engine)
        return davit_call_exit(call);
    const char *path = davit_call_text(call, "logits");
    DavitOut out = {0};
    if (path && davit_outfile_open(&out, path, call->report)) {
        davit_engine_free(engine);
        return davit_call_exit(call);
    }
    g_autofree int32_t *argmax = g_new0(int32_t, ids->len);
    Rows rows = {.call = call,
                 .file = out.file,
                 .ids = (const int32_t *)(void *)ids->data,
                 .n = ids->len,
                 .n_vocab = info.n_vocab,
                 .argmax = argmax};
    const uint64_t shape[2] = {ids->len, info.n_vocab};
    if (out.file && !davit_npy_header(out.file, shape, 2))
        rows.bad = true;
    davit_records *records = NULL;
    const int status = davit_engine_eval(engine, rows.ids, rows.n, take_row, &rows, &records);
    davit_call_take_records(call, records);
    davit_engine_free(engine);
    if (path)
        davit_outfile_close(&out, status == 0 && !rows.bad && !davit_interrupted(), call->report);
    if (davit_interrupted())
        return DAVIT_EXIT_INTERRUPT;
    if (status)
        return davit_call_exit(call);

    json_t *best = json_array();
    for (guint i = 0; i < ids->len; i++) {
        json_array_append_new(best, json_integer(argmax[i]));
        if (!call->json && !(path && strcmp(path, "-") == 0))
            printf("%s%d", i ? " " : "", argmax[i]);
    }
    if (!call->json && !(path && strcmp(path, "-") == 0))
        printf("\n");
    json_object_set_new(call->doc, "argmax", best);
    json_object_set_new(call->doc, "n_tokens", json_integer(ids->len));
    json_object_set_new(call->doc, "n_vocab", json_integer((json_int_t)info.n_vocab));
    return davit_call_exit(call);
}

/* Non-overlapping windows; every token but the first of a window is predicted. */
static int eval_ppl(DavitCall *call, davit_model *model, const char *path)
{
    size_t len = 0, n_ids = 0;
    int32_t *ids = NULL;
    davit_records *records = NULL;
    g_autofree char *text = davit_call_read_file(call, path, &len);
    if (!text)
        return davit_call_exit(call);
    int status = davit_model_tokenize(model, text, len, 0, &ids, &n_ids, &records);
    davit_call_take_records(call, records);
    if (status)
        return davit_call_exit(call);
    if (n_ids < 2) {
        davit_free(ids);
        return davit_call_usage(call, path, "the text has fewer than two tokens", NULL);
    }
    davit_model_info info = {.struct_size = sizeof info};
    davit_model_describe(model, &info);
    const uint64_t window = davit_call_count(call, "ctx") ? davit_call_count(call, "ctx") : PPL_WINDOW;
    davit_engine *engine = window < 2 ? NULL : open_engine(call, model, window);
    if (window < 2)
        davit_call_usage(call, "--ctx", "a window needs two tokens", NULL);
    double nll = 0;
    uint64_t n_predicted = 0;
    for (size_t at = 0; engine && !status && at + 1 < n_ids && !davit_interrupted(); at += window) {
        Rows rows = {.call = call,
                     .ids = ids + at,
                     .n = MIN(window, n_ids - at),
                     .n_vocab = info.n_vocab};
        status = davit_engine_eval(engine, rows.ids, rows.n, take_row, &rows, &records);
        davit_call_take_records(call, records);
        nll += rows.nll;
        n_predicted += rows.n - 1;
    }
    davit_free(ids);
    davit_engine_free(engine);
    if (davit_interrupted())
        return DAVIT_EXIT_INTERRUPT;
    if (status || !engine)
        return davit_call_exit(call);
    const double ppl = exp(nll / (double)n_predicted);
    json_object_set_new(call->doc, "ppl", json_real(ppl));
    json_object_set_new(call->doc, "n_tokens", json_integer((json_int_t)n_predicted));
    json_object_set_new(call->doc, "window", json_integer((json_int_t)window));
    if (!call->json)
        printf("perplexity %.6f over %" G_GUINT64_FORMAT " tokens, windows of %" G_GUINT64_FORMAT
               "\n",
               ppl, n_predicted, window);
    return davit_call_exit(call);
}

static int run(DavitCall *call)
{
    const char *text = davit_call_text(call, "ids");
    const char *ppl = davit_call_text(call, "ppl");
    if (!text == !ppl)
        return davit_call_usage(call, "--ids", "give one of --ids and --ppl", NULL);
    g_autoptr(GArray) ids = text ? davit_parse_ids("--ids", text, call->report) : NULL;
    if (text && !ids)
        return davit_call_exit(call);
    if (text && ids->len == 0)
        return davit_call_usage(call, "--ids", "there are no ids", NULL);
    int code = davit_ranks_check(call);
    if (code)
        return code;
    const bool follows = davit_ranks_follows(call);
    call->json &= !follows; /* what goes wrong there is told on stderr */
    davit_catch_interrupt();
    davit_model *model = NULL;
    DavitRanks *ranks = NULL;
    if (davit_call_load(call, call->args[0], ppl && !follows ? 0 : 2, &model, &ranks))
        code = davit_call_exit(call);
    else if (follows)
        code = davit_call_follow(call, model);
    else
        code = ppl ? eval_ppl(call, model, ppl) : eval_ids(call, model, ids);
    davit_model_free(model);
    davit_ranks_end(ranks, code == DAVIT_EXIT_FAILED && !davit_interrupted());
    return davit_interrupted() ? DAVIT_EXIT_INTERRUPT : code;
}

const DavitCommand davit_command_eval = {
    .name = "eval",
    .args = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "logits of token ids, or perplexity of a text",
    .flags = flags,
    .examples = examples,
    .run = run,
};
