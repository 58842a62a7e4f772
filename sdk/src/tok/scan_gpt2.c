/* SPDX-License-Identifier: Apache-2.0
 * Scanner bodies of the GPT-2 regex: alone, and behind the Digits stage.
 */
#include "scan_private.h"

/* 's|'t|'re|'ve|'m|'ll|'d, case matters here. */
static uint64_t match_lower_contraction(const char *text, uint64_t n, uint64_t off)
{
    char a, b;

    if (n - off < 2)
        return off;
    a = text[off + 1];
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return off + 2;
    if (n - off < 3)
        return off;
    b = text[off + 2];
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return off + 3;
    return off;
}

/* White space before @limit, where a stage before this one has cut; it counts as the end.
 */
static uint64_t next_piece(const char *text, uint64_t n, uint64_t at, uint32_t stop)
{
    const uint32_t known = DAVIT_UCD_SPACE | DAVIT_UCD_L | DAVIT_UCD_N | stop;
    uint64_t start = at, last = at;
    uint32_t len, bits;

    if (text[at] == '\'') {
        uint64_t end = match_lower_contraction(text, n, at);

        if (end > at)
            return end;
    }
    /* " ?" before a run; the space alone is white space, below. */
    if (text[at] == ' ')
        start = at + 1;
    bits = davit_ucd_at(text, n, start, &len);
    if (len > 0 && !(bits & (DAVIT_UCD_SPACE | stop))) {
        if (bits & DAVIT_UCD_L)
            return run_of(text, n, start + len, DAVIT_UCD_L);
        if (bits & DAVIT_UCD_N)
            return run_of(text, n, start + len, DAVIT_UCD_N);
        return run_without(text, n, start + len, known);
    }

    start = at;
    while ((bits = davit_ucd_at(text, n, at, &len)) & DAVIT_UCD_SPACE) {
        last = at;
        at += len;
    }
    if (at >= n || (bits & stop) || last == start)
        return at;
    return last;
}

uint64_t davit_scan_gpt2(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                         uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        from = next_piece(text, n, from, 0);
        out_ends[count++] = from;
    }
    return count;
}

/* A digit is a part of its own, and the end of the text for what stands before it. The
 * Digits stage takes a few more characters than \p{N}, which GPT-2 would take for
 * symbols; \p{N} has none that Digits lacks (make_ucd.py). */
uint64_t davit_scan_gpt2_digits(const char *text, uint64_t n, uint64_t from,
                                uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        uint32_t len;

        if (davit_ucd_at(text, n, from, &len) & DAVIT_UCD_NUMERIC)
            from += len;
        else
            from = next_piece(text, n, from, DAVIT_UCD_NUMERIC);
        out_ends[count++] = from;
    }
    return count;
}
