/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of Chameleon: image tokens, tabs, line feeds and pairs of spaces are cut
 * out, digits and punctuation stand alone, GPT-2's regex cuts the rest.
 *
 * The stage of the sentinels, <sentinel:[0-9]+>, needs nothing: both its ends are
 * punctuation, and what is between is cut by the later stages all the same.
 */
#include "scan_private.h"

#include <string.h>

#define ALONE (DAVIT_UCD_NUMERIC | DAVIT_UCD_PUNCT)

/* End of IMGIMG[A-I]{1,4}Z at @off, or @off. */
static uint64_t match_image(const char *text, uint64_t n, uint64_t off)
{
    uint64_t at = off + 6;

    if (text[off] != 'I' || n - off < 8 || memcmp(text + off, "IMGIMG", 6) != 0)
        return off;
    while (at < n && at - off < 10 && text[at] >= 'A' && text[at] <= 'I')
        at++;
    return at > off + 6 && at < n && text[at] == 'Z' ? at + 1 : off;
}

/* End of what the first stages cut out at @off, or @off. */
static uint64_t match_cut(const char *text, uint64_t n, uint64_t off)
{
    if (off >= n)
        return off;
    if (text[off] == '\t' || text[off] == '\n')
        return off + 1;
    if (text[off] != ' ')
        return match_image(text, n, off);
    if (n - off >= 4 && memcmp(text + off, "    ", 4) == 0)
        return off + 4;
    return n - off >= 2 && text[off + 1] == ' ' ? off + 2 : off;
}

/* Class bits at @off; 0 and length 0 where the part of the rest ends. */
static uint32_t rest_bits(const char *text, uint64_t n, uint64_t off, uint32_t *out_len)
{
    const uint32_t bits = davit_ucd_at(text, n, off, out_len);

    if ((bits & ALONE) || match_cut(text, n, off) > off) {
        *out_len = 0;
        return 0;
    }
    return bits;
}

/* End of the piece of the rest at @at: ` ?\p{L}+`, ` ?` and symbols, or white space.
 * Numbers are digits of an earlier stage. */
static uint64_t next_rest(const char *text, uint64_t n, uint64_t at)
{
    uint64_t start = at + (text[at] == ' '), last = at, from = at;
    uint32_t len, bits = rest_bits(text, n, start, &len);

    if (len > 0 && !(bits & DAVIT_UCD_SPACE)) {
        const uint32_t letter = bits & DAVIT_UCD_L;

        do {
            start += len;
            bits = rest_bits(text, n, start, &len);
        } while (len > 0 && (letter ? (bits & DAVIT_UCD_L)
                                    : !(bits & (DAVIT_UCD_L | DAVIT_UCD_SPACE))));
        return start;
    }
    while (rest_bits(text, n, at, &len) & DAVIT_UCD_SPACE) {
        last = at;
        at += len;
    }
    return len == 0 || last == from ? at : last;
}

uint64_t davit_scan_chameleon(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        uint32_t len;
        const uint32_t bits = davit_ucd_at(text, n, from, &len);
        const uint64_t cut = match_cut(text, n, from);

        if (cut > from)
            from = cut;
        else
            from = bits & ALONE ? from + len : next_rest(text, n, from);
        out_ends[count++] = from;
    }
    return count;
}
