/* SPDX-License-Identifier: Apache-2.0
 * Numbers in fields. */
#include "template/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/bigint.h"

void tmpl_float_digits(Vm *vm, Sb *out, double f, char type, int64_t precision,
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

void tmpl_int_digits(Vm *vm, Sb *out, Value i, char type, bool alternate)
{
    const uint32_t base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;

    if (alternate && base != 10) {
        tmpl_sb_add_c(out, '0');
        tmpl_sb_add_c(out, type);
    }
    tmpl_big_digits(vm, out, i, base, type == 'X');
}

void tmpl_ascii(Vm *vm, Sb *out, Value v)
{
    Sb text = {.arena = &vm->arena};
    const Str *s;
    uint32_t len;

    tmpl_repr(vm, &text, v, 0);
    s = tmpl_sb_take(&text);
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);
        const uint8_t taint = s->taint ? s->taint[at] : 0;
        char code[12];

        g_snprintf(code, sizeof code, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
        if (cp < 0x80)
            tmpl_sb_add_cp(out, cp, taint);
        for (const char *c = code; cp >= 0x80 && *c; c++)
            tmpl_sb_add_cp(out, (uint8_t)*c, taint);
    }
}

void tmpl_add_char(Vm *vm, Sb *out, Value i)
{
    const int64_t cp = tmpl_need_int(vm, i, "a character");

    if (cp < 0 || cp > 0x10ffff)
        tmpl_raise(vm, "OverflowError: %%c arg not in range(0x110000)");
    if (cp >= 0xd800 && cp < 0xe000)
        tmpl_unsupported(vm, "a surrogate as a character");
    tmpl_sb_add_cp(out, (uint32_t)cp, 0);
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

void tmpl_place(Vm *vm, Sb *out, const FieldSpec *spec, const char *sign, Str *body, char align)
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

const char *tmpl_sign_of(bool negative, char sign)
{
    return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

void tmpl_place_number(Vm *vm, Sb *out, const FieldSpec *spec, bool negative, Str *digits)
{
    if (spec->comma && spec->zero)
        tmpl_unsupported(vm, "thousands separators in a field filled with zeros");
    if (spec->comma)
        digits = group(vm, digits, spec->comma);
    tmpl_place(vm, out, spec, tmpl_sign_of(negative, spec->sign), digits,
          spec->align  ? spec->align
          : spec->zero ? '='
                       : '>');
}

int64_t tmpl_spec_number(Vm *vm, const Str *s, size_t *at)
{
    int64_t n = -1;

    while (*at < s->n && g_ascii_isdigit(s->p[*at])) {
        n = (n < 0 ? 0 : n) * 10 + (s->p[(*at)++] - '0');
        if (n > MAX_WIDTH)
            tmpl_limit(vm, "the field is too wide");
    }
    return n;
}
