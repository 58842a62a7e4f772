/* SPDX-License-Identifier: Apache-2.0
 * Finding chat templates and special tokens beside a model or inside a GGUF. */
#include "template/source.h"

#include <inttypes.h>
#include <string.h>

#include "config/tree.h"
#include "source/source.h"
#include "template/template.h"

#define CONFIG      "tokenizer_config.json"
#define JINJA       "chat_template.jinja"
#define NAMED_DIR   "additional_chat_templates"
#define MAX_CONFIG  (64u << 20)

void davit_template_found_clear(DavitTemplateFound *found)
{
    g_free(found->text);
    g_free(found->subject);
    *found = (DavitTemplateFound){0};
}

/* ---- files ---- */

static int32_t read_path(const char *path, uint64_t max, GBytes **out, DavitReport *report)
{
    g_autoptr(DavitSource) source = davit_source_open(path, report);
    g_autofree char *text = NULL;
    const uint64_t n = source ? davit_source_size(source) : 0;

    if (!source)
        return DAVIT_E_IO;
    if (n > max)
        return davit_report_add(report,
                                &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                                .status = DAVIT_E_LIMIT,
                                                .stage = "template",
                                                .subject = path,
                                                .expected = davit_report_text(
                                                    report, "at most %" PRIu64 " bytes", max),
                                                .found = davit_report_text(
                                                    report, "%" PRIu64 " bytes", n),
                                                .message = "the file is too large for what it "
                                                           "should be"});
    text = g_try_malloc(n + 1);
    if (!text)
        return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                        .status = DAVIT_E_LIMIT,
                                                        .stage = "template",
                                                        .subject = path,
                                                        .message = "no memory for the file"});
    const int32_t status = n ? davit_source_read(source, 0, text, n, report) : DAVIT_OK;
    if (!status)
        *out = g_bytes_new_take(g_steal_pointer(&text), n);
    return status;
}

/* File @name beside the model; *out stays NULL when there is none. */
static int32_t read_beside(const DavitTemplateWhere *where, const char *name, uint64_t max,
                           GBytes **out, DavitReport *report)
{
    g_autofree char *path = NULL;

    *out = NULL;
    if (where->checkpoint)
        return davit_checkpoint_sibling(where->checkpoint, name, max, out, report);
    path = where->dir ? g_build_filename(where->dir, name, NULL) : NULL;
    if (!path || !g_file_test(path, G_FILE_TEST_EXISTS))
        return DAVIT_OK;
    return read_path(path, max, out, report);
}

/* A named template of chat_template.jinja's folder. The name is a file name without path. */
static int32_t read_named(const DavitTemplateWhere *where, const char *name, GBytes **out,
                          DavitReport *report)
{
    g_autofree char *file = g_strconcat(name, ".jinja", NULL), *path = NULL;
    const char *dir = where->checkpoint ? davit_checkpoint_dir(where->checkpoint) : where->dir;

    *out = NULL;
    if (!dir || !dir[0] || strpbrk(name, "/\\") || name[0] == '.' || !name[0])
        return DAVIT_OK;
    path = g_build_filename(dir, NAMED_DIR, file, NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return DAVIT_OK;
    return read_path(path, DAVIT_TEMPLATE_MAX_BYTES, out, report);
}

/* @name beside the model, or the path @instead. */
static json_t *read_json(const DavitTemplateWhere *where, const char *name, const char *instead,
                         int32_t *status, DavitReport *report)
{
    g_autoptr(GBytes) bytes = NULL;
    json_t *tree;

    *status = instead ? read_path(instead, MAX_CONFIG, &bytes, report)
                      : read_beside(where, name, MAX_CONFIG, &bytes, report);
    name = instead ? instead : name;
    if (*status || !bytes)
        return NULL;
    tree = davit_tree_parse(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), name, report);
    if (!tree)
        *status = davit_report_first_error(report, 0)->status;
    return tree;
}

/* ---- templates ---- */

static void give(DavitTemplateFound *out, const char *text, size_t len, char *subject)
{
    *out = (DavitTemplateFound){g_strndup(text, len), len, subject};
}

/* The names that would do, in order; NULL ends. */
static void wanted(const DavitTemplateWhere *where, const char *out[3])
{
    size_t n = 0;

    if (where->name)
        out[n++] = where->name;
    else if (where->tools)
        out[n++] = "tool_use";
    if (!where->name)
        out[n++] = "default";
    out[n] = NULL;
}

static int32_t from_jinja(const DavitTemplateWhere *where, DavitTemplateFound *out,
                          DavitReport *report)
{
    const char *names[3];

    wanted(where, names);
    for (size_t i = 0; names[i]; i++) {
        const bool main = strcmp(names[i], "default") == 0;
        g_autoptr(GBytes) bytes = NULL;
        const int32_t status =
            main ? read_beside(where, JINJA, DAVIT_TEMPLATE_MAX_BYTES, &bytes, report)
                 : read_named(where, names[i], &bytes, report);

        if (status)
            return status;
        if (!bytes)
            continue;
        give(out, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes),
             main ? g_strdup(JINJA) : g_strdup_printf(NAMED_DIR "/%s.jinja", names[i]));
        return DAVIT_OK;
    }
    return DAVIT_OK;
}

static const json_t *named_in(const json_t *list, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *own = json_string_value(json_object_get(item, "name"));

        if (own && strcmp(own, name) == 0)
            return json_object_get(item, "template");
    }
    return NULL;
}

/* @path: the user's file, NULL = the model's. */
static int32_t from_config(const DavitTemplateWhere *where, const char *path,
                           DavitTemplateFound *out, DavitReport *report)
{
    const char *subject = path ? path : CONFIG;
    int32_t status;
    json_t *config = read_json(where, CONFIG, path, &status, report);
    const json_t *value = json_object_get(config, "chat_template"), *text = NULL;
    const char *names[3], *name = NULL;

    wanted(where, names);
    if (json_is_string(value)) {
        text = !where->name || strcmp(where->name, "default") == 0 ? value : NULL;
    } else if (json_is_array(value)) {
        for (size_t i = 0; names[i] && !text; i++)
            text = named_in(value, name = names[i]);
    } else if (value && !json_is_null(value)) {
        status = davit_report_add(report,
                                  &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                                  .status = DAVIT_E_CORRUPT,
                                                  .stage = "template",
                                                  .subject = davit_report_text(
                                                      report, "%s: chat_template", subject),
                                                  .expected = "a text or a list of named texts",
                                                  .message = "the value has a wrong type"});
    }
    if (json_is_string(text))
        give(out, json_string_value(text), json_string_length(text),
             name ? g_strdup_printf("%s: chat_template \"%s\"", subject, name)
                  : g_strdup_printf("%s: chat_template", subject));
    json_decref(config);
    return status;
}

static void from_gguf(const DavitTemplateWhere *where, DavitTemplateFound *out)
{
    const char *names[3];

    wanted(where, names);
    for (size_t i = 0; where->checkpoint && names[i]; i++) {
        const bool main = strcmp(names[i], "default") == 0;
        g_autofree char *key = main ? g_strdup("tokenizer.chat_template")
                                    : g_strconcat("tokenizer.chat_template.", names[i], NULL);
        const davit_kv *kv = davit_checkpoint_find_key(where->checkpoint, key);
        davit_span span;

        if (!kv || !davit_kv_text(kv, &span))
            continue;
        give(out, span.ptr, span.len, g_strdup_printf("GGUF key %s", key));
        return;
    }
}

/* The template that is not used, if it says something else. */
static void note_hidden(const DavitTemplateFound *used, const DavitTemplateFound *hidden,
                        DavitReport *report)
{
    if (!hidden->text ||
        (used->len == hidden->len && memcmp(used->text, hidden->text, used->len) == 0))
        return;
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                     .severity = DAVIT_NOTE,
                                     .stage = "template",
                                     .subject = hidden->subject,
                                     .message = davit_report_text(
                                         report, "differs from %s, which is used",
                                         used->subject)});
}

static int32_t missing(const DavitTemplateWhere *where, DavitReport *report)
{
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_TEMPLATE_MISSING,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "template",
                        .subject = where->name ? where->name : "chat template",
                        .expected = JINJA ", chat_template in " CONFIG
                                          ", or a GGUF key tokenizer.chat_template",
                        .message = where->name ? "the model has no chat template of that name"
                                               : "the model has no chat template",
                        .hint = "give one with --chat-template FILE, or complete plain text with "
                                "--prompt"});
}

static int32_t from_file(const DavitTemplateWhere *where, DavitTemplateFound *out,
                         DavitReport *report)
{
    g_autoptr(GBytes) bytes = NULL;
    const int32_t status = read_path(where->file, DAVIT_TEMPLATE_MAX_BYTES, &bytes, report);

    if (!status)
        give(out, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), g_strdup(where->file));
    return status;
}

int32_t davit_template_find(const DavitTemplateWhere *where, DavitTemplateFound *out,
                            DavitReport *report)
{
    DavitTemplateFound found[3] = {{0}};
    int32_t status;
    size_t used = 0;

    *out = (DavitTemplateFound){0};
    if (where->file)
        return from_file(where, out, report);
    status = where->config ? from_config(where, where->config, out, report) : DAVIT_OK;
    if (status || out->text)
        return status;
    status = from_jinja(where, &found[0], report);
    if (!status)
        status = from_config(where, NULL, &found[1], report);
    from_gguf(where, &found[2]);
    while (used < 3 && !found[used].text)
        used++;
    if (!status && used == 3)
        status = missing(where, report);
    if (!status) {
        for (size_t i = used + 1; i < 3; i++)
            note_hidden(&found[used], &found[i], report);
        *out = found[used];
        found[used] = (DavitTemplateFound){0};
    }
    for (size_t i = 0; i < 3; i++)
        davit_template_found_clear(&found[i]);
    return status;
}

/* ---- special tokens ---- */

/* "*_token" of @from as texts into @to; "<s>" or {"content": "<s>"}. */
static void take_tokens(json_t *to, json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach(from, key, value)
    {
        json_t *text = json_is_object(value) ? json_object_get(value, "content") : value;

        if (g_str_has_suffix(key, "_token") && json_is_string(text))
            json_object_set(to, key, text);
    }
}

/* The text of token @id of a GGUF: strings of a u64 length each. */
static bool gguf_token(const davit_kv *tokens, int64_t id, davit_span *out)
{
    const uint8_t *at = tokens->data, *end = at + tokens->n_bytes;

    for (int64_t i = 0; i <= id; i++) {
        uint64_t n = 0;

        if (end - at < 8)
            return false;
        for (int b = 7; b >= 0; b--)
            n = n << 8 | at[b];
        at += 8;
        if (n > (uint64_t)(end - at))
            return false;
        *out = (davit_span){(const char *)at, n};
        at += n;
    }
    return true;
}

static void gguf_tokens(const DavitCheckpoint *c, json_t *to)
{
    static const char *const names[][2] = {{"bos", "bos_token"},     {"eos", "eos_token"},
                                           {"unknown", "unk_token"}, {"padding", "pad_token"},
                                           {"seperator", "sep_token"}, {"cls", "cls_token"},
                                           {"mask", "mask_token"}};
    const davit_kv *tokens = davit_checkpoint_find_key(c, "tokenizer.ggml.tokens");

    if (!tokens || !tokens->is_array || tokens->type != DAVIT_KV_STR)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *key = g_strdup_printf("tokenizer.ggml.%s_token_id", names[i][0]);
        const davit_kv *kv = davit_checkpoint_find_key(c, key);
        davit_span span;
        int64_t id;

        if (kv && davit_kv_i64(kv, 0, &id) && id >= 0 && (uint64_t)id < tokens->count &&
            gguf_token(tokens, id, &span))
            json_object_set_new(to, names[i][1], json_stringn(span.ptr, span.len));
    }
}

json_t *davit_template_specials(const DavitTemplateWhere *where, DavitReport *report)
{
    static const char *const files[] = {CONFIG, CONFIG, "special_tokens_map.json"};
    json_t *out = json_object();

    for (size_t i = where->config ? 0 : 1;
         i < G_N_ELEMENTS(files) && json_object_size(out) == 0; i++) {
        int32_t status;
        json_t *tree =
            read_json(where, files[i], i == 0 ? where->config : NULL, &status, report);

        take_tokens(out, tree);
        json_decref(tree);
        if (!status)
            continue;
        json_decref(out);
        return NULL;
    }
    if (json_object_size(out) == 0 && where->checkpoint)
        gguf_tokens(where->checkpoint, out);
    return out;
}
