/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of DeepSeek-V3: three Split stages, each on the pieces of the one before.
 *
 * Stages 1 and 2 cut the text into parts of three kinds: numbers, CJK, the rest. The
 * third regex sees one part at a time, so a character of another kind is the end of the
 * text for it. Characters that it does not match stay as pieces of their own (gaps).
 */
#include "scan_private.h"

/* Bits of this file, above those of ucd.h. */
#define CJK     (1u << 24) /* 4E00-9FA5, 3040-309F, 30A0-30FF: the class of stage 2 */
#define NEWLINE (1u << 25)
#define KINDS   (CJK | DAVIT_UCD_N)

/* Class bits at @off; 0 and length 0 at the end of the part of kind @kind. */
static uint32_t bits_at(const char *text, uint64_t n, uint64_t off, uint32_t kind,
                        uint32_t *out_len)
{
    uint32_t bits, cp;

    *out_len = 0;
    if (off >= n)
        return 0;
    if ((unsigned char)text[off] < 128) {
        cp = (unsigned char)text[off];
        bits = davit_ucd_ascii[cp];
        if (cp == '\r' || cp == '\n')
            bits |= NEWLINE;
        *out_len = 1;
    } else {
        cp = davit_ucd_decode(text, n, off, out_len);
        bits = davit_ucd_bits(cp);
        if ((cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff))
            bits |= CJK;
    }
    if ((kind == 0 && (bits & KINDS)) || (kind != 0 && !(bits & kind))) {
        *out_len = 0;
        return 0;
    }
    return bits;
}

static uint64_t run(const char *text, uint64_t n, uint64_t off, uint32_t kind,
                    uint32_t want)
{
    uint32_t len;

    while (bits_at(text, n, off, kind, &len) & want)
        off += len;
    return off;
}

static int is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static uint64_t match_white(const char *text, uint64_t n, uint64_t at, uint32_t kind)
{
    uint64_t start = at, last = at, newline = 0;
    uint32_t len, bits;

    while ((bits = bits_at(text, n, at, kind, &len)) & DAVIT_UCD_SPACE) {
        if (bits & NEWLINE)
            newline = at + 1;
        last = at;
        at += len;
    }
    if (newline)
        return newline;
    return len == 0 || last == start ? at : last;
}

/* End of a match of the third regex at @at, or @at. */
static uint64_t match_third(const char *text, uint64_t n, uint64_t at, uint32_t kind)
{
    const uint32_t word = DAVIT_UCD_L | DAVIT_UCD_M, sign = DAVIT_UCD_P | DAVIT_UCD_S;
    uint32_t len, len2, bits = bits_at(text, n, at, kind, &len), after;

    if (bits & word)
        return run(text, n, at + len, kind, word);
    after = bits_at(text, n, at + len, kind, &len2);
    if ((unsigned char)text[at] < 128 && (bits & sign) && len2 == 1 &&
        is_letter(text[at + 1])) {
        at += 2;
        while (at < n && is_letter(text[at]))
            at++;
        return at;
    }
    if (!(bits & (sign | NEWLINE)) && (after & word))
        return run(text, n, at + len + len2, kind, word);
    if ((bits & sign) || (text[at] == ' ' && (after & sign)))
        return run(text, n, run(text, n, at + len, kind, sign), kind, NEWLINE);
    if (bits & DAVIT_UCD_SPACE)
        return match_white(text, n, at, kind);
    return at;
}

/* Where the gap that starts at @at ends: the first place where the third regex matches.
 */
static uint64_t match_gap(const char *text, uint64_t n, uint64_t at, uint32_t kind)
{
    uint32_t len;

    do {
        bits_at(text, n, at, kind, &len);
        at += len;
        bits_at(text, n, at, kind, &len);
    } while (len > 0 && match_third(text, n, at, kind) == at);
    return at;
}

static uint64_t next_piece(const char *text, uint64_t n, uint64_t at)
{
    uint32_t len, kind;
    uint64_t end;

    if (bits_at(text, n, at, DAVIT_UCD_N, &len)) {
        for (int i = 0; i < 3 && bits_at(text, n, at, DAVIT_UCD_N, &len); i++)
            at += len;
        return at;
    }
    kind = bits_at(text, n, at, CJK, &len) ? CJK : 0;
    end = match_third(text, n, at, kind);
    return end > at ? end : match_gap(text, n, at, kind);
}

uint64_t davit_scan_deepseek3(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        from = next_piece(text, n, from);
        out_ends[count++] = from;
    }
    return count;
}
