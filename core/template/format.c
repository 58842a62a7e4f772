/* SPDX-License-Identifier: Apache-2.0
 * Formats: str % values, and str.format with Python's format specifications, as far as
 * text and numbers go. */
#include "template/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One field: [[fill]align][sign][#][0][width][,][.precision][type]. */
typedef struct Spec {
    Str *fill;  /* NULL = a space, or '0' with zero */
    char align; /* '<' '>' '^' '=' or 0 */
    char sign;  /* '+' '-' ' ' or 0 */
    bool alternate, zero;
    char comma; /* ',' '_' or 0 */
    int64_t width, precision; /* -1 = none */
    char type;                /* 0 = none */
} Spec;

#define MAX_WIDTH 1000000

/* ---- numbers ---- */

/* Digits of @f for a type of 'e' 'f' 'g' (or upper case) without its sign. */
static void float_digits(Vm *vm, Sb *out, double f, char type, int64_t precision,
                         bool alternate)
{
    char format[24], *text;
    const size_t cap = 1024;

    if (!isfinite(f)) {
        const bool up = g_ascii_isupper(type);

        tmpl_sb_add_text(out, isnan(f) ? (up ? "NAN" : "nan") : up ? "INF" : "inf");
        return;
    }
    if (precision < 0)
        precision = 6;
    if (precision > 500 || alternate)
        tmpl_unsupported(vm, "this format of a float");
    g_snprintf(format, sizeof format, "%%.%d%c", (int)precision, type);
    text = tmpl_alloc(&vm->arena, cap);
    g_ascii_formatd(text, (int)cap, format, fabs(f));
    tmpl_sb_add_text(out, text);
}

static void int_digits(Sb *out, uint64_t n, char type, bool alternate)
{
    char text[80];
    size_t at = sizeof text;
    const uint64_t base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;

    text[--at] = '\0';
    do {
        text[--at] = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[n % base];
        n /= base;
    } while (n);
    if (alternate && base != 10) {
        text[--at] = type;
        text[--at] = '0';
    }
    tmpl_sb_add_text(out, text + at);
}

/* Thousands separators into the whole part of @digits. */
static Str *group(Vm *vm, const Str *digits, char comma)
{
    Sb out = {.arena = &vm->arena};
    size_t whole = 0;

    while (whole < digits->n && g_ascii_isdigit(digits->p[whole]))
        whole++;
    for (size_t i = 0; i < digits->n; i++) {
        if (i && i < whole && (whole - i) % 3 == 0)
            tmpl_sb_add_c(&out, comma);
        tmpl_sb_add_c(&out, digits->p[i]);
    }
    return tmpl_sb_take(&out);
}

/* @body of @chars wide in the field; @sign goes before zeros. */
static void place(Vm *vm, Sb *out, const Spec *spec, const char *sign, Str *body, char align)
{
    const int64_t chars = (int64_t)strlen(sign) + (int64_t)tmpl_str_chars(body);
    const int64_t room = spec->width > chars ? spec->width - chars : 0;
    const Str space = {.p = spec->zero ? "0" : " ", .n = 1};
    const Str *fill = spec->fill ? spec->fill : &space;
    int64_t left = align == '>' || align == '=' ? room : align == '^' ? room / 2 : 0;

    tmpl_step(vm, (uint64_t)room / 8);
    if (align == '=')
        tmpl_sb_add_text(out, sign);
    for (int64_t i = 0; i < left; i++)
        tmpl_sb_add_str(out, fill);
    if (align != '=')
        tmpl_sb_add_text(out, sign);
    tmpl_sb_add_str(out, body);
    for (left = room - left; left > 0; left--)
        tmpl_sb_add_str(out, fill);
}

static const char *sign_of(bool negative, char sign)
{
    return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

static void place_number(Vm *vm, Sb *out, const Spec *spec, bool negative, Str *digits)
{
    if (spec->comma && spec->zero)
        tmpl_unsupported(vm, "thousands separators in a field filled with zeros");
    if (spec->comma)
        digits = group(vm, digits, spec->comma);
    place(vm, out, spec, sign_of(negative, spec->sign), digits,
          spec->align  ? spec->align
          : spec->zero ? '='
                       : '>');
}

/* ---- str.format ---- */

static int64_t spec_number(Vm *vm, const Str *s, size_t *at)
{
    int64_t n = -1;

    while (*at < s->n && g_ascii_isdigit(s->p[*at])) {
        n = (n < 0 ? 0 : n) * 10 + (s->p[(*at)++] - '0');
        if (n > MAX_WIDTH)
            tmpl_limit(vm, "the field is too wide");
    }
    return n;
}

static bool is_align(char c)
{
    return c && strchr("<>=^", c);
}

static Spec parse_spec(Vm *vm, const Str *s)
{
    Spec spec = {.width = -1, .precision = -1};
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
    if (at < s->n && strchr("+- ", s->p[at]))
        spec.sign = s->p[at++];
    if (at < s->n && s->p[at] == '#') {
        spec.alternate = true;
        at++;
    }
    if (at < s->n && s->p[at] == '0') {
        spec.zero = true;
        at++;
    }
    spec.width = spec_number(vm, s, &at);
    if (at < s->n && (s->p[at] == ',' || s->p[at] == '_'))
        spec.comma = s->p[at++];
    if (at < s->n && s->p[at] == '.') {
        at++;
        spec.precision = spec_number(vm, s, &at);
        if (spec.precision < 0)
            tmpl_raise(vm, "ValueError: Format specifier missing precision");
    }
    if (at < s->n)
        spec.type = s->p[at++];
    if (at < s->n)
        tmpl_raise(vm, "ValueError: Invalid format specifier '%.*s'", TMPL_SHOW(s));
    return spec;
}

static void format_str(Vm *vm, Sb *out, Str *s, const Spec *spec)
{
    if (spec->type && spec->type != 's')
        tmpl_raise(vm, "ValueError: Unknown format code '%c' for object of type 'str'",
                   spec->type);
    if (spec->sign || spec->alternate || spec->comma || spec->align == '=')
        tmpl_raise(vm, "ValueError: this is not allowed in a string format specifier");
    if (spec->precision >= 0 && (int64_t)tmpl_str_chars(s) > spec->precision)
        s = tmpl_str_part(&vm->arena, s, 0, tmpl_str_offset(s, (size_t)spec->precision));
    place(vm, out, spec, "", s, spec->align ? spec->align : '<');
}

static void format_float(Vm *vm, Sb *out, double f, const Spec *spec)
{
    Sb digits = {.arena = &vm->arena};
    const char type = spec->type;

    if (type == 0 && spec->precision < 0) {
        char text[40];

        tmpl_float_repr(fabs(f), text);
        tmpl_sb_add_text(&digits, text);
    } else if (type == '%') {
        float_digits(vm, &digits, f * 100, 'f', spec->precision, spec->alternate);
        tmpl_sb_add_c(&digits, '%');
    } else if (type && strchr("eEfFgG", type)) {
        float_digits(vm, &digits, f, type, type == 'g' && spec->precision == 0 ? 1 : spec->precision,
                     spec->alternate);
    } else if (type == 0 || type == 'n') {
        tmpl_unsupported(vm, "this format of a float");
    } else {
        tmpl_raise(vm, "ValueError: Unknown format code '%c' for object of type 'float'", type);
    }
    place_number(vm, out, spec, signbit(f) && !isnan(f), tmpl_sb_take(&digits));
}

static void format_int(Vm *vm, Sb *out, int64_t i, const Spec *spec)
{
    Sb digits = {.arena = &vm->arena};
    const char type = spec->type;
    const uint64_t size = i < 0 ? (uint64_t)0 - (uint64_t)i : (uint64_t)i;

    if (type && strchr("eEfFgG%", type)) {
        format_float(vm, out, (double)i, spec);
        return;
    }
    if (type && !strchr("dxXob", type)) {
        if (type == 'c' || type == 'n')
            tmpl_unsupported(vm, "the format code %c", type);
        tmpl_raise(vm, "ValueError: Unknown format code '%c' for object of type 'int'", type);
    }
    if (spec->precision >= 0)
        tmpl_raise(vm, "ValueError: Precision not allowed in integer format specifier");
    if ((spec->comma && type && type != 'd') || (spec->alternate && type && type != 'd'))
        tmpl_unsupported(vm, "this format of an integer");
    int_digits(&digits, size, type, false);
    place_number(vm, out, spec, i < 0, tmpl_sb_take(&digits));
}

static void format_value(Vm *vm, Sb *out, Value v, const Str *text)
{
    Spec spec;

    if (text->n == 0) {
        tmpl_print(vm, out, v);
        return;
    }
    spec = parse_spec(vm, text);
    if (v.type == V_STR)
        format_str(vm, out, v.s, &spec);
    else if (v.type == V_INT || v.type == V_BOOL)
        format_int(vm, out, tmpl_integer(v), &spec);
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
    int64_t index = spec_number(vm, first, &digits);
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
        index = item ? spec_number(vm, part, &digits) : -1;
        v = !item               ? tmpl_attr(vm, v, part)
            : digits == part->n ? tmpl_item(vm, v, tmpl_int(index))
                                : tmpl_item(vm, v, tmpl_string(part));
    }
    return v;
}

/* The field between braces at @start, to its end; returns the offset behind '}'. */
static size_t brace_field(Vm *vm, Sb *out, Str *format, size_t start, const Args *args,
                          int64_t *next)
{
    size_t end = start, name_end, conversion;
    int depth = 1;
    bool in_brackets = false;

    for (; end < format->n && depth; end++) {
        in_brackets = format->p[end] == '[' || (in_brackets && format->p[end] != ']');
        depth += format->p[end] == '{' ? 1 : format->p[end] == '}' ? -1 : 0;
        if (format->p[end] == '{')
            tmpl_unsupported(vm, "a field inside a field of a format");
    }
    if (depth)
        tmpl_raise(vm, "ValueError: expected '}' before end of string");
    end--;
    for (name_end = start; name_end < end; name_end++)
        if (format->p[name_end] == ':' || format->p[name_end] == '!')
            break;
    Value v = field_value(vm, tmpl_str_part(&vm->arena, format, start, name_end), args, next);
    conversion = name_end;
    if (conversion < end && format->p[conversion] == '!') {
        Sb text = {.arena = &vm->arena};
        const char how = conversion + 1 < end ? format->p[conversion + 1] : 0;

        if (how == 'r')
            tmpl_repr(vm, &text, v, 0);
        else if (how == 's')
            tmpl_print(vm, &text, v);
        else
            tmpl_unsupported(vm, "this conversion in a format");
        v = tmpl_string(tmpl_sb_take(&text));
        conversion += 2;
    }
    if (conversion < end && format->p[conversion] != ':')
        tmpl_raise(vm, "ValueError: expected ':' after conversion specifier");
    format_value(vm, out, v,
                 tmpl_str_part(&vm->arena, format, MIN(conversion + 1, end), end));
    return end + 1;
}

Value tmpl_brace_format(Vm *vm, Str *format, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    int64_t next = 0;

    for (size_t at = 0; at < format->n;) {
        const char c = format->p[at];

        tmpl_step(vm, 1);
        if ((c == '{' || c == '}') && at + 1 < format->n && format->p[at + 1] == c) {
            tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, format, at, at + 1));
            at += 2;
        } else if (c == '{') {
            at = brace_field(vm, &out, format, at + 1, args, &next);
        } else if (c == '}') {
            tmpl_raise(vm, "ValueError: Single '}' encountered in format string");
        } else {
            tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, format, at, at + 1));
            at++;
        }
    }
    return tmpl_string(tmpl_sb_take(&out));
}

/* ---- str % ---- */

/* What the conversions draw from. */
typedef struct Percent {
    const Value *items; /* of a tuple, or the one value */
    size_t n, at;
    const Dict *dict; /* for %(name)s; NULL = no mapping */
    bool mapping;     /* leftovers are no error */
} Percent;

static Value percent_value(Vm *vm, Percent *p)
{
    if (p->at >= p->n)
        tmpl_raise(vm, "TypeError: not enough arguments for format string");
    return p->items[p->at++];
}

static Value percent_key(Vm *vm, Percent *p, Str *format, size_t *at)
{
    const size_t start = ++*at;
    int depth = 1;

    for (; *at < format->n; ++*at) {
        depth += format->p[*at] == '(' ? 1 : format->p[*at] == ')' ? -1 : 0;
        if (depth == 0)
            break;
    }
    if (*at >= format->n)
        tmpl_raise(vm, "ValueError: incomplete format key");
    Str *key = tmpl_str_part(&vm->arena, format, start, (*at)++);
    if (!p->dict)
        tmpl_raise(vm, "TypeError: format requires a mapping");
    const Value *v = tmpl_dict_get_str(vm, p->dict, key);
    if (!v)
        tmpl_raise(vm, "KeyError: '%.*s'", TMPL_SHOW(key));
    return *v;
}

static void percent_number(Vm *vm, Sb *out, Value v, Spec *spec)
{
    Sb digits = {.arena = &vm->arena};
    bool negative;

    if (v.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, v);
    if (!tmpl_is_number(v))
        tmpl_raise(vm, "TypeError: %%%c format: a real number is required, not %s", spec->type,
                   tmpl_type_name(v));
    if (strchr("eEfFgG", spec->type)) {
        const double f = tmpl_as_float(vm, v);

        negative = signbit(f) && !isnan(f);
        float_digits(vm, &digits, f, spec->type, spec->precision, spec->alternate);
    } else {
        if (spec->precision >= 0)
            tmpl_unsupported(vm, "a precision for an integer");
        if (v.type == V_FLOAT && spec->type != 'd')
            tmpl_raise(vm, "TypeError: %%%c format: an integer is required, not float",
                       spec->type);
        if (v.type == V_FLOAT && !(fabs(v.f) < 9e18))
            tmpl_unsupported(vm, "an integer beyond 64 bits");
        const int64_t i = v.type == V_FLOAT ? (int64_t)v.f : tmpl_integer(v);

        negative = i < 0;
        int_digits(&digits, negative ? (uint64_t)0 - (uint64_t)i : (uint64_t)i, spec->type,
                   spec->alternate);
        if (spec->alternate && spec->zero && spec->type != 'd')
            tmpl_unsupported(vm, "this format of an integer");
    }
    place(vm, out, spec, sign_of(negative, spec->sign), tmpl_sb_take(&digits),
          spec->align ? '<' : spec->zero ? '=' : '>');
}

static void percent_text(Vm *vm, Sb *out, Value v, Spec *spec)
{
    Sb text = {.arena = &vm->arena};
    Str *s;

    if (spec->type == 'r')
        tmpl_repr(vm, &text, v, 0);
    else
        tmpl_print(vm, &text, v);
    s = tmpl_sb_take(&text);
    if (spec->precision >= 0 && (int64_t)tmpl_str_chars(s) > spec->precision)
        s = tmpl_str_part(&vm->arena, s, 0, tmpl_str_offset(s, (size_t)spec->precision));
    spec->zero = false;
    place(vm, out, spec, "", s, spec->align ? '<' : '>');
}

/* The conversion at @at, behind the percent sign; returns the offset behind it. */
static size_t conversion(Vm *vm, Sb *out, Str *format, size_t at, Percent *p)
{
    Spec spec = {.width = -1, .precision = -1};
    Value keyed = tmpl_missing();

    if (at < format->n && format->p[at] == '(')
        keyed = percent_key(vm, p, format, &at);
    for (; at < format->n && strchr("-+ #0", format->p[at]) && format->p[at]; at++) {
        const char c = format->p[at];

        spec.align = c == '-' ? '<' : spec.align;
        spec.sign = c == '+' || (c == ' ' && spec.sign != '+') ? c : spec.sign;
        spec.alternate |= c == '#';
        spec.zero |= c == '0';
    }
    if (at < format->n && format->p[at] == '*')
        tmpl_unsupported(vm, "a width taken from the arguments");
    spec.width = spec_number(vm, format, &at);
    if (at < format->n && format->p[at] == '.') {
        at++;
        if (at < format->n && format->p[at] == '*')
            tmpl_unsupported(vm, "a precision taken from the arguments");
        spec.precision = spec_number(vm, format, &at);
        spec.precision = MAX(spec.precision, 0);
    }
    while (at < format->n && format->p[at] && strchr("hlL", format->p[at]))
        at++;
    if (at >= format->n)
        tmpl_raise(vm, "ValueError: incomplete format");
    spec.type = format->p[at++];
    if (spec.align)
        spec.zero = false;
    if (spec.type == '%') {
        tmpl_sb_add_c(out, '%');
        return at;
    }
    if (spec.type == 'i' || spec.type == 'u')
        spec.type = 'd';
    if (!spec.type || !strchr("srdoxXeEfFgG", spec.type)) {
        if (spec.type == 'c' || spec.type == 'a')
            tmpl_unsupported(vm, "the conversion %%%c", spec.type);
        tmpl_raise(vm, "ValueError: unsupported format character");
    }
    const Value v = keyed.type == V_MISSING ? percent_value(vm, p) : keyed;
    if (spec.type == 's' || spec.type == 'r')
        percent_text(vm, out, v, &spec);
    else
        percent_number(vm, out, v, &spec);
    return at;
}

static Value percent(Vm *vm, Str *format, Percent *p)
{
    Sb out = {.arena = &vm->arena};

    if (format->markup)
        tmpl_unsupported(vm, "%% on escaped text (Markup)");
    for (size_t at = 0; at < format->n;) {
        const char *sign = memchr(format->p + at, '%', format->n - at);
        const size_t end = sign ? (size_t)(sign - format->p) : format->n;

        tmpl_step(vm, 1);
        tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, format, at, end));
        at = sign ? conversion(vm, &out, format, end + 1, p) : end;
    }
    if (p->at < p->n && !p->mapping)
        tmpl_raise(vm, "TypeError: not all arguments converted during string formatting");
    return tmpl_string(tmpl_sb_take(&out));
}

Value tmpl_percent(Vm *vm, Str *format, Value arg)
{
    Percent p = {.items = &arg, .n = 1};

    if (arg.type == V_TUPLE) {
        p.items = arg.list->items;
        p.n = arg.list->n;
    } else {
        /* whatever can be subscripted may be left over, as in CPython */
        p.mapping = arg.type == V_DICT || arg.type == V_LIST || arg.type == V_RANGE ||
                    arg.type == V_UNDEFINED;
        p.dict = arg.type == V_DICT ? arg.dict : NULL;
    }
    return percent(vm, format, &p);
}

Value tmpl_percent_args(Vm *vm, Str *format, const Args *args)
{
    Percent p = {.items = args->pos, .n = args->n};
    Dict *dict;

    if (args->n_named == 0)
        return percent(vm, format, &p);
    dict = tmpl_dict_new(vm);
    for (size_t i = 0; i < args->n_named; i++)
        tmpl_dict_set(vm, dict, tmpl_string(args->names[i]), args->values[i]);
    return tmpl_percent(vm, format, tmpl_dict_value(dict));
}
