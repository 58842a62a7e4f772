/* SPDX-License-Identifier: Apache-2.0
 * Filters on text, and the table of all filters. Source: jinja2 3.1.6 filters.py; tojson
 * as transformers 5 defines it. */
#include "template/text.h"

#include <string.h>

#include <davit/help/ucd.h>

/* soft_str(value) that must not be Markup: what Markup's methods do differently is not
 * had here. */
static Str *plain(Vm *vm, Value value)
{
    Str *s = tmpl_to_str(vm, value);

    if (s->markup)
        tmpl_unsupported(vm, "this filter on escaped text (Markup)");
    return s;
}

/* str(value), which Markup is not. */
static Str *as_plain(Vm *vm, Value value)
{
    Str *s = tmpl_to_str(vm, value);

    s = tmpl_str_part(&vm->arena, s, 0, s->n);
    s->markup = false;
    return s;
}

static Value upper(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "upper", "", NULL);
    return tmpl_string(tmpl_upper(vm, tmpl_to_str(vm, value)));
}

static Value lower(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "lower", "", NULL);
    return tmpl_string(tmpl_lower(vm, tmpl_to_str(vm, value)));
}

static Value capitalize(Vm *vm, Value value, const Args *args)
{
    const Str *name = tmpl_str(&vm->arena, "capitalize", 10);

    tmpl_bind(vm, args, "capitalize", "", NULL);
    return tmpl_str_method(vm, tmpl_to_str(vm, value), name, &(Args){0});
}

static bool is_word_border(uint32_t cp)
{
    return tmpl_is_space(cp) || cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<';
}

static Value title(Vm *vm, Value value, const Args *args)
{
    Str *s = tmpl_to_str(vm, value);
    Sb out = {.arena = &vm->arena};

    tmpl_bind(vm, args, "title", "", NULL);
    for (size_t at = 0; at < s->n;) {
        uint32_t len, more;
        const bool border = is_word_border(tmpl_str_cp(s, at, &len));
        size_t end = at + len;

        while (end < s->n && is_word_border(tmpl_str_cp(s, end, &more)) == border)
            end += more;
        if (border) {
            tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, at, end));
        } else {
            const Str *rest = tmpl_str_part(&vm->arena, s, at + len, end);

            tmpl_add_cased(&out, s, at, at + len, CASE_UPPER);
            tmpl_add_cased(&out, rest, 0, rest->n, CASE_LOWER);
        }
        at = end;
    }
    return tmpl_string(tmpl_sb_take(&out));
}

static Value center(Vm *vm, Value value, const Args *args)
{
    Value width;
    const Str *name = tmpl_str(&vm->arena, "center", 6);

    tmpl_bind(vm, args, "center", "width?", &width);
    if (width.type == V_MISSING)
        width = tmpl_int(80);
    return tmpl_str_method(vm, tmpl_to_str(vm, value), name, &(Args){.pos = &width, .n = 1});
}

static Value trim(Vm *vm, Value value, const Args *args)
{
    Value chars;

    tmpl_bind(vm, args, "trim", "chars?", &chars);
    return tmpl_string(tmpl_strip(
        vm, tmpl_to_str(vm, value),
        chars.type == V_MISSING || chars.type == V_NONE ? NULL : tmpl_need_str(vm, chars, "chars"),
        true, true));
}

static Value replace(Vm *vm, Value value, const Args *args)
{
    Value bound[3], pos[3];
    const Str *name = tmpl_str(&vm->arena, "replace", 7);

    tmpl_bind(vm, args, "replace", "old new count?", bound);
    pos[0] = tmpl_string(as_plain(vm, bound[0]));
    pos[1] = tmpl_string(as_plain(vm, bound[1]));
    pos[2] = bound[2].type == V_MISSING || bound[2].type == V_NONE ? tmpl_int(-1) : bound[2];
    return tmpl_str_method(vm, as_plain(vm, value), name, &(Args){.pos = pos, .n = 3});
}

static Value string(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "string", "", NULL);
    return tmpl_string(tmpl_to_str(vm, value));
}

static Value safe(Vm *vm, Value value, const Args *args)
{
    Str *s;

    tmpl_bind(vm, args, "safe", "", NULL);
    s = tmpl_to_str(vm, value);
    s = tmpl_str_part(&vm->arena, s, 0, s->n);
    s->markup = true;
    return tmpl_string(s);
}

static Value escape(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "escape", "", NULL);
    if (value.type == V_STR && value.s->markup)
        return value;
    return tmpl_string(tmpl_escape(vm, tmpl_to_str(vm, value)));
}

static Value force_escape(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "forceescape", "", NULL);
    return tmpl_string(tmpl_escape(vm, tmpl_to_str(vm, value)));
}

static Value format(Vm *vm, Value value, const Args *args)
{
    if (args->n && args->n_named)
        tmpl_raise(vm, "FilterArgumentError: can't handle positional and keyword arguments at "
                       "the same time");
    return tmpl_percent_args(vm, plain(vm, value), args);
}

static Str *indention(Vm *vm, Value width)
{
    Sb out = {.arena = &vm->arena};
    int64_t n;

    if (width.type == V_STR)
        return plain(vm, width);
    n = width.type == V_MISSING ? 4 : tmpl_need_int(vm, width, "width");
    if (n > (int64_t)vm->max_output)
        tmpl_limit(vm, "the indention is too wide");
    for (; n > 0; n--)
        tmpl_sb_add_c(&out, ' ');
    return tmpl_sb_take(&out);
}

static Value indent(Vm *vm, Value value, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value bound[3];
    uint32_t len = 0;
    bool first = true;
    Str *lines;

    tmpl_bind(vm, args, "indent", "width? first? blank?", bound);
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    const Str *s = tmpl_need_str(vm, value, "the value of indent");
    const Str *indent = indention(vm, bound[0]);
    const bool blank = tmpl_truth(vm, bound[2]);
    if (tmpl_truth(vm, bound[1]))
        tmpl_sb_add_str(&out, indent);
    for (size_t at = 0; at <= s->n; at += len) { /* lines; one more newline is at the end */
        size_t end = at;
        bool crlf = false;

        for (len = 0; end < s->n; end += len) {
            const uint32_t cp = tmpl_str_cp(s, end, &len);

            if (tmpl_is_line_end(cp)) {
                crlf = cp == '\r' && end + 1 < s->n && s->p[end + 1] == '\n';
                break;
            }
        }
        if (!first)
            tmpl_sb_add_c(&out, '\n');
        if (!first && (blank || end > at))
            tmpl_sb_add_str(&out, indent);
        tmpl_sb_add(&out, s->p + at, s->taint ? s->taint + at : NULL, end - at);
        first = false;
        len = (uint32_t)(end - at) + (end < s->n ? len + crlf : 1);
        tmpl_step(vm, 1);
    }
    lines = tmpl_sb_take(&out);
    lines->markup = s->markup;
    return tmpl_string(lines);
}

/* truncate compares numbers of any kind, and only cuts by whole ones: is @n within @length and
 * @leeway, of which one is a float? */
static bool is_within(Vm *vm, int64_t n, Value length, Value leeway, size_t n_end)
{
    const double most = length.type == V_MISSING ? 255 : tmpl_as_float(vm, length);
    const double more = leeway.type == V_MISSING || leeway.type == V_NONE
                            ? 5
                            : tmpl_as_float(vm, leeway);

    if (!(most >= (double)n_end) || !(more >= 0))
        tmpl_raise(vm, "AssertionError: length or leeway is too small");
    if (!((double)n <= most + more) && length.type == V_FLOAT)
        tmpl_raise(vm, "TypeError: slice indices must be integers or None or have an "
                       "__index__ method");
    return (double)n <= most + more;
}

static bool is_number_or_none(Value v)
{
    return tmpl_is_number(v) || v.type == V_MISSING || v.type == V_NONE;
}

static Value truncate_text(Vm *vm, Value value, const Args *args)
{
    Value bound[4];

    tmpl_bind(vm, args, "truncate", "length? killwords? end? leeway?", bound);
    Str *s = tmpl_to_str(vm, value), *end = bound[2].type == V_MISSING
                                          ? tmpl_str(&vm->arena, "...", 3)
                                          : tmpl_need_str(vm, bound[2], "end");
    if ((bound[0].type == V_FLOAT || bound[3].type == V_FLOAT) && is_number_or_none(bound[0]) &&
        is_number_or_none(bound[3]) && bound[0].type != V_NONE) {
        if (is_within(vm, (int64_t)tmpl_length(vm, value), bound[0], bound[3], tmpl_str_chars(end)))
            return value;
        bound[3] = tmpl_int(0); /* it is longer than both */
    }
    const int64_t length =
        bound[0].type == V_MISSING ? 255 : tmpl_need_index(vm, bound[0], "length");
    const int64_t leeway = bound[3].type == V_MISSING || bound[3].type == V_NONE
                               ? 5
                               : tmpl_need_index(vm, bound[3], "leeway");
    const int64_t keep = MAX(length, -1) - (int64_t)tmpl_str_chars(end);
    if (keep < 0 || leeway < 0)
        tmpl_raise(vm, "AssertionError: length or leeway is too small");
    const int64_t n = (int64_t)tmpl_length(vm, value);
    if (n <= length || n - length <= leeway)
        return value;
    if (value.type != V_STR)
        tmpl_raise(vm, "TypeError: a %s cannot be truncated", tmpl_type_name(value));
    Str *part = tmpl_str_part(&vm->arena, s, 0, tmpl_str_offset(s, (size_t)keep));
    if (!tmpl_truth(vm, bound[1])) {
        const Str space = {.p = " ", .n = 1};
        const int64_t at = tmpl_str_find_last(part, &space);

        if (at >= 0)
            part = tmpl_str_part(&vm->arena, part, 0, (size_t)at);
    }
    return tmpl_binary(vm, OP_ADD, tmpl_string(part), tmpl_string(end));
}

static Value wordcount(Vm *vm, Value value, const Args *args)
{
    const Str *s = tmpl_to_str(vm, value);
    uint32_t len;
    int64_t n = 0;
    bool inside = false;

    tmpl_bind(vm, args, "wordcount", "", NULL);
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);
        const bool word = cp == '_' || (davit_ucd_bits(cp) & (DAVIT_UCD_L | DAVIT_UCD_N));

        n += word && !inside;
        inside = word;
    }
    return tmpl_int(n);
}

/* ---- tojson ---- */

static void json_separators(Vm *vm, Value v, bool used, JsonStyle *style)
{
    const List *pair;

    style->item_separator = tmpl_str(&vm->arena, style->has_indent ? "," : ", ",
                                     style->has_indent ? 1 : 2);
    style->key_separator = tmpl_str(&vm->arena, ": ", 2);
    if (v.type == V_MISSING || v.type == V_NONE)
        return;
    pair = tmpl_to_list(vm, v);
    if (pair->n != 2)
        tmpl_raise(vm, "ValueError: separators must be two");
    if (!used)
        return;
    style->item_separator = tmpl_need_str(vm, pair->items[0], "a separator");
    style->key_separator = tmpl_need_str(vm, pair->items[1], "a separator");
}

static Value to_json(Vm *vm, Value value, const Args *args)
{
    Value bound[4];
    JsonStyle style = {0};
    Sb out = {.arena = &vm->arena};

    tmpl_bind(vm, args, "tojson", "ensure_ascii? indent? separators? sort_keys?", bound);
    style.ascii = tmpl_truth(vm, bound[0]);
    style.sort_keys = tmpl_truth(vm, bound[3]);
    if (bound[1].type != V_MISSING && bound[1].type != V_NONE) {
        if (bound[1].type != V_STR && !tmpl_is_integer(bound[1]))
            tmpl_unsupported(vm, "an indent of type %s", tmpl_type_name(bound[1]));
        style.has_indent = true;
        style.indent = indention(vm, bound[1]);
    }
    json_separators(vm, bound[2], value.type != V_STR, &style); /* a text needs none */
    tmpl_to_json(vm, &out, value, &style, 0);
    return tmpl_string(tmpl_sb_take(&out));
}

const FilterRow tmpl_filters_text[] = {
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"center", center},
    {"trim", trim},
    {"replace", replace},
    {"string", string},
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"truncate", truncate_text},
    {"wordcount", wordcount},
    {"tojson", to_json},
    {NULL, NULL},
};

FilterFn *tmpl_filter_find(const Str *name)
{
    const FilterRow *const tables[] = {tmpl_filters_text, tmpl_filters_list,
                                       tmpl_filters_number, tmpl_filters_order,
                                       tmpl_filters_html, tmpl_filters_python,
                                       tmpl_filters_wrap, tmpl_filters_urlize};

    for (size_t t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const FilterRow *row = tables[t]; row->name; row++)
            if (tmpl_str_is(name, row->name))
                return row->fn;
    return NULL;
}
