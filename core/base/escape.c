/* SPDX-License-Identifier: Apache-2.0
 * davit_escape: untrusted text made safe for a terminal and for UTF-8 readers.
 *
 * Escaped: C0 and C1 controls, DEL, invalid UTF-8 (byte by byte as \xNN), and the code
 * points that reorder or break lines. Quotes and backslashes stay as they are: a record
 * keeps its fields apart, and a regex must stay readable. */
#include "base/escape.h"

#include <string.h>

#include "base/report.h"

/* Code points that are valid UTF-8 and still change how a line is shown. */
static bool is_unsafe(gunichar c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || c == 0x200e ||
           c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
           c == 0xfeff;
}

/* Write one unit of the output for the @n bytes at @p into @unit; returns bytes of input
 * taken. @unit holds at least 16 bytes. */
static size_t next_unit(const char *p, size_t n, char *unit, size_t *out_len)
{
    const gunichar c = g_utf8_get_char_validated(p, (gssize)MIN(n, 6));
    size_t n_in = 1;

    /* -1 and -2 are "invalid" and "incomplete"; a NUL byte reads as incomplete too. */
    if (c == (gunichar)-1 || c == (gunichar)-2) {
        *out_len = (size_t)g_snprintf(unit, 16, "\\x%02x", (unsigned char)*p);
        return n_in;
    }
    n_in = (size_t)g_unichar_to_utf8(c, NULL);
    if (c == '\n')
        *out_len = (size_t)g_snprintf(unit, 16, "\\n");
    else if (c == '\t')
        *out_len = (size_t)g_snprintf(unit, 16, "\\t");
    else if (c == '\r')
        *out_len = (size_t)g_snprintf(unit, 16, "\\r");
    else if (c < 0x80 && is_unsafe(c))
        *out_len = (size_t)g_snprintf(unit, 16, "\\x%02x", (unsigned)c);
    else if (is_unsafe(c))
        *out_len = (size_t)g_snprintf(unit, 16, "\\u%04x", (unsigned)c);
    else {
        memcpy(unit, p, n_in);
        *out_len = n_in;
    }
    return n_in;
}

/* Bytes at the start that are shown as they are: printable ASCII. */
static size_t plain_len(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    return n;
}

size_t davit_escape_into(char *out, const char *text, size_t len, size_t max)
{
    size_t n = 0, at = 0;

    while (at < len) {
        char unit[16];
        size_t n_unit = 0;
        const size_t n_plain = plain_len(text + at, MIN(len - at, max - n));
        size_t n_in;

        memcpy(out + n, text + at, n_plain);
        n += n_plain;
        at += n_plain;
        if (at == len)
            break;
        n_in = next_unit(text + at, len - at, unit, &n_unit);
        if (n_unit > max - n) {
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        memcpy(out + n, unit, n_unit);
        n += n_unit;
        at += n_in;
    }
    out[n] = '\0';
    return n;
}

char *davit_escape(const char *text, size_t len, size_t max)
{
    /* a unit is at most four times as long as what it stands for */
    char *out = g_malloc((len > max / 4 ? max : 4 * len) + DAVIT_ESCAPE_REST);

    davit_escape_into(out, text, len, max);
    return out;
}
