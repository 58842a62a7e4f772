/* SPDX-License-Identifier: Apache-2.0
 * run --chat and --messages: who said what so far, and the loop over a person's lines. */
#include "cli/run_chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct DavitTalk {
    DavitCall *call;
    const davit_model *model;
    davit_dialog *dialog; /* NULL with --raw */
    json_t *messages;     /* so far */
    json_t *start;        /* where /clear goes back to */
    json_t *turns;        /* --json: what was asked and answered */
    char *tools;          /* JSON array, NULL = none */
};

bool davit_talk_wanted(const DavitCall *call)
{
    return davit_call_has(call, "chat") || davit_call_has(call, "messages");
}

int davit_talk_check(DavitCall *call)
{
    static const char *const needy[] = {"system",        "raw",           "chat-template",
                                        "template-name", "trust-content", "tools",
                                        "tokenizer-config"};

    if (davit_call_has(call, "ids") && davit_talk_wanted(call))
        return davit_call_usage(call, "--ids", "ids are no messages",
                                "--ids goes without --chat and --messages");
    if (davit_call_has(call, "messages") &&
        (davit_call_has(call, "prompt") || davit_call_has(call, "prompt-file")))
        return davit_call_usage(call, "--messages", "more than one prompt is given", NULL);
    for (size_t i = 0; !davit_talk_wanted(call) && i < G_N_ELEMENTS(needy); i++)
        if (davit_call_has(call, needy[i]) && strcmp(needy[i], "raw") != 0)
            return davit_call_usage(call, davit_report_text(call->report, "--%s", needy[i]),
                                    "goes with --chat or --messages", NULL);
    return 0;
}

/* ---- messages ---- */

static void add_message(json_t *messages, const char *role, const char *content)
{
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", role, "content",
                                              davit_json_text(content)));
}

/* The array in the file of --@flag; what its items are the template layer judges. */
static json_t *read_array(DavitCall *call, const char *flag)
{
    const char *path = davit_call_text(call, flag);
    json_error_t error;
    size_t n = 0;
    g_autofree char *text = davit_call_read_file(call, path, &n);
    json_t *array = text ? json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error)
                         : NULL;

    if (array && json_is_array(array))
        return array;
    json_decref(array);
    if (text)
        davit_report_add(
            call->report,
            &(DavitFinding){.code = DAVIT_R_JSON_INVALID,
                            .status = DAVIT_E_CORRUPT,
                            .stage = "options",
                            .subject = path,
                            .expected = davit_report_text(call->report, "a JSON array of %s", flag),
                            .found = array ? "another value" : error.text,
                            .message = davit_report_text(call->report, "the %s cannot be read",
                                                         flag)});
    return NULL;
}

static json_t *first_messages(DavitCall *call)
{
    const char *system = davit_call_text(call, "system");
    json_t *messages = davit_call_has(call, "messages") ? read_array(call, "messages")
                                                      : json_array();

    if (messages && system) {
        json_t *first = json_array();

        add_message(first, "system", system);
        json_array_extend(first, messages);
        json_decref(messages);
        messages = first;
    }
    return messages;
}

static bool open_dialog(DavitTalk *talk)
{
    DavitCall *call = talk->call;
    davit_records *records = NULL;
    const davit_dialog_params p = {.struct_size = sizeof p,
                                   .template_file = davit_call_text(call, "chat-template"),
                                   .template_name = davit_call_text(call, "template-name"),
                                   .tokenizer_config = davit_call_text(call, "tokenizer-config"),
                                   .with_tools = talk->tools != NULL,
                                   .trust_content = davit_call_has(call, "trust-content")};
    const int status = davit_dialog_open(talk->model, &p, &talk->dialog, &records);

    davit_call_take_records(call, records);
    if (!status)
        davit_report_add(call->report,
                         &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                         .severity = DAVIT_NOTE,
                                         .stage = "template",
                                         .subject = davit_dialog_source(talk->dialog),
                                         .message = "this chat template is used"});
    return status == 0;
}

/* --tools, kept as text: order of keys and numbers stay as they are. */
static bool read_tools(DavitTalk *talk)
{
    json_t *tools;
    size_t n = 0;

    if (!davit_call_has(talk->call, "tools"))
        return true;
    tools = read_array(talk->call, "tools");
    if (tools)
        talk->tools = davit_call_read_file(talk->call, davit_call_text(talk->call, "tools"), &n);
    json_decref(tools);
    return talk->tools != NULL;
}

DavitTalk *davit_talk_open(DavitCall *call, const davit_model *model)
{
    DavitTalk *talk = g_new0(DavitTalk, 1);

    talk->call = call;
    talk->model = model;
    talk->turns = json_array();
    talk->messages = first_messages(call);
    if (!talk->messages || !read_tools(talk) || (!davit_call_has(call, "raw") && !open_dialog(talk))) {
        davit_talk_free(talk);
        return NULL;
    }
    talk->start = json_deep_copy(talk->messages);
    return talk;
}

void davit_talk_free(DavitTalk *talk)
{
    if (!talk)
        return;
    davit_dialog_free(talk->dialog);
    json_decref(talk->messages);
    json_decref(talk->start);
    json_decref(talk->turns);
    g_free(talk->tools);
    g_free(talk);
}

void davit_talk_say(DavitTalk *talk, const char *text)
{
    add_message(talk->messages, "user", text);
}

size_t davit_talk_stops(const DavitTalk *talk, const int32_t **out)
{
    return davit_dialog_stops(talk->dialog, out);
}

/* ---- prompts ---- */

/* --raw: the contents as they stand, a line each, with the tokenizer's own BOS. */
static char *raw_text(const DavitTalk *talk)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const json_t *message;
    size_t i;

    json_array_foreach(talk->messages, i, message)
    {
        const char *content = json_string_value(json_object_get(message, "content"));

        if (content)
            g_string_append_printf(text, "%s%s", text->len ? "\n" : "", content);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static int encode(DavitTalk *talk, int32_t **ids, size_t *n, davit_records **records)
{
    const bool safe = !davit_call_has(talk->call, "trust-content");

    if (!talk->dialog) {
        g_autofree char *text = raw_text(talk);

        return davit_model_tokenize(talk->model, text, strlen(text), safe ? DAVIT_LIB_SAFE : 0,
                                    ids, n, records);
    }
    char *json = json_dumps(talk->messages, JSON_COMPACT);
    const davit_dialog_input in = {
        .struct_size = sizeof in,
        .messages = json,
        .n_messages = json ? strlen(json) : 0,
        .tools = talk->tools,
        .n_tools = talk->tools ? strlen(talk->tools) : 0};
    const int status = davit_dialog_render(talk->dialog, &in, NULL, NULL, ids, n, records);
    free(json);
    return status;
}

GArray *davit_talk_prompt(DavitTalk *talk)
{
    davit_records *records = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    const int status = encode(talk, &ids, &n, &records);
    GArray *out;

    davit_call_take_records(talk->call, records);
    if (status)
        return NULL;
    out = g_array_new(FALSE, FALSE, sizeof(int32_t));
    if (n)
        g_array_append_vals(out, ids, (guint)n);
    davit_free(ids);
    return out;
}

/* ---- the conversation ---- */

/* A line without its end; false at the end of input. *out_broken: Ctrl-C meanwhile. *out_text: it
 * is text, UTF-8 without a NUL. */
static bool read_line(char **line, size_t *cap, bool *out_broken, bool *out_text)
{
    ssize_t n;

    errno = 0;
    n = getline(line, cap, stdin);
    *out_broken = n < 0 && errno == EINTR;
    if (*out_broken)
        clearerr(stdin);
    while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r'))
        (*line)[--n] = '\0';
    *out_text = n <= 0 || g_utf8_validate_len(*line, (size_t)n, NULL);
    return n >= 0 || *out_broken;
}

static void note_turn(DavitTalk *talk, const char *question, const char *answer)
{
    json_array_append_new(talk->turns, json_pack("{s:o, s:o}", "user", davit_json_text(question),
                                                 "assistant", davit_json_text(answer)));
}

/* Ask and answer once. What fails on a terminal is said and forgotten. */
static int one_turn(DavitTalk *talk, const char *question, bool terminal, DavitAnswerFn *answer,
                    void *ctx)
{
    DavitReport *report = talk->call->report;
    const size_t before = davit_report_count(report);
    const char *text = NULL;
    int code = DAVIT_EXIT_OK;

    davit_talk_say(talk, question);
    g_autoptr(GArray) prompt = davit_talk_prompt(talk);
    code = prompt ? answer(ctx, prompt, &text) : davit_call_exit(talk->call);
    if (text && (code == DAVIT_EXIT_OK || code == DAVIT_EXIT_INTERRUPT)) {
        add_message(talk->messages, "assistant", text);
        note_turn(talk, question, text);
        davit_interrupt_clear();
        return DAVIT_EXIT_OK;
    }
    json_array_remove(talk->messages, json_array_size(talk->messages) - 1);
    if (!terminal || code == DAVIT_EXIT_FAILED)
        return code;
    const DavitRecord *r = davit_report_first_error(report, 0);
    g_autofree char *sentence = r ? davit_record_sentence(r) : NULL;
    fprintf(stderr, "%s\n(the message was not sent)\n", sentence ? sentence : "it failed");
    davit_report_truncate(report, before);
    return DAVIT_EXIT_OK;
}

/* Ask nothing: a model would get other characters than were sent. */
static int refuse_line(DavitTalk *talk, size_t number, bool terminal)
{
    DavitReport *report = talk->call->report;

    if (terminal) {
        fprintf(stderr, "the line is not valid UTF-8\n(the message was not sent)\n");
        return DAVIT_EXIT_OK;
    }
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_TEXT_INVALID,
                                     .status = DAVIT_E_CORRUPT,
                                     .stage = "run",
                                     .subject = davit_report_text(report, "line %zu", number),
                                     .expected = "UTF-8 without NUL bytes",
                                     .message = "the line is not valid UTF-8",
                                     .hint = "the lines before it are answered; iconv -t UTF-8 "
                                             "converts what is in another encoding"});
    return davit_call_exit(talk->call);
}

static void clear(DavitTalk *talk)
{
    json_decref(talk->messages);
    talk->messages = json_deep_copy(talk->start);
}

/* Is @line the word @order, whatever blanks are round it? */
static bool is_order(const char *line, const char *order)
{
    g_autofree char *word = g_strstrip(g_strdup(line));

    return strcmp(word, order) == 0;
}

int davit_talk_converse(DavitTalk *talk, DavitAnswerFn *answer, void *ctx)
{
    const bool terminal = isatty(STDIN_FILENO) && !talk->call->quiet;
    char *line = NULL;
    size_t cap = 0;
    int code = DAVIT_EXIT_OK;
    bool broken = false, text = true;
    size_t number = 0;

    if (terminal)
        fprintf(stderr, "/exit ends, /clear starts anew, Ctrl-C stops an answer\n");
    while (code == DAVIT_EXIT_OK) {
        if (terminal)
            fprintf(stderr, "%s> ", broken ? "\n" : "");
        if (!read_line(&line, &cap, &broken, &text)) {
            if (terminal)
                fputc('\n', stderr); /* Ctrl-D: what follows begins its own line */
            break;
        }
        if (broken) {
            davit_interrupt_clear();
            if (!terminal)
                code = DAVIT_EXIT_INTERRUPT;
            continue;
        }
        number++;
        if (!text)
            code = refuse_line(talk, number, terminal);
        else if (is_order(line, "/exit"))
            break;
        else if (is_order(line, "/clear"))
            clear(talk);
        else if (line[0])
            code = one_turn(talk, line, terminal, answer, ctx);
    }
    free(line);
    json_object_set(talk->call->doc, "turns", talk->turns);
    return code;
}
