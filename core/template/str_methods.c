/* SPDX-License-Identifier: Apache-2.0
 * Methods of str, by code point, as CPython 3 has them. Case and layout here; searching
 * and splitting are str_search.c. */
#include "template/text.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "template/str_search.h"

static void no_args(Vm *vm, const Args *args, const char *what)
{
    tmpl_bind(vm, args, what, "", NULL);
}

/* ---- cases ---- */

static Value upper(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "upper()");
    return tmpl_string(tmpl_upper(vm, s));
}

static Value lower(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "lower()");
    return tmpl_string(tmpl_lower(vm, s));
}

static Value capitalize(Vm *vm, Str *s, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    uint32_t len;

    no_args(vm, args, "capitalize()");
    if (s->n == 0)
        return tmpl_string(s);
    tmpl_str_cp(s, 0, &len);
    tmpl_add_cased(&out, s, 0, len, CASE_TITLE);
    tmpl_add_cased(&out, s, len, s->n, CASE_LOWER);
    return tmpl_string(tmpl_sb_take(&out));
}

static Value title(Vm *vm, Str *s, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    bool inside = false;
    uint32_t len;

    no_args(vm, args, "title()");
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        tmpl_add_cased(&out, s, at, at + len, inside ? CASE_LOWER : CASE_TITLE);
        inside = tmpl_is_cased(cp);
    }
    return tmpl_string(tmpl_sb_take(&out));
}

static bool is_lower(uint32_t cp)
{
    return cp < 0x80 ? g_ascii_islower((char)cp)
                     : g_unichar_islower(cp) || cp == 0xaa || cp == 0xba;
}

static Value swapcase(Vm *vm, Str *s, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    uint32_t len;

    no_args(vm, args, "swapcase()");
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (g_unichar_isupper(cp))
            tmpl_add_cased(&out, s, at, at + len, CASE_LOWER);
        else if (is_lower(cp))
            tmpl_add_cased(&out, s, at, at + len, CASE_UPPER);
        else
            tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, at, at + len));
    }
    return tmpl_string(tmpl_sb_take(&out));
}

static Value casefold(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "casefold()");
    for (size_t i = 0; i < s->n; i++)
        if (s->p[i] & 0x80)
            tmpl_unsupported(vm, "casefold() of text beyond ASCII");
    return tmpl_string(tmpl_lower(vm, s));
}

/* ---- layout ---- */

/* @left and @right times the character @fill round @s. */
static Value pad(Vm *vm, const Str *s, uint64_t left, uint64_t right, const Str *fill)
{
    Sb out = {.arena = &vm->arena};

    if (left > vm->max_output || right > vm->max_output)
        tmpl_limit(vm, "the text would be too wide");
    tmpl_step(vm, (left + right) / 8);
    for (uint64_t i = 0; i < left; i++)
        tmpl_sb_add_str(&out, fill);
    tmpl_sb_add_str(&out, s);
    for (uint64_t i = 0; i < right; i++)
        tmpl_sb_add_str(&out, fill);
    return tmpl_string(tmpl_sb_take(&out));
}

static Value justify(Vm *vm, Str *s, const Args *args, const char *what, int how)
{
    Value bound[2];
    Str *fill = tmpl_str(&vm->arena, " ", 1);

    tmpl_bind(vm, args, what, "width fillchar?", bound);
    tmpl_no_keywords(vm, args, what);
    const int64_t width = tmpl_need_int(vm, bound[0], "width");
    if (bound[1].type != V_MISSING)
        fill = tmpl_need_str(vm, bound[1], "the fill character");
    if (tmpl_str_chars(fill) != 1)
        tmpl_raise(vm, "TypeError: The fill character must be exactly one character long");
    const int64_t n = (int64_t)tmpl_str_chars(s);
    if (width <= n)
        return tmpl_string(s);
    const uint64_t room = (uint64_t)(width - n);
    const uint64_t left = how < 0   ? 0
                          : how > 0 ? room
                                    : room / 2 + (room & (uint64_t)width & 1);
    return pad(vm, s, left, room - left, fill);
}

static Value center(Vm *vm, Str *s, const Args *args)
{
    return justify(vm, s, args, "center()", 0);
}

static Value ljust(Vm *vm, Str *s, const Args *args)
{
    return justify(vm, s, args, "ljust()", -1);
}

static Value rjust(Vm *vm, Str *s, const Args *args)
{
    return justify(vm, s, args, "rjust()", 1);
}

static Value zfill(Vm *vm, Str *s, const Args *args)
{
    Value width;
    const bool sign = s->n && (s->p[0] == '+' || s->p[0] == '-');
    const Str *zero = tmpl_str(&vm->arena, "0", 1);

    tmpl_bind(vm, args, "zfill()", "width", &width);
    tmpl_no_keywords(vm, args, "zfill()");
    const int64_t room = MAX(tmpl_need_int(vm, width, "width"), 0) - (int64_t)tmpl_str_chars(s);
    if (room <= 0)
        return tmpl_string(s);
    if (!sign)
        return pad(vm, s, (uint64_t)room, 0, zero);
    Sb out = {.arena = &vm->arena};
    tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, 0, 1));
    tmpl_sb_add_str(
        &out, pad(vm, tmpl_str_part(&vm->arena, s, 1, s->n), (uint64_t)room, 0, zero).s);
    return tmpl_string(tmpl_sb_take(&out));
}

static Value expandtabs(Vm *vm, Str *s, const Args *args)
{
    Sb out = {.arena = &vm->arena};
    Value bound;
    uint32_t len;
    int64_t column = 0;

    tmpl_bind(vm, args, "expandtabs()", "tabsize?", &bound);
    const int64_t size = bound.type == V_MISSING ? 8 : tmpl_need_int(vm, bound, "tabsize");
    if (size > (int64_t)vm->max_output)
        tmpl_limit(vm, "the text would be too wide");
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (cp == '\t') {
            for (int64_t n = size > 0 ? size - column % size : 0; n > 0; n--, column++)
                tmpl_sb_add_c(&out, ' ');
            continue;
        }
        tmpl_sb_add_str(&out, tmpl_str_part(&vm->arena, s, at, at + len));
        column = cp == '\n' || cp == '\r' ? 0 : column + 1;
    }
    return tmpl_string(tmpl_sb_take(&out));
}

static Value strip_some(Vm *vm, Str *s, const Args *args, const char *what, bool left,
                        bool right)
{
    Value chars;

    tmpl_bind(vm, args, what, "chars?", &chars);
    tmpl_no_keywords(vm, args, what);
    return tmpl_string(tmpl_strip(vm, s,
                                  chars.type == V_MISSING || chars.type == V_NONE
                                      ? NULL
                                      : tmpl_need_str(vm, chars, "the argument of strip"),
                                  left, right));
}

static Value strip(Vm *vm, Str *s, const Args *args)
{
    return strip_some(vm, s, args, "strip()", true, true);
}

static Value lstrip(Vm *vm, Str *s, const Args *args)
{
    return strip_some(vm, s, args, "lstrip()", true, false);
}

static Value rstrip(Vm *vm, Str *s, const Args *args)
{
    return strip_some(vm, s, args, "rstrip()", false, true);
}

/* ---- questions ---- */

typedef enum Ask {
    ASK_ALPHA,
    ASK_ALNUM,
    ASK_DECIMAL,
    ASK_DIGIT,
    ASK_NUMERIC,
    ASK_SPACE,
    ASK_PRINTABLE,
} Ask;

static bool is_class(Vm *vm, uint32_t cp, Ask ask)
{
    const uint32_t bits = davit_ucd_bits(cp);

    switch (ask) {
    case ASK_ALPHA:
        return bits & DAVIT_UCD_L;
    case ASK_ALNUM:
        return bits & (DAVIT_UCD_L | DAVIT_UCD_N);
    case ASK_DECIMAL:
        return bits & DAVIT_UCD_ND;
    case ASK_DIGIT:
        if (bits & DAVIT_UCD_NLO)
            tmpl_unsupported(vm, "isdigit() of U+%04X", cp);
        return bits & DAVIT_UCD_ND;
    case ASK_NUMERIC:
        if (bits & DAVIT_UCD_HAN)
            tmpl_unsupported(vm, "isnumeric() of U+%04X", cp);
        return bits & DAVIT_UCD_N;
    case ASK_SPACE:
        return tmpl_is_space(cp);
    default:
        return tmpl_is_printable(cp);
    }
}

static Value ask_all(Vm *vm, const Str *s, const Args *args, const char *what, Ask ask)
{
    uint32_t len;

    no_args(vm, args, what);
    for (size_t at = 0; at < s->n; at += len)
        if (!is_class(vm, tmpl_str_cp(s, at, &len), ask))
            return tmpl_bool(false);
    return tmpl_bool(s->n > 0 || ask == ASK_PRINTABLE);
}

#define ASK_METHOD(name, ask)                                                            \
    static Value name(Vm *vm, Str *s, const Args *args)                                  \
    {                                                                                    \
        return ask_all(vm, s, args, "the method", ask);                                    \
    }
ASK_METHOD(is_alpha, ASK_ALPHA)
ASK_METHOD(is_alnum, ASK_ALNUM)
ASK_METHOD(is_decimal, ASK_DECIMAL)
ASK_METHOD(is_digit, ASK_DIGIT)
ASK_METHOD(is_numeric, ASK_NUMERIC)
ASK_METHOD(is_space, ASK_SPACE)
ASK_METHOD(is_printable, ASK_PRINTABLE)

/* All cased characters are upper (or lower), and there is one. */
static bool is_all(const Str *s, bool want_lower)
{
    bool any = false;
    uint32_t len;

    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);
        const bool low = is_lower(cp), up = g_unichar_isupper(cp);

        if (g_unichar_istitle(cp) || (want_lower ? up : low))
            return false;
        any |= want_lower ? low : up;
    }
    return any;
}

static Value is_upper_all(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "isupper()");
    return tmpl_bool(is_all(s, false));
}

static Value is_lower_all(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "islower()");
    return tmpl_bool(is_all(s, true));
}

static Value istitle(Vm *vm, Str *s, const Args *args)
{
    bool inside = false, any = false;
    uint32_t len;

    no_args(vm, args, "istitle()");
    for (size_t at = 0; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);
        const bool up = g_unichar_isupper(cp) || g_unichar_istitle(cp), low = is_lower(cp);

        if ((up && inside) || (low && !inside))
            return tmpl_bool(false);
        inside = up || low;
        any |= inside;
    }
    return tmpl_bool(any);
}

static Value isascii(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "isascii()");
    return tmpl_bool(tmpl_str_chars(s) == s->n);
}

static Value isidentifier(Vm *vm, Str *s, const Args *args)
{
    no_args(vm, args, "isidentifier()");
    if (tmpl_str_chars(s) != s->n)
        tmpl_unsupported(vm, "isidentifier() of text beyond ASCII");
    for (size_t i = 0; i < s->n; i++)
        if (!(g_ascii_isalpha(s->p[i]) || s->p[i] == '_' || (i && g_ascii_isdigit(s->p[i]))))
            return tmpl_bool(false);
    return tmpl_bool(s->n > 0);
}

static Value refused(Vm *vm, Str *s, const Args *args)
{
    (void)s;
    (void)args;
    tmpl_unsupported(vm, "this method of str");
}

/* What Markup does. Source: markupsafe 3.0. */
typedef enum MarkupRule {
    MARKUP_SAME,   /* as str, or kept by the method itself */
    MARKUP_WRAP,   /* what it gives is Markup */
    MARKUP_SECOND, /* that, and the second argument is escaped */
    MARKUP_JOIN,   /* that, and what is joined is escaped */
    MARKUP_REFUSED,
} MarkupRule;

static const struct {
    const char *name;
    StrMethodFn *fn;
    MarkupRule markup;
} methods[] = {
    {"upper", upper, MARKUP_SAME},
    {"lower", lower, MARKUP_SAME},
    {"strip", strip, MARKUP_SAME},
    {"lstrip", lstrip, MARKUP_SAME},
    {"rstrip", rstrip, MARKUP_SAME},
    {"split", tmpl_str_split, MARKUP_WRAP},
    {"replace", tmpl_str_replace, MARKUP_SECOND},
    {"startswith", tmpl_str_startswith, MARKUP_SAME},
    {"endswith", tmpl_str_endswith, MARKUP_SAME},
    {"join", tmpl_str_join, MARKUP_JOIN},
    {"format", tmpl_str_format, MARKUP_REFUSED},
    {"title", title, MARKUP_WRAP},
    {"capitalize", capitalize, MARKUP_WRAP},
    {"find", tmpl_str_find_method, MARKUP_SAME},
    {"rfind", tmpl_str_rfind, MARKUP_SAME},
    {"index", tmpl_str_index, MARKUP_SAME},
    {"rindex", tmpl_str_rindex, MARKUP_SAME},
    {"count", tmpl_str_count, MARKUP_SAME},
    {"rsplit", tmpl_str_rsplit, MARKUP_WRAP},
    {"splitlines", tmpl_str_splitlines, MARKUP_WRAP},
    {"partition", tmpl_str_partition, MARKUP_WRAP},
    {"rpartition", tmpl_str_rpartition, MARKUP_WRAP},
    {"removeprefix", tmpl_str_removeprefix, MARKUP_WRAP},
    {"removesuffix", tmpl_str_removesuffix, MARKUP_WRAP},
    {"swapcase", swapcase, MARKUP_WRAP},
    {"casefold", casefold, MARKUP_WRAP},
    {"center", center, MARKUP_SECOND},
    {"ljust", ljust, MARKUP_SECOND},
    {"rjust", rjust, MARKUP_SECOND},
    {"zfill", zfill, MARKUP_WRAP},
    {"expandtabs", expandtabs, MARKUP_WRAP},
    {"isalpha", is_alpha, MARKUP_SAME},
    {"isalnum", is_alnum, MARKUP_SAME},
    {"isdecimal", is_decimal, MARKUP_SAME},
    {"isdigit", is_digit, MARKUP_SAME},
    {"isnumeric", is_numeric, MARKUP_SAME},
    {"isspace", is_space, MARKUP_SAME},
    {"isprintable", is_printable, MARKUP_SAME},
    {"isupper", is_upper_all, MARKUP_SAME},
    {"islower", is_lower_all, MARKUP_SAME},
    {"istitle", istitle, MARKUP_SAME},
    {"isascii", isascii, MARKUP_SAME},
    {"isidentifier", isidentifier, MARKUP_SAME},
    {"format_map", refused, MARKUP_REFUSED},
    {"encode", refused, MARKUP_REFUSED},
    {"maketrans", refused, MARKUP_REFUSED},
    {"translate", refused, MARKUP_REFUSED},
    {"escape", refused, MARKUP_REFUSED},
    {"unescape", refused, MARKUP_REFUSED},
    {"striptags", refused, MARKUP_REFUSED},
};

/* ---- Markup ---- */

static Str *marked(Vm *vm, const Str *s, bool markup)
{
    Str *copy = tmpl_str_part(&vm->arena, s, 0, s->n);

    copy->markup = markup;
    return copy;
}

static Value escaped(Vm *vm, Value v)
{
    if (v.type == V_STR && v.s->markup)
        return v;
    return tmpl_string(tmpl_escape(vm, tmpl_to_str(vm, v)));
}

static Value escaped_items(Vm *vm, Value v)
{
    List *list = tmpl_to_list(vm, v);

    for (size_t i = 0; i < list->n; i++)
        list->items[i] = escaped(vm, list->items[i]);
    return tmpl_list_value(list);
}

static Value markup_method(Vm *vm, Str *self, StrMethodFn *fn, MarkupRule rule, const Args *args)
{
    Args escaped_args = *args;
    Value v;

    if (rule == MARKUP_REFUSED)
        tmpl_unsupported(vm, "this method of escaped text (Markup)");
    escaped_args.pos = tmpl_new_n(&vm->arena, Value, args->n + 1);
    for (size_t i = 0; i < args->n; i++)
        escaped_args.pos[i] = rule == MARKUP_SECOND && i == 1 ? escaped(vm, args->pos[i])
                              : rule == MARKUP_JOIN           ? escaped_items(vm, args->pos[i])
                                                              : args->pos[i];
    v = fn(vm, marked(vm, self, false), &escaped_args);
    if (v.type == V_STR)
        return tmpl_string(marked(vm, v.s, true));
    if (v.type == V_LIST || v.type == V_TUPLE)
        for (size_t i = 0; i < v.list->n; i++)
            v.list->items[i] = tmpl_string(marked(vm, v.list->items[i].s, true));
    return v;
}

Value tmpl_str_method(Vm *vm, Str *self, const Str *name, const Args *args)
{
    tmpl_step(vm, self->n / 32);
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
        if (!tmpl_str_is(name, methods[i].name))
            continue;
        if (self->markup && methods[i].markup != MARKUP_SAME)
            return markup_method(vm, self, methods[i].fn, methods[i].markup, args);
        return methods[i].fn(vm, self, args);
    }
    return tmpl_missing();
}
