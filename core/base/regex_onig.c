/* SPDX-License-Identifier: Apache-2.0
 * From a pattern in onig's Ruby spelling (what Hugging Face's tokenizers compile) to the
 * same pattern for PCRE2. Classes become explicit code points; what has no certain
 * translation is refused with its place. Source of the differences: onig doc/RE,
 * pcre2pattern(3), and every code point asked of tokenizers 0.23.3.
 * Characters and classes: regex_class.c. */
#include "base/regex_pattern.h"

#include <string.h>

void davit_regex_refuse(DavitRegexPattern *t, const char *why)
{
    if (!t->why)
        t->why = why;
}

char davit_regex_peek(const DavitRegexPattern *t, size_t ahead)
{
    return (size_t)(t->end - t->p) > ahead ? t->p[ahead] : '\0';
}

void davit_regex_begin_atom(DavitRegexPattern *t)
{
    t->atom = t->out->len;
    t->has_atom = true;
}

static bool more(const DavitRegexPattern *t)
{
    return t->p < t->end && !t->why;
}

static void put_char(DavitRegexPattern *t, uint32_t cp)
{
    if (cp < 0x80 && g_ascii_isalnum((char)cp))
        g_string_append_c(t->out, (char)cp);
    else
        g_string_append_printf(t->out, "\\x{%x}", cp);
}

/* \b and \B with onig's idea of a word. */
static void put_boundary(DavitRegexPattern *t, bool inside_out)
{
    g_autofree DavitCharSet *word = davit_char_set_new();
    g_autoptr(GString) w = g_string_new("[");

    davit_char_set_add_escape(word, 'w', false);
    davit_char_set_append(word, w);
    g_string_append_c(w, ']');
    davit_regex_begin_atom(t);
    if (inside_out)
        g_string_append_printf(t->out, "(?:(?<=%s)(?=%s)|(?<!%s)(?!%s))", w->str, w->str,
                               w->str, w->str);
    else
        g_string_append_printf(t->out, "(?:(?<=%s)(?!%s)|(?<!%s)(?=%s))", w->str, w->str,
                               w->str, w->str);
}

static void read_escape(DavitRegexPattern *t)
{
    const char c = davit_regex_peek(t, 1);
    /* "\." is what nearly all patterns of names have: 136 KiB for it would be most of their time */
    const bool is_set = c && strchr("wdshWDSHpP", c);
    g_autofree DavitCharSet *set = is_set ? davit_char_set_new() : NULL;
    uint32_t cp = 0;

    t->p++;
    if (is_set && davit_regex_set_escape(t, set)) {
        if (!t->why)
            davit_regex_put_class(t, set, false);
    } else if (davit_regex_char_escape(t, &cp)) {
        davit_regex_begin_atom(t);
        put_char(t, cp);
    } else if (c == 'A' || c == 'z' || c == 'Z') {
        davit_regex_begin_atom(t);
        g_string_append_printf(t->out, "\\%c", c);
        t->p++;
    } else if (c == 'b' || c == 'B') {
        put_boundary(t, c == 'B');
        t->p++;
    } else if ((unsigned char)c >= 0x80) {
        davit_regex_begin_atom(t);
        put_char(t, davit_regex_char(t));
    } else {
        davit_regex_refuse(t, "an escape is not known, or means something else in PCRE2");
    }
}

/* "{2,3}" at @t->p. Returns its length with the braces, 0 if it is no interval. */
static size_t interval_length(const DavitRegexPattern *t, bool *out_fixed,
                              bool *out_open_start)
{
    const char *p = t->p + 1;
    const char *const first = p;
    bool comma = false;

    while (p < t->end && g_ascii_isdigit(*p))
        p++;
    *out_open_start = p == first;
    if (p < t->end && *p == ',') {
        comma = true;
        p++;
        while (p < t->end && g_ascii_isdigit(*p))
            p++;
    }
    *out_fixed = !comma;
    if (p == t->end || *p != '}' || (*out_open_start && p - first <= 1))
        return 0;
    return (size_t)(p + 1 - t->p);
}

/* In onig {n,m}+ repeats the repetition; in PCRE2 it would be possessive. */
static void read_interval(DavitRegexPattern *t)
{
    bool fixed;
    bool open_start;
    const size_t n = interval_length(t, &fixed, &open_start);
    const char next = n ? davit_regex_peek(t, n) : '\0';

    if (n == 0) {
        davit_regex_begin_atom(t);
        put_char(t, '{');
        t->p++;
        return;
    }
    if (!t->has_atom || (fixed && next == '?')) {
        davit_regex_refuse(t, "an interval that onig and PCRE2 read in different ways");
        return;
    }
    if (next == '+')
        g_string_insert(t->out, (gssize)t->atom, "(?:");
    g_string_append_c(t->out, '{');
    if (open_start)
        g_string_append_c(t->out, '0');
    g_string_append_len(t->out, t->p + 1, (gssize)n - 1);
    t->p += n;
    if (next == '+') {
        g_string_append(t->out, ")+");
        t->p++;
    } else if (next == '?') {
        g_string_append_c(t->out, '?');
        t->p++;
    }
}

/* Inline options after "(?": i and m. In onig's Ruby spelling m lets the dot take
 * newlines. */
static void read_options(DavitRegexPattern *t)
{
    const bool first = t->p == t->start;
    bool on = true;
    bool caseless = t->caseless[t->depth];
    GString *s = g_string_new("(?");

    t->p += 2;
    for (; more(t) && *t->p != ':' && *t->p != ')'; t->p++) {
        if (*t->p == '-')
            on = false;
        else if (*t->p == 'i')
            caseless = on;
        else if (*t->p != 'm')
            davit_regex_refuse(t, "a group of an unknown kind or option");
        g_string_append_c(s, *t->p == 'm' ? 's' : *t->p);
    }
    if (davit_regex_peek(t, 0) == ')' && !first)
        davit_regex_refuse(t, "options without a group stand inside the pattern");
    if (more(t)) {
        g_string_append_c(s, *t->p);
        if (*t->p == ':' && t->depth < MAX_GROUPS)
            t->groups[++t->depth] = t->out->len;
        t->caseless[t->depth] = caseless;
        g_string_append(t->out, s->str);
        t->p++;
    }
    g_string_free(s, TRUE);
}

/* "(?<name>": copied when the name is plain. */
static void read_name(DavitRegexPattern *t)
{
    const char *close = memchr(t->p, '>', (size_t)(t->end - t->p));

    for (const char *p = t->p + 3; close && p < close; p++)
        if (!g_ascii_isalnum(*p) && *p != '_')
            close = NULL;
    if (!close) {
        davit_regex_refuse(t, "a group's name is not plain");
        return;
    }
    g_string_append_len(t->out, t->p, close + 1 - t->p);
    t->p = close + 1;
}

static void open_group(DavitRegexPattern *t)
{
    const char c = davit_regex_peek(t, 2);
    const char d = davit_regex_peek(t, 3);
    size_t n = 1;

    if (davit_regex_peek(t, 1) == '*') {
        davit_regex_refuse(t, "a verb means something else in PCRE2");
        return;
    }
    t->has_atom = false;
    if (davit_regex_peek(t, 1) == '?' && c && strchr("im-", c)) {
        if (t->depth == MAX_GROUPS)
            davit_regex_refuse(t, "groups are nested more than 200 deep");
        else
            read_options(t);
        return;
    }
    if (t->depth == MAX_GROUPS) {
        davit_regex_refuse(t, "groups are nested more than 200 deep");
        return;
    }
    t->groups[t->depth + 1] = t->out->len;
    t->caseless[t->depth + 1] = t->caseless[t->depth];
    t->depth++;
    if (davit_regex_peek(t, 1) == '?') {
        if (c == ':' || c == '=' || c == '!' || c == '>')
            n = 3;
        else if (c == '<' && (d == '=' || d == '!'))
            n = 4;
        else if (c == '<') {
            read_name(t);
            return;
        } else
            davit_regex_refuse(t, "a group of an unknown kind or option");
    }
    g_string_append_len(t->out, t->p, (gssize)n);
    t->p += n;
}

static void close_group(DavitRegexPattern *t)
{
    if (t->depth == 0) {
        davit_regex_refuse(t, "a group is closed that was not opened");
        return;
    }
    t->atom = t->groups[t->depth--];
    t->has_atom = true;
    g_string_append_c(t->out, ')');
    t->p++;
}

/* *, +, ? and the mark after it: lazy and possessive mean the same in both. */
static void read_star(DavitRegexPattern *t)
{
    g_string_append_c(t->out, *t->p++);
    if (davit_regex_peek(t, 0) == '?' || davit_regex_peek(t, 0) == '+')
        g_string_append_c(t->out, *t->p++);
}

static void read_outside(DavitRegexPattern *t)
{
    switch (*t->p) {
    case '\\':
        read_escape(t);
        break;
    case '[':
        davit_regex_open_class(t);
        break;
    case '(':
        open_group(t);
        break;
    case ')':
        close_group(t);
        break;
    case '{':
        read_interval(t);
        break;
    case '*':
    case '+':
    case '?':
        read_star(t);
        break;
    case '|':
        t->has_atom = false;
        g_string_append_c(t->out, *t->p++);
        break;
    case '^':
    case '$':
    case '.':
        davit_regex_begin_atom(t);
        g_string_append_c(t->out, *t->p++);
        break;
    default:
        davit_regex_begin_atom(t);
        put_char(t, davit_regex_char(t));
        break;
    }
}

char *davit_regex_translate(const char *pattern, size_t len, const char **out_why,
                            size_t *out_off)
{
    DavitRegexPattern t = {.start = pattern, .p = pattern, .end = pattern + len};
    const char *at = pattern;

    t.out = g_string_new(NULL);
    if (!g_utf8_validate_len(pattern, len, &at))
        davit_regex_refuse(&t, "the pattern is not valid UTF-8");
    while (more(&t)) {
        at = t.p;
        if (t.n_levels)
            davit_regex_in_class(&t);
        else
            read_outside(&t);
    }
    if (t.n_levels)
        davit_regex_refuse(&t, "a class is not closed");
    if (t.depth)
        davit_regex_refuse(&t, "a group is not closed");
    while (t.n_levels > 0) {
        g_free(t.levels[--t.n_levels].now);
        g_free(t.levels[t.n_levels].before);
    }
    if (!t.why)
        return g_string_free(t.out, FALSE);
    g_string_free(t.out, TRUE);
    *out_why = t.why;
    *out_off = (size_t)(at - pattern);
    return NULL;
}
