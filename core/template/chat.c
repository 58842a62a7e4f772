/* SPDX-License-Identifier: Apache-2.0
 * Conversations to text and ids with a model's own template. */
#include "template/chat.h"

#include <stdlib.h>
#include <string.h>

struct DavitChat {
    DavitTemplate *template;
    char *source;
    json_t *specials; /* name to text */
};

DavitChat *davit_chat_new(const DavitTemplateWhere *where, DavitReport *report)
{
    g_autoptr(DavitChat) chat = g_new0(DavitChat, 1);
    DavitTemplateFound found = {0};

    chat->specials = davit_template_specials(where, report);
    if (!chat->specials || davit_template_find(where, &found, report))
        return NULL;
    chat->template = davit_template_parse(found.text, found.len, found.subject, report);
    chat->source = g_strdup(found.subject);
    davit_template_found_clear(&found);
    return chat->template ? g_steal_pointer(&chat) : NULL;
}

void davit_chat_free(DavitChat *chat)
{
    if (!chat)
        return;
    davit_template_free(chat->template);
    json_decref(chat->specials);
    g_free(chat->source);
    g_free(chat);
}

const char *davit_chat_source(const DavitChat *chat)
{
    return chat->source;
}

const DavitTemplate *davit_chat_template(const DavitChat *chat)
{
    return chat->template;
}

/* ---- render ---- */

static void add_var(GArray *vars, const char *name, const char *source, const char *json,
                    size_t len, bool trusted)
{
    const DavitTemplateVar var = {.name = name,
                                  .source = source,
                                  .json = json ? json : "null",
                                  .len = json ? len : 4,
                                  .trusted = trusted,
                                  .messages = strcmp(name, "messages") == 0};

    g_array_append_val(vars, var);
}

/* @value as JSON text in @keep, which frees it. */
static void add_special(GArray *vars, GPtrArray *keep, const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);

    if (!text)
        return;
    g_ptr_array_add(keep, text);
    add_var(vars, name, NULL, text, strlen(text), true);
}

int32_t davit_chat_render(const DavitChat *chat, const DavitChatInput *input,
                          DavitRendered *out, DavitReport *report)
{
    g_autoptr(GArray) vars = g_array_new(FALSE, FALSE, sizeof(DavitTemplateVar));
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func(free);
    const char *name, *prompt = input->no_generation_prompt ? "false" : "true";
    json_t *value;

    json_object_foreach(chat->specials, name, value)
    {
        add_special(vars, keep, name, value);
    }
    add_var(vars, "messages", input->messages_source, input->messages, input->n_messages, false);
    add_var(vars, "tools", input->tools_source, input->tools, input->n_tools, false);
    add_var(vars, "documents", input->documents_source, input->documents, input->n_documents, false);
    add_var(vars, "add_generation_prompt", NULL, prompt, strlen(prompt), true);
    if (input->n_vars)
        g_array_append_vals(vars, input->vars, (guint)input->n_vars);
    const DavitTemplateArgs args = {.vars = (const DavitTemplateVar *)(void *)vars->data,
                                    .n_vars = vars->len,
                                    .fixed_clock = input->fixed_clock,
                                    .now = input->now};
    return davit_template_render(chat->template, &args, out, report);
}

/* ---- encode ---- */

int32_t davit_chat_encode(const DavitTokenizer *tokenizer, const DavitRendered *rendered,
                          bool trust, DavitIds *out, bool *out_forged, DavitReport *report)
{
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    const size_t before = out->n;
    DavitIds other = {0};
    int32_t status;

    status = davit_encode_locked(encoder, rendered->text, rendered->len,
                                 trust ? NULL : rendered->untrusted, 0, out, report);
    if (status || !out_forged)
        return status;
    status = davit_encode_locked(encoder, rendered->text, rendered->len,
                                 trust ? rendered->untrusted : NULL, 0, &other, report);
    *out_forged = !status && (other.n != out->n - before ||
                              memcmp(other.ids, out->ids + before,
                                     other.n * sizeof *other.ids) != 0);
    davit_ids_clear(&other);
    return status;
}

/* ---- stops ---- */

static void add_stop(DavitIds *out, int32_t id)
{
    if (id < 0)
        return;
    for (size_t i = 0; i < out->n; i++)
        if (out->ids[i] == id)
            return;
    if (davit_ids_reserve(out, 1))
        out->ids[out->n++] = id;
}

/* The special token that the template writes right behind an answer, -1 = none. */
static int32_t turn_end(const DavitChat *chat, const DavitTokenizer *tokenizer)
{
    static const char talk[] = "[{\"role\":\"user\",\"content\":\"q\"},"
                               "{\"role\":\"assistant\",\"content\":\"davit answer\"}]";
    static const char answer[] = "davit answer";
    const DavitChatInput input = {.messages = talk,
                                  .n_messages = sizeof talk - 1,
                                  .no_generation_prompt = true,
                                  .fixed_clock = true};
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(tokenizer);
    DavitRendered r = {0};
    DavitIds ids = {0};
    int32_t id = -1;

    if (davit_chat_render(chat, &input, &r, aside))
        return -1;
    const char *tail = g_strrstr_len(r.text, (gssize)r.len, answer);
    if (tail) {
        tail += sizeof answer - 1;
        if (!davit_encode(encoder, tail, r.len - (size_t)(tail - r.text), 0, &ids, aside) &&
            ids.n && davit_tokenizer_is_special(tokenizer, ids.ids[0]))
            id = ids.ids[0];
    }
    davit_ids_clear(&ids);
    davit_rendered_clear(&r);
    return id;
}

void davit_chat_stops(const DavitChat *chat, const DavitTokenizer *tokenizer,
                      const DavitCheckpoint *checkpoint, DavitIds *out)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const json_t *eos = json_object_get(chat->specials, "eos_token");

    add_stop(out, turn_end(chat, tokenizer));
    if (json_is_string(eos))
        add_stop(out, davit_tokenizer_id(tokenizer, json_string_value(eos),
                                         json_string_length(eos)));
    for (size_t i = 0; checkpoint && i < G_N_ELEMENTS(keys); i++) {
        const davit_kv *kv = davit_checkpoint_find_key(checkpoint, keys[i]);
        int64_t id;

        if (kv && davit_kv_i64(kv, 0, &id) && id >= 0 && id <= DAVIT_TOK_MAX_ID)
            add_stop(out, (int32_t)id);
    }
}
