/* SPDX-License-Identifier: Apache-2.0
 * Filters on numbers, and Python's int() and float() of text. */
#include "template/bigint.h"
#include "template/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/ucd.h>

/* ---- text to numbers ---- */

/* @s without blanks at its ends, underscores between digits and the rest as it stands, in
 * @out. False where Python would raise ValueError. */
static bool number_text(Vm *vm, Str *s, char *out, size_t cap)
{
    size_t n = 0;

    s = tmpl_strip(vm, s, NULL, true, true);
    for (size_t i = 0; i < s->n; i++) {
        uint32_t len;

        if ((s->p[i] & 0x80) &&
            (davit_ucd_bits(tmpl_str_cp(s, i, &len)) & DAVIT_UCD_ND))
            tmpl_unsupported(vm, "a number in digits beyond ASCII");
        if (s->p[i] == '_') {
            if (i == 0 || i + 1 >= s->n || !g_ascii_isalnum(s->p[i - 1]) ||
                !g_ascii_isalnum(s->p[i + 1]))
                return false;
            continue;
        }
        if (s->p[i] == '\0' || (s->p[i] & 0x80))
            return false;
        if (n + 1 >= cap)
            tmpl_unsupported(vm, "a number of more than %zu characters", cap);
        out[n++] = s->p[i];
    }
    out[n] = '\0';
    return n > 0;
}

/* int(text, base) of Python; false = ValueError. */
static bool parse_int(Vm *vm, Str *s, int64_t base, Value *out)
{
    char text[512], *at = text;
    bool minus = false;

    if (base != 0 && (base < 2 || base > 36))
        return false;
    if (!number_text(vm, s, text, sizeof text))
        return false;
    if (*at == '+' || *at == '-')
        minus = *at++ == '-';
    const char kind = at[0] == '0' ? g_ascii_tolower(at[1]) : 0;
    const int64_t named = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (named && (base == 0 || base == named)) {
        base = named;
        at += 2;
    } else if (base == 0) {
        base = 10;
        if (at[0] == '0' && strspn(at, "0") != strlen(at))
            return false;
    }
    if (!*at)
        return false;
    for (const char *c = at; *c; c++) {
        const int digit = g_ascii_isdigit(*c)   ? *c - '0'
                          : g_ascii_isalpha(*c) ? g_ascii_tolower(*c) - 'a' + 10
                                                : 99;
        if (digit >= base)
            return false;
    }
    *out = tmpl_big_parse(&vm->arena, at, strlen(at), (uint32_t)base, minus);
    return true;
}

static const char *skip_digits(const char *at)
{
    return at + strspn(at, "0123456789");
}

static bool parse_float(Vm *vm, Str *s, double *out)
{
    char text[512];
    const char *at = text, *end;

    if (!number_text(vm, s, text, sizeof text))
        return false;
    at += *at == '+' || *at == '-';
    if (g_ascii_strcasecmp(at, "inf") == 0 || g_ascii_strcasecmp(at, "infinity") == 0) {
        *out = text[0] == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (g_ascii_strcasecmp(at, "nan") == 0) {
        *out = NAN;
        return true;
    }
    end = skip_digits(at);
    size_t digits = (size_t)(end - at);
    if (*end == '.') {
        const char *fraction = end + 1;

        end = skip_digits(fraction);
        digits += (size_t)(end - fraction);
    }
    if (digits == 0)
        return false;
    if (*end == 'e' || *end == 'E') {
        end++;
        end += *end == '+' || *end == '-';
        if (!g_ascii_isdigit(*end))
            return false;
        end = skip_digits(end);
    }
    *out = g_ascii_strtod(text, NULL);
    return *end == '\0';
}

/* int(f); false = ValueError (NaN) or, with @infinite_ok, OverflowError. */
static bool int_of_float(Vm *vm, double f, bool infinite_ok, Value *out)
{
    if (isnan(f) || (isinf(f) && infinite_ok))
        return false;
    if (isinf(f))
        tmpl_raise(vm, "OverflowError: cannot convert float infinity to integer");
    *out = tmpl_big_of_float(vm, f);
    return true;
}

static Value int_filter(Vm *vm, Value value, const Args *args)
{
    Value bound[2], i;
    double f;

    tmpl_bind(vm, args, "int", "default? base?", bound);
    const Value fallback = bound[0].type == V_MISSING ? tmpl_int(0) : bound[0];
    /* What is no base is asked for with text only, and then is as 1 is: an error that the filter
     * catches. */
    const int64_t base = bound[1].type == V_MISSING ? 10
                         : tmpl_is_integer(bound[1]) ? tmpl_integer(bound[1])
                                                     : 1;
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    if (tmpl_is_integer(value))
        return tmpl_int(tmpl_integer(value));
    if (value.type == V_BIG)
        return value;
    if (value.type == V_FLOAT)
        return int_of_float(vm, value.f, false, &i) ? i : fallback;
    if (value.type != V_STR)
        return fallback;
    if (parse_int(vm, value.s, base, &i))
        return i;
    return parse_float(vm, value.s, &f) && int_of_float(vm, f, true, &i) ? i : fallback;
}

static Value float_filter(Vm *vm, Value value, const Args *args)
{
    Value fallback;
    double f;

    tmpl_bind(vm, args, "float", "default?", &fallback);
    if (fallback.type == V_MISSING)
        fallback = tmpl_float(0);
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    if (tmpl_is_number(value))
        return tmpl_float(tmpl_as_float(vm, value));
    return value.type == V_STR && parse_float(vm, value.s, &f) ? tmpl_float(f) : fallback;
}

/* ---- rounding ---- */

/* @f to a multiple of 10^-digits, @digits < 0, ties to even. */
static double round_to_tens(Vm *vm, double f, int64_t digits)
{
    char text[320], *last;
    const double whole = trunc(fabs(f));
    int n = g_snprintf(text, sizeof text, "0%.0f", whole);

    if (digits < -308 || n - 1 < -digits)
        return copysign(0.0, f);
    last = text + n + digits - 1; /* the last digit that stays */
    const bool beyond = strspn(last + 2, "0") != strlen(last + 2) || whole < fabs(f);
    const bool up = last[1] > '5' || (last[1] == '5' && (beyond || (*last - '0') % 2 != 0));
    memset(last + 1, '0', (size_t)-digits);
    for (; up && *last == '9'; last--)
        *last = '0';
    *last += up;
    f = copysign(g_ascii_strtod(text, NULL), f);
    if (isinf(f))
        tmpl_raise(vm, "OverflowError: rounded value too large to represent");
    return f;
}

/* round(f, digits) of Python: the decimal nearest to the exact value, ties to even. */
static double round_float(Vm *vm, double f, int64_t digits)
{
    char text[400], format[16];

    if (!isfinite(f) || digits > 300)
        return f;
    if (digits < 0)
        return round_to_tens(vm, f, digits);
    g_snprintf(format, sizeof format, "%%.%df", (int)digits);
    if (fabs(f) >= 1e60)
        return f; /* has no fraction */
    g_ascii_formatd(text, sizeof text, format, f);
    return g_ascii_strtod(text, NULL);
}

static Value round_int(Vm *vm, Value i, int64_t digits)
{
    if (digits >= 0)
        return tmpl_binary(vm, OP_ADD, i, tmpl_int(0)); /* True is 1 */
    const int64_t tens = -MAX(digits, -INT64_MAX);
    const Value unit = tmpl_binary(vm, OP_POW, tmpl_int(10), tmpl_int(tens));
    const Value rest = tmpl_binary(vm, OP_MOD, i, unit), down = tmpl_binary(vm, OP_SUB, i, rest);
    const int half = tmpl_big_compare(tmpl_binary(vm, OP_ADD, rest, rest), unit);
    const Value odd = tmpl_binary(vm, OP_MOD, tmpl_binary(vm, OP_FLOORDIV, down, unit), tmpl_int(2));
    return half > 0 || (half == 0 && odd.i) ? tmpl_binary(vm, OP_ADD, down, unit) : down;
}

static Value round_filter(Vm *vm, Value value, const Args *args)
{
    Value bound[2];
    const char *how = "common";

    tmpl_bind(vm, args, "round", "precision? method?", bound);
    if (bound[1].type != V_MISSING) {
        const Str *s = bound[1].type == V_STR ? bound[1].s : NULL;

        how = s && tmpl_str_is(s, "common")  ? "common"
              : s && tmpl_str_is(s, "ceil")  ? "ceil"
              : s && tmpl_str_is(s, "floor") ? "floor"
                                             : NULL;
        if (!how)
            tmpl_raise(vm, "FilterArgumentError: method must be common, ceil or floor");
    }
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    if (!tmpl_is_number(value))
        tmpl_raise(vm, "TypeError: type %s doesn't define __round__ method",
                   tmpl_type_name(value));
    const int64_t digits =
        bound[0].type == V_MISSING ? 0 : tmpl_need_index(vm, bound[0], "precision");
    if (how[1] == 'o' && how[0] == 'c')
        return value.type == V_FLOAT ? tmpl_float(round_float(vm, value.f, digits))
                                     : round_int(vm, value, digits);
    const Value scale = tmpl_binary(vm, OP_POW, tmpl_int(10), tmpl_int(digits));
    const Value scaled = tmpl_binary(vm, OP_MUL, value, scale);
    Value whole = scaled;
    if (scaled.type == V_FLOAT &&
        !int_of_float(vm, how[0] == 'c' ? ceil(scaled.f) : floor(scaled.f), false, &whole))
        tmpl_raise(vm, "ValueError: cannot convert float NaN to integer");
    return tmpl_binary(vm, OP_DIV, whole, scale);
}

static Value abs_filter(Vm *vm, Value value, const Args *args)
{
    tmpl_bind(vm, args, "abs", "", NULL);
    if (value.type == V_FLOAT)
        return tmpl_float(fabs(value.f));
    if (!tmpl_is_integral(value))
        tmpl_raise(vm, "TypeError: bad operand type for abs(): '%s'", tmpl_type_name(value));
    return tmpl_negate(vm, value, tmpl_is_negative(value));
}

/* Is @bytes < base^power? 10^24 is above the double of that name, 10^27 below. */
static bool is_below_unit(double bytes, bool binary, int power, double *out_unit)
{
    char text[8];

    if (binary) {
        *out_unit = ldexp(1, 10 * power);
        return bytes < *out_unit;
    }
    g_snprintf(text, sizeof text, "1e%d", 3 * power);
    *out_unit = g_ascii_strtod(text, NULL);
    return power == 8 ? bytes <= *out_unit : bytes < *out_unit;
}

static Value filesizeformat(Vm *vm, Value value, const Args *args)
{
    static const char prefixes[] = "kMGTPEZY";
    char text[400];
    Value binary;
    double f, unit;
    int i = 0;

    tmpl_bind(vm, args, "filesizeformat", "binary?", &binary);
    if (value.type == V_UNDEFINED)
        tmpl_raise_undefined(vm, value);
    if (tmpl_is_number(value))
        f = tmpl_as_float(vm, value);
    else if (value.type != V_STR || !parse_float(vm, value.s, &f))
        tmpl_raise(vm, "ValueError: could not convert %s to float", tmpl_type_name(value));
    const bool two = tmpl_truth(vm, binary);
    if (f < (two ? 1024 : 1000)) {
        if (isinf(f))
            tmpl_raise(vm, "OverflowError: cannot convert float infinity to integer");
        g_snprintf(text, sizeof text, "%.0f Bytes", trunc(f) + 0.0); /* no -0 */
        return tmpl_text(&vm->arena, f == 1 ? "1 Byte" : text);
    }
    while (!is_below_unit(f, two, i + 2, &unit) && prefixes[i + 1])
        i++;
    g_ascii_formatd(text, sizeof text, "%.1f", (two ? 1024 : 1000) * f / unit);
    const size_t n = strlen(text);
    g_snprintf(text + n, sizeof text - n, " %c%s", two ? g_ascii_toupper(prefixes[i]) : prefixes[i],
               two ? "iB" : "B");
    return tmpl_text(&vm->arena, text);
}

const FilterRow tmpl_filters_number[] = {
    {"int", int_filter},
    {"float", float_filter},
    {"round", round_filter},
    {"abs", abs_filter},
    {"filesizeformat", filesizeformat},
    {NULL, NULL},
};
