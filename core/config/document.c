/* SPDX-License-Identifier: Apache-2.0
 * The walk over a document: every key against its table. */
#include "config/document_private.h"

#include <math.h>
#include <string.h>

#include "config/tree.h"

/* ---- saying ---- */

static void say(DavitDoc *doc, int32_t status)
{
    if (!doc->status)
        doc->status = status;
}

void davit_doc_bad(DavitDoc *doc, const char *path, const char *expected,
                   const json_t *found, const char *message)
{
    g_autofree char *text = found ? davit_tree_text(found) : NULL;

    say(doc, davit_report_add(
                 doc->report,
                 &(DavitFinding){.code = DAVIT_R_USAGE,
                                 .status = DAVIT_E_USAGE,
                                 .stage = "options",
                                 .subject = davit_report_text(doc->report, "%s: %s%s",
                                                              doc->name, doc->above ? doc->above : "", path),
                                 .expected = expected,
                                 .found = text,
                                 .message = message}));
}

int32_t davit_doc_unbuilt(const char *name, const char *path, const char *found,
                          const char *hint, DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_FLAG_UNSUPPORTED,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "options",
                                .subject = davit_report_text(report, "%s: %s", name, path),
                                .found = found ? found : "it is set",
                                .message = "known, not implemented in this build",
                                .hint = hint});
}

/* ---- keys ---- */

static const DavitDocKey *find_key(const DavitDoc *doc, const char *path)
{
    for (const DavitDocKey *key = doc->keys; key->path; key++)
        if (strcmp(key->path, path) == 0)
            return key;
    return NULL;
}

/* Is @path directly below @prefix ("" or "uva.")? */
static bool is_below(const char *path, const char *prefix)
{
    const size_t n = strlen(prefix);

    return strncmp(path, prefix, n) == 0 && !strchr(path + n, '.');
}

static void say_unknown(DavitDoc *doc, const char *path, const char *prefix)
{
    g_autoptr(GString) list = g_string_new(NULL);

    for (const DavitDocKey *key = doc->keys; key->path; key++)
        if (is_below(key->path, prefix) && key->kind != DAVIT_DOC_UNBUILT)
            g_string_append_printf(list, "%s%s", list->len ? ", " : "",
                                   key->path + strlen(prefix));
    davit_doc_bad(doc, path, list->str, NULL, "unknown key");
}

static bool is_word(const char *words, const char *text)
{
    g_auto(GStrv) list = g_strsplit(words, "|", -1);

    return text && g_strv_contains((const char *const *)list, text);
}

static void check_texts(DavitDoc *doc, const DavitDocKey *key, const json_t *value)
{
    const json_t *item;
    size_t i;
    bool ok = json_is_array(value);

    json_array_foreach(value, i, item)
    {
        ok = ok && json_is_string(item) && *json_string_value(item);
    }
    if (!ok)
        davit_doc_bad(doc, key->path, "an array of names, none empty", value,
                      "wrong type");
}

static void check_number(DavitDoc *doc, const DavitDocKey *key, const json_t *value)
{
    const bool whole = key->kind == DAVIT_DOC_INT;
    const char *expected =
        key->hi == INT64_MAX
            ? davit_report_text(doc->report, "%s of at least %lld",
                                whole ? "a whole number" : "a number",
                                (long long)key->lo)
            : davit_report_text(doc->report, "%s from %lld to %lld",
                                whole ? "a whole number" : "a number",
                                (long long)key->lo, (long long)key->hi);
    const double x = json_number_value(value);

    if (!(whole ? json_is_integer(value) : json_is_number(value)))
        davit_doc_bad(doc, key->path, expected, value, "wrong type");
    else if (!isfinite(x) || x < (double)key->lo ||
             (key->hi != INT64_MAX && x > (double)key->hi))
        davit_doc_bad(doc, key->path, expected, value, "out of range");
}

static void check_value(DavitDoc *doc, const DavitDocKey *key, const json_t *value)
{
    switch (key->kind) {
    case DAVIT_DOC_OBJECT:
        if (!json_is_object(value))
            davit_doc_bad(doc, key->path, "an object", value, "wrong type");
        return;
    case DAVIT_DOC_BOOL:
        if (!json_is_boolean(value))
            davit_doc_bad(doc, key->path, "true or false", value, "wrong type");
        return;
    case DAVIT_DOC_INT:
    case DAVIT_DOC_NUMBER:
        check_number(doc, key, value);
        return;
    case DAVIT_DOC_TEXT:
        if (!json_is_string(value) || !*json_string_value(value))
            davit_doc_bad(doc, key->path, "a text that is not empty", value,
                          "wrong type");
        return;
    case DAVIT_DOC_CHOICE:
        if (!is_word(key->words, json_string_value(value)))
            davit_doc_bad(doc, key->path, key->words, value, "not one of its words");
        return;
    case DAVIT_DOC_TEXTS:
        check_texts(doc, key, value);
        return;
    case DAVIT_DOC_ARRAY:
        if (!json_is_array(value))
            davit_doc_bad(doc, key->path, "an array", value, "wrong type");
        return;
    case DAVIT_DOC_UNBUILT:
        say(doc, davit_doc_unbuilt(doc->name, key->path, NULL,
                                   "leave the key out", doc->report));
        return;
    }
}

/* ---- the walk ---- */

/* One object of the document; tables are at most three levels deep. */
static void check_level(DavitDoc *doc, const char *prefix, const json_t *object,
                        GQueue *later)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        g_autofree char *path = g_strconcat(prefix, name, NULL);
        const DavitDocKey *key = strchr(name, '.') ? NULL : find_key(doc, path);

        if (!key)
            say_unknown(doc, path, prefix);
        if (!key || json_is_null(value))
            continue;
        check_value(doc, key, value);
        if (key->kind == DAVIT_DOC_OBJECT && json_is_object(value))
            g_queue_push_tail(later, (gpointer)(uintptr_t)key);
    }
}

void davit_doc_read(DavitDoc *doc, const char *text, size_t len)
{
    GQueue later = G_QUEUE_INIT;
    const DavitDocKey *key;
    g_autoptr(DavitReport) said = davit_report_new();

    doc->root = davit_tree_parse(text, len, doc->name, said);
    if (!doc->root) {
        const DavitRecord *r = davit_report_first_error(said, 0);

        davit_doc_bad(doc, "document", "one JSON object", NULL,
                      r ? r->message : "the document does not parse");
        return;
    }
    check_level(doc, "", doc->root, &later);
    while ((key = g_queue_pop_head(&later))) {
        g_autofree char *prefix = g_strconcat(key->path, ".", NULL);

        check_level(doc, prefix, davit_doc_get(doc, key->path), &later);
    }
}

/* ---- values ---- */

const json_t *davit_doc_get(const DavitDoc *doc, const char *path)
{
    const json_t *value = davit_tree_get(doc->root, path, strlen(path));

    return json_is_null(value) ? NULL : value;
}

int64_t davit_doc_int(const DavitDoc *doc, const char *path, int64_t absent)
{
    const json_t *value = davit_doc_get(doc, path);

    return json_is_integer(value) ? json_integer_value(value) : absent;
}

bool davit_doc_bool(const DavitDoc *doc, const char *path, bool absent)
{
    const json_t *value = davit_doc_get(doc, path);

    return json_is_boolean(value) ? json_is_true(value) : absent;
}

const char *davit_doc_text(const DavitDoc *doc, const char *path, const char *absent)
{
    const char *text = json_string_value(davit_doc_get(doc, path));

    return text ? text : absent;
}
