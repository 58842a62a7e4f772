/* SPDX-License-Identifier: Apache-2.0
 * Stages in front of a regex: which characters end the part that the regex sees, and
 * digits in groups of three from the right.
 */
#ifndef DAVIT_TOK_SCAN_FRONT_H
#define DAVIT_TOK_SCAN_FRONT_H

#include "scan_private.h"

/* What a regex behind a stage sees. */
typedef struct View {
    const char *text;
    uint64_t n;
    uint32_t front; /* DAVIT_FRONT_ */
    uint32_t kind;  /* SCRIPTS: script_at of the part */
    uint32_t han;   /* davit_scan_rules.han */
} View;

/* Group of DAVIT_FRONT_SCRIPTS: 1 AC00-D7A3 and 3131-318E, 2 the CJK signs, 3 3105-312F,
 * 4 4E00-9FA5 and 3040-30FF, 0 all else. */
static inline uint32_t script_of(uint32_t cp)
{
    if (cp < 0x2014)
        return 0;
    if ((cp >= 0xac00 && cp <= 0xd7a3) || (cp >= 0x3131 && cp <= 0x318e))
        return 1;
    if ((cp >= 0x3001 && cp <= 0x303f) || (cp >= 0xfe30 && cp <= 0xfe4f) ||
        cp == 0x2014 || cp == 0x2018 || cp == 0x2019 || cp == 0x201c || cp == 0x201d ||
        cp == 0x2026 || cp == 0xff01 || cp == 0xff0c || cp == 0xff1a || cp == 0xff1b)
        return 2;
    if (cp >= 0x3105 && cp <= 0x312f)
        return 3;
    return (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff) ? 4 : 0;
}

static inline uint32_t script_at(const char *text, uint64_t n, uint64_t off)
{
    uint32_t len;

    return script_of(davit_ucd_next(text, n, off, &len));
}

/* Bytes of the digits, \p{Nd}, that start at @off; *out_count how many, at most @max. */
static inline uint64_t count_digits(const char *text, uint64_t n, uint64_t off,
                                    uint64_t max, uint64_t *out_count)
{
    uint64_t at = off;
    uint32_t len;

    *out_count = 0;
    while (*out_count < max && (davit_ucd_at(text, n, at, &len) & DAVIT_UCD_ND)) {
        at += len;
        ++*out_count;
    }
    return at - off;
}

/* Is the character at @off in \w? Onig's \w has a few numbers of Latin-1, and none of the
 * two joiners (asked of tokenizers 0.23.3 for each code point). */
static inline int is_word(const char *text, uint64_t n, uint64_t off)
{
    uint32_t len, cp;

    if (off >= n)
        return 0;
    cp = davit_ucd_next(text, n, off, &len);
    if (cp == 0xb2 || cp == 0xb3 || cp == 0xb9 || (cp >= 0xbc && cp <= 0xbe))
        return 1;
    return cp != 0x200c && cp != 0x200d && (davit_ucd_bits(cp) & DAVIT_UCD_WORD);
}

static inline int follows_digit(const char *text, uint64_t n, uint64_t off)
{
    uint32_t len;

    return off > 0 &&
           (davit_ucd_at(text, n, davit_ucd_back(text, off), &len) & DAVIT_UCD_ND);
}

/* End of a match of \d{1,3}(?=(?:\d{3})*\b) at @off, or @off. Inside a run that was cut
 * before, whoever cut it, threes are counted from here, so three digits tell enough. */
static inline uint64_t match_group(const char *text, uint64_t n, uint64_t off)
{
    uint64_t count, bytes;
    uint32_t len;

    if (!(davit_ucd_at(text, n, off, &len) & DAVIT_UCD_ND))
        return off;
    if (follows_digit(text, n, off)) {
        bytes = count_digits(text, n, off, 3, &count);
        return count == 3 ? off + bytes : off;
    }
    bytes = count_digits(text, n, off, UINT64_MAX, &count);
    if (is_word(text, n, off + bytes))
        return off;
    return off + count_digits(text, n, off, (count - 1) % 3 + 1, &count);
}

/* Class bits at @off; 0 and length 0 where the part ends. */
static inline uint32_t bits_at(const View *v, uint64_t off, uint32_t *out_len)
{
    uint32_t bits;

    if (v->front == DAVIT_FRONT_NONE)
        return davit_ucd_at(v->text, v->n, off, out_len);
    if (v->front == DAVIT_FRONT_SCRIPTS && off < v->n &&
        script_at(v->text, v->n, off) != v->kind) {
        *out_len = 0;
        return 0;
    }
    bits = davit_ucd_at(v->text, v->n, off, out_len);
    if (v->front == DAVIT_FRONT_GROUPS && (bits & DAVIT_UCD_ND) &&
        !follows_digit(v->text, v->n, off) && match_group(v->text, v->n, off) > off) {
        *out_len = 0;
        return 0;
    }
    return bits;
}

#endif
