/* SPDX-License-Identifier: Apache-2.0
 * The lexer. Three states: text, {{ }} and {% %}; comments and raw blocks are dealt with
 * where they start. */
#include "template/lexer.h"

#include <string.h>

#include "template/bigint.h"
#include "template/text.h"

static bool starts(const Parser *p, uint32_t at, const char *text)
{
    const size_t n = strlen(text);

    return at <= p->n && n <= p->n - at && memcmp(p->src + at, text, n) == 0;
}

/* First byte at or after @at that is no white space of Python's \s. */
static uint32_t skip_space(const Parser *p, uint32_t at)
{
    const Str all = {.p = p->src, .n = p->n};
    uint32_t len;

    while (at < p->n && tmpl_is_space(tmpl_str_cp(&all, at, &len)))
        at += len;
    return at;
}

/* [start, end) without white space at its end. */
static uint32_t strip_end(const Parser *p, uint32_t start, uint32_t end)
{
    const Str all = {.p = p->src, .n = p->n};

    while (end > start) {
        uint32_t before = end - 1, len;

        while (before > start && (p->src[before] & 0xc0) == 0x80)
            before--;
        if (!tmpl_is_space(tmpl_str_cp(&all, before, &len)))
            break;
        end = before;
    }
    return end;
}

static bool is_blank(const Parser *p, uint32_t start, uint32_t end)
{
    return start < end && strip_end(p, start, end) == start;
}

static bool ends_line(const Parser *p, uint32_t end)
{
    return end > 0 && p->src[end - 1] == '\n';
}

/* End of a tag at @at: "+%}", "-%}" and blanks, "%}" and a newline when @trim. Returns the
 * offset behind it, or 0. */
static uint32_t tag_end(const Parser *p, uint32_t at, const char *mark, bool trim)
{
    if (trim && at < p->n && p->src[at] == '+' && starts(p, at + 1, mark))
        return at + 3;
    if (at < p->n && p->src[at] == '-' && starts(p, at + 1, mark))
        return skip_space(p, at + 3);
    if (!starts(p, at, mark))
        return 0;
    return at + 2 + (trim && starts(p, at + 2, "\n"));
}

/* "{%" raw "%}" at @at: the offset behind it, or 0. */
static uint32_t raw_begin(const Parser *p, uint32_t at)
{
    at += 2;
    if (at < p->n && (p->src[at] == '-' || p->src[at] == '+'))
        at++;
    at = skip_space(p, at);
    if (!starts(p, at, "raw"))
        return 0;
    at = skip_space(p, at + 3);
    return tag_end(p, at, "%}", false);
}

/* Where the text [start, end) before a tag ends, given the tag's sign. */
static uint32_t strip_text(const Parser *p, uint32_t start, uint32_t end, char sign,
                           bool variable)
{
    uint32_t line = end;

    if (sign == '-')
        return strip_end(p, start, end);
    if (sign == '+' || variable)
        return end;
    while (line > start && p->src[line - 1] != '\n')
        line--;
    if ((line > start || p->line_start) && is_blank(p, line, end))
        return line;
    return end;
}

static Token data_token(Parser *p, uint32_t start, uint32_t end)
{
    return (Token){.type = T_DATA,
                   .at = start,
                   .end = end,
                   .str = tmpl_str_borrow(p->arena, p->src + start, NULL, end - start)};
}

/* Text up to the next tag; false at the end of the source. */
static bool find_tag(const Parser *p, uint32_t from, uint32_t *out_at)
{
    for (uint32_t at = from; at + 1 < p->n; at++)
        if (p->src[at] == '{' &&
            (p->src[at + 1] == '{' || p->src[at + 1] == '%' || p->src[at + 1] == '#')) {
            *out_at = at;
            return true;
        }
    return false;
}

static void skip_comment(Parser *p, uint32_t open, uint32_t at)
{
    const uint32_t start = at;

    for (; at < p->n; at++) {
        const uint32_t end = tag_end(p, at, "#}", true);

        if (end) {
            p->pos = end;
            p->line_start = ends_line(p, end);
            return;
        }
    }
    if (p->n > start) /* jinja takes one that is opened by the last bytes */
        tmpl_syntax(p, open, open + 2, "the comment has no end");
    p->pos = p->n;
}

/* The text of a raw block whose text starts at @at. */
static Token lex_raw(Parser *p, uint32_t open, uint32_t at)
{
    p->line_start = ends_line(p, at);
    for (uint32_t tag = at; tag + 1 < p->n; tag++) {
        uint32_t word = tag + 2, end;
        char sign = 0;

        if (!starts(p, tag, "{%"))
            continue;
        if (word < p->n && (p->src[word] == '-' || p->src[word] == '+'))
            sign = p->src[word++];
        word = skip_space(p, word);
        if (!starts(p, word, "endraw"))
            continue;
        end = tag_end(p, skip_space(p, word + 6), "%}", true);
        if (!end)
            continue;
        const uint32_t text_end = strip_text(p, at, tag, sign, false);
        p->pos = end;
        p->line_start = ends_line(p, end);
        return data_token(p, at, text_end);
    }
    if (at < p->n) /* jinja takes one that is opened by the last bytes */
        tmpl_syntax(p, open, open + 2, "the raw block has no end");
    p->pos = p->n;
    return data_token(p, at, at);
}

/* Text, or the begin of a tag. */
static Token lex_data(Parser *p)
{
    for (;;) {
        const uint32_t start = p->pos;
        uint32_t tag, text_end, after, raw;
        char sign = 0;

        if (!find_tag(p, start, &tag)) {
            p->pos = p->n;
            if (start == p->n)
                return (Token){.type = T_EOF, .at = p->n, .end = p->n};
            return data_token(p, start, p->n);
        }
        after = tag + 2;
        if (after < p->n && (p->src[after] == '-' || p->src[after] == '+'))
            sign = p->src[after++];
        text_end = strip_text(p, start, tag, sign, p->src[tag + 1] == '{');
        if (text_end > start) { /* the tag comes next time, with nothing before it */
            p->pos = tag;
            return data_token(p, start, text_end);
        }
        raw = p->src[tag + 1] == '%' ? raw_begin(p, tag) : 0;
        if (raw) {
            const Token token = lex_raw(p, tag, raw);

            if (token.end > token.at)
                return token;
            continue;
        }
        if (p->src[tag + 1] == '#') {
            skip_comment(p, tag, after);
            continue;
        }
        p->pos = after;
        p->state = p->src[tag + 1] == '{' ? LEX_VARIABLE : LEX_BLOCK;
        return (Token){.type = p->state == LEX_BLOCK ? T_BLOCK_BEGIN : T_VARIABLE_BEGIN,
                       .at = tag,
                       .end = after};
    }
}

/* ---- inside tags ---- */

static bool is_digit(const Parser *p, uint32_t at)
{
    return at < p->n && g_ascii_isdigit(p->src[at]);
}

static bool is_word(const Parser *p, uint32_t at)
{
    return at < p->n && (g_ascii_isalnum(p->src[at]) || p->src[at] == '_');
}

/* (\d+_)*\d+ at @at; returns its end, or @at. */
static uint32_t digits(const Parser *p, uint32_t at)
{
    while (is_digit(p, at) || (at < p->n && p->src[at] == '_' && is_digit(p, at + 1) &&
                               is_digit(p, at - 1)))
        at++;
    return at;
}

/* End of a float that starts at @at, or 0. */
static uint32_t float_end(const Parser *p, uint32_t at)
{
    uint32_t end, exponent;

    if (at > 0 && p->src[at - 1] == '.')
        return 0;
    end = digits(p, at);
    const uint32_t whole = end;
    if (end < p->n && p->src[end] == '.' && is_digit(p, end + 1))
        end = digits(p, end + 1);
    exponent = end;
    if (exponent < p->n && (p->src[exponent] == 'e' || p->src[exponent] == 'E')) {
        exponent++;
        if (exponent < p->n && (p->src[exponent] == '+' || p->src[exponent] == '-'))
            exponent++;
        if (is_digit(p, exponent))
            return digits(p, exponent);
    }
    return end > whole ? end : 0;
}

static uint32_t radix_end(const Parser *p, uint32_t at, int base)
{
    for (;;) {
        const uint32_t next = at + (at < p->n && p->src[at] == '_');
        const int digit = next < p->n ? g_ascii_xdigit_value(p->src[next]) : -1;

        if (digit < 0 || digit >= base)
            return at;
        at = next + 1;
    }
}

static uint32_t integer_end(const Parser *p, uint32_t at, int *out_base)
{
    const char kind = at + 1 < p->n ? g_ascii_tolower(p->src[at + 1]) : 0;
    uint32_t end;

    *out_base = 10;
    if (p->src[at] == '0') {
        const int base = kind == 'b' ? 2 : kind == 'o' ? 8 : kind == 'x' ? 16 : 0;

        end = base ? radix_end(p, at + 2, base) : 0;
        if (base && end > at + 2) {
            *out_base = base;
            return end;
        }
        for (end = at + 1; end < p->n; end++) /* 0(_?0)* */
            if (p->src[end] != '0' && !(starts(p, end, "_0")))
                break;
        return end;
    }
    return radix_end(p, at, 10);
}

static Token number(Parser *p)
{
    const uint32_t at = p->pos;
    uint32_t end = float_end(p, at);
    char *text;
    size_t n = 0;
    int base = 10;
    Token token = {.type = T_FLOAT, .at = at};

    if (!end) {
        end = integer_end(p, at, &base);
        token.type = T_INTEGER;
    }
    text = tmpl_alloc(p->arena, end - at + 1);
    for (uint32_t i = at + (base == 10 ? 0 : 2); i < end; i++)
        if (p->src[i] != '_')
            text[n++] = p->src[i];
    token.end = p->pos = end;
    if (token.type == T_FLOAT) {
        token.value = tmpl_float(g_ascii_strtod(text, NULL));
        return token;
    }
    token.value = tmpl_big_parse(p->arena, text, n, (uint32_t)base, false);
    if (token.value.type == V_MISSING)
        tmpl_syntax_unsupported(p, at, end, "the integer is too large");
    return token;
}

/* An escape of a string literal at @at, behind the backslash; returns the offset behind. */
static uint32_t escape(Parser *p, Sb *out, uint32_t at, uint32_t end)
{
    static const char plain[] = "n\nt\tr\rb\bf\fa\av\v\\\\'\'\"\"";
    const char c = p->src[at];
    const int n_hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t cp = 0, i = at + 1;

    for (size_t k = 0; k < sizeof plain - 1; k += 2)
        if (plain[k] == c) {
            tmpl_sb_add_c(out, plain[k + 1]);
            return at + 1;
        }
    if (c == '\n')
        return at + 1;
    if (c >= '0' && c <= '7') {
        for (i = at; i < at + 3 && i < end && p->src[i] >= '0' && p->src[i] <= '7'; i++)
            cp = cp * 8 + (uint32_t)(p->src[i] - '0');
        tmpl_sb_add_cp(out, cp, 0);
        return i;
    }
    if (n_hex) {
        for (; i < end && (int)(i - at) <= n_hex && g_ascii_isxdigit(p->src[i]); i++)
            cp = cp * 16 + (uint32_t)g_ascii_xdigit_value(p->src[i]);
        if ((int)(i - at) != n_hex + 1 || cp > 0x10ffff)
            tmpl_syntax(p, at - 1, i, "the escape in the string is cut or too large");
        if (cp >= 0xd800 && cp < 0xe000)
            tmpl_syntax_unsupported(p, at - 1, i, "a lone surrogate in a string");
        tmpl_sb_add_cp(out, cp, 0);
        return i;
    }
    if (c == 'N')
        tmpl_syntax_unsupported(p, at - 1, at + 1, "\\N{name} in a string");
    tmpl_sb_add_c(out, '\\');
    if (!(c & 0x80)) {
        tmpl_sb_add_c(out, c);
        return at + 1;
    }
    /* jinja spells what is not ASCII as an escape first, so its backslash is eaten */
    const Str all = {.p = p->src, .n = p->n};
    uint32_t len;
    char hex[12];
    cp = tmpl_str_cp(&all, at, &len);
    g_snprintf(hex, sizeof hex, cp < 256 ? "x%02x" : cp < 0x10000 ? "u%04x" : "U%08x", cp);
    tmpl_sb_add_text(out, hex);
    return at + len;
}

static Token string(Parser *p)
{
    const uint32_t at = p->pos;
    const char quote = p->src[at];
    uint32_t end = at + 1, i;
    Sb text = {.arena = p->arena};

    while (end < p->n && p->src[end] != quote)
        end += p->src[end] == '\\' ? 2 : 1;
    if (end >= p->n)
        tmpl_syntax(p, at, at + 1, "the string has no end");
    for (i = at + 1; i < end;) {
        if (p->src[i] == '\\') {
            i = escape(p, &text, i + 1, end);
            continue;
        }
        const char *slash = memchr(p->src + i, '\\', end - i);
        const uint32_t stop = slash ? (uint32_t)(slash - p->src) : end;
        tmpl_sb_add(&text, p->src + i, NULL, stop - i);
        i = stop;
    }
    p->pos = end + 1;
    return (Token){.type = T_STRING, .at = at, .end = end + 1, .str = tmpl_sb_take(&text)};
}

static void balance(Parser *p, uint32_t at, char c)
{
    const char *open = strchr("({[", c), *close = strchr(")}]", c);

    if (open) {
        if (p->n_brackets == LEX_MAX_BRACKETS)
            tmpl_syntax_unsupported(p, at, at + 1, "more than %d open brackets",
                                    LEX_MAX_BRACKETS);
        p->brackets[p->n_brackets++] = ")}]"[open - "({["];
        return;
    }
    if (!close)
        return;
    if (p->n_brackets == 0)
        tmpl_syntax(p, at, at + 1, "unexpected '%c'", c);
    if (p->brackets[--p->n_brackets] != c)
        tmpl_syntax(p, at, at + 1, "unexpected '%c', expected '%c'", c,
                    p->brackets[p->n_brackets]);
}

static Token operator(Parser *p)
{
    static const char pairs[][3] = {"//", "**", "==", "!=", ">=", "<="};
    const uint32_t at = p->pos;
    const char c = p->src[at];
    Token token = {.type = T_OPERATOR, .at = at, .end = at + 1, .op = (uint8_t)c};

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++)
        if (starts(p, at, pairs[i])) {
            token.op = TOK2(pairs[i][0], pairs[i][1]);
            token.end = p->pos = at + 2;
            return token;
        }
    if (c == '\0' || !strchr("+-/*%~[](){}><=.:|,;", c))
        tmpl_syntax(p, at, at + 1, "unexpected character in a tag");
    balance(p, at, c);
    p->pos = at + 1;
    return token;
}

static Token lex_tag(Parser *p)
{
    const bool variable = p->state == LEX_VARIABLE;
    const uint32_t at = skip_space(p, p->pos);
    uint32_t end;

    p->pos = at;
    if (p->n_brackets == 0 && (end = tag_end(p, at, variable ? "}}" : "%}", !variable))) {
        p->pos = end;
        p->state = LEX_DATA;
        p->line_start = ends_line(p, end);
        return (Token){.type = variable ? T_VARIABLE_END : T_BLOCK_END, .at = at, .end = end};
    }
    if (at >= p->n)
        return (Token){.type = T_EOF, .at = p->n, .end = p->n};
    if (is_digit(p, at))
        return number(p);
    if (is_word(p, at)) {
        for (end = at; is_word(p, end); end++)
            ;
        if (end < p->n && (p->src[end] & 0x80))
            tmpl_syntax_unsupported(p, at, end + 1, "a name with characters beyond ASCII");
        p->pos = end;
        return (Token){.type = T_NAME,
                       .at = at,
                       .end = end,
                       .str = tmpl_str_borrow(p->arena, p->src + at, NULL, end - at)};
    }
    if (p->src[at] & 0x80)
        tmpl_syntax_unsupported(p, at, at + 1, "a character beyond ASCII in a tag");
    return p->src[at] == '\'' || p->src[at] == '"' ? string(p) : operator(p);
}

Token tmpl_lex(Parser *p)
{
    return p->state == LEX_DATA ? lex_data(p) : lex_tag(p);
}
