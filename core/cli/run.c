/* SPDX-License-Identifier: Apache-2.0
 * davit run: one completion. stdout carries the completion only. */
#include "cli/repair.h"
#include "cli/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/load_stats.h"
#include "cli/run_chat.h"
#include "cli/sampling.h"

static const DavitFlag flags[] = {
    {"model", 'm', DAVIT_FLAG_TEXT, "MODEL", "the model, instead of the argument", NULL, NULL,
     false},
    {"prompt", 'p', DAVIT_FLAG_TEXT, "TEXT", "text to complete as it stands; - reads stdin", NULL,
     NULL, false},
    {"prompt-file", 0, DAVIT_FLAG_TEXT, "FILE", "read the prompt from a file", NULL, NULL, false},
    {"ids", 0, DAVIT_FLAG_TEXT, "\"1 2 3\"", "token ids instead of text", NULL, NULL, false},
    {"max-tokens", 'n', DAVIT_FLAG_COUNT, "N", "most tokens to generate", NULL, "16", false},
    {"temperature", 0, DAVIT_FLAG_NUMBER, "X", "0 = greedy", NULL, "0", false},
    {"top-p", 0, DAVIT_FLAG_NUMBER, "P", "keep the likeliest tokens up to this probability", NULL,
     "1", false},
    {"top-k", 0, DAVIT_FLAG_COUNT, "K", "keep the K likeliest tokens, 0 = all", NULL, "0", false},
    {"min-p", 0, DAVIT_FLAG_NUMBER, "P", "keep tokens at least P times as likely as the best",
     NULL, "0", false},
    {"repeat-penalty", 0, DAVIT_FLAG_NUMBER, "X", "divide logits of tokens seen, 1 = off", NULL,
     "1", false},
    {"presence-penalty", 0, DAVIT_FLAG_NUMBER, "X", "subtract from logits of tokens seen", NULL,
     "0", false},
    {"seed", 0, DAVIT_FLAG_COUNT, "N", "seed of sampling", NULL, "0", false},
    {"sampling", 0, DAVIT_FLAG_CHOICE, "HOW",
     "greedy, or temperature, top-p and top-k as the model's files ask", "greedy|model", "greedy",
     false},
    {"stop", 0, DAVIT_FLAG_LIST, "TEXT", "end before this text; may be repeated", NULL, NULL,
     false},
    {"ignore-eos", 0, DAVIT_FLAG_SWITCH, NULL, "go on past end-of-text tokens", NULL, NULL, false},
    {"no-special", 0, DAVIT_FLAG_SWITCH, NULL, "add no BOS or the like to the prompt", NULL, NULL,
     false},
    {"safe", 0, DAVIT_FLAG_SWITCH, NULL, "text that looks like a special token stays text", NULL,
     NULL, false},
    {"stream", 0, DAVIT_FLAG_SWITCH, NULL, "print text as it comes", NULL, NULL, false},
    {"ctx", 0, DAVIT_FLAG_COUNT, "N", "longest prompt and answer, 0 = the model's or what fits",
     NULL, "0", false},
    {"chunk", 0, DAVIT_FLAG_COUNT, "N", "prompt tokens computed at a time", NULL, "512", false},
    {"activations", 0, DAVIT_FLAG_CHOICE, "HOW", "precision of activations", "auto|f32|int8",
     "auto", false},
    {"layout", 0, DAVIT_FLAG_CHOICE, "HOW", "layout of weights in memory", "auto|stored|packed",
     "auto", false},
    {"kv-dtype", 0, DAVIT_FLAG_CHOICE, "TYPE",
     "storage of keys and values; without it f16, f32 under --activations f32", "f32|f16|fp8", NULL, false},
    {"block-tokens", 0, DAVIT_FLAG_COUNT, "N", "tokens per block of keys and values, 0 = default",
     NULL, "0", false},
    DAVIT_REPAIR_FLAGS,
    DAVIT_LOADING_FLAGS,
    DAVIT_PAGE_CACHE_FLAG,
    {"load-stats", 0, DAVIT_FLAG_SWITCH, NULL, "print the load report on stderr", NULL, NULL,
     false},
    {"repeat", 0, DAVIT_FLAG_COUNT, "N", "answer the prompt N times", NULL, "1", false},
    {"max-num-seqs", 0, DAVIT_FLAG_COUNT, "N", "accepted for compatibility: requests run in turn",
     NULL, "32", false},
    {"chat", 0, DAVIT_FLAG_SWITCH, NULL,
     "conversation through the chat template: lines of stdin, or one --prompt", NULL, NULL, false},
    {"messages", 0, DAVIT_FLAG_TEXT, "FILE", "answer a JSON array of messages", NULL, NULL, false},
    {"system", 0, DAVIT_FLAG_TEXT, "TEXT", "system message before the others", NULL, NULL, false},
    {"raw", 0, DAVIT_FLAG_SWITCH, NULL, "no chat template: contents are completed as they stand",
     NULL, NULL, false},
    {"chat-template", 0, DAVIT_FLAG_TEXT, "FILE", "use this template file", NULL, NULL, false},
    {"template-name", 0, DAVIT_FLAG_TEXT, "NAME", "one of the model's named templates", NULL, NULL,
     false},
    {"trust-content", 0, DAVIT_FLAG_SWITCH, NULL, "control tokens inside message contents act",
     NULL, NULL, false},
    {"tokenizer-config", 0, DAVIT_FLAG_TEXT, "FILE",
     "template and special tokens of this tokenizer_config.json", NULL, NULL, false},
    {"tools", 0, DAVIT_FLAG_TEXT, "FILE", "JSON array of tool schemas for the chat template", NULL,
     NULL, false},
    {"speculative-config", 0, DAVIT_FLAG_TEXT, "JSON", "drafting: a document, or a file with it",
     NULL, NULL, false},
    {"offload-config", 0, DAVIT_FLAG_TEXT, "JSON", "offloading: a document, or a file with it", NULL,
     NULL, false},
    DAVIT_RANK_FLAGS,
    {"allow-draft", 0, DAVIT_FLAG_SWITCH, NULL, "take components of draft kinds", NULL, NULL,
     false},
    {0},
};

static const char *const examples[] = {
    "davit run SmolLM2.gguf --prompt \"The capital of France is\"", "complete a text, greedily",
    "davit run model/ --prompt-file story.txt --max-tokens 200 --stream --temperature 0.8 --seed 1",
    "sample a longer text and print it as it comes",
    "davit run model/ --ids \"1 450 7483\" --json", "ids in, one JSON document out",
    "davit run model.gguf --chat --system \"You are brief.\"", "a conversation, a line at a time",
    NULL,
};

typedef struct Answer {
    DavitCall *call;
    GString *text;
    GArray *ids;
    char *finish;
    bool stream;
    bool has_text; /* the model has a tokenizer */
    bool closed;   /* stdout is gone */
} Answer;

/* One line of --stream --json. */
static void print_event_line(Answer *a, const davit_event *e)
{
    json_t *line = json_pack("{s:s, s:i, s:o}", "event", "token", "id", (int)e->id, "text",
                             davit_json_text(e->text));
    char *text = json_dumps(line, JSON_COMPACT);
    a->closed |= !davit_out(text, strlen(text)) || !davit_out("\n", 1);
    free(text);
    json_decref(line);
}

static int take_event(void *ctx, const davit_event *e)
{
    Answer *a = ctx;
    if (e->kind == DAVIT_EVENT_TOKEN)
        g_array_append_val(a->ids, e->id);
    if (e->kind != DAVIT_EVENT_ERROR && e->text_len)
        g_string_append_len(a->text, e->text, (gssize)e->text_len);
    if (e->kind == DAVIT_EVENT_FINISH) {
        g_free(a->finish);
        a->finish = g_strdup(e->finish_reason);
    }
    if (a->stream && a->call->json && e->kind == DAVIT_EVENT_TOKEN)
        print_event_line(a, e);
    else if (a->stream && !a->call->json && e->text_len)
        a->closed |= !davit_out(e->text, e->text_len);
    return !davit_interrupted() && !a->closed;
}

/* ---- prompt ---- */

static char *prompt_text(DavitCall *call, size_t *out_len)
{
    const char *text = davit_call_text(call, "prompt");
    const char *file = davit_call_text(call, "prompt-file");
    if (text && strcmp(text, "-") == 0)
        file = "-";
    else if (text) {
        *out_len = strlen(text);
        return g_strdup(text);
    }
    return file ? davit_call_read_file(call, file, out_len) : NULL;
}

static GArray *prompt_ids(DavitCall *call, const davit_model *model, char *text, size_t len)
{
    const char *given = davit_call_text(call, "ids");
    if (given)
        return davit_parse_ids("--ids", given, call->report);
    int32_t *ids = NULL;
    size_t n = 0;
    davit_records *records = NULL;
    const uint32_t how = (davit_call_has(call, "no-special") ? DAVIT_LIB_NO_SPECIAL : 0) |
                         (davit_call_has(call, "safe") ? DAVIT_LIB_SAFE : 0);
    const int status = davit_model_tokenize(model, text, len, how, &ids, &n, &records);
    davit_call_take_records(call, records);
    if (status)
        return NULL;
    GArray *out = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_array_append_vals(out, ids, (guint)n);
    davit_free(ids);
    return out;
}

/* ---- the document ---- */

static void fill_document(DavitCall *call, const Answer *a, const GArray *prompt,
                          const davit_model_info *info, const davit_engine *engine,
                          const davit_request_stats *s, double start_s)
{
    json_t *ids = json_array(), *prompt_ids_json = json_array();
    for (guint i = 0; i < a->ids->len; i++)
        json_array_append_new(ids, json_integer(g_array_index(a->ids, int32_t, i)));
    for (guint i = 0; i < prompt->len; i++)
        json_array_append_new(prompt_ids_json, json_integer(g_array_index(prompt, int32_t, i)));
    json_object_set_new(call->doc, "text", davit_json_text(a->text->str));
    json_object_set_new(call->doc, "ids", ids);
    json_object_set_new(call->doc, "finish_reason",
                        a->finish ? json_string(a->finish) : json_null());
    json_object_set_new(call->doc, "prompt_ids", prompt_ids_json);
    json_object_set_new(
        call->doc, "timings",
        json_pack("{s:f, s:f, s:I, s:f, s:I, s:f}", "start_s", start_s, "load_s",
                  info->load_seconds, "prompt_tokens", (json_int_t)s->prompt_tokens, "prompt_s",
                  s->prompt_seconds, "decode_tokens", (json_int_t)s->decode_tokens, "decode_s",
                  s->decode_seconds));
    json_object_set_new(call->doc, "load", davit_load_stats_json(info, engine));
}

/* ---- the command ---- */

static int answer_once(DavitCall *call, davit_engine *engine, const davit_request_params *params,
                       Answer *a, davit_request_stats *stats)
{
    davit_request *request = NULL;
    davit_records *records = NULL;
    int status = davit_request_submit(engine, params, &request, &records);
    davit_call_take_records(call, records);
    if (status)
        return davit_call_exit(call);
    status = davit_request_wait(engine, request, take_event, a);
    if (status) {
        davit_call_take_records(call, davit_request_take_error(request));
    }
    davit_request_describe(request, stats);
    davit_request_free(request);
    if (status)
        return davit_call_exit(call);
    if (!call->json && !a->stream)
        a->closed |= !davit_out(a->text->str, a->text->len);
    for (guint i = 0; !call->json && !a->has_text && i < a->ids->len; i++) {
        g_autofree char *id = g_strdup_printf("%s%d", i ? " " : "", g_array_index(a->ids, int32_t, i));
        a->closed |= !davit_out(id, strlen(id)); /* no tokenizer: the ids are the answer */
    }
    if (!call->json)
        a->closed |= !davit_out("\n", 1);
    if (davit_interrupted())
        return DAVIT_EXIT_INTERRUPT;
    return a->closed ? DAVIT_EXIT_FAILED : DAVIT_EXIT_OK;
}

/* What a turn of a conversation needs. */
typedef struct Turn {
    davit_engine *engine;
    davit_request_params *params;
    Answer *a;
    davit_request_stats *stats;
    GArray *prompt; /* of the last turn, owned */
} Turn;

static void start_answer(Answer *a)
{
    g_string_truncate(a->text, 0);
    g_array_set_size(a->ids, 0);
}

/* Where --max-tokens is not given, an answer may be as long as the context leaves room. */
static void choose_length(const DavitCall *call, const davit_engine *engine,
                          davit_request_params *p)
{
    const uint64_t ctx = davit_engine_ctx(engine);
    if (!davit_talk_wanted(call) || davit_call_has(call, "max-tokens"))
        return;
    p->max_tokens = p->n_prompt < ctx ? MIN(ctx - p->n_prompt, DAVIT_CHAT_TOKENS) : 1;
}

static int answer_turn(void *ctx, const GArray *prompt, const char **out_text)
{
    Turn *t = ctx;
    t->params->prompt = (const int32_t *)(const void *)prompt->data;
    t->params->n_prompt = prompt->len;
    choose_length(t->a->call, t->engine, t->params);
    start_answer(t->a);
    const int code = answer_once(t->a->call, t->engine, t->params, t->a, t->stats);
    t->params->seed++;
    g_array_set_size(t->prompt, 0);
    g_array_append_vals(t->prompt, prompt->data, prompt->len);
    *out_text = t->a->text->str;
    return code;
}

static int answer(DavitCall *call, davit_model *model, GArray *prompt, DavitTalk *talk,
                  double start_s)
{
    const davit_engine_params ep = {
        .struct_size = sizeof ep,
        .n_threads = (uint32_t)MIN(davit_call_count(call, "threads"), 1024),
        .chunk = (uint32_t)MIN(davit_call_count(call, "chunk"), 65536),
        .ctx = davit_call_count(call, "ctx")};
    davit_engine *engine = NULL;
    davit_records *records = NULL;
    const int status = davit_engine_new(model, &ep, &engine, &records);
    davit_call_take_records(call, records);
    if (status)
        return davit_call_exit(call);

    g_autofree const char **stop = davit_call_list(call, "stop");
    davit_request_params params = {.struct_size = sizeof params,
                                   .prompt = (const int32_t *)(void *)prompt->data,
                                   .n_prompt = prompt->len,
                                   .max_tokens = davit_call_count(call, "max-tokens"),
                                   .stop = stop,
                                   .ignore_eos = davit_call_has(call, "ignore-eos")};
    davit_sampling_from_flags(call, &params);
    davit_sampling_from_model(call, model, &params);

    davit_model_info info = {.struct_size = sizeof info};
    davit_model_describe(model, &info);
    davit_request_stats stats = {.struct_size = sizeof stats};
    Answer a = {.call = call,
                .text = g_string_new(NULL),
                .ids = g_array_new(FALSE, FALSE, sizeof(int32_t)),
                .stream = davit_call_has(call, "stream"),
                .has_text = info.tokenizer != NULL};
    Turn turn = {engine, &params, &a, &stats, prompt};
    params.reuse_prefix = talk != NULL;
    if (talk)
        params.n_stop_ids = davit_talk_stops(talk, &params.stop_ids);
    choose_length(call, engine, &params);
    int code = DAVIT_EXIT_OK;
    const bool lines = prompt->len == 0;
    if (lines) {
        a.stream |= !call->json;
        code = davit_talk_converse(talk, answer_turn, &turn);
    }
    const uint64_t repeat = lines ? 0 : davit_call_count(call, "repeat");
    for (uint64_t i = 0; code == DAVIT_EXIT_OK && i < repeat; i++) {
        start_answer(&a);
        code = answer_once(call, engine, &params, &a, &stats);
        params.seed++;
    }
    if (davit_call_has(call, "load-stats") && !call->json)
        davit_load_stats_print(&info, engine);
    if (call->json && (code == DAVIT_EXIT_OK || code == DAVIT_EXIT_INTERRUPT))
        fill_document(call, &a, prompt, &info, engine, &stats, start_s);
    g_string_free(a.text, TRUE);
    g_array_unref(a.ids);
    g_free(a.finish);
    davit_engine_free(engine);
    return code;
}

static int check_numbers(DavitCall *call)
{
    static const char *const positive[] = {"max-tokens", "repeat", "max-num-seqs", "chunk"};
    for (size_t i = 0; i < G_N_ELEMENTS(positive); i++)
        if (davit_call_count(call, positive[i]) == 0)
            return davit_call_usage(call, positive[i], "the value must be at least 1", NULL);
    return 0;
}

/* The flags that say what is asked, and what they contradict. Returns: exit code, 0 = none. */
static int check_prompt(DavitCall *call)
{
    const bool talk = davit_talk_wanted(call);
    const int n_prompts = davit_call_has(call, "ids") + davit_call_has(call, "prompt") +
                          davit_call_has(call, "prompt-file");
    if (n_prompts > 1 || (n_prompts == 0 && !talk))
        return davit_call_usage(call, "--prompt",
                                n_prompts ? "more than one prompt is given" : "no prompt is given",
                                "give one of --prompt, --prompt-file, --ids, --messages, --chat");
    int code = davit_talk_check(call);
    if (!code)
        code = check_numbers(call);
    if (!code)
        code = davit_sampling_check(call);
    return code ? code : davit_call_documents(call);
}

/* Ids of the prompt: of the text, or of the conversation. Empty = there is none yet, lines of
 * stdin follow. NULL with records. (owned) */
static GArray *first_prompt(DavitCall *call, const davit_model *model, char *text, size_t len,
                            DavitTalk **out_talk)
{
    if (!davit_talk_wanted(call))
        return prompt_ids(call, model, text, len);
    *out_talk = davit_talk_open(call, model);
    if (!*out_talk)
        return NULL;
    if (text)
        davit_talk_say(*out_talk, text);
    if (!text && davit_call_has(call, "chat"))
        return g_array_new(FALSE, FALSE, sizeof(int32_t));
    return davit_talk_prompt(*out_talk);
}

static int run_model(DavitCall *call, const char *path, char *text, size_t len, int64_t start)
{
    const bool by_ids = davit_call_has(call, "ids");
    davit_model *model = NULL;
    DavitTalk *talk = NULL;
    int code;
    DavitRanks *ranks = NULL;
    if (davit_call_load(call, path, by_ids ? 1 : 0, &model, &ranks)) {
        davit_ranks_end(ranks, davit_call_exit(call) == DAVIT_EXIT_FAILED);
        return davit_interrupted() ? DAVIT_EXIT_INTERRUPT : davit_call_exit(call);
    }
    const double start_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    g_autoptr(GArray) prompt = first_prompt(call, model, text, len, &talk);
    if (!prompt)
        code = davit_call_exit(call);
    else if (prompt->len == 0 && (text || !davit_call_has(call, "chat")))
        code = davit_call_usage(call, "--prompt", "the prompt has no tokens",
                                "this tokenizer adds none of its own: give some text");
    else
        code = answer(call, model, prompt, talk, start_s);
    davit_talk_free(talk);
    davit_model_free(model);
    davit_ranks_end(ranks, code == DAVIT_EXIT_FAILED);
    return code;
}

/* A rank past the first: no prompt, no answer. */
static int follow(DavitCall *call, const char *path)
{
    davit_model *model = NULL;
    DavitRanks *ranks = NULL;
    int code;
    call->json = false; /* what goes wrong is told on stderr */
    davit_catch_interrupt();
    if (davit_call_load(call, path, 2, &model, &ranks))
        code = davit_call_exit(call);
    else
        code = davit_call_follow(call, model);
    davit_model_free(model);
    davit_ranks_end(ranks, false);
    return davit_interrupted() ? DAVIT_EXIT_INTERRUPT : code;
}

static int run(DavitCall *call)
{
    const int64_t start = g_get_monotonic_time();
    const char *path = davit_call_text(call, "model");
    if (path && call->n_args)
        return davit_call_usage(call, "MODEL", "the model is given twice", NULL);
    if (!path)
        path = call->args[0];
    if (!path)
        return davit_call_usage(call, "MODEL", "no model is given", "davit run MODEL --prompt TEXT");
    int code = davit_ranks_check(call);
    if (!code && davit_ranks_follows(call))
        return follow(call, path);
    if (!code)
        code = check_prompt(call);
    if (code)
        return code;
    size_t len = 0;
    const bool has_text = davit_call_has(call, "prompt") || davit_call_has(call, "prompt-file");
    g_autofree char *text = has_text ? prompt_text(call, &len) : NULL;
    if (has_text && !text)
        return davit_call_exit(call);
    davit_catch_interrupt();
    return run_model(call, path, text, len, start);
}

const DavitCommand davit_command_run = {
    .name = "run",
    .args = "MODEL",
    .min_args = 0,
    .max_args = 1,
    .summary = "complete a prompt, or chat",
    .description = "Loads MODEL and completes one prompt. The prompt is completed as it stands, "
                   "with the\ntokenizer's own BOS. stdout carries the completion only; progress and "
                   "messages go to stderr.\n--chat and --messages go through the model's chat "
                   "template. Control tokens inside\nmessages stay text, unless --trust-content is "
                   "given. What a turn shares with the one\nbefore is not computed again.\n\n"
                   "--load-stats, and the field load of --json, tell what loading moved: bytes "
                   "borrowed (used in\nplace), read, copied, packed, decoded and uploaded, those "
                   "that the plan said (planned, equal),\nthe seconds of opening, planning and "
                   "reading (phases), what all threads together read,\nconverted and uploaded in "
                   "a second while they did only that (stages, with a nominal limit each),\nwhat "
                   "bound the load, how much of the files was in the page cache before, how they "
                   "were read\nand why, bytes moved for each byte needed (amplification), stored "
                   "tensors used and ignored,\nand the most memory that was resident "
                   "(peak_rss_bytes: the program and mapped pages with it).\n"
                   "host_copy_bytes, borrowed_bytes and device_upload_bytes mean what vllm.cpp "
                   "means by them.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
