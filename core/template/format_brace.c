/* SPDX-License-Identifier: Apache-2.0
 * str.format with Python's format specifications, as far as text and numbers go. */
#include "template/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/bigint.h"

static bool is_align(char c)
{
    return c && strchr("<>=^", c);
}

static FieldSpec parse_spec(Vm *vm, const Str *s)
{
    FieldSpec spec = {.width = -1, .precision = -1};
    size_t at = 0;
    uint32_t len = 0;

    if (s->n)
        tmpl_str_cp(s, 0, &len);
    if (len && len < s->n && is_align(s->p[len])) {
        spec.fill = tmpl_str_part(&vm->arena, s, 0, len);
        spec.align = s->p[len];
        at = len + 1;
    } else if (s->n && is_align(s->p[0])) {
        spec.align = s->p[at++];
    }
    if (at < s->n && s->p[at] && strchr("+- ", s->p[at]))
        spec.sign = s->p[at++];
    if (at < s->n && s->p[at] == '#') {
        spec.alternate = true;
        at++;
    }
    if (at < s->n && s->p[at] == '0') {
        spec.zero = true;
        at++;
    }
    spec.width = tmpl_spec_number(vm, s, &at);
    if (at < s->n && (s->p[at] == ',' || s->p[at] == '_'))
        spec.comma = s->p[at++];
    if (at < s->n && s->p[at] == '.') {
        at++;
        spec.precision = tmpl_spec_number(vm, s, &at);
        if (spec.precision < 0)
            tmpl_raise(vm, "ValueError: Format specifier missing precision");
    }
    if (at < s->n)
        spec.type = s->p[at++];
    if (at < s->n || (s->n && s->p[s->n - 1] == '\0')) /* a NUL is no type */
        tmpl_raise(vm, "ValueError: Invalid format specifier '%.*s'", TMPL_SHOW(s));
    return spec;
}

static void format_str(Vm *vm, Sb *out, Str *s, const FieldSpec *spec)
{
    if (spec->type && spec->type != 's')
        tmpl_raise(vm, "ValueError: Unknown format code '%c' for object of type 'str'",
                   spec->type);
    if (spec->sign || spec->alternate || spec->comma || spec->align == '=')
        tmpl_raise(vm, "ValueError: this is not allowed in a string format specifier");
    if (spec->precision >= 0 && (int64_t)tmpl_str_chars(s) > spec->precision)
        s = tmpl_str_part(&vm->arena, s, 0, tmpl_str_offset(s, (size_t)spec->precision));
    tmpl_place(vm, out, spec, "", s, spec->align ? spec->align : '<');
}

static void format_float(Vm *vm, Sb *out, double f, const FieldSpec *spec)
{
    Sb digits = {.arena = &vm->arena};
    const char type = spec->type;

    if (type == 0 && spec->precision < 0) {
        char text[40];

        tmpl_float_repr(fabs(f), text);
        tmpl_sb_add_text(&digits, text);
    } else if (type == '%') {
        tmpl_float_digits(vm, &digits, f * 100, 'f', spec->precision, spec->alternate);
        tmpl_sb_add_c(&digits, '%');
    } else if (type && strchr("eEfFgG", type)) {
        tmpl_float_digits(vm, &digits, f, type, type == 'g' && spec->precision == 0 ? 1 : spec->precision,
                     spec->alternate);
    } else if (type == 0 || type == 'n') {
        tmpl_unsupported(vm, "this format of a float");
    } else {
        tmpl_raise(vm, "ValueError: Unknown format code '%c' for object of type 'float'", type);
    }
    tmpl_place_number(vm, out, spec, signbit(f) && !isnan(f), tmpl_sb_take(&digits));
}

static void format_char(Vm *vm, Sb *out, Value i, const FieldSpec *spec)
{
    Sb text = {.arena = &vm->arena};

    if (spec->sign || spec->alternate || spec->precision >= 0 || spec->comma)
        tmpl_raise(vm, "ValueError: this is not allowed with integer format specifier 'c'");
    tmpl_add_char(vm, &text, i);
    tmpl_place_number(vm, out, spec, false, tmpl_sb_take(&text));
}

static void format_int(Vm *vm, Sb *out, Value i, const FieldSpec *spec)
{
    Sb digits = {.arena = &vm->arena};
    const char type = spec->type;

    if (type && strchr("eEfFgG%", type)) {
        format_float(vm, out, tmpl_as_float(vm, i), spec);
        return;
    }
    if (type && !strchr("dxXob", type)) {
        if (type == 'c') {
            format_char(vm, out, i, spec);
            return;
        }
        if (type == 'n')
            tmpl_unsupported(vm, "the format code %c", type);
        tmpl_raise(vm, "ValueError: Unknown format code '%c' for object of type 'int'", type);
    }
    if (spec->precision >= 0)
        tmpl_raise(vm, "ValueError: Precision not allowed in integer format specifier");
    if ((spec->comma && type && type != 'd') || (spec->alternate && type && type != 'd'))
        tmpl_unsupported(vm, "this format of an integer");
    tmpl_int_digits(vm, &digits, i, type, false);
    tmpl_place_number(vm, out, spec, tmpl_is_negative(i), tmpl_sb_take(&digits));
}

static void format_value(Vm *vm, Sb *out, Value v, const Str *text)
{
    FieldSpec spec;

    if (text->n == 0) {
        tmpl_print(vm, out, v);
        return;
    }
    spec = parse_spec(vm, text);
    if (v.type == V_STR)
        format_str(vm, out, v.s, &spec);
    else if (tmpl_is_integral(v))
        format_int(vm, out, v, &spec);
    else if (v.type == V_FLOAT)
        format_float(vm, out, v.f, &spec);
    else
        tmpl_raise(vm, "TypeError: unsupported format string passed to %s.__format__",
                   tmpl_type_name(v));
}

/* A replacement field's name: "0.attr[key]" to its value. */
static Value field_value(Vm *vm, Str *name, const Args *args, int64_t *next)
{
    size_t at = 0;
    Value v;

    while (at < name->n && name->p[at] != '.' && name->p[at] != '[')
        at++;
    Str *first = tmpl_str_part(&vm->arena, name, 0, at);
    size_t digits = 0;
    int64_t index = tmpl_spec_number(vm, first, &digits);
    if (first->n == 0 || digits == first->n) {
        if ((first->n == 0) == (*next < 0) && *next != 0)
            tmpl_raise(vm, "ValueError: cannot switch between manual and automatic field "
                           "numbering");
        index = first->n == 0 ? (*next)++ : index;
        if (first->n)
            *next = -1;
        if ((uint64_t)index >= args->n)
            tmpl_raise(vm, "IndexError: Replacement index %" G_GINT64_FORMAT
                           " out of range for positional args tuple",
                       index);
        v = args->pos[index];
    } else {
        v = tmpl_missing();
        for (size_t i = 0; i < args->n_named; i++)
            if (tmpl_str_equal(args->names[i], first))
                v = args->values[i];
        if (v.type == V_MISSING)
            tmpl_raise(vm, "KeyError: '%.*s'", TMPL_SHOW(first));
    }
    while (at < name->n) {
        const bool item = name->p[at++] == '[';
        const size_t start = at;

        while (at < name->n && (item ? name->p[at] != ']'
                                     : name->p[at] != '.' && name->p[at] != '['))
            at++;
        Str *part = tmpl_str_part(&vm->arena, name, start, at);
        if (part->n == 0 || (item && at >= name->n))
            tmpl_raise(vm, "ValueError: Empty attribute in format string");
        at += item;
        digits = 0;
        index = item ? tmpl_spec_number(vm, part, &digits) : -1;
        v = !item               ? tmpl_attr(vm, v, part)
            : digits == part->n ? tmpl_item(vm, v, tmpl_int(index))
                                : tmpl_item(vm, v, tmpl_string(part));
    }
    return v;
}

static Str *brace_text(Vm *vm, Str *format, const Args *args, int64_t *next, bool nested);

/* Where the name at @at ends: at a brace, a colon or an exclamation mark outside brackets. */
static size_t name_end(Vm *vm, const Str *format, size_t at)
{
    bool brackets = false;

    for (; at < format->n; at++) {
        const char c = format->p[at];

        if (c == '{')
            tmpl_raise(vm, "ValueError: unexpected '{' in field name");
        brackets = c == '[' || (brackets && c != ']');
        if (!brackets && (c == '}' || c == ':' || c == '!'))
            return at;
    }
    tmpl_raise(vm, "ValueError: expected '}' before end of string");
}

/* Where the specification at @at ends; *out_fields says whether there are fields in it. */
static size_t spec_end(Vm *vm, const Str *format, size_t at, bool *out_fields)
{
    int depth = 1;

    for (; at < format->n; at++) {
        if (format->p[at] == '{') {
            *out_fields = true;
            depth++;
        } else if (format->p[at] == '}' && --depth == 0) {
            return at;
        }
    }
    tmpl_raise(vm, "ValueError: unmatched '{' in format spec");
}

static Value converted(Vm *vm, Value v, char how)
{
    Sb text = {.arena = &vm->arena};

    if (how == 'r')
        tmpl_repr(vm, &text, v, 0);
    else if (how == 's')
        tmpl_print(vm, &text, v);
    else if (how == 'a')
        tmpl_ascii(vm, &text, v);
    else
        tmpl_raise(vm, "ValueError: Unknown conversion specifier");
    return tmpl_string(tmpl_sb_take(&text));
}

/* The field behind a brace at @at; returns the offset behind its closing brace. @nested: it
 * stands in the specification of another. */
static size_t brace_field(Vm *vm, Sb *out, Str *format, size_t at, const Args *args,
                          int64_t *next, bool nested)
{
    const size_t name = name_end(vm, format, at);
    bool fields = false;
    char how = 0;
    Str *spec;

    Value v = field_value(vm, tmpl_str_part(&vm->arena, format, at, name), args, next);
    at = name + 1;
    if (format->p[name] == '!') {
        if (at >= format->n)
            tmpl_raise(vm, "ValueError: end of string while looking for conversion specifier");
        how = format->p[at++];
        if (at < format->n && format->p[at] != '}' && format->p[at] != ':')
            tmpl_raise(vm, "ValueError: expected ':' after conversion specifier");
        at += at < format->n && format->p[at] == ':';
    }
    const size_t end = format->p[name] == '}' ? name : spec_end(vm, format, at, &fields);
    spec = tmpl_str_part(&vm->arena, format, MIN(at, end), end);
    if (fields && nested)
        tmpl_raise(vm, "ValueError: Max string recursion exceeded");
    if (how)
        v = converted(vm, v, how);
    if (fields)
        spec = brace_text(vm, spec, args, next, true);
    format_value(vm, out, v, spec);
    return end + 1;
}

static Str *brace_text(Vm *vm, Str *format, const Args *args, int64_t *next, bool nested)
{
    Sb out = {.arena = &vm->arena};

    for (size_t at = 0; at < format->n;) {
        const char c = format->p[at];

        tmpl_step(vm, 1);
        if ((c == '{' || c == '}') && at + 1 < format->n && format->p[at + 1] == c) {
            tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, format, at, at + 1));
            at += 2;
        } else if (c == '{') {
            at = brace_field(vm, &out, format, at + 1, args, next, nested);
        } else if (c == '}') {
            tmpl_raise(vm, "ValueError: Single '}' encountered in format string");
        } else {
            tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, format, at, at + 1));
            at++;
        }
    }
    return tmpl_sb_take(&out);
}

Value tmpl_brace_format(Vm *vm, Str *format, const Args *args)
{
    int64_t next = 0;

    return tmpl_string(brace_text(vm, format, args, &next, false));
}
