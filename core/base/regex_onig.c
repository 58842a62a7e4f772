/* SPDX-License-Identifier: Apache-2.0
 * From a pattern in onig's Ruby spelling (what Hugging Face's tokenizers compile) to the
 * same pattern for PCRE2. Classes become explicit code points; what has no certain
 * translation is refused with its place. Source of the differences: onig doc/RE,
 * pcre2pattern(3), and every code point asked of tokenizers 0.23.3.
 *
 * Classes nest on a stack of sets; nothing here is recursive. */
#include "base/regex.h"

#include <string.h>

#include "base/regex_set.h"

#define MAX_GROUPS  200u
#define MAX_CLASSES 8u /* nested brackets */

/* One level of brackets. */
typedef struct Level {
    DavitCharSet *now;    /* union of what was read since the last && */
    DavitCharSet *before; /* intersection of what stood before it; NULL = no && yet */
    bool negated;
} Level;

typedef struct Pattern {
    const char *start;
    const char *p;
    const char *end;
    GString *out;
    const char *why; /* why not; NULL = fine so far */
    size_t atom;     /* where the last atom begins in @out */
    bool has_atom;
    bool caseless[MAX_GROUPS + 1]; /* per open group */
    size_t groups[MAX_GROUPS + 1]; /* where each begins in @out */
    uint32_t depth;
    Level levels[MAX_CLASSES];
    uint32_t n_levels;
} Pattern;

static void refuse(Pattern *t, const char *why)
{
    if (!t->why)
        t->why = why;
}

static bool more(const Pattern *t)
{
    return t->p < t->end && !t->why;
}

static char peek(const Pattern *t, size_t ahead)
{
    return (size_t)(t->end - t->p) > ahead ? t->p[ahead] : '\0';
}

static void begin_atom(Pattern *t)
{
    t->atom = t->out->len;
    t->has_atom = true;
}

/* Is case ignored here, so that a set means more than its code points? */
static void refuse_if_caseless(Pattern *t)
{
    if (t->caseless[t->depth])
        refuse(t,
               "a class of cased letters or a nested complement where case is ignored");
}

/* ---- characters by number ---- */

/* Hex digits at @t->p up to @max of them. */
static uint32_t read_hex(Pattern *t, uint32_t max)
{
    uint32_t cp = 0;
    uint32_t n = 0;

    for (; n < max && t->p < t->end && g_ascii_isxdigit(*t->p); n++)
        cp = cp * 16 + (uint32_t)g_ascii_xdigit_value(*t->p++);
    if (n == 0)
        refuse(t, "hex digits are expected");
    return cp;
}

/* After "\x" or "\u". */
static uint32_t read_number_escape(Pattern *t, char letter)
{
    uint32_t cp;

    if (letter == 'u') {
        cp = read_hex(t, 4);
    } else if (peek(t, 0) == '{') {
        t->p++;
        cp = read_hex(t, 6);
        if (peek(t, 0) != '}')
            refuse(t, "a closing brace is expected");
        t->p++;
    } else {
        cp = read_hex(t, 2);
        if (cp >= 0x80)
            refuse(t, "\\x above 7f names a byte and not a character");
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        refuse(t, "a code point is out of range");
    return cp;
}

/* Code point of an escape that names one character (@t->p after the backslash), which is
 * read, or false with nothing read. */
static bool read_char_escape(Pattern *t, uint32_t *out)
{
    static const char letters[] = "ntrfvae";
    static const char values[] = "\n\t\r\f\v\a\x1b";
    const char c = peek(t, 0);
    const char *at = c ? strchr(letters, c) : NULL;

    if (at) {
        *out = (uint32_t)values[at - letters];
        t->p++;
        return true;
    }
    if (c == 'x' || c == 'u') {
        t->p++;
        *out = read_number_escape(t, c);
        return true;
    }
    if (c != '\0' && (unsigned char)c < 0x80 && !g_ascii_isalnum(c)) {
        *out = (uint32_t)c;
        t->p++;
        return true;
    }
    return false;
}

/* A plain character of the pattern; it is valid UTF-8. */
static uint32_t read_char(Pattern *t)
{
    const gunichar c = g_utf8_get_char(t->p);

    t->p = g_utf8_next_char(t->p);
    return c;
}

static void put_char(Pattern *t, uint32_t cp)
{
    if (cp < 0x80 && g_ascii_isalnum((char)cp))
        g_string_append_c(t->out, (char)cp);
    else
        g_string_append_printf(t->out, "\\x{%x}", cp);
}

/* ---- classes ---- */

/* \p{NAME} or \P{NAME}, @t->p on the letter; its set is added to @set. */
static void read_property(Pattern *t, DavitCharSet *set)
{
    bool negated = *t->p == 'P';
    const char *name = t->p + 2;
    const char *close;
    bool cased = false;
    g_autofree DavitCharSet *one = davit_char_set_new();

    if (peek(t, 1) != '{') {
        refuse(t, "a property needs braces");
        return;
    }
    if (peek(t, 2) == '^') {
        negated = !negated;
        name++;
    }
    close = memchr(name, '}', (size_t)(t->end - name));
    if (!close ||
        !davit_char_set_add_property(one, name, (size_t)(close - name), &cased)) {
        refuse(t, "this build has no exact table for the property");
        return;
    }
    if (cased || negated)
        refuse_if_caseless(t);
    if (negated)
        davit_char_set_complement(one);
    davit_char_set_unite(set, one);
    t->p = close + 1;
}

/* An escape that stands for a set, @t->p on its letter: adds to @set and goes past it. */
static bool read_set_escape(Pattern *t, DavitCharSet *set)
{
    const char c = peek(t, 0);
    g_autofree DavitCharSet *one = NULL;

    if (c == 'p' || c == 'P') {
        read_property(t, set);
        return true;
    }
    if (c == '\0' || !strchr("wdshWDSH", c))
        return false;
    one = davit_char_set_new();
    davit_char_set_add_escape(one, g_ascii_tolower(c), t->n_levels > 0);
    if (g_ascii_isupper(c)) {
        refuse_if_caseless(t);
        davit_char_set_complement(one);
    }
    davit_char_set_unite(set, one);
    t->p++;
    return true;
}

static void push_level(Pattern *t)
{
    Level *level;

    t->p++;
    if (t->n_levels == MAX_CLASSES) {
        refuse(t, "brackets are nested too deeply");
        return;
    }
    level = &t->levels[t->n_levels++];
    *level = (Level){.now = davit_char_set_new()};
    if (peek(t, 0) == '^') {
        level->negated = true;
        t->p++;
    }
    if (peek(t, 0) == ']')
        refuse(t, "a class starts with a bracket");
}

/* What stood on one side of && joins what stood before. */
static void fold_level(Level *level)
{
    if (level->before) {
        davit_char_set_intersect(level->before, level->now);
        g_free(level->now);
        level->now = NULL;
    } else {
        level->before = level->now;
        level->now = NULL;
    }
}

static void read_and(Pattern *t)
{
    Level *level = &t->levels[t->n_levels - 1];

    t->p += 2;
    fold_level(level);
    level->now = davit_char_set_new();
}

/* The outermost class as text; its negation stays one, so that ignoring case works. */
static void put_class(Pattern *t, const DavitCharSet *set, bool negated)
{
    begin_atom(t);
    if (davit_char_set_is_empty(set)) {
        g_string_append(t->out, negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)");
        return;
    }
    g_string_append(t->out, negated ? "[^" : "[");
    davit_char_set_append(set, t->out);
    g_string_append_c(t->out, ']');
}

static void pop_level(Pattern *t)
{
    Level *level = &t->levels[--t->n_levels];
    DavitCharSet *set;

    t->p++;
    fold_level(level);
    set = level->before;
    if (t->n_levels == 0) {
        put_class(t, set, level->negated);
    } else {
        if (level->negated) {
            refuse_if_caseless(t);
            davit_char_set_complement(set);
        }
        davit_char_set_unite(t->levels[t->n_levels - 1].now, set);
    }
    g_free(set);
}

/* One character of a class: plain or escaped. */
static uint32_t read_member(Pattern *t)
{
    uint32_t cp = 0;

    if (*t->p != '\\')
        return read_char(t);
    t->p++;
    if (!read_char_escape(t, &cp))
        refuse(t, "an escape in a class is not known");
    return cp;
}

/* A character or a range a-b. */
static void read_range(Pattern *t)
{
    DavitCharSet *now = t->levels[t->n_levels - 1].now;
    const uint32_t first = read_member(t);
    uint32_t last = first;

    if (peek(t, 0) == '-' && peek(t, 1) != ']' && peek(t, 1) != '\0' && !t->why) {
        if (peek(t, 1) == '[' ||
            (peek(t, 1) == '\\' && peek(t, 2) && strchr("wdshWDSHpP", peek(t, 2)))) {
            refuse(t, "a range ends in a class");
            return;
        }
        t->p++;
        last = read_member(t);
        if (last < first)
            refuse(t, "a range is reversed");
    }
    if (!t->why)
        davit_char_set_add_range(now, first, last);
}

/* One step inside brackets. */
static void read_in_class(Pattern *t)
{
    Level *level = &t->levels[t->n_levels - 1];
    const char c = *t->p;

    if (c == ']') {
        pop_level(t);
    } else if (c == '[' && peek(t, 1) == ':') {
        refuse(t, "POSIX classes are not translated");
    } else if (c == '[') {
        push_level(t);
    } else if (c == '&' && peek(t, 1) == '&') {
        read_and(t);
    } else if (c == '\\' && peek(t, 1) && strchr("wdshWDSHpP", peek(t, 1))) {
        t->p++;
        read_set_escape(t, level->now);
    } else {
        read_range(t);
    }
}

/* ---- outside classes ---- */

/* \b and \B with onig's idea of a word. */
static void put_boundary(Pattern *t, bool inside_out)
{
    g_autofree DavitCharSet *word = davit_char_set_new();
    g_autoptr(GString) w = g_string_new("[");

    davit_char_set_add_escape(word, 'w', false);
    davit_char_set_append(word, w);
    g_string_append_c(w, ']');
    begin_atom(t);
    if (inside_out)
        g_string_append_printf(t->out, "(?:(?<=%s)(?=%s)|(?<!%s)(?!%s))", w->str, w->str,
                               w->str, w->str);
    else
        g_string_append_printf(t->out, "(?:(?<=%s)(?!%s)|(?<!%s)(?=%s))", w->str, w->str,
                               w->str, w->str);
}

static void read_escape(Pattern *t)
{
    g_autofree DavitCharSet *set = davit_char_set_new();
    const char c = peek(t, 1);
    uint32_t cp = 0;

    t->p++;
    if (read_set_escape(t, set)) {
        if (!t->why)
            put_class(t, set, false);
    } else if (read_char_escape(t, &cp)) {
        begin_atom(t);
        put_char(t, cp);
    } else if (c == 'A' || c == 'z' || c == 'Z') {
        begin_atom(t);
        g_string_append_printf(t->out, "\\%c", c);
        t->p++;
    } else if (c == 'b' || c == 'B') {
        put_boundary(t, c == 'B');
        t->p++;
    } else if ((unsigned char)c >= 0x80) {
        begin_atom(t);
        put_char(t, read_char(t));
    } else {
        refuse(t, "an escape is not known, or means something else in PCRE2");
    }
}

/* "{2,3}" at @t->p. Returns its length with the braces, 0 if it is no interval. */
static size_t interval_length(const Pattern *t, bool *out_fixed, bool *out_open_start)
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
static void read_interval(Pattern *t)
{
    bool fixed;
    bool open_start;
    const size_t n = interval_length(t, &fixed, &open_start);
    const char next = n ? peek(t, n) : '\0';

    if (n == 0) {
        begin_atom(t);
        put_char(t, '{');
        t->p++;
        return;
    }
    if (!t->has_atom || (fixed && next == '?')) {
        refuse(t, "an interval that onig and PCRE2 read in different ways");
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
static void read_options(Pattern *t)
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
            refuse(t, "a group of an unknown kind or option");
        g_string_append_c(s, *t->p == 'm' ? 's' : *t->p);
    }
    if (peek(t, 0) == ')' && !first)
        refuse(t, "options without a group stand inside the pattern");
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
static void read_name(Pattern *t)
{
    const char *close = memchr(t->p, '>', (size_t)(t->end - t->p));

    for (const char *p = t->p + 3; close && p < close; p++)
        if (!g_ascii_isalnum(*p) && *p != '_')
            close = NULL;
    if (!close) {
        refuse(t, "a group's name is not plain");
        return;
    }
    g_string_append_len(t->out, t->p, close + 1 - t->p);
    t->p = close + 1;
}

static void open_group(Pattern *t)
{
    const char c = peek(t, 2);
    const char d = peek(t, 3);
    size_t n = 1;

    if (peek(t, 1) == '*') {
        refuse(t, "a verb means something else in PCRE2");
        return;
    }
    t->has_atom = false;
    if (peek(t, 1) == '?' && c && strchr("im-", c)) {
        if (t->depth == MAX_GROUPS)
            refuse(t, "groups are nested more than 200 deep");
        else
            read_options(t);
        return;
    }
    if (t->depth == MAX_GROUPS) {
        refuse(t, "groups are nested more than 200 deep");
        return;
    }
    t->groups[t->depth + 1] = t->out->len;
    t->caseless[t->depth + 1] = t->caseless[t->depth];
    t->depth++;
    if (peek(t, 1) == '?') {
        if (c == ':' || c == '=' || c == '!' || c == '>')
            n = 3;
        else if (c == '<' && (d == '=' || d == '!'))
            n = 4;
        else if (c == '<') {
            read_name(t);
            return;
        } else
            refuse(t, "a group of an unknown kind or option");
    }
    g_string_append_len(t->out, t->p, (gssize)n);
    t->p += n;
}

static void close_group(Pattern *t)
{
    if (t->depth == 0) {
        refuse(t, "a group is closed that was not opened");
        return;
    }
    t->atom = t->groups[t->depth--];
    t->has_atom = true;
    g_string_append_c(t->out, ')');
    t->p++;
}

/* *, +, ? and the mark after it: lazy and possessive mean the same in both. */
static void read_star(Pattern *t)
{
    g_string_append_c(t->out, *t->p++);
    if (peek(t, 0) == '?' || peek(t, 0) == '+')
        g_string_append_c(t->out, *t->p++);
}

static void read_outside(Pattern *t)
{
    switch (*t->p) {
    case '\\':
        read_escape(t);
        break;
    case '[':
        push_level(t);
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
        begin_atom(t);
        g_string_append_c(t->out, *t->p++);
        break;
    default:
        begin_atom(t);
        put_char(t, read_char(t));
        break;
    }
}

char *davit_regex_translate(const char *pattern, size_t len, const char **out_why,
                            size_t *out_off)
{
    Pattern t = {.start = pattern, .p = pattern, .end = pattern + len};
    const char *at = pattern;

    t.out = g_string_new(NULL);
    if (!g_utf8_validate_len(pattern, len, &at))
        refuse(&t, "the pattern is not valid UTF-8");
    while (more(&t)) {
        at = t.p;
        if (t.n_levels)
            read_in_class(&t);
        else
            read_outside(&t);
    }
    if (t.n_levels)
        refuse(&t, "a class is not closed");
    if (t.depth)
        refuse(&t, "a group is not closed");
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
