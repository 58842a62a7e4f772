/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of DeepSeek-Coder and DeepSeek-LLM: Split stages, each on the pieces of the
 * one before.
 *
 * Stages 1 to 3 cut the text into parts: a newline, a run of letters or of signs with one
 * white space in front, and gaps between them. ASCII letters are signs, too, in the list
 * of DeepSeek-LLM, so there stage 3 cuts runs of letters. The later stages cut inside a
 * part: white space at its end, runs of CJK, single digits. A part whose front was cut off looks like
 * a part that starts there, so a scan may resume at any end.
 */
#include "scan_private.h"

/* Bits of this file, above those of ucd.h. */
#define LETTER  (1u << 24) /* class of stage 2 */
#define SIGN    (1u << 25) /* class of stage 3 */
#define CJK     (1u << 26) /* 4E00-9FA5, 0800-4E00, AC00-D7FF, as written in the files */
#define NEWLINE (1u << 27)

typedef struct Range {
    uint32_t first, last;
} Range;

/* The letter list of DeepSeek-LLM: Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee
 * and others, letters with case. */
static const Range letters[] = {
    {0x41, 0x5a}, {0x61, 0x7a}, {0xb5, 0xb5}, {0xc0, 0xd6},
    {0xd8, 0xf6}, {0xf8, 0x1ba}, {0x1bc, 0x1bf}, {0x1c4, 0x293},
    {0x295, 0x2af}, {0x370, 0x373}, {0x376, 0x377}, {0x37b, 0x37d},
    {0x37f, 0x37f}, {0x386, 0x386}, {0x388, 0x38a}, {0x38c, 0x38c},
    {0x38e, 0x3a1}, {0x3a3, 0x3f5}, {0x3f7, 0x481}, {0x48a, 0x52f},
    {0x531, 0x556}, {0x10a0, 0x10c5}, {0x13a0, 0x13f5}, {0x13f8, 0x13fd},
    {0x1c90, 0x1cba}, {0x1cbd, 0x1cbf}, {0x1d00, 0x1d2b}, {0x1d6b, 0x1d77},
    {0x1d79, 0x1d9a}, {0x1e00, 0x1f15}, {0x1f18, 0x1f1d}, {0x1f20, 0x1f45},
    {0x1f48, 0x1f4d}, {0x1f50, 0x1f57}, {0x1f59, 0x1f59}, {0x1f5b, 0x1f5b},
    {0x1f5d, 0x1f5d}, {0x1f5f, 0x1f7d}, {0x1f80, 0x1fb4}, {0x1fb6, 0x1fbc},
    {0x1fbe, 0x1fbe}, {0x1fc2, 0x1fc4}, {0x1fc6, 0x1fcc}, {0x1fd0, 0x1fd3},
    {0x1fd6, 0x1fdb}, {0x1fe0, 0x1fec}, {0x1ff2, 0x1ff4}, {0x1ff6, 0x1ffc},
    {0x2102, 0x2102}, {0x2107, 0x2107}, {0x210a, 0x2113}, {0x2115, 0x2115},
    {0x2119, 0x211d}, {0x2124, 0x2124}, {0x2126, 0x2126}, {0x2128, 0x2128},
    {0x212a, 0x212d}, {0x212f, 0x2134}, {0x2139, 0x2139}, {0x213c, 0x213f},
    {0x2145, 0x2149}, {0x214e, 0x214e}, {0x2183, 0x2184}, {0x2c00, 0x2c7b},
    {0x2c7e, 0x2ce4}, {0x2ceb, 0x2cee}, {0x2cf2, 0x2cf3}, {0xa640, 0xa66d},
    {0xa680, 0xa69b}, {0xa722, 0xa76f}, {0xa771, 0xa787}, {0xa78b, 0xa78e},
    {0xab70, 0xabbf}, {0xfb00, 0xfb06}, {0xfb13, 0xfb17}, {0xff21, 0xff3a},
    {0xff41, 0xff5a}, {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
    {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943},
};

static uint32_t is_listed(uint32_t cp)
{
    uint32_t low = 0, high = sizeof letters / sizeof *letters;

    while (low < high) {
        const uint32_t mid = (low + high) / 2;

        if (cp > letters[mid].last)
            low = mid + 1;
        else if (cp < letters[mid].first)
            high = mid;
        else
            return LETTER;
    }
    return 0;
}

/* [!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002] */
static uint32_t is_sign(uint32_t cp)
{
    return (cp >= '!' && cp <= '/') || (cp >= ':' && cp <= '~') ||
                   (cp >= 0xff01 && cp <= 0xff0f) || (cp >= 0xff1a && cp <= 0xff5e) ||
                   (cp >= 0x2018 && cp <= 0x201f) || (cp >= 0x3000 && cp <= 0x3002)
               ? SIGN
               : 0;
}

static uint32_t bits_at(uint32_t latin, const char *text, uint64_t n, uint64_t off,
                        uint32_t *out_len)
{
    uint32_t cp, bits;

    *out_len = 0;
    if (off >= n)
        return NEWLINE; /* the end of the text ends a part, too */
    cp = davit_ucd_next(text, n, off, out_len);
    bits = davit_ucd_bits(cp);
    if (cp == '\r' || cp == '\n')
        return bits | NEWLINE;
    if ((cp >= 0x800 && cp <= 0x9fa5) || (cp >= 0xac00 && cp <= 0xd7ff))
        bits |= CJK;
    if (latin)
        return bits | is_listed(cp) | is_sign(cp);
    return bits | (bits & DAVIT_UCD_L ? LETTER : 0) | (bits & DAVIT_UCD_P ? SIGN : 0);
}

/* One scan over the text. */
typedef struct Scan {
    const char *text;
    uint64_t n;
    uint32_t latin;
} Scan;

static uint32_t bits_of(const Scan *s, uint64_t off, uint32_t *out_len)
{
    return bits_at(s->latin, s->text, s->n, off, out_len);
}

static int is_letter(uint32_t bits)
{
    return (bits & (LETTER | NEWLINE)) == LETTER;
}

/* Kind of the part that starts at @at: LETTER, SIGN, NEWLINE or 0, a gap. */
static uint32_t kind_at(const Scan *s, uint64_t at)
{
    uint32_t len, len2, after;
    const uint32_t bits = bits_of(s, at, &len);

    if (bits & NEWLINE)
        return NEWLINE;
    if (bits & LETTER)
        return LETTER;
    if (!(bits & DAVIT_UCD_SPACE))
        return bits & SIGN;
    after = bits_of(s, at + len, &len2);
    if (is_letter(after))
        return LETTER;
    if (bits & SIGN)
        return SIGN; /* U+3000 is both */
    if ((after & (SIGN | NEWLINE)) != SIGN)
        return 0;
    /* U+3000 before a letter is the letter's. */
    return (after & DAVIT_UCD_SPACE) && is_letter(bits_of(s, at + len + len2, &len2))
               ? 0
               : SIGN;
}

/* Does the part of kind @kind go on at @at, behind its first character? Letters win over
 * a sign or white space that stands before them. */
static int goes_on(const Scan *s, uint32_t kind, uint64_t at, uint32_t bits)
{
    if (bits & NEWLINE)
        return 0;
    if (kind == LETTER)
        return (bits & LETTER) != 0;
    if (kind == SIGN)
        return (bits & SIGN) && kind_at(s, at) != LETTER;
    return kind_at(s, at) == 0;
}

/* Is only white space from @at, which is white space, to the end of its part of kind
 * @kind? If not, *out_end is where that white space ends. */
static int ends_part(const Scan *s, uint32_t kind, uint64_t at, uint64_t *out_end)
{
    uint32_t len, bits;

    bits_of(s, at, &len);
    do {
        at += len;
        bits = bits_of(s, at, &len);
    } while (goes_on(s, kind, at, bits) && (bits & DAVIT_UCD_SPACE));
    *out_end = at;
    return !goes_on(s, kind, at, bits);
}

/* The end of the part's first piece, from its character at @at on. @first: bits of the
 * character that decides the group, CJK or not, and in letters ASCII or not. */
static uint64_t match_rest(const Scan *s, uint64_t at, uint32_t kind, uint32_t first)
{
    const uint32_t mask = kind == LETTER ? CJK | SIGN : CJK, group = first & mask;
    uint64_t known = 0; /* up to here white space does not end the part */
    uint32_t len, bits;

    for (;; at += len) {
        bits = bits_of(s, at, &len);
        if (!goes_on(s, kind, at, bits) || (bits & mask) != group ||
            (bits & DAVIT_UCD_NUMERIC))
            return at;
        if (s->latin && (bits & DAVIT_UCD_SPACE) && at >= known &&
            ends_part(s, kind, at, &known))
            return at;
    }
}

/* White space at @at in a gap or before signs. Whether it ends its part only matters where
 * something else of its group follows, and then it does not. So no run of white space is
 * looked at again for each of its pieces. */
static uint64_t match_white(const Scan *s, uint64_t at, uint32_t kind)
{
    uint32_t len, bits;
    const uint32_t first = bits_of(s, at, &len);

    do {
        at += len;
        bits = bits_of(s, at, &len);
        if (!goes_on(s, kind, at, bits) || ((bits ^ first) & CJK) ||
            (bits & DAVIT_UCD_NUMERIC))
            return at;
    } while (bits & DAVIT_UCD_SPACE);
    return match_rest(s, at, kind, first);
}

static uint64_t next_piece(const Scan *s, uint64_t at)
{
    const uint32_t kind = kind_at(s, at);
    uint32_t len, bits = bits_of(s, at, &len), len2, after;

    if (kind == NEWLINE || (bits & DAVIT_UCD_NUMERIC))
        return at + len;
    if (!(bits & DAVIT_UCD_SPACE))
        return match_rest(s, at + len, kind, bits);
    if (kind != LETTER)
        return match_white(s, at, kind);
    /* White space in front of letters: it goes with the first one's group. */
    after = bits_of(s, at + len, &len2);
    if (((after ^ bits) & CJK) || (after & DAVIT_UCD_NUMERIC) ||
        ((bits & SIGN) && !(after & SIGN)))
        return at + len;
    return match_rest(s, at + len + len2, kind, after);
}

uint64_t davit_scan_deepseek2(uint32_t latin, const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap)
{
    const Scan s = {text, n, latin};
    uint64_t count = 0;

    while (count < cap && from < n) {
        from = next_piece(&s, from);
        out_ends[count++] = from;
    }
    return count;
}
