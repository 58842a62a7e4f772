/* SPDX-License-Identifier: Apache-2.0
 * Text goes into a buffer whose room is asked for once a piece; then bytes are only stored. */
#include "base/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"

#define MAX_NUMBER 20u /* characters of an int64 */

typedef struct Level {
    bool is_object;
    bool begun;   /* something is in it */
    json_t *tree; /* (borrowed) NULL in text */
} Level;

struct DavitJsonWriter {
    GString *out; /* (borrowed) NULL = a tree is built */
    unsigned indent, outer;
    unsigned depth; /* open levels */
    bool any_keys;  /* keys may hold what must be escaped: a tree's */
    Level levels[DAVIT_JSON_WRITE_DEPTH];
    json_t *root; /* (owned) */
};

DavitJsonWriter *davit_json_writer_text(GString *out, unsigned indent, unsigned depth)
{
    DavitJsonWriter *w = g_new0(DavitJsonWriter, 1);

    w->out = out;
    w->indent = indent;
    w->outer = depth;
    return w;
}

DavitJsonWriter *davit_json_writer_tree(void)
{
    return g_new0(DavitJsonWriter, 1);
}

json_t *davit_json_writer_finish(DavitJsonWriter *w)
{
    json_t *root = w->root;

    g_assert(w->depth == 0);
    g_free(w);
    return root;
}

/* ---- text ---- */

/* Where @n more bytes may be written; take() says how many were. */
static char *room(DavitJsonWriter *w, size_t n)
{
    GString *out = w->out;
    const size_t len = out->len;

    if (out->allocated_len - len <= n) {
        g_string_set_size(out, len + n);
        g_string_truncate(out, len);
    }
    return out->str + len;
}

static void take(DavitJsonWriter *w, const char *end)
{
    w->out->len = (gsize)(end - w->out->str);
    w->out->str[w->out->len] = '\0';
}

static char *put(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}

static char *put_break(const DavitJsonWriter *w, char *to)
{
    const size_t n = (size_t)w->indent * (w->outer + w->depth);

    if (w->indent == 0)
        return to;
    *to++ = '\n';
    memset(to, ' ', n);
    return to + n;
}

static size_t break_len(const DavitJsonWriter *w)
{
    return 1 + (size_t)w->indent * (w->outer + w->depth);
}

/* The character after the backslash, 'u' for those that have no short form. */
static char escape_of(unsigned char c)
{
    switch (c) {
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return c < 0x20 ? 'u' : (char)c;
    }
}

/* @text in quotes; six bytes for each are there, and two. @stop: end of its plain begin. */
static char *put_string(char *to, const char *text, const char *stop, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *const end = text + n;

    *to++ = '"';
    for (;; stop = davit_json_plain_end(text, end)) {
        unsigned char c;

        to = put(to, text, (size_t)(stop - text));
        if (stop == end)
            break;
        text = stop + 1;
        c = (unsigned char)*stop;
        if (c >= 0x80) {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        *to++ = escape_of(c);
        if (to[-1] == 'u') {
            to = put(to, "00", 2);
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    *to++ = '"';
    return to;
}

/* What stands before a value: comma, line, key. @n: bytes that the value may take. */
static char *put_head(DavitJsonWriter *w, const char *key, size_t n)
{
    Level *level = w->depth ? &w->levels[w->depth - 1] : NULL;
    const size_t n_key = key ? strlen(key) : 0;
    char *to = room(w, n + 6 * n_key + break_len(w) + 8);

    if (!level)
        return to;
    if (level->begun)
        *to++ = ',';
    level->begun = true;
    to = put_break(w, to);
    if (!level->is_object)
        return to;
    to = put_string(to, key, w->any_keys ? davit_json_plain_end(key, key + n_key) : key + n_key,
                    n_key);
    *to++ = ':';
    if (w->indent)
        *to++ = ' ';
    return to;
}

static void put_word(DavitJsonWriter *w, const char *key, const char *word, size_t n)
{
    take(w, put(put_head(w, key, n), word, n));
}

/* ---- tree ---- */

static void add(DavitJsonWriter *w, const char *key, json_t *value)
{
    const Level *level = w->depth ? &w->levels[w->depth - 1] : NULL;

    if (!level)
        w->root = value;
    else if (level->is_object)
        json_object_set_new(level->tree, key, value);
    else
        json_array_append_new(level->tree, value);
}

/* ---- values ---- */

void davit_json_begin(DavitJsonWriter *w, const char *key, bool is_object)
{
    json_t *tree = NULL;

    g_assert(w->depth < DAVIT_JSON_WRITE_DEPTH);
    if (w->out)
        put_word(w, key, is_object ? "{" : "[", 1);
    else
        add(w, key, tree = is_object ? json_object() : json_array());
    w->levels[w->depth++] = (Level){.is_object = is_object, .tree = tree};
}

void davit_json_end(DavitJsonWriter *w)
{
    const Level *level = &w->levels[--w->depth];
    char *to;

    if (!w->out)
        return;
    to = room(w, break_len(w) + 1);
    if (level->begun)
        to = put_break(w, to);
    *to++ = level->is_object ? '}' : ']';
    take(w, to);
}

void davit_json_put_text(DavitJsonWriter *w, const char *key, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    const char *plain = text ? davit_json_plain_end(text, text + n) : NULL;
    g_autofree char *valid = NULL;

    if (text && *plain && !g_utf8_validate(plain, -1, NULL)) {
        text = valid = g_utf8_make_valid(text, -1);
        n = strlen(text);
        plain = davit_json_plain_end(text, text + n);
    }
    if (!text)
        davit_json_put_null(w, key);
    else if (w->out)
        take(w, put_string(put_head(w, key, 6 * n + 2), text, plain, n));
    else
        add(w, key, json_string(text));
}

void davit_json_put_int(DavitJsonWriter *w, const char *key, int64_t n)
{
    char digits[MAX_NUMBER];
    size_t at = sizeof digits;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

    if (!w->out) {
        add(w, key, json_integer((json_int_t)n));
        return;
    }
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (n < 0)
        digits[--at] = '-';
    put_word(w, key, digits + at, sizeof digits - at);
}

void davit_json_put_u64(DavitJsonWriter *w, const char *key, uint64_t n)
{
    davit_json_put_int(w, key, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

void davit_json_put_bool(DavitJsonWriter *w, const char *key, bool is)
{
    if (w->out)
        put_word(w, key, is ? "true" : "false", is ? 4 : 5);
    else
        add(w, key, json_boolean(is));
}

void davit_json_put_null(DavitJsonWriter *w, const char *key)
{
    if (w->out)
        put_word(w, key, "null", 4);
    else
        add(w, key, json_null());
}

void davit_json_put_written(DavitJsonWriter *w, const char *key, const GString *text)
{
    g_assert(w->out);
    put_word(w, key, text->str, text->len);
}

/* ---- a tree as text ---- */

/* A level of a tree on its way. */
typedef struct Walk {
    json_t *tree;    /* (borrowed) */
    void *iter;      /* of an object */
    size_t at, n;    /* of an array */
} Walk;

static Walk walk_new(const json_t *tree)
{
    json_t *own = (json_t *)(uintptr_t)tree; /* Jansson iterates without const */

    return (Walk){own, json_object_iter(own), 0, json_array_size(tree)};
}

/* Next value of @walk and its key; NULL after the last. */
static const json_t *walk_next(Walk *walk, const char **key)
{
    const json_t *value;

    *key = NULL;
    if (json_is_array(walk->tree))
        return walk->at < walk->n ? json_array_get(walk->tree, walk->at++) : NULL;
    if (!walk->iter)
        return NULL;
    *key = json_object_iter_key(walk->iter);
    value = json_object_iter_value(walk->iter);
    walk->iter = json_object_iter_next(walk->tree, walk->iter);
    return value;
}

/* A real, for Jansson's own digits, or what is too deep: on one line. */
static void put_dumped(DavitJsonWriter *w, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    put_word(w, key, text ? text : "null", text ? strlen(text) : 4);
    free(text);
}

/* Jansson's strings may hold NUL. */
static void put_json_string(DavitJsonWriter *w, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    const size_t n = json_string_length(value);

    take(w, put_string(put_head(w, key, 6 * n + 2), text, davit_json_plain_end(text, text + n),
                       n));
}

static void put_leaf(DavitJsonWriter *w, const char *key, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        put_json_string(w, key, value);
        return;
    case JSON_INTEGER:
        davit_json_put_int(w, key, json_integer_value(value));
        return;
    case JSON_REAL:
        put_dumped(w, key, value);
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        davit_json_put_bool(w, key, json_is_true(value));
        return;
    default:
        davit_json_put_null(w, key);
    }
}

static bool is_container(const json_t *value)
{
    return json_is_object(value) || json_is_array(value);
}

static void put_walk(DavitJsonWriter *w, const char *key, const json_t *value)
{
    Walk walks[DAVIT_JSON_WRITE_DEPTH];
    unsigned n = 0;

    for (;;) {
        if (is_container(value) && w->depth == DAVIT_JSON_WRITE_DEPTH) {
            put_dumped(w, key, value);
        } else if (is_container(value)) {
            davit_json_begin(w, key, json_is_object(value));
            walks[n++] = walk_new(value);
        } else {
            put_leaf(w, key, value);
        }
        while (n > 0 && !(value = walk_next(&walks[n - 1], &key))) {
            davit_json_end(w);
            n--;
        }
        if (n == 0)
            return;
    }
}

void davit_json_put_tree(DavitJsonWriter *w, const char *key, const json_t *value)
{
    if (!value) {
        davit_json_put_null(w, key);
    } else if (!w->out) {
        add(w, key, json_incref((json_t *)(uintptr_t)value));
    } else {
        w->any_keys = true;
        put_walk(w, key, value);
        w->any_keys = false;
    }
}
