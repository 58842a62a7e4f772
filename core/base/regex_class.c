/* SPDX-License-Identifier: Apache-2.0
 * Single characters and classes of a pattern. Classes nest on a stack of sets and come
 * out as explicit code points; nothing here is recursive. */
#include "base/regex_pattern.h"

#include <string.h>

/* Is case ignored here, so that a set means more than its code points? */
static void refuse_if_caseless(DavitRegexPattern *t)
{
    if (t->caseless[t->depth])
        davit_regex_refuse(
            t, "a class of cased letters or a nested complement where case is ignored");
}

/* ---- characters by number ---- */

/* Hex digits at @t->p up to @max of them. */
static uint32_t read_hex(DavitRegexPattern *t, uint32_t max)
{
    uint32_t cp = 0;
    uint32_t n = 0;

    for (; n < max && t->p < t->end && g_ascii_isxdigit(*t->p); n++)
        cp = cp * 16 + (uint32_t)g_ascii_xdigit_value(*t->p++);
    if (n == 0)
        davit_regex_refuse(t, "hex digits are expected");
    return cp;
}

/* After "\x" or "\u". */
static uint32_t read_number_escape(DavitRegexPattern *t, char letter)
{
    uint32_t cp;

    if (letter == 'u') {
        cp = read_hex(t, 4);
    } else if (davit_regex_peek(t, 0) == '{') {
        t->p++;
        cp = read_hex(t, 6);
        if (davit_regex_peek(t, 0) != '}')
            davit_regex_refuse(t, "a closing brace is expected");
        t->p++;
    } else {
        cp = read_hex(t, 2);
        if (cp >= 0x80)
            davit_regex_refuse(t, "\\x above 7f names a byte and not a character");
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        davit_regex_refuse(t, "a code point is out of range");
    return cp;
}

/* Code point of an escape that names one character (@t->p after the backslash), which is
 * read, or false with nothing read. */
bool davit_regex_char_escape(DavitRegexPattern *t, uint32_t *out)
{
    static const char letters[] = "ntrfvae";
    static const char values[] = "\n\t\r\f\v\a\x1b";
    const char c = davit_regex_peek(t, 0);
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
uint32_t davit_regex_char(DavitRegexPattern *t)
{
    const gunichar c = g_utf8_get_char(t->p);

    t->p += g_utf8_skip[(unsigned char)*t->p];
    return c;
}

/* ---- classes ---- */

/* \p{NAME} or \P{NAME}, @t->p on the letter; its set is added to @set. */
static void read_property(DavitRegexPattern *t, DavitCharSet *set)
{
    bool negated = *t->p == 'P';
    const char *name = t->p + 2;
    const char *close;
    bool cased = false;
    g_autofree DavitCharSet *one = davit_char_set_new();

    if (davit_regex_peek(t, 1) != '{') {
        davit_regex_refuse(t, "a property needs braces");
        return;
    }
    if (davit_regex_peek(t, 2) == '^') {
        negated = !negated;
        name++;
    }
    close = memchr(name, '}', (size_t)(t->end - name));
    if (!close ||
        !davit_char_set_add_property(one, name, (size_t)(close - name), &cased)) {
        davit_regex_refuse(t, "this build has no exact table for the property");
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
bool davit_regex_set_escape(DavitRegexPattern *t, DavitCharSet *set)
{
    const char c = davit_regex_peek(t, 0);
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

void davit_regex_open_class(DavitRegexPattern *t)
{
    DavitRegexLevel *level;

    t->p++;
    if (t->n_levels == MAX_CLASSES) {
        davit_regex_refuse(t, "brackets are nested too deeply");
        return;
    }
    level = &t->levels[t->n_levels++];
    *level = (DavitRegexLevel){.now = davit_char_set_new()};
    if (davit_regex_peek(t, 0) == '^') {
        level->negated = true;
        t->p++;
    }
    if (davit_regex_peek(t, 0) == ']')
        davit_regex_refuse(t, "a class starts with a bracket");
}

/* What stood on one side of && joins what stood before. */
static void fold_level(DavitRegexLevel *level)
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

static void read_and(DavitRegexPattern *t)
{
    DavitRegexLevel *level = &t->levels[t->n_levels - 1];

    t->p += 2;
    fold_level(level);
    level->now = davit_char_set_new();
}

/* The outermost class as text; its negation stays one, so that ignoring case works. */
void davit_regex_put_class(DavitRegexPattern *t, const DavitCharSet *set, bool negated)
{
    davit_regex_begin_atom(t);
    if (davit_char_set_is_empty(set)) {
        g_string_append(t->out, negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)");
        return;
    }
    g_string_append(t->out, negated ? "[^" : "[");
    davit_char_set_append(set, t->out);
    g_string_append_c(t->out, ']');
}

static void pop_level(DavitRegexPattern *t)
{
    DavitRegexLevel *level = &t->levels[--t->n_levels];
    DavitCharSet *set;

    t->p++;
    fold_level(level);
    set = level->before;
    if (t->n_levels == 0) {
        davit_regex_put_class(t, set, level->negated);
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
static uint32_t read_member(DavitRegexPattern *t)
{
    uint32_t cp = 0;

    if (*t->p != '\\')
        return davit_regex_char(t);
    t->p++;
    if (!davit_regex_char_escape(t, &cp))
        davit_regex_refuse(t, "an escape in a class is not known");
    return cp;
}

/* A character or a range a-b. */
static void read_range(DavitRegexPattern *t)
{
    DavitCharSet *now = t->levels[t->n_levels - 1].now;
    const uint32_t first = read_member(t);
    uint32_t last = first;

    if (davit_regex_peek(t, 0) == '-' && davit_regex_peek(t, 1) != ']' &&
        davit_regex_peek(t, 1) != '\0' && !t->why) {
        if (davit_regex_peek(t, 1) == '[' ||
            (davit_regex_peek(t, 1) == '\\' && davit_regex_peek(t, 2) &&
             strchr("wdshWDSHpP", davit_regex_peek(t, 2)))) {
            davit_regex_refuse(t, "a range ends in a class");
            return;
        }
        t->p++;
        last = read_member(t);
        if (last < first)
            davit_regex_refuse(t, "a range is reversed");
    }
    if (!t->why)
        davit_char_set_add_range(now, first, last);
}

/* One step inside brackets. */
void davit_regex_in_class(DavitRegexPattern *t)
{
    DavitRegexLevel *level = &t->levels[t->n_levels - 1];
    const char c = *t->p;

    if (c == ']') {
        pop_level(t);
    } else if (c == '[' && davit_regex_peek(t, 1) == ':') {
        davit_regex_refuse(t, "POSIX classes are not translated");
    } else if (c == '[') {
        davit_regex_open_class(t);
    } else if (c == '&' && davit_regex_peek(t, 1) == '&') {
        read_and(t);
    } else if (c == '\\' && davit_regex_peek(t, 1) &&
               strchr("wdshWDSHpP", davit_regex_peek(t, 1))) {
        t->p++;
        davit_regex_set_escape(t, level->now);
    } else {
        read_range(t);
    }
}
