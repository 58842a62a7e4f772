/* SPDX-License-Identifier: Apache-2.0
 * str(), repr() and json.dumps() of values, as Python 3 writes them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/bigint.h"
#include "template/text.h"

/* ---- numbers ---- */

/* The next number with as many digits as @text, "d.ddde+NN"; false where it has one more. */
static bool step_up(char *text)
{
    for (char *c = strchr(text, 'e') - 1; c >= text; c--) {
        if (*c == '.')
            continue;
        if (*c != '9') {
            ++*c;
            return true;
        }
        *c = '0';
    }
    return false;
}

/* Shortest digits that read back as @f (> 0, finite). 15 digits are always told apart, so
 * fewer can only be right where they are the same ones; denormals have less to tell. */
static int shortest(double f, char digits[32])
{
    char text[40], format[8];
    int exponent;

    for (int precision = f < DBL_MIN ? 0 : 14; precision <= 16; precision++) {
        g_snprintf(format, sizeof format, "%%.%de", precision);
        g_ascii_formatd(text, sizeof text, format, f);
        if (g_ascii_strtod(text, NULL) == f || precision == 16)
            break;
        /* below a power of two numbers lie closer: the nearest digits, below it, may read back as
         * another one where those above do not */
        if (step_up(text) && g_ascii_strtod(text, NULL) == f)
            break;
    }
    char *e = strchr(text, 'e');
    exponent = (int)strtol(e + 1, NULL, 10);
    size_t n = 0;
    for (const char *c = text; c < e; c++)
        if (*c != '.')
            digits[n++] = *c;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return exponent;
}

void tmpl_float_repr(double f, char *out)
{
    char digits[32];

    if (isnan(f)) { /* Python prints no sign */
        memcpy(out, "nan", 4);
        return;
    }
    if (signbit(f))
        *out++ = '-';
    f = fabs(f);
    if (isinf(f)) {
        memcpy(out, "inf", 4);
        return;
    }
    if (f == 0) {
        memcpy(out, "0.0", 4);
        return;
    }
    const int exponent = shortest(f, digits);
    const int n = (int)strlen(digits);
    if (exponent < -4 || exponent >= 16) {
        *out++ = digits[0];
        if (n > 1)
            *out++ = '.';
        memcpy(out, digits + 1, (size_t)n - 1);
        g_snprintf(out + n - 1, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = -1; i > exponent; i--)
            *out++ = '0';
        memcpy(out, digits, (size_t)n + 1);
        return;
    }
    for (int i = 0; i < MAX(n, exponent + 2); i++) {
        if (i == exponent + 1)
            *out++ = '.';
        *out++ = i < n ? digits[i] : '0';
    }
    *out = '\0';
}

static void add_int(Sb *out, int64_t i)
{
    char text[24];

    g_snprintf(text, sizeof text, "%" G_GINT64_FORMAT, i);
    tmpl_sb_add_text(out, text);
}

static void add_big(Vm *vm, Sb *out, Value v)
{
    if (tmpl_is_negative(v))
        tmpl_sb_add_c(out, '-');
    tmpl_big_digits(vm, out, v, 10, false);
}

/* The shortest digits take a microsecond to find. */
#define FLOAT_STEPS 64

static void add_float(Vm *vm, Sb *out, double f)
{
    char text[40];

    tmpl_step(vm, FLOAT_STEPS);
    tmpl_float_repr(f, text);
    tmpl_sb_add_text(out, text);
}

/* ---- repr ---- */

static void add_hex(Sb *out, uint32_t cp, uint8_t taint)
{
    char text[12];

    g_snprintf(text, sizeof text,
               cp < 0x100     ? "\\x%02x"
               : cp < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
               cp);
    for (const char *c = text; *c; c++)
        tmpl_sb_add_cp(out, (uint8_t)*c, taint);
}

static void repr_str(Sb *out, const Str *s)
{
    const bool single = memchr(s->p, '\'', s->n) != NULL;
    const char quote = single && !memchr(s->p, '"', s->n) ? '"' : '\'';
    uint32_t len;

    if (s->markup)
        tmpl_sb_add_text(out, "Markup(");
    tmpl_sb_add_c(out, quote);
    for (size_t at = 0; at < s->n; at += len) {
        const uint8_t taint = s->taint ? s->taint[at] : 0;
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (cp == (uint8_t)quote || cp == '\\') {
            tmpl_sb_add_cp(out, '\\', taint);
            tmpl_sb_add_cp(out, cp, taint);
        } else if (cp == '\n' || cp == '\r' || cp == '\t') {
            tmpl_sb_add_cp(out, '\\', taint);
            tmpl_sb_add_cp(out, cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't', taint);
        } else if (!tmpl_is_printable(cp)) {
            add_hex(out, cp, taint);
        } else {
            tmpl_sb_add(out, s->p + at, s->taint ? s->taint + at : NULL, len);
        }
    }
    tmpl_sb_add_c(out, quote);
    if (s->markup)
        tmpl_sb_add_c(out, ')');
}

static void repr_items(Vm *vm, Sb *out, const List *list, uint32_t depth)
{
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            tmpl_sb_add_text(out, ", ");
        tmpl_repr(vm, out, list->items[i], depth + 1);
    }
}

static void repr_dict(Vm *vm, Sb *out, const Dict *dict, uint32_t depth)
{
    tmpl_sb_add_c(out, '{');
    for (size_t i = 0; i < dict->n; i++) {
        if (i)
            tmpl_sb_add_text(out, ", ");
        tmpl_repr(vm, out, dict->entries[i].key, depth + 1);
        tmpl_sb_add_text(out, ": ");
        tmpl_repr(vm, out, dict->entries[i].value, depth + 1);
    }
    tmpl_sb_add_c(out, '}');
}

static void repr_view(Vm *vm, Sb *out, const View *view, uint32_t depth)
{
    static const char *const names[] = {"dict_keys([", "dict_values([", "dict_items(["};

    tmpl_sb_add_text(out, names[view->kind]);
    for (size_t i = 0; i < view->dict->n; i++) {
        const DictEntry *entry = &view->dict->entries[i];

        if (i)
            tmpl_sb_add_text(out, ", ");
        tmpl_repr(vm, out,
                  view->kind == VIEW_KEYS     ? entry->key
                  : view->kind == VIEW_VALUES ? entry->value
                                              : tmpl_pair(&vm->arena, entry->key, entry->value),
                  depth + 1);
    }
    tmpl_sb_add_text(out, "])");
}

static void repr_range(Sb *out, const Range *range)
{
    tmpl_sb_add_text(out, "range(");
    add_int(out, range->start);
    tmpl_sb_add_text(out, ", ");
    add_int(out, range->stop);
    if (range->step != 1) {
        tmpl_sb_add_text(out, ", ");
        add_int(out, range->step);
    }
    tmpl_sb_add_c(out, ')');
}

/* Objects of jinja that print as something other than their address. */
static void repr_object(Vm *vm, Sb *out, Value v, uint32_t depth)
{
    switch (v.type) {
    case V_NAMESPACE:
        tmpl_sb_add_text(out, "<Namespace ");
        repr_dict(vm, out, v.ns->dict, depth);
        tmpl_sb_add_c(out, '>');
        return;
    case V_LOOP:
        tmpl_sb_add_text(out, "<LoopContext ");
        add_int(out, v.loop->index0 + 1);
        tmpl_sb_add_c(out, '/');
        add_int(out, (int64_t)tmpl_loop_length(vm, v.loop));
        tmpl_sb_add_c(out, '>');
        return;
    case V_MACRO:
        tmpl_sb_add_text(out, "<Macro ");
        if (v.macro->def->kind == N_MACRO)
            repr_str(out, v.macro->def->name);
        else
            tmpl_sb_add_text(out, "anonymous");
        tmpl_sb_add_c(out, '>');
        return;
    default:
        tmpl_unsupported(vm, "printing a %s, which Python prints with its address in memory",
                         tmpl_type_name(v));
    }
}

void tmpl_repr(Vm *vm, Sb *out, Value v, uint32_t depth)
{
    tmpl_check_depth(vm, depth);
    tmpl_step(vm, 1);
    switch (v.type) {
    case V_UNDEFINED:
        tmpl_sb_add_text(out, "Undefined");
        return;
    case V_NONE:
        tmpl_sb_add_text(out, "None");
        return;
    case V_BOOL:
        tmpl_sb_add_text(out, v.b ? "True" : "False");
        return;
    case V_INT:
        add_int(out, v.i);
        return;
    case V_BIG:
        add_big(vm, out, v);
        return;
    case V_FLOAT:
        add_float(vm, out, v.f);
        return;
    case V_STR:
        tmpl_step(vm, v.s->n / 16);
        repr_str(out, v.s);
        return;
    case V_LIST:
        tmpl_sb_add_c(out, '[');
        repr_items(vm, out, v.list, depth);
        tmpl_sb_add_c(out, ']');
        return;
    case V_TUPLE:
        tmpl_sb_add_c(out, '(');
        repr_items(vm, out, v.list, depth);
        tmpl_sb_add_text(out, v.list->n == 1 ? ",)" : ")");
        return;
    case V_DICT:
        repr_dict(vm, out, v.dict, depth);
        return;
    case V_RANGE:
        repr_range(out, v.range);
        return;
    case V_VIEW:
        repr_view(vm, out, v.view, depth);
        return;
    default:
        repr_object(vm, out, v, depth);
    }
}

void tmpl_print(Vm *vm, Sb *out, Value v)
{
    if (v.type == V_STR)
        tmpl_sb_add_str(out, v.s);
    else if (v.type != V_UNDEFINED)
        tmpl_repr(vm, out, v, 0);
}

Str *tmpl_to_str(Vm *vm, Value v)
{
    Sb out = {.arena = &vm->arena};

    if (v.type == V_STR)
        return v.s;
    tmpl_print(vm, &out, v);
    return tmpl_sb_take(&out);
}

/* ---- JSON ---- */

static void json_escape(Sb *out, uint32_t cp, uint8_t taint)
{
    static const char marks[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    const char *mark = cp && cp < 0x80 ? strchr(marks, (int)cp) : NULL;
    char text[16];

    if (mark)
        g_snprintf(text, sizeof text, "\\%c", letters[mark - marks]);
    else if (cp < 0x10000)
        g_snprintf(text, sizeof text, "\\u%04x", cp);
    else
        g_snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                   0xdc00 + (cp & 0x3ff));
    for (const char *c = text; *c; c++)
        tmpl_sb_add_cp(out, (uint8_t)*c, taint);
}

static void json_str(Sb *out, const Str *s, bool ascii)
{
    uint32_t len;

    tmpl_sb_add_c(out, '"');
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (cp < 0x20 || cp == '"' || cp == '\\' || (ascii && cp > 0x7e))
            json_escape(out, cp, s->taint ? s->taint[at] : 0);
        else
            tmpl_sb_add(out, s->p + at, s->taint ? s->taint + at : NULL, len);
    }
    tmpl_sb_add_c(out, '"');
}

static void json_float(Vm *vm, Sb *out, double f)
{
    if (isnan(f))
        tmpl_sb_add_text(out, "NaN");
    else if (isinf(f))
        tmpl_sb_add_text(out, f < 0 ? "-Infinity" : "Infinity");
    else
        add_float(vm, out, f);
}

static void json_scalar(Vm *vm, Sb *out, Value v, const JsonStyle *style)
{
    switch (v.type) {
    case V_NONE:
        tmpl_sb_add_text(out, "null");
        return;
    case V_BOOL:
        tmpl_sb_add_text(out, v.b ? "true" : "false");
        return;
    case V_INT:
        add_int(out, v.i);
        return;
    case V_BIG:
        add_big(vm, out, v);
        return;
    case V_FLOAT:
        json_float(vm, out, v.f);
        return;
    case V_STR:
        tmpl_step(vm, v.s->n / 16);
        json_str(out, v.s, style->ascii);
        return;
    default:
        tmpl_raise(vm, "TypeError: Object of type %s is not JSON serializable",
                   tmpl_type_name(v));
    }
}

static void json_line(Sb *out, const JsonStyle *style, uint32_t depth)
{
    if (!style->has_indent)
        return;
    tmpl_sb_add_c(out, '\n');
    for (uint32_t i = 0; i < depth; i++)
        tmpl_sb_add_str(out, style->indent);
}

static void json_key(Vm *vm, Sb *out, Value key, const JsonStyle *style)
{
    if (key.type == V_STR) {
        json_str(out, key.s, style->ascii);
        return;
    }
    if (!tmpl_is_number(key) && key.type != V_NONE)
        tmpl_raise(vm, "TypeError: keys must be str, int, float, bool or None, not %s",
                   tmpl_type_name(key));
    tmpl_sb_add_c(out, '"');
    json_scalar(vm, out, key, style);
    tmpl_sb_add_c(out, '"');
}

/* Entries by rising key. */
static Sorted *json_sorted(Vm *vm, const Dict *dict)
{
    Sorted *sorted = tmpl_new_n(&vm->arena, Sorted, MAX(dict->n, 1));

    for (size_t i = 0; i < dict->n; i++)
        sorted[i] = (Sorted){dict->entries[i].key, dict->entries[i].value};
    tmpl_sort(vm, sorted, dict->n, false);
    return sorted;
}

static void json_dict(Vm *vm, Sb *out, const Dict *dict, const JsonStyle *style,
                      uint32_t depth)
{
    const Sorted *sorted = style->sort_keys ? json_sorted(vm, dict) : NULL;

    tmpl_sb_add_c(out, '{');
    for (size_t i = 0; i < dict->n; i++) {
        if (i)
            tmpl_sb_add_str(out, style->item_separator);
        json_line(out, style, depth + 1);
        json_key(vm, out, sorted ? sorted[i].key : dict->entries[i].key, style);
        tmpl_sb_add_str(out, style->key_separator);
        tmpl_to_json(vm, out, sorted ? sorted[i].item : dict->entries[i].value, style,
                     depth + 1);
    }
    if (dict->n)
        json_line(out, style, depth);
    tmpl_sb_add_c(out, '}');
}

void tmpl_to_json(Vm *vm, Sb *out, Value v, const JsonStyle *style, uint32_t depth)
{
    tmpl_check_depth(vm, depth);
    tmpl_step(vm, 1);
    if (v.type == V_DICT) {
        json_dict(vm, out, v.dict, style, depth);
    } else if (v.type == V_LIST || v.type == V_TUPLE) {
        tmpl_sb_add_c(out, '[');
        for (size_t i = 0; i < v.list->n; i++) {
            if (i)
                tmpl_sb_add_str(out, style->item_separator);
            json_line(out, style, depth + 1);
            tmpl_to_json(vm, out, v.list->items[i], style, depth + 1);
        }
        if (v.list->n)
            json_line(out, style, depth);
        tmpl_sb_add_c(out, ']');
    } else {
        json_scalar(vm, out, v, style);
    }
}
