/* SPDX-License-Identifier: Apache-2.0
 * Steps that several scanner bodies share. Offsets are bytes; @n ends the text.
 */
#ifndef DAVIT_TOK_SCAN_PRIVATE_H
#define DAVIT_TOK_SCAN_PRIVATE_H

#include <davit/help/bytes.h>
#include <davit/help/scan.h>
#include <davit/help/ucd.h>

/* Are the three @bytes, the first one highest, an ideograph from U+4E00 to U+9FFF? All of them are
 * letters (Lo) of the script Han. */
static inline int is_ideograph(uint32_t bytes)
{
    return bytes - 0xe4b880u <= 0xe9bfbfu - 0xe4b880u && (bytes & 0xc0c0u) == 0x8080u;
}

/* End of the run of such ideographs from @off on: no table is asked. */
static inline uint64_t run_of_ideographs(const char *text, uint64_t n, uint64_t off)
{
    const unsigned char *p = (const unsigned char *)text;

    for (; n - off >= 4; off += 3) { /* one load of four bytes */
        const unsigned char *q = p + off;

        if (!is_ideograph(((uint32_t)q[0] << 24 | (uint32_t)q[1] << 16 | (uint32_t)q[2] << 8 |
                           q[3]) >>
                          8))
            return off;
    }
    if (n - off == 3 && is_ideograph((uint32_t)p[off] << 16 | (uint32_t)p[off + 1] << 8 | p[off + 2]))
        off += 3;
    return off;
}

/* End of the run of the letters a to z from @off on, or with @fold of A to Z, too: eight bytes a
 * step, for most words one. */
static inline uint64_t run_of_ascii_letters(const char *text, uint64_t n, uint64_t off, int fold)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;

    for (; n - off >= 8; off += 8) {
        uint64_t word = davit_bytes_u64le((const uint8_t *)text + off), low, others;

        word |= fold ? 0x20 * ones : 0;
        low = word & ~high;
        /* high bit of each byte that is below a, above z, or no ASCII */
        others = (~(low + (0x80 - 'a') * ones) | (low + (0x80 - 'z' - 1) * ones) | word) & high;
        if (others)
            return off + (uint64_t)(__builtin_ctzll(others) / 8);
    }
    while (off < n && (text[off] | (fold ? 0x20 : 0)) >= 'a' && (text[off] | (fold ? 0x20 : 0)) <= 'z')
        off++;
    return off;
}

/* End of the run of characters with any of the bits @want from @off on. */
static inline uint64_t run_of(const char *text, uint64_t n, uint64_t off, uint32_t want)
{
    uint32_t len;

    while (davit_ucd_at(text, n, off, &len) & want) {
        off += len;
        if (len == 1 && (want & DAVIT_UCD_L) == DAVIT_UCD_L)
            off = run_of_ascii_letters(text, n, off, 1);
        else if (len == 3 && (want & (DAVIT_UCD_LO | DAVIT_UCD_HAN)))
            off = run_of_ideographs(text, n, off);
    }
    return off;
}

/* End of the run of characters with none of the bits @shun from @off on. */
static inline uint64_t run_without(const char *text, uint64_t n, uint64_t off,
                                   uint32_t shun)
{
    uint32_t len;

    while (off < n && !(davit_ucd_at(text, n, off, &len) & shun))
        off += len;
    return off;
}

static inline uint64_t run_of_newlines(const char *text, uint64_t n, uint64_t off,
                                       uint32_t tail)
{
    while (off < n && (text[off] == '\r' || text[off] == '\n' ||
                       (tail == DAVIT_TAIL_SLASHES && text[off] == '/')))
        off++;
    return off;
}

/* End of (?i:'s|'t|'re|'ve|'m|'ll|'d) at @off, or @off if it does not match. */
static inline uint64_t match_contraction(const char *text, uint64_t n, uint64_t off)
{
    char a, b;

    if (off >= n || text[off] != '\'' || n - off < 2)
        return off;
    a = (char)(text[off + 1] | 0x20);
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return off + 2;
    if (n - off < 3)
        return off;
    /* U+017F folds to s. */
    if ((unsigned char)text[off + 1] == 0xc5 && (unsigned char)text[off + 2] == 0xbf)
        return off + 3;
    b = (char)(text[off + 2] | 0x20);
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return off + 3;
    return off;
}

/* End of \s*[\r\n]+ (only with @newlines), else \s+(?!\S), else \s+ at @off, where a
 * white space character stands. */
static inline uint64_t match_space(const char *text, uint64_t n, uint64_t off,
                                   int newlines)
{
    uint64_t at = off, last = off, newline = 0;
    uint32_t len;

    while (davit_ucd_at(text, n, at, &len) & DAVIT_UCD_SPACE) {
        if (text[at] == '\r' || text[at] == '\n')
            newline = at + 1;
        last = at;
        at += len;
    }
    if (newlines && newline)
        return newline;
    if (at >= n || last == off)
        return at;
    return last; /* the lookahead gives one character back */
}

#endif
