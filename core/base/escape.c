/* SPDX-License-Identifier: Apache-2.0
 * davit_escape: untrusted text made safe for a terminal and for UTF-8 readers.
 *
 * Escaped: C0 and C1 controls, DEL, invalid UTF-8 (byte by byte as \xNN), and the code
 * points that reorder or break lines. Quotes and backslashes stay as they are: a record
 * keeps its fields apart, and a regex must stay readable. */
#include "base/report.h"

#include <string.h>

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

char *davit_escape(const char *text, size_t len, size_t max)
{
    GString *out = g_string_sized_new(MIN(len, max) + 4);
    size_t at = 0;

    while (at < len) {
        char unit[16];
        size_t n_unit = 0;
        const size_t n_in = next_unit(text + at, len - at, unit, &n_unit);

        if (n_unit > max - out->len) {
            g_string_append(out, "...");
            break;
        }
        g_string_append_len(out, unit, (gssize)n_unit);
        at += n_in;
    }
    return g_string_free(out, FALSE);
}
