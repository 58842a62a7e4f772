/* SPDX-License-Identifier: Apache-2.0
 * Filters for addresses and markup. Source: jinja2 3.1.6 filters.py, utils.py; markupsafe 3
 * (striptags). urlize is in filters_urlize.c. */
#include "template/text.h"

#include <string.h>

/* ---- urlencode ---- */

/* url_quote: bytes of UTF-8 as %XX. @query: "/" too, and "+" for a space. */
static void quote(Vm *vm, Sb *out, Value value, bool query)
{
    const Str *s = tmpl_to_str(vm, value);

    tmpl_step(vm, s->n / 16);
    for (uint32_t i = 0; i < s->n; i++) {
        const uint8_t *taint = s->taint ? s->taint + i : NULL;
        const char c = s->p[i];
        char code[4];

        if (g_ascii_isalnum(c) || (c && strchr("_.-~", c)) || (c == '/' && !query)) {
            tmpl_sb_add(out, &c, taint, 1);
        } else if (c == ' ' && query) {
            tmpl_sb_add(out, "+", taint, 1);
        } else {
            const uint8_t mask[3] = {taint ? *taint : 0, taint ? *taint : 0,
                                     taint ? *taint : 0};

            g_snprintf(code, sizeof code, "%%%02X", (unsigned)(uint8_t)c);
            tmpl_sb_add(out, code, taint ? mask : NULL, 3);
        }
    }
}

static void quote_pair(Vm *vm, Sb *out, Value key, Value value)
{
    if (out->n)
        tmpl_sb_add_c(out, '&');
    quote(vm, out, key, true);
    tmpl_sb_add_c(out, '=');
    quote(vm, out, value, true);
}

static Value url_encode(Vm *vm, Value value, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value item;
    Iter iter;

    tmpl_bind(vm, args, "urlencode", "", NULL);
    if (value.type == V_STR || (value.type != V_UNDEFINED && !tmpl_try_iter(vm, value, &iter))) {
        quote(vm, &out, value, false);
        return tmpl_string(tmpl_sb_take(&out));
    }
    if (value.type == V_DICT) {
        for (size_t i = 0; i < value.dict->n; i++)
            quote_pair(vm, &out, value.dict->entries[i].key, value.dict->entries[i].value);
        return tmpl_string(tmpl_sb_take(&out));
    }
    tmpl_iter(vm, value, &iter);
    while (tmpl_next_value(vm, &iter, &item)) {
        const List *pair = tmpl_to_list(vm, item);

        if (pair->n != 2)
            tmpl_raise(vm, "ValueError: %zu values to unpack into 2", pair->n);
        quote_pair(vm, &out, pair->items[0], pair->items[1]);
    }
    return tmpl_string(tmpl_sb_take(&out));
}

/* ---- xmlattr ---- */

static void add_escaped(Vm *vm, Sb *out, Value value)
{
    const bool markup = value.type == V_STR && value.s->markup;

    tmpl_sb_add_str(out, markup ? value.s : tmpl_escape(vm, tmpl_to_str(vm, value)));
}

static Value xml_attributes(Vm *vm, Value value, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value autospace;

    tmpl_bind(vm, args, "xmlattr", "autospace?", &autospace);
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    if (value.type != V_DICT)
        tmpl_raise(vm, "AttributeError: '%s' object has no attribute 'items'",
                   tmpl_type_name(value));
    const bool space = autospace.type == V_MISSING || tmpl_truth(vm, autospace);
    for (size_t i = 0; i < value.dict->n; i++) {
        const DictEntry *e = &value.dict->entries[i];

        if (e->value.type == V_NONE || e->value.type == V_UNDEFINED)
            continue;
        const Str *key = tmpl_need_str(vm, e->key, "the name of an attribute");
        for (uint32_t at = 0; at < key->n; at++)
            if (key->p[at] && strchr(" \t\n\r\f\v/>=", key->p[at]))
                tmpl_raise(vm, "ValueError: invalid character in attribute name: '%.*s'",
                           TMPL_SHOW(key));
        if (space || out.n)
            tmpl_sb_add_c(&out, ' ');
        add_escaped(vm, &out, e->key);
        tmpl_sb_add_text(&out, "=\"");
        add_escaped(vm, &out, e->value);
        tmpl_sb_add_c(&out, '"');
    }
    return tmpl_string(tmpl_sb_take(&out));
}

/* ---- striptags ---- */

/* Where the comment or tag at byte @at ends, or -1. */
static int64_t tag_end(const Str *s, size_t at)
{
    const Str open = {.p = "<!--", .n = 4}, close = {.p = "-->", .n = 3}, tag = {.p = ">", .n = 1};
    const bool comment = tmpl_str_find(s, &open, at) == (int64_t)at;
    const int64_t end =
        comment ? tmpl_str_find(s, &close, at + 4) : tmpl_str_find(s, &tag, at);

    return end < 0 ? -1 : end + (comment ? 3 : 1);
}

static Str *without_tags(Vm *vm, Str *s)
{
    const Str less = {.p = "<", .n = 1};
    Sb out = {.arena = &vm->arena};
    size_t done = 0;
    int64_t at, end;

    while ((at = tmpl_str_find(s, &less, done)) >= 0 && (end = tag_end(s, (size_t)at)) >= 0) {
        tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, done, (size_t)at));
        done = (size_t)end;
        tmpl_step(vm, 1);
    }
    tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, done, s->n));
    return tmpl_sb_take(&out);
}

/* " ".join(s.split()) */
static Str *single_spaced(Vm *vm, const Str *s)
{
    Sb out = {.arena = &vm->arena};
    bool gap = false;
    uint32_t len;

    for (uint32_t at = 0; at < s->n; at += len) {
        if (tmpl_is_space(tmpl_str_cp(s, at, &len))) {
            gap = out.n > 0;
            continue;
        }
        if (gap)
            tmpl_sb_add_c(&out, ' ');
        gap = false;
        tmpl_sb_add(&out, s->p + at, s->taint ? s->taint + at : NULL, len);
    }
    return tmpl_sb_take(&out);
}

static Value strip_tags(Vm *vm, Value value, const Args *args)
{
    Str *s;

    tmpl_bind(vm, args, "striptags", "", NULL);
    s = single_spaced(vm, without_tags(vm, tmpl_to_str(vm, value)));
    for (uint32_t i = 0; i + 1 < s->n; i++)
        if (s->p[i] == '&' && (g_ascii_isalnum(s->p[i + 1]) || s->p[i + 1] == '#'))
            tmpl_unsupported(vm, "striptags of a text with names of characters (&amp;)");
    return tmpl_string(s);
}

const FilterRow tmpl_filters_html[] = {
    {"striptags", strip_tags},
    {"urlencode", url_encode},
    {"xmlattr", xml_attributes},
    {NULL, NULL},
};
