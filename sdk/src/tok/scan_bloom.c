/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of BLOOM: words with one space in front, and the gaps between them.
 *
 * The regex is ` ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+`. In the
 * reference's engine the inner class is part of the outer one, so the word is anything but
 * white space, `(`, `)`, `|` and the eleven signs.
 */
#include "scan_private.h"

static int is_word(const char *text, uint64_t n, uint64_t off, uint32_t *out_len)
{
    uint32_t cp;

    *out_len = 0;
    if (off >= n)
        return 0;
    cp = davit_ucd_decode(text, n, off, out_len);
    switch (cp) {
    case '(':
    case ')':
    case '|':
    case '.':
    case ',':
    case '!':
    case '?':
    case 0x2026:
    case 0x3002:
    case 0xff0c:
    case 0x3001:
    case 0x964:
    case 0x6d4:
    case 0x60c:
        return 0;
    default:
        return !(davit_ucd_bits(cp) & DAVIT_UCD_SPACE);
    }
}

/* Length of the space and first character of a word at @at, 0 if none starts there. */
static uint32_t word_starts(const char *text, uint64_t n, uint64_t at)
{
    uint32_t len;

    if (is_word(text, n, at, &len))
        return len;
    if (len == 1 && text[at] == ' ' && is_word(text, n, at + 1, &len))
        return 1 + len;
    return 0;
}

static int is_digit(const char *text, uint64_t n, uint64_t at)
{
    uint32_t len;

    return (davit_ucd_at(text, n, at, &len) & DAVIT_UCD_NUMERIC) != 0;
}

/* @digits: a numeric character is a piece, and ends the piece before it. */
static uint64_t next_piece(uint32_t digits, const char *text, uint64_t n, uint64_t at)
{
    uint32_t len = word_starts(text, n, at);
    const int word = len > 0;

    if (digits && is_digit(text, n, at)) {
        davit_ucd_at(text, n, at, &len);
        return at + len;
    }
    if (word && text[at] == ' ') {
        if (digits && is_digit(text, n, at + 1))
            return at + 1;
        at += len;
    } else {
        davit_ucd_at(text, n, at, &len);
        at += len;
    }
    while (at < n && !(digits && is_digit(text, n, at))) {
        if (word ? !is_word(text, n, at, &len) : word_starts(text, n, at) > 0)
            break;
        if (!word)
            davit_ucd_at(text, n, at, &len);
        at += len;
    }
    return at;
}

uint64_t davit_scan_bloom(uint32_t digits, const char *text, uint64_t n, uint64_t from,
                          uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        from = next_piece(digits, text, n, from);
        out_ends[count++] = from;
    }
    return count;
}
