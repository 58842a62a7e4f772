/* SPDX-License-Identifier: Apache-2.0
 * Decoding of JSON strings (RFC 8259 section 7, UTF-8 by RFC 3629) and numbers (section
 * 6). */
#include "base/json_text.h"

#include <math.h>
#include <string.h>

/* ---- strings ---- */

#define ONES  0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* Bytes of @w that are below 0x20, '"' or '\\' have their high bit set; bits of bytes
 * after the first hit may be wrong, so only "none" and "the first" are used. */
static uint64_t stop_bytes(uint64_t w)
{
    const uint64_t quote = w ^ (ONES * '"');
    const uint64_t slash = w ^ (ONES * '\\');

    return ((w - ONES * 0x20) & ~w) | ((quote - ONES) & ~quote) |
           ((slash - ONES) & ~slash);
}

/* The same, and bytes above 0x7f. */
static uint64_t special_bytes(uint64_t w)
{
    return (stop_bytes(w) | w) & HIGHS;
}

const char *davit_json_plain_end(const char *p, const char *end)
{
    const bool long_enough = end - p >= 8;
    uint64_t w;

    for (; end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        w = special_bytes(GUINT64_FROM_LE(w));
        if (w)
            return p + __builtin_ctzll(w) / 8;
    }
    if (long_enough) { /* the last eight bytes at once, some of them again */
        memcpy(&w, end - 8, 8);
        if (!special_bytes(w))
            return end;
    }
    while (p < end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\' &&
           (unsigned char)*p < 0x80)
        p++;
    return p;
}

static bool is_tail(const char *p)
{
    return ((unsigned char)*p & 0xc0) == 0x80;
}

/* Bytes of the well-formed UTF-8 sequence at @p (two to four), or 0. */
static size_t utf8_len(const char *p, const char *end)
{
    const unsigned char a = (unsigned char)p[0];
    const ptrdiff_t left = end - p;

    if (a >= 0xc2 && a <= 0xdf)
        return left >= 2 && is_tail(p + 1) ? 2 : 0;
    if (a >= 0xe0 && a <= 0xef) {
        if (left < 3 || !is_tail(p + 1) || !is_tail(p + 2))
            return 0;
        const unsigned char b = (unsigned char)p[1];
        return (a == 0xe0 && b < 0xa0) || (a == 0xed && b > 0x9f) ? 0 : 3;
    }
    if (a >= 0xf0 && a <= 0xf4) {
        if (left < 4 || !is_tail(p + 1) || !is_tail(p + 2) || !is_tail(p + 3))
            return 0;
        const unsigned char b = (unsigned char)p[1];
        return (a == 0xf0 && b < 0x90) || (a == 0xf4 && b > 0x8f) ? 0 : 4;
    }
    return 0;
}

const char *davit_json_find_special(const char *p, const char *end)
{
    uint64_t w;

    while (end - p >= 8) {
        memcpy(&w, p, 8);
        w = stop_bytes(GUINT64_FROM_LE(w)) & HIGHS;
        if (w)
            return p + __builtin_ctzll(w) / 8;
        p += 8;
    }
    while (p < end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

const char *davit_json_scan_string(const char *p, const char *end, const char **out_end,
                                   bool *out_escapes)
{
    const char *why = NULL;

    *out_escapes = false;
    for (;;) {
        p = davit_json_plain_end(p, end);
        if (p == end) {
            why = "the string does not end";
            break;
        }
        if (*p == '"')
            break;
        if (*p == '\\') {
            *out_escapes = true;
            if (end - p < 2) {
                why = "the string does not end";
                break;
            }
            p += 2;
        } else if ((unsigned char)*p < 0x20) {
            why = "a control character stands unescaped in a string";
            break;
        } else {
            const size_t n = utf8_len(p, end);

            if (n == 0) {
                why = "the text is not valid UTF-8";
                break;
            }
            p += n;
        }
    }
    *out_end = p;
    return why;
}

/* Four hex digits at @p, or -1. */
static int32_t read_hex4(const char *p, const char *end)
{
    int32_t n = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = g_ascii_xdigit_value(p[i]);

        if (digit < 0)
            return -1;
        n = n * 16 + digit;
    }
    return n;
}

/* Code point of the \u escape at @p (on the backslash); *out_next after it, or after the
 * pair. -1 = bad digits. A lone surrogate is returned as it is. */
static int32_t read_unicode(const char *p, const char *end, const char **out_next)
{
    const int32_t first = read_hex4(p + 2, end);
    int32_t second;

    if (first < 0)
        return -1;
    *out_next = p + 6;
    if (first < 0xd800 || first > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return first;
    second = read_hex4(p + 8, end);
    if (second < 0xdc00 || second > 0xdfff)
        return first;
    *out_next = p + 12;
    return 0x10000 + (first - 0xd800) * 0x400 + (second - 0xdc00);
}

/* The character that "\@c" stands for, or 0. */
static char short_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

const char *davit_json_unescape(const char *p, const char *end, bool python, GString *to,
                                const char **out_at)
{
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        const char *stop = slash ? slash : end;

        g_string_append_len(to, p, stop - p);
        if (!slash)
            break;
        *out_at = slash;
        if (slash[1] != 'u') {
            const char c = short_escape(slash[1]);

            if (!c)
                return "an escape is not known";
            g_string_append_c(to, c);
            p = slash + 2;
            continue;
        }
        int32_t code = read_unicode(slash, end, &p);

        if (code < 0)
            return "a \\u escape needs four hex digits";
        if (code >= 0xd800 && code <= 0xdfff) {
            if (!python)
                return "a surrogate stands alone";
            code = 0xfffd;
        }
        g_string_append_unichar(to, (gunichar)code);
    }
    return NULL;
}

/* ---- numbers ---- */

/* What the characters of a number say, before they become a value. */
typedef struct Digits {
    uint64_t mantissa; /* the first 19 significant digits */
    int n_digits;      /* significant digits, up to 20 counted */
    int32_t exponent;  /* of the mantissa, power of ten */
    bool negative;
    bool whole;
} Digits;

static const char *scan_digits(const char *p, const char *end, bool fraction, Digits *d)
{
    for (; p < end && g_ascii_isdigit(*p); p++) {
        if (d->n_digits < 19) {
            d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
            d->n_digits += d->mantissa != 0;
            d->exponent -= fraction;
        } else {
            d->n_digits = 20;
            d->exponent += !fraction;
        }
    }
    return p;
}

/* "e+12" at @p; the value saturates. NULL if there is no digit. */
static const char *scan_exponent(const char *p, const char *end, Digits *d)
{
    bool negative = false;
    int32_t n = 0;

    p++;
    if (p < end && (*p == '+' || *p == '-'))
        negative = *p++ == '-';
    if (p == end || !g_ascii_isdigit(*p))
        return NULL;
    for (; p < end && g_ascii_isdigit(*p); p++)
        if (n < 100000)
            n = n * 10 + (*p - '0');
    d->exponent += negative ? -n : n;
    return p;
}

static double round_number(const char *p, const char *end)
{
    char buf[640]; /* above the reader's limit of 512 characters */
    const size_t n = MIN((size_t)(end - p), sizeof buf - 1);

    memcpy(buf, p, n);
    buf[n] = '\0';
    return g_ascii_strtod(buf, NULL);
}

/* Exact when the mantissa is below 2^53 and the power of ten is a double (up to 22): one
 * correctly rounded operation on two exact numbers. */
static double number_value(const Digits *d, const char *p, const char *end)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double v;

    if (d->n_digits > 19 || d->mantissa > (1ull << 53) || d->exponent < -22 ||
        d->exponent > 22)
        return round_number(p, end);
    v = (double)d->mantissa;
    v = d->exponent < 0 ? v / tens[-d->exponent] : v * tens[d->exponent];
    return d->negative ? -v : v;
}

static bool fits_int64(const Digits *d)
{
    return d->whole && d->n_digits <= 19 &&
           d->mantissa <= (uint64_t)INT64_MAX + d->negative;
}

/* Most numbers of a header are sizes: up to 15 digits, so a double holds them, and nothing
 * else. Returns: false for whatever is not, *out untouched. */
static bool scan_size(const char *p, const char *end, size_t max_chars, DavitJsonNumber *out)
{
    const char *const start = p;
    int64_t n = 0;

    while (p < end && p - start < 15 && g_ascii_isdigit(*p))
        n = n * 10 + (*p++ - '0');
    if (p == start || p == end || g_ascii_isdigit(*p) || *p == '.' || *p == 'e' || *p == 'E' ||
        (*start == '0' && p - start > 1) || (size_t)(p - start) > max_chars)
        return false;
    *out = (DavitJsonNumber){.end = p, .whole = true, .i64 = n, .f64 = (double)n};
    return true;
}

const char *davit_json_scan_number(const char *p, const char *end, size_t max_chars,
                                   bool python, DavitJsonNumber *out)
{
    const char *const start = p;
    const char *digits;
    Digits d = {.whole = true};

    if (scan_size(p, end, max_chars, out))
        return NULL;
    d.negative = *p == '-';
    p += d.negative;
    digits = p;
    p = scan_digits(p, end, false, &d);
    if (p == digits)
        return "a number needs a digit after its sign";
    if (*digits == '0' && p - digits > 1)
        return "a number starts with a zero";
    if (p < end && *p == '.') {
        digits = p + 1;
        p = scan_digits(digits, end, true, &d);
        d.whole = false;
        if (p == digits)
            return "a number needs a digit after its point";
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p = scan_exponent(p, end, &d);
        d.whole = false;
        if (!p)
            return "a number needs a digit in its exponent";
    }
    out->too_long = (size_t)(p - start) > max_chars;
    if (out->too_long)
        return "a number has too many characters";
    out->end = p;
    out->whole = fits_int64(&d);
    out->f64 = number_value(&d, start, p);
    if (out->whole)
        out->i64 = d.negative ? (int64_t)(0 - d.mantissa) : (int64_t)d.mantissa;
    if (!python && isinf(out->f64))
        return "a number is too large for a double";
    return NULL;
}
