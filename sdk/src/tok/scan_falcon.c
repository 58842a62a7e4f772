/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of Falcon. Stage 1 parts punctuation from the rest; stage 2 is the GPT-2
 * regex on each part, then bytes become letters; stages 3 and 4 see those letters: runs of
 * numeric letters, and three ASCII digits at a time.
 *
 * The letters of the bytes B2 B3 B9 BC BD BE are numeric characters, so a cut may lie
 * inside a character of the text.
 */
#include "scan_private.h"

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_numeric_byte(char c)
{
    const unsigned char b = (unsigned char)c;

    return is_digit(c) || b == 0xb2 || b == 0xb3 || b == 0xb9 || (b >= 0xbc && b <= 0xbe);
}

/* End of the run that the character at @at starts: letters, numbers, or symbols that are
 * punctuation of stage 1 (@bits has that bit) or not. */
static uint64_t match_run(const char *text, uint64_t n, uint64_t at, uint32_t bits)
{
    const uint32_t punct = bits & DAVIT_UCD_PUNCT;
    uint32_t len;

    for (;;) {
        uint32_t now = davit_ucd_at(text, n, at, &len);

        if (len == 0 || (now & DAVIT_UCD_PUNCT) != punct || (now & DAVIT_UCD_SPACE))
            return at;
        if ((bits ^ now) & (DAVIT_UCD_L | DAVIT_UCD_N) &&
            (!(bits & DAVIT_UCD_L) != !(now & DAVIT_UCD_L) ||
             !(bits & DAVIT_UCD_N) != !(now & DAVIT_UCD_N)))
            return at;
        at += len;
    }
}

/* End of the piece of stages 1 and 2 that @at is in; @at may lie inside a character. */
static uint64_t match_gpt2(const char *text, uint64_t n, uint64_t at)
{
    uint64_t start = at, last;
    uint32_t len, bits;

    if (((unsigned char)text[at] & 0xc0) == 0x80 && at > 0)
        at = davit_ucd_back(text, at + 1);
    bits = davit_ucd_at(text, n, at, &len);
    if (!(bits & DAVIT_UCD_SPACE))
        return match_run(text, n, at, bits);
    if (text[at] == ' ') {
        bits = davit_ucd_at(text, n, at + 1, &len);
        /* Punctuation is another part, so the space is the end of its own. */
        if (len > 0 && !(bits & (DAVIT_UCD_SPACE | DAVIT_UCD_PUNCT)))
            return match_run(text, n, at + 1, bits);
    }
    start = last = at;
    while ((bits = davit_ucd_at(text, n, at, &len)) & DAVIT_UCD_SPACE) {
        last = at;
        at += len;
    }
    if (at >= n || (bits & DAVIT_UCD_PUNCT) || last == start)
        return at;
    return last;
}

/* End of the first piece of [@at, @end) behind stages 3 and 4. */
static uint64_t match_letters(const char *text, uint64_t at, uint64_t end)
{
    const int numeric = is_numeric_byte(text[at]);

    if (end - at >= 3 && is_digit(text[at]) && is_digit(text[at + 1]) &&
        is_digit(text[at + 2]))
        return at + 3;
    do
        at++;
    while (at < end && is_numeric_byte(text[at]) == numeric &&
           !(end - at >= 3 && is_digit(text[at]) && is_digit(text[at + 1]) &&
             is_digit(text[at + 2])));
    return at;
}

uint64_t davit_scan_falcon(const char *text, uint64_t n, uint64_t from,
                           uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0, end = from;

    while (count < cap && from < n) {
        if (from >= end)
            end = match_gpt2(text, n, from);
        from = match_letters(text, from, end);
        out_ends[count++] = from;
    }
    return count;
}
