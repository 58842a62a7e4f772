/* SPDX-License-Identifier: Apache-2.0
 * Scanner bodies of DeepSeek-V3 and AFMoE: Split stages, each on the pieces of the one
 * before.
 *
 * The first stages cut the text into parts of three kinds: numbers, CJK, the rest. The
 * last regex sees one part at a time, so a character of another kind is the end of the
 * text for it. Characters that it does not match stay as pieces of their own (gaps).
 */
#include "scan_front.h"

/* Bits of this file, above those of ucd.h. */
#define CJK     (1u << 24) /* 4E00-9FA5, 3040-309F, 30A0-30FF: the class of stage 2 */
#define NEWLINE (1u << 25)
#define NUMBER  (1u << 26) /* the class of stage 1 */
#define AFMOE   (1u << 27) /* in a kind: the classes are those of AFMoE */
#define WIDE    (1u << 28) /* with AFMOE: F900-FAFF is spelled 8C48-FAFF */
#define KINDS   (CJK | NUMBER)

typedef struct Range {
    uint32_t first, last;
} Range;

/* The Asian scripts of AFMoE. */
static const Range asian[] = {
    {0xe40, 0xe7f},   {0xe80, 0xeff},   {0x1000, 0x109f}, {0x1100, 0x11ff},
    {0x1780, 0x17ff}, {0x2f00, 0x2fdf}, {0x3040, 0x309f}, {0x30a0, 0x30ff},
    {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa9e0, 0xa9ff}, {0xaa60, 0xaa7f},
    {0xac00, 0xd7af}, {0xf900, 0xfaff}, {0xff65, 0xff9f},
};

static uint32_t is_asian(uint32_t cp, uint32_t set)
{
    if ((set & WIDE) && cp >= 0x8c48 && cp <= 0xfaff)
        return CJK;
    for (uint32_t i = 0; i < sizeof asian / sizeof *asian && cp >= asian[i].first; i++) {
        if (cp <= asian[i].last)
            return CJK;
    }
    return 0;
}

/* The bits of stages 1 and 2. A digit is a digit first. */
static uint32_t kind_of(uint32_t cp, uint32_t bits, uint32_t kind)
{
    if (kind & AFMOE)
        return bits & DAVIT_UCD_ND ? NUMBER : is_asian(cp, kind);
    return (bits & DAVIT_UCD_N ? NUMBER : 0) |
           ((cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff) ? CJK : 0);
}

/* Class bits at @off; 0 and length 0 at the end of the part of kind @kind. */
static uint32_t part_bits(const char *text, uint64_t n, uint64_t off, uint32_t kind,
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
        if (bits & DAVIT_UCD_N)
            bits |= NUMBER;
        *out_len = 1;
    } else {
        cp = davit_ucd_next(text, n, off, out_len);
        bits = davit_ucd_bits(cp);
        bits |= kind_of(cp, bits, kind);
    }
    if ((bits & KINDS) != (kind & KINDS)) {
        *out_len = 0;
        return 0;
    }
    return bits;
}

static uint64_t run(const char *text, uint64_t n, uint64_t off, uint32_t kind,
                    uint32_t want)
{
    uint32_t len;

    while (part_bits(text, n, off, kind, &len) & want)
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

    while ((bits = part_bits(text, n, at, kind, &len)) & DAVIT_UCD_SPACE) {
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
    uint32_t len, len2, bits = part_bits(text, n, at, kind, &len), after;

    if (bits & word)
        return run(text, n, at + len, kind, word);
    after = part_bits(text, n, at + len, kind, &len2);
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
        part_bits(text, n, at, kind, &len);
        at += len;
        part_bits(text, n, at, kind, &len);
    } while (len > 0 && match_third(text, n, at, kind) == at);
    return at;
}

/* End of the piece that starts at @at. @set: 0, or AFMOE and maybe WIDE. */
static uint64_t next_piece(const char *text, uint64_t n, uint64_t at, uint32_t set)
{
    uint32_t len, kind;
    uint64_t end;

    kind = set | (part_bits(text, n, at, CJK | set, &len) ? CJK : 0);
    end = match_third(text, n, at, kind);
    return end > at ? end : match_gap(text, n, at, kind);
}

uint64_t davit_scan_deepseek3(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;
    uint32_t len;

    while (count < cap && from < n) {
        if (davit_ucd_at(text, n, from, &len) & DAVIT_UCD_N) {
            for (int i = 0; i < 3 && (davit_ucd_at(text, n, from, &len) & DAVIT_UCD_N);
                 i++)
                from += len;
        } else {
            from = next_piece(text, n, from, 0);
        }
        out_ends[count++] = from;
    }
    return count;
}

/* ---- AFMoE ---- */

/* Does the class of stage 2 divide the digits before and at @off? */
static int divides(const char *text, uint64_t n, uint64_t off, uint32_t set)
{
    uint32_t len;

    return is_asian(davit_ucd_decode(text, n, davit_ucd_back(text, off), &len), set) !=
           is_asian(davit_ucd_decode(text, n, off, &len), set);
}

/* End of the piece of digits at @at. Threes are counted from the right end of the run.
 * *room: how many digits of a three are still to come, 0 = not known or a three begins;
 * where the piece before ended with a whole three, three digits from here tell enough.
 * Only between digits of two scripts that may not be so, and the rest of the run is
 * counted. */
static uint64_t next_digits(const char *text, uint64_t n, uint64_t at, uint32_t set,
                            uint64_t *room, uint32_t known)
{
    uint64_t end, count;
    uint32_t len;

    if (*room == 0)
        *room = 3;
    if (!known && (!follows_digit(text, n, at) || divides(text, n, at, set))) {
        count_digits(text, n, at, UINT64_MAX, &count);
        *room = (count - 1) % 3 + 1;
    }
    davit_ucd_at(text, n, at, &len);
    for (end = at + len; --*room > 0 && !divides(text, n, end, set); end += len)
        davit_ucd_at(text, n, end, &len);
    return end;
}

uint64_t davit_scan_afmoe(uint32_t wide, const char *text, uint64_t n, uint64_t from,
                          uint64_t *out_ends, uint64_t cap)
{
    const uint32_t set = wide ? AFMOE | WIDE : AFMOE;
    uint64_t count = 0, room = 0;
    uint32_t len, known = 0; /* 1: the piece before was digits, room is right */

    while (count < cap && from < n) {
        if (davit_ucd_at(text, n, from, &len) & DAVIT_UCD_ND) {
            from = next_digits(text, n, from, set, &room, known);
            known = 1;
        } else {
            from = next_piece(text, n, from, set);
            known = 0;
            room = 0;
        }
        out_ends[count++] = from;
    }
    return count;
}
