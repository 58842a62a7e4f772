/* SPDX-License-Identifier: Apache-2.0
 * JSON text to Jansson tree through the bounded pull reader. */
#include "config/tree.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

/* An open object or array. */
typedef struct Level {
    json_t *value; /* (borrowed from the tree) */
    char *key;     /* (owned) object: key whose value comes next */
} Level;

typedef struct Builder {
    json_t *root; /* (owned) */
    Level stack[DAVIT_JSON_MAX_DEPTH + 1];
    size_t depth;
} Builder;

json_t *davit_tree_real(double v)
{
    const char *text = "NaN";

    if (isfinite(v))
        return json_real(v);
    if (isinf(v))
        text = v > 0 ? "Infinity" : "-Infinity";
    return json_pack("{s:s}", "__float__", text);
}

/* (owned) scalar or empty container of @event; NULL for other events. */
static json_t *value_of(const davit_json_event *event)
{
    switch (event->type) {
    case DAVIT_JSON_OBJECT:
        return json_object();
    case DAVIT_JSON_ARRAY:
        return json_array();
    case DAVIT_JSON_STRING:
        return json_stringn(event->text.ptr, event->text.len);
    case DAVIT_JSON_INT:
        return json_integer(event->i64);
    case DAVIT_JSON_REAL:
        return davit_tree_real(event->f64);
    case DAVIT_JSON_TRUE:
        return json_true();
    case DAVIT_JSON_FALSE:
        return json_false();
    case DAVIT_JSON_NULL:
        return json_null();
    default:
        return NULL;
    }
}

/* Hang @value (owned) where the cursor is, and go into it if the text @opens it (a
 * non-finite number is an object too, but no open one). */
static void add_value(Builder *b, json_t *value, bool opens)
{
    if (b->depth == 0) {
        b->root = value;
    } else {
        Level *level = &b->stack[b->depth - 1];

        if (level->key) {
            json_object_set_new_nocheck(level->value, level->key, value);
            g_clear_pointer(&level->key, g_free);
        } else {
            json_array_append_new(level->value, value);
        }
    }
    if (opens) {
        g_assert(b->depth < G_N_ELEMENTS(b->stack)); /* the reader bounds its depth */
        b->stack[b->depth++] = (Level){.value = value};
    }
}

/* Returns: a status; DAVIT_OK with *done set after the last event. */
static int32_t step(Builder *b, DavitJsonReader *reader, bool *done)
{
    davit_json_event event = {.struct_size = sizeof event};
    int32_t status = davit_json_next(reader, &event);
    json_t *value;

    if (status != DAVIT_OK)
        return status;
    switch (event.type) {
    case DAVIT_JSON_DONE:
        *done = true;
        break;
    case DAVIT_JSON_OBJECT_END:
    case DAVIT_JSON_ARRAY_END:
        b->depth--;
        break;
    case DAVIT_JSON_KEY:
        b->stack[b->depth - 1].key = g_strndup(event.text.ptr, event.text.len);
        break;
    default:
        value = value_of(&event);
        /* Jansson refuses strings that are not UTF-8; the reader let none through. */
        add_value(b, value ? value : json_null(),
                  event.type == DAVIT_JSON_OBJECT || event.type == DAVIT_JSON_ARRAY);
    }
    return DAVIT_OK;
}

/* The reader stopped at an object or array that would be one too deep. */
static bool is_too_deep(const Builder *b, int32_t status, const DavitReport *report)
{
    const size_t n = davit_report_count(report);

    return status == DAVIT_E_LIMIT && b->depth == DAVIT_JSON_MAX_DEPTH && n > 0 &&
           davit_report_get(report, n - 1)->code == DAVIT_R_JSON_INVALID;
}

/* A limit of the reader, but no machine takes such a configuration: the file is at
 * fault. */
static int32_t refuse_depth(const char *subject, DavitReport *report)
{
    davit_report_truncate(report, davit_report_count(report) - 1);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_JSON_INVALID,
            .status = DAVIT_E_CORRUPT,
            .stage = "config",
            .subject = subject,
            .expected = davit_report_text(report, "at most %u open objects and arrays",
                                          DAVIT_JSON_MAX_DEPTH),
            .found = davit_report_text(report, "%u", DAVIT_JSON_MAX_DEPTH + 1),
            .message = "objects and arrays are nested too deep"});
}

json_t *davit_tree_parse(const char *text, size_t len, const char *subject,
                         DavitReport *report)
{
    g_autoptr(DavitJsonReader) reader =
        davit_json_open(text, len, DAVIT_JSON_PYTHON, subject, report);
    Builder b = {0};
    int32_t status = reader ? DAVIT_OK : DAVIT_E_CORRUPT;
    bool done = false;

    while (status == DAVIT_OK && !done)
        status = step(&b, reader, &done);
    for (size_t i = 0; i < b.depth; i++)
        g_free(b.stack[i].key);
    if (is_too_deep(&b, status, report))
        status = refuse_depth(subject, report);
    if (status == DAVIT_OK && !json_is_object(b.root))
        status =
            davit_report_add(report, &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                                     .status = DAVIT_E_CORRUPT,
                                                     .stage = "config",
                                                     .subject = subject,
                                                     .expected = "a JSON object",
                                                     .found = "another JSON value",
                                                     .message = "not a configuration"});
    if (status == DAVIT_OK)
        return b.root;
    json_decref(b.root);
    return NULL;
}

bool davit_tree_number(const json_t *value, double *out)
{
    const char *text;

    if (json_is_number(value)) {
        *out = json_number_value(value);
        return true;
    }
    text = json_string_value(json_object_get(value, "__float__"));
    if (!text)
        return false;
    if (strcmp(text, "Infinity") == 0)
        *out = INFINITY;
    else if (strcmp(text, "-Infinity") == 0)
        *out = -INFINITY;
    else
        *out = NAN;
    return true;
}

json_t *davit_tree_get(const json_t *object, const char *path, size_t path_len)
{
    const char *end = path + path_len;
    json_t *value = NULL;

    for (const json_t *at = object; path < end; at = value) {
        const char *dot = memchr(path, '.', (size_t)(end - path));
        g_autofree char *key = g_strndup(path, (size_t)((dot ? dot : end) - path));

        value = json_object_get(at, key);
        if (!value)
            return NULL;
        path = dot ? dot + 1 : end;
    }
    return value;
}

char *davit_tree_text(const json_t *value)
{
    g_autofree char *copy = NULL;
    double v;
    char *text;

    if (!value)
        return g_strdup("nothing");
    if (json_is_real(value)) {
        char digits[G_ASCII_DTOSTR_BUF_SIZE];

        return g_strdup(
            g_ascii_formatd(digits, sizeof digits, "%.9g", json_real_value(value)));
    }
    if (json_is_object(value) && davit_tree_number(value, &v))
        return g_strdup(json_string_value(json_object_get(value, "__float__")));
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    if (!text)
        return g_strdup("a value that cannot be printed");
    copy = g_strdup(text);
    free(text);
    return g_steal_pointer(&copy);
}
