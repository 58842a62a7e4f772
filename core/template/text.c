/* SPDX-License-Identifier: Apache-2.0
 * Characters and cases as Python has them, and stripping. Classes are those of the SDK's
 * tables (Unicode 16), case pairs GLib's. */
#include "template/text.h"

#include <string.h>

#include <davit/help/ucd.h>

bool tmpl_is_space(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

bool tmpl_is_line_end(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
           cp == 0x2028 || cp == 0x2029;
}

bool tmpl_is_printable(uint32_t cp)
{
    return cp == ' ' || !(davit_ucd_bits(cp) & (DAVIT_UCD_C | DAVIT_UCD_Z));
}

/* ---- cases ---- */

bool tmpl_is_cased(uint32_t cp)
{
    return cp < 0x80 ? g_ascii_isalpha((char)cp)
                     : g_unichar_isupper(cp) || g_unichar_islower(cp) ||
                           g_unichar_istitle(cp) || cp == 0xaa || cp == 0xba;
}

/* Case_Ignorable, as far as a sigma can meet it: marks, format, modifiers and the marks of
 * words. */
static bool is_case_ignorable(uint32_t cp)
{
    if (cp < 0x80)
        return cp == '\'' || cp == '.' || cp == ':' || cp == '^' || cp == '`';
    if (cp == 0xa8 || cp == 0xad || cp == 0xaf || cp == 0xb4 || cp == 0xb7 || cp == 0xb8 ||
        cp == 0x2018 || cp == 0x2019 || cp == 0x2024 || cp == 0x2027)
        return true;
    const GUnicodeType type = g_unichar_type(cp);
    return type == G_UNICODE_NON_SPACING_MARK || type == G_UNICODE_ENCLOSING_MARK ||
           type == G_UNICODE_FORMAT || type == G_UNICODE_MODIFIER_LETTER ||
           type == G_UNICODE_MODIFIER_SYMBOL;
}

/* A sigma at byte @at of length @len ends a word. */
static bool is_final_sigma(const Str *s, size_t at, size_t len)
{
    size_t before = at, after = at + len;
    uint32_t cp = 0, n;
    bool cased = false;

    while (before > 0) {
        before--;
        if ((s->p[before] & 0xc0) == 0x80)
            continue;
        cp = tmpl_str_cp(s, before, &n);
        if (is_case_ignorable(cp))
            continue;
        cased = tmpl_is_cased(cp);
        break;
    }
    if (!cased)
        return false;
    while (after < s->n) {
        cp = tmpl_str_cp(s, after, &n);
        if (!is_case_ignorable(cp))
            return !tmpl_is_cased(cp);
        after += n;
    }
    return true;
}

/* Characters whose upper case is several: GLib's string function knows them. The locale
 * can change i, I and dotless i only, which never come here. */
static void add_upper(Sb *out, uint32_t cp, uint8_t taint, bool title)
{
    const uint32_t one = title ? g_unichar_totitle(cp) : g_unichar_toupper(cp);
    char utf8[7] = "";

    if (one != cp || cp < 0x80 || cp == 0x131) {
        tmpl_sb_add_cp(out, one, taint);
        return;
    }
    utf8[g_unichar_to_utf8(cp, utf8)] = '\0';
    char upper[32], *all = g_utf8_strup(utf8, -1);
    g_strlcpy(upper, all, sizeof upper);
    g_free(all); /* before anything can jump away */
    bool first = true;
    for (char *c = upper; *c; c = g_utf8_next_char(c)) {
        const uint32_t part = g_utf8_get_char(c);

        /* titles keep the iota below, and n behind an apostrophe is the letter */
        tmpl_sb_add_cp(out,
                       first || !title || cp == 0x149 ? part
                       : part == 0x399                ? 0x345
                                                      : g_unichar_tolower(part),
                       taint);
        first = false;
    }
}

void tmpl_add_cased(Sb *out, const Str *s, size_t start, size_t end, TextCase to)
{
    uint32_t len;

    for (size_t at = start; at < end; at += len) {
        const uint8_t taint = s->taint ? s->taint[at] : 0;
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (cp < 0x80)
            tmpl_sb_add_cp(out,
                           (uint8_t)(to == CASE_LOWER ? g_ascii_tolower((char)cp)
                                                      : g_ascii_toupper((char)cp)),
                           taint);
        else if (to != CASE_LOWER)
            add_upper(out, cp, taint, to == CASE_TITLE);
        else if (cp == 0x130) {
            tmpl_sb_add_cp(out, 'i', taint);
            tmpl_sb_add_cp(out, 0x307, taint);
        } else if (cp == 0x3a3)
            tmpl_sb_add_cp(out, is_final_sigma(s, at, len) ? 0x3c2 : 0x3c3, taint);
        else
            tmpl_sb_add_cp(out, g_unichar_tolower(cp), taint);
    }
}

static Str *cased(Vm *vm, const Str *s, TextCase to)
{
    Sb out = {.arena = &vm->arena};
    Str *str;

    tmpl_step(vm, s->n / 16);
    tmpl_add_cased(&out, s, 0, s->n, to);
    str = tmpl_sb_take(&out);
    str->markup = s->markup;
    return str;
}

Str *tmpl_lower(Vm *vm, const Str *s)
{
    return cased(vm, s, CASE_LOWER);
}

Str *tmpl_upper(Vm *vm, const Str *s)
{
    return cased(vm, s, CASE_UPPER);
}

/* ---- stripping, escaping ---- */

static bool in_set(const Str *chars, uint32_t cp)
{
    uint32_t len;

    if (!chars)
        return tmpl_is_space(cp);
    for (size_t at = 0; at < chars->n; at += len)
        if (tmpl_str_cp(chars, at, &len) == cp)
            return true;
    return false;
}

Str *tmpl_strip(Vm *vm, Str *s, const Str *chars, bool left, bool right)
{
    size_t start = 0, end = s->n;
    uint32_t len;

    tmpl_step(vm, chars ? (uint64_t)s->n * (chars->n + 1) / 64 : s->n / 64);
    while (left && start < end && in_set(chars, tmpl_str_cp(s, start, &len)))
        start += len;
    while (right && end > start) {
        size_t before = end - 1;

        while (before > start && (s->p[before] & 0xc0) == 0x80)
            before--;
        if (!in_set(chars, tmpl_str_cp(s, before, &len)))
            break;
        end = before;
    }
    return start == 0 && end == s->n ? s : tmpl_str_part(&vm->arena, s, start, end);
}

Str *tmpl_escape(Vm *vm, const Str *s)
{
    static const char marks[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    Sb out = {.arena = &vm->arena};
    Str *str;

    for (size_t i = 0; i < s->n; i++) {
        const char *mark = s->p[i] ? strchr(marks, s->p[i]) : NULL;

        if (mark)
            tmpl_sb_add_text(&out, names[mark - marks]);
        else
            tmpl_sb_add(&out, s->p + i, s->taint ? s->taint + i : NULL, 1);
    }
    str = tmpl_sb_take(&out);
    str->markup = true;
    return str;
}
