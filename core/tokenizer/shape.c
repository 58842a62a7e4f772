/* SPDX-License-Identifier: Apache-2.0
 * The canonical form. Looking shapes up is in shape_find.c.
 *
 * Known stages are rebuilt from the members that Hugging Face reads, so a member that it
 * ignores cannot make a shape look new; stages of unknown type are kept as they are.
 */
#include "tokenizer/shape.h"

#include <string.h>

#include "tokenizer/node.h"

/* One member of a known stage. */
typedef struct Member {
    const char *type, *key;
    const char *absent; /* JSON text of the default; NULL = the file must give it */
} Member;

static const Member members[] = {
    {"ByteLevel", "add_prefix_space", NULL},
    {"ByteLevel", "use_regex", "true"},
    {"Split", "pattern", NULL},
    {"Split", "behavior", NULL},
    {"Split", "invert", NULL},
    {"Digits", "individual_digits", NULL},
    {"Punctuation", "behavior", "\"Isolated\""},
    {"Metaspace", "replacement", NULL},
    {"Metaspace", "prepend_scheme", "\"always\""},
    {"Metaspace", "split", "true"},
    {"CharDelimiterSplit", "delimiter", NULL},
    {"FixedLength", "length", NULL},
    {"Whitespace", NULL, NULL},
    {"WhitespaceSplit", NULL, NULL},
    {"BertPreTokenizer", NULL, NULL},
    {"UnicodeScripts", NULL, NULL},
};

/* ---- escapes of a regex ---- */

/* Hex digits at @s, at most @max; *out_n how many. */
static uint32_t read_hex(const char *s, size_t max, size_t *out_n)
{
    uint32_t value = 0;

    for (*out_n = 0; *out_n < max && g_ascii_isxdigit(s[*out_n]); (*out_n)++)
        value = value << 4 | (uint32_t)g_ascii_xdigit_value(s[*out_n]);
    return value;
}

/* Code point of the escape at @s (behind the backslash) and its length; 0 = leave it. */
static uint32_t read_escape(const char *s, size_t *out_len)
{
    static const char names[] = "rntfvae", values[] = "\r\n\t\f\v\a\x1b";
    const char *at = *s ? strchr(names, *s) : NULL;
    size_t n;
    uint32_t cp = 0;

    if (at) {
        *out_len = 1;
        return (uint32_t)values[at - names];
    }
    if (s[0] == 'x' && s[1] == '{') {
        cp = read_hex(s + 2, 6, &n);
        *out_len = n + 3;
        if (n == 0 || s[2 + n] != '}')
            return 0;
    } else if (s[0] == 'x') {
        cp = read_hex(s + 1, 2, &n);
        *out_len = n + 1;
        if (n != 2 || cp > 0x7f)
            return 0; /* a lone byte above ASCII is not a character in onig */
    } else if (s[0] == 'u') {
        cp = read_hex(s + 1, 4, &n);
        *out_len = n + 1;
        if (n != 4)
            return 0;
    }
    if (!g_unichar_validate(cp) || (cp < 0x80 && g_ascii_ispunct((char)cp)))
        return 0;
    return cp;
}

/* (owned) @regex with escapes that name a character turned into it. */
static json_t *fold_regex(const char *regex)
{
    g_autoptr(GString) out = g_string_new(NULL);

    while (*regex) {
        size_t len = 0;
        uint32_t cp = regex[0] == '\\' ? read_escape(regex + 1, &len) : 0;

        if (cp) {
            g_string_append_unichar(out, cp);
            regex += 1 + len;
            continue;
        }
        if (regex[0] == '\\' && regex[1])
            g_string_append_c(out, *regex++);
        g_string_append_c(out, *regex++);
    }
    return json_stringn(out->str, out->len);
}

static json_t *fold_pattern(const json_t *pattern)
{
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    json_t *out;

    if (!regex || strlen(regex) != json_string_length(json_object_get(pattern, "Regex")))
        return json_deep_copy(pattern);
    out = json_object();
    json_object_set_new(out, "Regex", fold_regex(regex));
    return out;
}

/* ---- stages ---- */

/* Old Metaspace: true = always, false must agree with never. */
static int32_t settle_metaspace(const DavitNodePlace *place, const json_t *node,
                                json_t *out)
{
    const char *scheme = json_string_value(json_object_get(out, "prepend_scheme"));
    bool prefix;
    int32_t status = davit_node_bool_or(place, node, "add_prefix_space", true, &prefix);

    if (status != DAVIT_OK)
        return status;
    if (!prefix && g_strcmp0(scheme, "never") != 0)
        return davit_node_invalid(place, "prepend_scheme",
                                  "\"never\", as add_prefix_space is "
                                  "false",
                                  json_object_get(out, "prepend_scheme"));
    return DAVIT_OK;
}

/* (owned) the stage with exactly the members that matter, NULL with a record. */
static json_t *rebuild_stage(const DavitNodePlace *place, const json_t *node)
{
    const char *type = davit_node_type(place, node);
    bool known = false;
    json_t *out = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        const Member *m = &members[i];
        const json_t *value;

        if (strcmp(m->type, type) != 0)
            continue;
        known = true;
        if (!m->key)
            continue;
        value = json_object_get(node, m->key);
        if (strcmp(m->key, "pattern") == 0 && value)
            json_object_set_new(out, m->key, fold_pattern(value));
        else if (value && !json_is_null(value))
            json_object_set_new(out, m->key, json_deep_copy(value));
        else if (m->absent)
            json_object_set_new(out, m->key,
                                json_loads(m->absent, JSON_DECODE_ANY, NULL));
        else {
            davit_node_invalid(place, m->key, "a member that the stage needs", value);
            json_decref(out);
            return NULL;
        }
    }
    if (!known) {
        json_decref(out);
        return json_deep_copy(node);
    }
    json_object_set_new(out, "type", json_string(type));
    if (strcmp(type, "Metaspace") == 0 &&
        settle_metaspace(place, node, out) != DAVIT_OK) {
        json_decref(out);
        return NULL;
    }
    return out;
}

char *davit_shape_canonical(const json_t *node, const char *subject, DavitReport *report)
{
    const DavitNodePlace place = {subject, "pre_tokenizer", report};
    const json_t *stages[DAVIT_TOK_MAX_STAGES];
    json_t *list, *whole;
    size_t n;
    char *dump, *text;

    if (davit_node_flatten(&place, node, "pretokenizers", stages, &n) != DAVIT_OK)
        return NULL;
    if (n == 0)
        return g_strdup("null");
    list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *stage = rebuild_stage(&place, stages[i]);

        if (!stage) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, stage);
    }
    whole = n == 1 ? json_incref(json_array_get(list, 0))
                   : json_pack("{s:O,s:s}", "pretokenizers", list, "type", "Sequence");
    dump = json_dumps(whole, JSON_COMPACT | JSON_SORT_KEYS);
    text = g_strdup(dump);
    free(dump);
    json_decref(whole);
    json_decref(list);
    return text;
}
