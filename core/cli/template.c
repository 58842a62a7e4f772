/* SPDX-License-Identifier: Apache-2.0
 * davit template: messages through a model's chat template. Needs no architecture, no
 * weights, and no tokenizer unless ids are asked for. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/run.h"
#include "cli/template_diff.h"
#include "engine/private.h"

static const DavitFlag flags[] = {
    {"messages", 'm', DAVIT_FLAG_TEXT, "FILE", "JSON array of messages; - reads stdin", NULL, NULL,
     false},
    {"tools", 0, DAVIT_FLAG_TEXT, "FILE", "JSON array of tool schemas", NULL, NULL, false},
    {"tokenizer-config", 0, DAVIT_FLAG_TEXT, "FILE",
     "template and special tokens of this tokenizer_config.json", NULL, NULL, false},
    {"documents", 0, DAVIT_FLAG_TEXT, "FILE", "JSON array of documents", NULL, NULL, false},
    {"no-generation-prompt", 0, DAVIT_FLAG_SWITCH, NULL, "do not open the answer's turn", NULL,
     NULL, false},
    {"var", 0, DAVIT_FLAG_LIST, "NAME=JSON", "a further variable; may be repeated", NULL, NULL,
     false},
    {"now", 0, DAVIT_FLAG_COUNT, "UNIX", "the template's clock, seconds since 1970, told as UTC",
     NULL, NULL, false},
    {"chat-template", 0, DAVIT_FLAG_TEXT, "FILE", "use this template file", NULL, NULL, false},
    {"template-name", 0, DAVIT_FLAG_TEXT, "NAME", "one of the model's named templates", NULL, NULL,
     false},
    {"ids", 0, DAVIT_FLAG_SWITCH, NULL, "print the prompt's token ids", NULL, NULL, false},
    {"trust-content", 0, DAVIT_FLAG_SWITCH, NULL,
     "with --ids: control tokens inside message contents act, as in Hugging Face", NULL, NULL,
     false},
    {"diff-ids", 0, DAVIT_FLAG_TEXT, "FILE", "compare with the ids of a training run", NULL, NULL,
     false},
    {0},
};
static const char *const examples[] = {
    "davit template model/ --messages chat.json", "the prompt, exact bytes",
    "davit template model.gguf --messages chat.json --tools tools.json --var enable_thinking=false",
    "with tools and a variable of this template",
    "davit template model/ --messages chat.json --diff-ids training.txt",
    "where the prompt parts from what the model was trained on, and why", NULL};

/* ---- what to read from ---- */

typedef struct Model {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint; /* NULL: a folder without need of its weights */
    const char *dir;
} Model;

static bool folder_has(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static bool open_model(DavitCall *call, Model *m)
{
    const char *path = call->args[0];

    m->registry = davit_call_registry(call);
    if (!m->registry)
        return false;
    if (g_file_test(path, G_FILE_TEST_IS_DIR) &&
        (folder_has(path, "tokenizer_config.json") || folder_has(path, "chat_template.jinja"))) {
        m->dir = path;
        return true;
    }
    m->checkpoint = davit_checkpoint_open(m->registry, path, DAVIT_INSPECT, call->report);
    return m->checkpoint != NULL;
}

static void close_model(Model *m)
{
    davit_checkpoint_free(m->checkpoint);
    davit_registry_free(m->registry);
}

static DavitTokenizer *open_tokenizer(DavitCall *call, const Model *m)
{
    if (m->checkpoint)
        return davit_tokenizer_of(m->checkpoint, m->registry, call->report);
    g_autofree char *path = g_build_filename(m->dir, "tokenizer.json", NULL);
    g_autofree char *text = NULL;
    size_t n = 0;
    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        text = davit_call_read_file(call, path, &n);
        return text ? davit_tokenizer_from_json(text, n, "tokenizer.json", m->registry,
                                                call->report)
                    : NULL;
    }
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(m->registry, m->dir, DAVIT_INSPECT, call->report);
    return c ? davit_tokenizer_of(c, m->registry, call->report) : NULL;
}

/* ---- variables ---- */

/* --var NAME=JSON into @vars, whose names and texts @keep frees. */
static bool read_vars(DavitCall *call, GArray *vars, GPtrArray *keep)
{
    g_autofree const char **list = davit_call_list(call, "var");

    for (size_t i = 0; list && list[i]; i++) {
        const char *eq = strchr(list[i], '=');

        if (!eq || eq == list[i]) {
            davit_call_usage(call, "--var", "the variable is not NAME=JSON",
                             "texts need quotes: --var 'style=\"short\"'");
            return false;
        }
        char *name = g_strndup(list[i], (gsize)(eq - list[i]));
        g_ptr_array_add(keep, name);
        const DavitTemplateVar var = {
            .name = name, .json = eq + 1, .len = strlen(eq + 1), .trusted = true};
        g_array_append_val(vars, var);
    }
    return true;
}

static bool read_input(DavitCall *call, const char *flag, const char **out, size_t *out_n,
                       GPtrArray *keep)
{
    const char *path = davit_call_text(call, flag);
    char *text = path ? davit_call_read_file(call, path, out_n) : NULL;

    if (text)
        g_ptr_array_add(keep, text);
    *out = text;
    return !path || text;
}

/* As transformers, which asks for a list; what else is wrong in it, the engine says. */
static bool is_array(DavitCall *call, const char *flag, const char *text)
{
    text += strspn(text, " \t\r\n");
    if (*text == '[' || strncmp(text, "null", 4) == 0)
        return true;
    davit_report_add(call->report,
                     &(DavitFinding){.code = DAVIT_R_USAGE,
                                     .status = DAVIT_E_USAGE,
                                     .stage = "options",
                                     .subject = davit_call_text(call, flag),
                                     .expected = davit_report_text(call->report,
                                                                   "a JSON array of %s", flag),
                                     .message = davit_report_text(call->report,
                                                                  "this is no list of %s", flag),
                                     .hint = "put what is one in square brackets"});
    return false;
}

/* ---- output ---- */

static void say_source(DavitCall *call, const DavitChat *chat)
{
    davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                                   .severity = DAVIT_NOTE,
                                                   .stage = "template",
                                                   .subject = davit_chat_source(chat),
                                                   .message = "this chat template is used"});
}

static void fill_document(const DavitTemplateJob *job)
{
    const DavitRendered *r = &job->rendered;
    json_t *doc = job->call->doc, *spans = json_array(), *ids = json_array();

    json_object_set_new(doc, "template", davit_json_text(davit_chat_source(job->chat)));
    json_object_set_new(doc, "text", json_stringn(r->text, r->len));
    for (size_t i = 0; i < r->n_generation; i++)
        json_array_append_new(spans, json_pack("[I, I]", (json_int_t)r->generation[i].start,
                                               (json_int_t)r->generation[i].end));
    json_object_set_new(doc, "generation", spans);
    if (job->tokenizer) {
        for (size_t i = 0; i < job->ids.n; i++)
            json_array_append_new(ids, json_integer(job->ids.ids[i]));
        json_object_set(doc, "ids", ids);
        json_object_set_new(doc, "trust_content",
                            json_boolean(davit_call_has(job->call, "trust-content")));
    }
    json_decref(ids);
}

static bool print_ids(const DavitIds *ids)
{
    g_autoptr(GString) line = g_string_new(ids->n ? NULL : "EMPTY");

    for (size_t i = 0; i < ids->n; i++)
        g_string_append_printf(line, "%s%d", i ? " " : "", ids->ids[i]);
    g_string_append_c(line, '\n');
    return davit_out(line->str, line->len);
}

static void note_trust(DavitCall *call, bool trust)
{
    davit_report_add(
        call->report,
        &(DavitFinding){.code = DAVIT_R_CONTENT_TRUST,
                        .severity = trust ? DAVIT_WARNING : DAVIT_NOTE,
                        .stage = "template",
                        .subject = "messages",
                        .message = trust ? "control tokens inside the messages are control "
                                           "tokens: content is trusted"
                                         : "control tokens inside the messages stay text",
                        .hint = trust ? NULL : "--trust-content takes them as control tokens"});
}

/* ---- the command ---- */

static int encode_and_print(DavitTemplateJob *job)
{
    DavitCall *call = job->call;
    const bool trust = davit_call_has(call, "trust-content");
    const char *diff = davit_call_text(call, "diff-ids");
    bool forged = false;

    if (job->tokenizer) {
        if (davit_chat_encode(job->tokenizer, &job->rendered, trust, &job->ids, &forged,
                              call->report))
            return davit_call_exit(call);
        if (forged)
            note_trust(call, trust);
    }
    if (call->json)
        fill_document(job);
    if (diff)
        return davit_template_diff(job, diff);
    if (call->json)
        return davit_call_exit(call);
    const bool open = davit_call_has(call, "ids")
                          ? print_ids(&job->ids)
                          : davit_out(job->rendered.text, job->rendered.len);
    return open ? davit_call_exit(call) : DAVIT_EXIT_FAILED;
}

static int render(DavitTemplateJob *job, const Model *m)
{
    DavitCall *call = job->call;
    const DavitTemplateWhere where = {.checkpoint = m->checkpoint,
                                      .dir = m->dir,
                                      .file = davit_call_text(call, "chat-template"),
                                      .name = davit_call_text(call, "template-name"),
                                      .config = davit_call_text(call, "tokenizer-config"),
                                      .tools = job->input.tools != NULL};

    job->chat = davit_chat_new(&where, call->report);
    if (!job->chat)
        return davit_call_exit(call);
    say_source(call, job->chat);
    if (davit_chat_render(job->chat, &job->input, &job->rendered, call->report))
        return davit_call_exit(call);
    if (davit_call_has(call, "ids") || davit_call_has(call, "diff-ids")) {
        job->tokenizer = open_tokenizer(call, m);
        if (!job->tokenizer)
            return davit_call_exit(call);
    }
    return encode_and_print(job);
}

static int run(DavitCall *call)
{
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) vars = g_array_new(FALSE, FALSE, sizeof(DavitTemplateVar));
    DavitTemplateJob job = {.call = call};
    DavitChatInput *in = &job.input;
    Model m = {0};
    int code;

    if (!davit_call_has(call, "messages"))
        return davit_call_usage(call, "--messages", "no messages are given",
                                "davit template MODEL --messages FILE");
    if (!read_vars(call, vars, keep) ||
        !read_input(call, "messages", &in->messages, &in->n_messages, keep) ||
        !read_input(call, "tools", &in->tools, &in->n_tools, keep) ||
        (in->tools && !is_array(call, "tools", in->tools)) ||
        !read_input(call, "documents", &in->documents, &in->n_documents, keep))
        return davit_call_exit(call);
    in->messages_source = davit_call_text(call, "messages");
    in->tools_source = davit_call_text(call, "tools");
    in->documents_source = davit_call_text(call, "documents");
    in->no_generation_prompt = davit_call_has(call, "no-generation-prompt");
    in->fixed_clock = davit_call_has(call, "now");
    in->now = (int64_t)MIN(davit_call_count(call, "now"), (uint64_t)INT64_MAX);
    in->vars = (const DavitTemplateVar *)(void *)vars->data;
    in->n_vars = vars->len;
    code = open_model(call, &m) ? render(&job, &m) : davit_call_exit(call);
    davit_rendered_clear(&job.rendered);
    davit_ids_clear(&job.ids);
    davit_chat_free(job.chat);
    davit_tokenizer_free(job.tokenizer);
    close_model(&m);
    return code;
}

const DavitCommand davit_command_template = {
    .name = "template",
    .args = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "render a chat template",
    .description = "Prints the prompt that MODEL's chat template makes of messages: exact bytes, no "
                   "newline\nadded. Equal to transformers' apply_chat_template, or refused with line "
                   "and column.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
