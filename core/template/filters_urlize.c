/* SPDX-License-Identifier: Apache-2.0
 * The filter urlize. Source: jinja2 3.1.6 filters.py and utils.py: what is an address there is
 * said by two regular expressions, which are functions here. */
#include "template/text.h"

#include <string.h>

#include <davit/help/ucd.h>

typedef struct Urlize {
    Vm *vm;
    Sb out;
    Value limit; /* of the characters shown, none or missing */
    const Str *attributes;
    const List *schemes;
} Urlize;

/* ---- characters, as Python's \w, \d and [a-z] with IGNORECASE ---- */

static bool is_word(uint32_t cp)
{
    return cp == '_' || (davit_ucd_bits(cp) & (DAVIT_UCD_L | DAVIT_UCD_N));
}

/* The ASCII letter that @cp is a form of, in lower case; else @cp. */
static uint32_t folded(uint32_t cp)
{
    return cp == 0x17f                   ? 's'
           : cp == 0x212a                ? 'k'
           : cp == 0x130 || cp == 0x131  ? 'i'
           : cp >= 'A' && cp <= 'Z'      ? cp + 32
                                         : cp;
}

static bool is_digit(uint32_t cp)
{
    return (davit_ucd_bits(cp) & DAVIT_UCD_ND) != 0;
}

static bool is_hex(uint32_t cp)
{
    return is_digit(cp) || (folded(cp) >= 'a' && folded(cp) <= 'f');
}

/* Where @text stands at byte @at whatever its case: the byte behind it, or 0. */
static size_t skip_text(const Str *s, size_t at, const char *text)
{
    uint32_t len;

    for (; *text; text++, at += len)
        if (at >= s->n || folded(tmpl_str_cp(s, at, &len)) != (uint8_t)*text)
            return 0;
    return at;
}

/* ---- addresses of hosts ---- */

/* The label at @at: up to a '.' or the end of the host; its characters in *out_n. */
static size_t label_end(const Str *s, size_t at, size_t end, size_t *out_n, bool *out_valid)
{
    uint32_t len;

    *out_n = 0;
    *out_valid = true;
    for (; at < end && s->p[at] != '.'; at += len, ++*out_n) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        *out_valid &= is_word(cp) || cp == '%' || cp == '-';
    }
    return at;
}

static bool is_top_level(const Str *s, size_t at, size_t end)
{
    const size_t xn = skip_text(s, at, "xn--");
    bool letters = true, idna = xn != 0;
    size_t n = 0;
    uint32_t len;

    for (size_t i = at; i < end; i += len, n++) {
        const uint32_t cp = tmpl_str_cp(s, i, &len);

        letters &= folded(cp) >= 'a' && folded(cp) <= 'z';
        idna &= i < xn || is_word(cp) || cp == '%';
    }
    return (letters && n >= 2 && n <= 63) || (idna && n >= 6 && n <= 63);
}

static bool is_known_top_level(const Str *s, size_t at, size_t end)
{
    static const char *const names[] = {"com", "net", "int", "edu", "gov", "org", "info", "mil"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (skip_text(s, at, names[i]) == end)
            return true;
    return false;
}

/* Labels with dots between and a top level. @named: behind a scheme or www., where one label
 * will do; else the top level must be known and labels have 2 to 63 characters. */
static bool is_host(const Str *s, size_t at, size_t end, bool named)
{
    bool valid, any = false;
    size_t n;

    for (;;) {
        const size_t stop = label_end(s, at, end, &n, &valid);

        if (stop >= end)
            return named ? is_top_level(s, at, end) : any && is_known_top_level(s, at, end);
        if (!valid || n < (named ? 1 : 2) || (!named && n > 63))
            return false;
        any = true;
        at = stop + 1;
    }
}

static bool is_ipv4(const Str *s, size_t at, size_t end)
{
    int dots = 0, digits = 0;
    uint32_t len;

    for (; at < end; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (cp == '.' && digits > 0) {
            dots++;
            digits = 0;
        } else if (!is_digit(cp) || ++digits > 3) {
            return false;
        }
    }
    return dots == 3 && digits > 0;
}

/* "[" two groups that end with a colon, one to six more "]" at @at: the byte behind it, or 0. */
static size_t ipv6_end(const Str *s, size_t at)
{
    int groups = 0, digits = 0;
    bool open = false; /* a group that has no colon yet */
    uint32_t len;

    if (at >= s->n || s->p[at++] != '[')
        return 0;
    for (; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (cp == ']')
            return groups >= 2 && groups + open <= 8 ? at + 1 : 0;
        if (cp != ':' && !is_hex(cp))
            return 0;
        if (cp == ':') {
            groups++;
            open = false;
            digits = 0;
            continue;
        }
        if (++digits > 4) { /* groups behind the first two need no colon */
            if (groups++ < 2)
                return 0;
            digits = 1;
        }
        open = true;
    }
    return 0;
}

/* Nothing, or a port, and nothing or a path. */
static bool is_tail(const Str *s, size_t at)
{
    int digits = 0;
    uint32_t len;

    if (at < s->n && s->p[at] == ':') {
        for (at++; at < s->n && is_digit(tmpl_str_cp(s, at, &len)); at += len)
            digits++;
        if (digits < 1 || digits > 5)
            return false;
    }
    return at >= s->n || strchr("/?#", s->p[at]) != NULL;
}

static bool is_http(const Str *s)
{
    const size_t http = skip_text(s, 0, "http://"), https = skip_text(s, 0, "https://");
    const size_t scheme = MAX(http, https), www = skip_text(s, 0, "www.");
    size_t start = scheme ? scheme : www, end;

    if (scheme && (end = ipv6_end(s, scheme)) != 0)
        return is_tail(s, end);
    for (end = start; end < s->n && !(s->p[end] && strchr(":/?#", s->p[end])); end++)
        ;
    if (start && is_host(s, start, end, true) && is_tail(s, end))
        return true;
    if (scheme)
        return is_ipv4(s, scheme, end) && is_tail(s, end);
    return is_host(s, 0, end, false) && is_tail(s, end);
}

/* \S+@\w[\w.-]*\.\w+ from @from to the end. */
static bool is_mail(const Str *s, size_t from)
{
    size_t sign = s->n, dot = 0;
    bool word = false; /* of the character before */
    uint32_t len;

    while (sign > from && s->p[sign - 1] != '@')
        sign--;
    if (sign <= from + 1)
        return false;
    for (size_t at = sign; at < s->n; at += len) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        word = is_word(cp);
        if (!word && (at == sign || (cp != '.' && cp != '-')))
            return false;
        dot = cp == '.' ? at : cp == '-' ? 0 : dot;
    }
    return dot > 0 && word;
}

/* ---- words ---- */

static bool ends_with(const Str *s, size_t start, size_t end, const char *text)
{
    const size_t n = strlen(text);

    return end - start >= n && memcmp(s->p + end - n, text, n) == 0;
}

static bool starts_with(const Str *s, const Str *text)
{
    return s->n >= text->n && memcmp(s->p, text->p, text->n) == 0;
}

/* Counts @text in bytes [start, end); *out_first is the end of the first one. */
static size_t count(const Str *s, size_t start, size_t end, const char *text, size_t *out_first)
{
    const size_t n = strlen(text);
    size_t found = 0;

    for (size_t at = start; at + n <= end;) {
        if (memcmp(s->p + at, text, n) != 0) {
            at++;
            continue;
        }
        at += n;
        if (found++ == 0 && out_first)
            *out_first = at;
    }
    return found;
}

/* [*start, *end) without brackets before and punctuation behind, as far as it is balanced. */
static void find_middle(Vm *vm, const Str *s, size_t *start, size_t *end)
{
    static const char *const pairs[3][2] = {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
    const Str less = {.p = "&lt;", .n = 4};

    for (; *start < *end; ++*start) {
        const Str rest = {.p = s->p + *start, .n = (uint32_t)(*end - *start)};

        if (starts_with(&rest, &less))
            *start += 3;
        else if (s->p[*start] != '(' && s->p[*start] != '<')
            break;
    }
    for (; *end > *start; --*end) {
        if (ends_with(s, *start, *end, "&gt;"))
            *end -= 3;
        else if (!strchr(")>.,", s->p[*end - 1]) || !s->p[*end - 1])
            break;
    }
    for (size_t i = 0; i < 3; i++) {
        const size_t opened = count(s, *start, *end, pairs[i][0], NULL);

        if (opened <= count(s, *start, *end, pairs[i][1], NULL))
            continue;
        size_t left = MIN(opened, count(s, *end, s->n, pairs[i][1], NULL));
        tmpl_step(vm, left * (s->n - *end) / 16);
        while (left-- > 0)
            count(s, *end, s->n, pairs[i][1], end);
    }
}

static void add_link(Urlize *u, const char *prefix, const Str *address, bool attributes,
                     const Str *shown)
{
    tmpl_sb_add_text(&u->out, "<a href=\"");
    tmpl_sb_add_text(&u->out, prefix);
    tmpl_sb_add_str(&u->out, address);
    tmpl_sb_add_c(&u->out, '"');
    if (attributes)
        tmpl_sb_add_str(&u->out, u->attributes);
    tmpl_sb_add_c(&u->out, '>');
    tmpl_sb_add_str(&u->out, shown);
}

/* x[:limit] and three dots, where the text is longer. */
static void add_http(Urlize *u, Str *s)
{
    const Str plain[] = {{.p = "https://", .n = 8}, {.p = "http://", .n = 7}};
    const bool whole = starts_with(s, &plain[0]) || starts_with(s, &plain[1]);
    const int64_t n = (int64_t)tmpl_str_chars(s);
    const bool cut = u->limit.type != V_MISSING && u->limit.type != V_NONE &&
                     tmpl_ordered(u->vm, OP_GT, tmpl_int(n), u->limit);
    const int64_t limit = cut ? tmpl_need_index(u->vm, u->limit, "trim_url_limit") : n;
    const int64_t keep = limit < 0 ? MAX(limit + n, 0) : limit;

    add_link(u, whole ? "" : "https://", s, true,
             tmpl_str_part(&u->vm->arena, s, 0, tmpl_str_offset(s, (size_t)keep)));
    tmpl_sb_add_text(&u->out, cut ? "...</a>" : "</a>");
}

static void add_middle(Urlize *u, Str *s)
{
    const Str www = {.p = "www.", .n = 4}, at = {.p = "@", .n = 1}, mail = {.p = "mailto:", .n = 7};

    if (is_http(s)) {
        add_http(u, s);
        return;
    }
    if (starts_with(s, &mail) && is_mail(s, 7)) {
        add_link(u, "", s, false, tmpl_str_part(&u->vm->arena, s, 7, s->n));
        tmpl_sb_add_text(&u->out, "</a>");
        return;
    }
    if (memchr(s->p, '@', s->n) && !starts_with(s, &www) && !starts_with(s, &at) &&
        !memchr(s->p, ':', s->n) && is_mail(s, 0)) {
        add_link(u, "mailto:", s, false, s);
        tmpl_sb_add_text(&u->out, "</a>");
        return;
    }
    for (size_t i = 0; i < u->schemes->n; i++) {
        const Str *scheme = u->schemes->items[i].s;

        tmpl_step(u->vm, 1);
        if (s->n > scheme->n && starts_with(s, scheme)) {
            add_link(u, "", s, true, s);
            tmpl_sb_add_text(&u->out, "</a>");
            return;
        }
    }
    tmpl_sb_add_str(&u->out, s);
}

static void add_word(Urlize *u, const Str *word)
{
    size_t start = 0, end = word->n;

    find_middle(u->vm, word, &start, &end);
    tmpl_sb_add_str(&u->out, tmpl_str_part(&u->vm->arena, word, 0, start));
    add_middle(u, tmpl_str_part(&u->vm->arena, word, start, end));
    tmpl_sb_add_str(&u->out, tmpl_str_part(&u->vm->arena, word, end, word->n));
}

static void add_words(Urlize *u, const Str *s)
{
    size_t start = 0;
    uint32_t len;

    for (size_t at = 0; at <= s->n; at += len) {
        const bool blank = at < s->n && tmpl_is_space(tmpl_str_cp(s, at, &len));

        tmpl_step(u->vm, 1);
        if (at == s->n || blank) {
            if (at > start)
                add_word(u, tmpl_str_part(&u->vm->arena, s, start, at));
            if (at == s->n)
                return;
            tmpl_sb_add_str(&u->out, tmpl_str_part(&u->vm->arena, s, at, at + len));
            start = at + len;
        }
    }
}

/* ---- arguments ---- */

/* The words of @rel with noopener, and nofollow when asked for, in order and each once. */
static const Str *rel_words(Vm *vm, Value rel, bool nofollow)
{
    Dict *words = tmpl_dict_new(vm);
    Sb out = {.arena = &vm->arena};
    const List *list = tmpl_list_new(&vm->arena, 0);

    if (tmpl_truth(vm, rel)) {
        Str *text = tmpl_need_str(vm, rel, "rel");

        list = tmpl_str_method(vm, text, tmpl_str(&vm->arena, "split", 5), &(Args){0}).list;
    }
    for (size_t i = 0; i < list->n; i++)
        tmpl_dict_set(vm, words, list->items[i], tmpl_none());
    tmpl_dict_set_text(vm, words, "noopener", tmpl_none());
    if (nofollow)
        tmpl_dict_set_text(vm, words, "nofollow", tmpl_none());
    Sorted *sorted = tmpl_new_n(&vm->arena, Sorted, words->n);
    for (size_t i = 0; i < words->n; i++)
        sorted[i] = (Sorted){words->entries[i].key, tmpl_none()};
    tmpl_sort(vm, sorted, words->n, false);
    for (size_t i = 0; i < words->n; i++) {
        if (i)
            tmpl_sb_add_c(&out, ' ');
        tmpl_sb_add_str(&out, sorted[i].key.s);
    }
    return tmpl_sb_take(&out);
}

static const Str *escaped(Vm *vm, const Str *s)
{
    return s->markup ? s : tmpl_escape(vm, s);
}

static const Str *link_attributes(Vm *vm, Value rel, bool nofollow, Value target)
{
    Sb out = {.arena = &vm->arena};

    tmpl_sb_add_text(&out, " rel=\"");
    tmpl_sb_add_str(&out, tmpl_escape(vm, rel_words(vm, rel, nofollow)));
    tmpl_sb_add_c(&out, '"');
    if (tmpl_truth(vm, target)) {
        tmpl_sb_add_text(&out, " target=\"");
        tmpl_sb_add_str(&out, escaped(vm, tmpl_to_str(vm, target)));
        tmpl_sb_add_c(&out, '"');
    }
    return tmpl_sb_take(&out);
}

/* [\w.+-]{2,}:/{0,2} */
static bool is_scheme(const Str *s)
{
    size_t n = 0, at = 0;
    uint32_t len;

    for (; at < s->n; at += len, n++) {
        const uint32_t cp = tmpl_str_cp(s, at, &len);

        if (!is_word(cp) && !(cp && cp < 0x80 && strchr(".+-", (int)cp)))
            break;
    }
    if (n < 2 || at >= s->n || s->p[at++] != ':')
        return false;
    for (n = 0; at < s->n && s->p[at] == '/'; at++)
        n++;
    return at == s->n && n <= 2;
}

static const List *schemes_of(Vm *vm, Value value)
{
    const List *list;

    if (value.type == V_MISSING || value.type == V_NONE)
        return tmpl_list_new(&vm->arena, 0);
    list = tmpl_to_list(vm, value);
    for (size_t i = 0; i < list->n; i++)
        if (!is_scheme(tmpl_need_str(vm, list->items[i], "a scheme")))
            tmpl_raise(vm, "FilterArgumentError: '%.*s' is not a valid URI scheme prefix.",
                       TMPL_SHOW(list->items[i].s));
    /* an iterator has nothing left when it is asked again */
    return value.type == V_ITER ? tmpl_list_new(&vm->arena, 0) : list;
}

static Value urlize(Vm *vm, Value value, const Args *args)
{
    Urlize u = {.vm = vm, .out = {.arena = &vm->arena}};
    Value bound[5];

    tmpl_bind(vm, args, "urlize", "trim_url_limit? nofollow? target? rel? extra_schemes?", bound);
    u.attributes = link_attributes(vm, bound[3], tmpl_truth(vm, bound[1]), bound[2]);
    u.schemes = schemes_of(vm, bound[4]);
    u.limit = bound[0];
    add_words(&u, escaped(vm, tmpl_to_str(vm, value)));
    return tmpl_string(tmpl_sb_take(&u.out));
}

const FilterRow tmpl_filters_urlize[] = {
    {"urlize", urlize},
    {NULL, NULL},
};
