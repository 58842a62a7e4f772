/* SPDX-License-Identifier: Apache-2.0
 * str % values. */
#include "template/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/bigint.h"

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

static void percent_number(Vm *vm, Sb *out, Value v, FieldSpec *spec)
{
    Sb digits = {.arena = &vm->arena}, number = {.arena = &vm->arena};
    bool negative;

    if (v.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, v);
    if (!tmpl_is_number(v))
        tmpl_raise(vm, "TypeError: %%%c format: a real number is required, not %s", spec->type,
                   tmpl_type_name(v));
    if (strchr("eEfFgG", spec->type)) {
        const double f = tmpl_as_float(vm, v);

        negative = signbit(f) && !isnan(f);
        tmpl_float_digits(vm, &digits, f, spec->type, spec->precision, spec->alternate);
    } else {
        if (v.type == V_FLOAT && spec->type != 'd')
            tmpl_raise(vm, "TypeError: %%%c format: an integer is required, not float",
                       spec->type);
        if (v.type == V_FLOAT && !isfinite(v.f))
            tmpl_raise(vm, "ValueError: cannot convert float NaN or infinity to integer");
        const Value i = v.type == V_FLOAT ? tmpl_big_of_float(vm, v.f) : v;

        negative = tmpl_is_negative(i);
        tmpl_int_digits(vm, &number, i, spec->type, spec->alternate);
        if (spec->alternate && spec->precision >= 0 && spec->type != 'd')
            tmpl_unsupported(vm, "this format of an integer");
        for (int64_t left = spec->precision - (int64_t)number.n; left > 0; left--)
            tmpl_sb_add_c(&digits, '0');
        tmpl_sb_add(&digits, number.p, NULL, number.n);
        if (spec->alternate && spec->zero && spec->type != 'd')
            tmpl_unsupported(vm, "this format of an integer");
    }
    tmpl_place(vm, out, spec, tmpl_sign_of(negative, spec->sign), tmpl_sb_take(&digits),
          spec->align ? '<' : spec->zero ? '=' : '>');
}

static void percent_text(Vm *vm, Sb *out, Value v, FieldSpec *spec)
{
    Sb text = {.arena = &vm->arena};
    Str *s;

    if (spec->type == 'r')
        tmpl_repr(vm, &text, v, 0);
    else if (spec->type == 'a')
        tmpl_ascii(vm, &text, v);
    else if (spec->type == 'c' && tmpl_is_integral(v))
        tmpl_add_char(vm, &text, v);
    else if (spec->type == 'c' && (v.type != V_STR || tmpl_str_chars(v.s) != 1))
        tmpl_raise(vm, "TypeError: %%c requires int or char");
    else
        tmpl_print(vm, &text, v);
    s = tmpl_sb_take(&text);
    if (spec->type != 'c' && spec->precision >= 0 && (int64_t)tmpl_str_chars(s) > spec->precision)
        s = tmpl_str_part(&vm->arena, s, 0, tmpl_str_offset(s, (size_t)spec->precision));
    spec->zero = false;
    tmpl_place(vm, out, spec, "", s, spec->align ? '<' : '>');
}

/* The '*' at *at: a number of the arguments. */
static int64_t percent_star(Vm *vm, Percent *p, size_t *at)
{
    const Value v = percent_value(vm, p);

    ++*at;
    if (!tmpl_is_integer(v))
        tmpl_raise(vm, "TypeError: * wants int");
    if (tmpl_integer(v) > MAX_WIDTH || tmpl_integer(v) < -MAX_WIDTH)
        tmpl_limit(vm, "the field is too wide");
    return tmpl_integer(v);
}

/* The conversion at @at, behind the percent sign; returns the offset behind it. */
static size_t conversion(Vm *vm, Sb *out, Str *format, size_t at, Percent *p)
{
    FieldSpec spec = {.width = -1, .precision = -1};
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
        spec.width = percent_star(vm, p, &at);
    else
        spec.width = tmpl_spec_number(vm, format, &at);
    if (spec.width < -1) {
        spec.align = '<';
        spec.width = -spec.width;
    }
    if (at < format->n && format->p[at] == '.') {
        at++;
        if (at < format->n && format->p[at] == '*')
            spec.precision = percent_star(vm, p, &at);
        else
            spec.precision = tmpl_spec_number(vm, format, &at);
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
    if (!spec.type || !strchr("sracdoxXeEfFgG", spec.type))
        tmpl_raise(vm, "ValueError: unsupported format character");
    const Value v = keyed.type == V_MISSING ? percent_value(vm, p) : keyed;
    if (strchr("srac", spec.type))
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
