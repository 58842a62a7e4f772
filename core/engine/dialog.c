/* SPDX-License-Identifier: Apache-2.0
 * davit_dialog: core/template behind the public handles. */
#include "engine/private.h"

#include <stdlib.h>
#include <string.h>

#include "config/tree.h"
#include "template/chat.h"

struct davit_dialog {
    uint64_t magic;
    const davit_model *model;
    DavitChat *chat;
    DavitIds stops;
    bool trust, fixed_clock;
    int64_t now;
};

static const davit_dialog *checked(const davit_dialog *dialog)
{
    return dialog && dialog->magic == DAVIT_MAGIC_DIALOG ? dialog : NULL;
}

static int status_of(const DavitReport *report)
{
    const DavitRecord *r = davit_report_first_error(report, 0);
    return r && r->status ? r->status : DAVIT_LIB_IO;
}

/* What the template and the tokenizer name, and what the configuration does. */
static void take_stops(davit_dialog *d)
{
    const int32_t *eos = NULL;
    const size_t n = davit_model_eos(d->model, &eos);
    davit_chat_stops(d->chat, d->model->tokenizer, d->model->checkpoint, &d->stops);
    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t k = 0; k < d->stops.n; k++)
            known |= d->stops.ids[k] == eos[i];
        if (!known && davit_ids_reserve(&d->stops, 1))
            d->stops.ids[d->stops.n++] = eos[i];
    }
}

int davit_dialog_open(const davit_model *model, const davit_dialog_params *params,
                      davit_dialog **out_dialog, davit_records **out_records)
{
    if (!model || model->magic != DAVIT_MAGIC_MODEL || !model->tokenizer || !out_dialog)
        return davit_usage("davit_dialog_open needs a model with a tokenizer", out_records);
    davit_dialog_params p = {0};
    if (params)
        memcpy(&p, params, MIN(sizeof p, params->struct_size));

    DavitReport *report = davit_report_new();
    const DavitTemplateWhere where = {.checkpoint = model->checkpoint,
                                      .file = p.template_file,
                                      .config = p.tokenizer_config,
                                      .name = p.template_name,
                                      .tools = p.with_tools};
    DavitChat *chat = davit_chat_new(&where, report);
    const int status = chat ? DAVIT_LIB_OK : status_of(report);
    davit_records_give(report, out_records);
    if (!chat)
        return status;
    davit_dialog *d = g_new0(davit_dialog, 1);
    *d = (davit_dialog){.magic = DAVIT_MAGIC_DIALOG,
                        .model = model,
                        .chat = chat,
                        .trust = p.trust_content,
                        .fixed_clock = p.fixed_clock,
                        .now = p.now};
    take_stops(d);
    *out_dialog = d;
    return DAVIT_LIB_OK;
}

void davit_dialog_free(davit_dialog *dialog)
{
    if (!checked(dialog))
        return;
    davit_chat_free(dialog->chat);
    davit_ids_clear(&dialog->stops);
    dialog->magic = 0;
    g_free(dialog);
}

const char *davit_dialog_source(const davit_dialog *dialog)
{
    return checked(dialog) ? davit_chat_source(dialog->chat) : NULL;
}

size_t davit_dialog_stops(const davit_dialog *dialog, const int32_t **out)
{
    if (!checked(dialog) || !out)
        return 0;
    *out = dialog->stops.ids;
    return dialog->stops.n;
}

/* ---- render ---- */

/* Members of the JSON object @text as variables; their texts in @keep. */
static bool add_vars(const char *text, size_t n, GArray *vars, GPtrArray *keep, json_t **out_tree,
                     DavitReport *report)
{
    const char *name;
    json_t *value;

    *out_tree = text ? davit_tree_parse(text, n, "template variables", report) : NULL;
    json_object_foreach(*out_tree, name, value)
    {
        char *json = json_dumps(value, JSON_ENCODE_ANY);
        if (!json)
            continue;
        g_ptr_array_add(keep, json);
        const DavitTemplateVar var = {
            .name = name, .json = json, .len = strlen(json), .trusted = true};
        g_array_append_val(vars, var);
    }
    return !text || *out_tree;
}

/* What control tokens inside messages mean was decided; say so where it matters. */
static void note_trust(const davit_dialog *d, DavitReport *report)
{
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_CONTENT_TRUST,
                                     .severity = d->trust ? DAVIT_WARNING : DAVIT_NOTE,
                                     .stage = "template",
                                     .subject = "messages",
                                     .message = d->trust ? "control tokens inside the messages are "
                                                           "control tokens: content is trusted"
                                                         : "control tokens inside the messages stay "
                                                           "text",
                                     .hint = d->trust ? NULL
                                                      : "--trust-content takes them as control "
                                                        "tokens"});
}

static int32_t render(const davit_dialog *d, const davit_dialog_input *in, DavitRendered *out,
                      DavitIds *ids, DavitReport *report)
{
    g_autoptr(GArray) vars = g_array_new(FALSE, FALSE, sizeof(DavitTemplateVar));
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func(free);
    json_t *tree = NULL;
    bool forged = false;
    int32_t status = add_vars(in->vars, in->n_vars, vars, keep, &tree, report)
                         ? DAVIT_OK
                         : status_of(report);
    const DavitChatInput chat = {.messages = in->messages,
                                 .n_messages = in->n_messages,
                                 .tools = in->tools,
                                 .n_tools = in->n_tools,
                                 .documents = in->documents,
                                 .n_documents = in->n_documents,
                                 .no_generation_prompt = in->no_generation_prompt,
                                 .vars = (const DavitTemplateVar *)(void *)vars->data,
                                 .n_vars = vars->len,
                                 .fixed_clock = d->fixed_clock,
                                 .now = d->now};
    if (!status)
        status = davit_chat_render(d->chat, &chat, out, report);
    json_decref(tree);
    if (!status && ids)
        status = davit_chat_encode(d->model->tokenizer, out, d->trust, ids, &forged, report);
    if (!status && forged)
        note_trust(d, report);
    return status;
}

int davit_dialog_render(const davit_dialog *dialog, const davit_dialog_input *input,
                        char **out_text, size_t *out_len, int32_t **out_ids, size_t *out_n,
                        davit_records **out_records)
{
    davit_dialog_input in = {0};
    if (input)
        memcpy(&in, input, MIN(sizeof in, input->struct_size));
    if (!checked(dialog) || !in.messages)
        return davit_usage("davit_dialog_render needs a dialog and messages", out_records);
    DavitReport *report = davit_report_new();
    DavitRendered rendered = {0};
    DavitIds ids = {0};
    const int32_t status = render(dialog, &in, &rendered, out_ids ? &ids : NULL, report);
    if (!status && out_len)
        *out_len = rendered.len;
    if (!status && out_text)
        *out_text = g_steal_pointer(&rendered.text);
    if (!status && out_ids)
        *out_ids = g_memdup2(ids.ids, ids.n * sizeof *ids.ids);
    if (!status && out_n)
        *out_n = ids.n;
    davit_rendered_clear(&rendered);
    davit_ids_clear(&ids);
    davit_records_give(report, out_records);
    return status;
}
