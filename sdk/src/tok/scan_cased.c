/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of the o200k and Tekken regexes, whose words end where lower case meets
 * upper.
 *
 * U* W+ with U and W overlapping (Lm, Lo, M are in both) needs a look back: if no
 * character of W alone follows the run of U, the match ends behind the last character of
 * the run that is in both, or there is none. With rules->han the script Han is in neither
 * and a run of it is a piece.
 */
#include "scan_private.h"

#define BOTH  (DAVIT_UCD_LM | DAVIT_UCD_LO | DAVIT_UCD_M)
#define UPPER (DAVIT_UCD_LU | DAVIT_UCD_LT | BOTH)
#define LOWER (DAVIT_UCD_LL | BOTH)

static inline uint32_t bits_at(uint32_t han, const char *text, uint64_t n, uint64_t off,
                               uint32_t *out_len)
{
    const uint32_t bits = davit_ucd_at(text, n, off, out_len);

    return han && (bits & DAVIT_UCD_HAN) ? bits & ~(UPPER | LOWER) : bits;
}

/* End of U*W+ at @off; @off if it does not match, and then *out_upper is the end of U*.
 */
static uint64_t match_lower_word(uint32_t han, const char *text, uint64_t n, uint64_t off,
                                 uint64_t *out_upper)
{
    uint64_t at = off, both = off;
    uint32_t len, bits;

    while ((bits = bits_at(han, text, n, at, &len)) & UPPER) {
        at += len;
        if (bits & BOTH)
            both = at;
    }
    *out_upper = at;
    if (!(bits & LOWER))
        return both;
    do
        at += len;
    while (bits_at(han, text, n, at, &len) & LOWER);
    return at;
}

/* End of the first two alternatives at @at, or @at if neither matches. */
static uint64_t match_word(uint32_t han, const char *text, uint64_t n, uint64_t at)
{
    uint64_t upper, prefixed_upper = at, start = at, end;
    uint32_t len, bits = davit_ucd_at(text, n, at, &len);

    if (!(bits & (DAVIT_UCD_L | DAVIT_UCD_N)) && text[at] != '\r' && text[at] != '\n') {
        start = at + len;
        end = match_lower_word(han, text, n, start, &prefixed_upper);
        if (end > start)
            return end;
    }
    end = match_lower_word(han, text, n, at, &upper);
    if (end > at)
        return end;
    /* Second alternative: W* is empty, or the first would have matched. */
    return prefixed_upper > start ? prefixed_upper : upper;
}

static uint64_t next_piece(const davit_scan_rules *rules, const char *text, uint64_t n,
                           uint64_t at)
{
    uint32_t len, len2, bits = davit_ucd_at(text, n, at, &len), after;
    uint64_t end;

    if (rules->han && (bits & DAVIT_UCD_HAN))
        return run_of(text, n, at + len, DAVIT_UCD_HAN);
    end = match_word(rules->han, text, n, at);
    if (end > at)
        return rules->contraction ? match_contraction(text, n, end) : end;
    if (bits & DAVIT_UCD_N) {
        uint64_t left = rules->max_digits ? rules->max_digits : UINT64_MAX;

        for (; left > 0 && davit_ucd_at(text, n, at, &len) & DAVIT_UCD_N; left--)
            at += len;
        return at;
    }

    after = davit_ucd_at(text, n, at + len, &len2);
    if (!(bits & DAVIT_UCD_SPACE) ||
        (text[at] == ' ' && len2 > 0 &&
         !(after & (DAVIT_UCD_SPACE | DAVIT_UCD_N | DAVIT_UCD_L)))) {
        end = run_without(text, n, at + len, DAVIT_UCD_SPACE | DAVIT_UCD_N | DAVIT_UCD_L);
        return rules->tail ? run_of_newlines(text, n, end, rules->tail) : end;
    }
    return match_space(text, n, at, 1);
}

uint64_t davit_scan_cased(const davit_scan_rules *rules, const char *text, uint64_t n,
                          uint64_t from, uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        from = next_piece(rules, text, n, from);
        out_ends[count++] = from;
    }
    return count;
}
