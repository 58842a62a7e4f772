/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of the o200k and Tekken regexes, whose words end where lower case meets
 * upper.
 *
 * U* W+ with U and W overlapping (Lm, Lo, M are in both) needs a look back: if no
 * character of W alone follows the run of U, the match ends behind the last character of
 * the run that is in both, or there is none. With rules->han the script Han is in neither
 * and a run of it is a piece. With a stage in front, a character of another part is the
 * end of the text (bits_at in scan_front.h).
 */
#include "scan_front.h"

#define BOTH  (DAVIT_UCD_LM | DAVIT_UCD_LO | DAVIT_UCD_M)
#define UPPER (DAVIT_UCD_LU | DAVIT_UCD_LT | BOTH)
#define LOWER (DAVIT_UCD_LL | BOTH)

static inline uint32_t word_bits(const View *v, uint64_t off, uint32_t *out_len)
{
    const uint32_t bits = bits_at(v, off, out_len);

    return v->han && (bits & DAVIT_UCD_HAN) ? bits & ~(UPPER | LOWER) : bits;
}

/* End of U*W+ at @off; @off if it does not match, and then *out_upper is the end of U*.
 */
static uint64_t match_lower_word(const View *v, uint64_t off, uint64_t *out_upper)
{
    const int plain = !v->front && !v->han; /* ideographs are letters like others */
    uint64_t at = off, both = off;
    uint32_t len, bits;

    while ((bits = word_bits(v, at, &len)) & UPPER) {
        const uint64_t next = at + len;

        at = len == 3 && plain ? run_of_ideographs(v->text, v->n, next) : next;
        if (bits & BOTH || at > next)
            both = at;
    }
    *out_upper = at;
    if (!(bits & LOWER))
        return both;
    do
        at = len == 1 ? run_of_ascii_letters(v->text, v->n, at + 1, 0) : at + len;
    while (word_bits(v, at, &len) & LOWER);
    return at;
}

/* End of the first two alternatives at @at, or @at if neither matches. */
static uint64_t match_word(const View *v, uint64_t at)
{
    uint64_t upper, prefixed_upper = at, start = at, end;
    uint32_t len, bits = bits_at(v, at, &len);

    if (!(bits & (DAVIT_UCD_L | DAVIT_UCD_N)) && v->text[at] != '\r' &&
        v->text[at] != '\n') {
        start = at + len;
        end = match_lower_word(v, start, &prefixed_upper);
        if (end > start)
            return end;
    }
    end = match_lower_word(v, at, &upper);
    if (end > at)
        return end;
    /* Second alternative: W* is empty, or the first would have matched. */
    return prefixed_upper > start ? prefixed_upper : upper;
}

static uint64_t match_white(const View *v, uint64_t off)
{
    uint64_t at = off, last = off, newline = 0;
    uint32_t len;

    while (bits_at(v, at, &len) & DAVIT_UCD_SPACE) {
        if (v->text[at] == '\r' || v->text[at] == '\n')
            newline = at + 1;
        last = at;
        at += len;
    }
    if (newline)
        return newline;
    return len == 0 || last == off ? at : last;
}

static uint64_t match_symbols(const View *v, uint64_t at)
{
    const uint32_t shun = DAVIT_UCD_SPACE | DAVIT_UCD_N | DAVIT_UCD_L;
    uint32_t len;

    while (!(bits_at(v, at, &len) & shun) && len > 0)
        at += len;
    return at;
}

static uint64_t next_piece(const davit_scan_rules *rules, const View *v, uint64_t at)
{
    const char *text = v->text;
    uint32_t len, len2, bits = bits_at(v, at, &len), after;
    uint64_t end;

    if (rules->han && (bits & DAVIT_UCD_HAN))
        return run_of(text, v->n, at + len, DAVIT_UCD_HAN);
    end = match_word(v, at);
    if (end > at) /* ' and newlines are of kind 0 */
        return rules->contraction && !v->kind ? match_contraction(text, v->n, end) : end;
    if (bits & DAVIT_UCD_N) {
        uint64_t left = rules->max_digits ? rules->max_digits : UINT64_MAX;

        for (; left > 0 && bits_at(v, at, &len) & DAVIT_UCD_N; left--)
            at += len;
        return at;
    }

    after = bits_at(v, at + len, &len2);
    if (!(bits & DAVIT_UCD_SPACE) ||
        (text[at] == ' ' && len2 > 0 &&
         !(after & (DAVIT_UCD_SPACE | DAVIT_UCD_N | DAVIT_UCD_L)))) {
        end = match_symbols(v, at + len);
        return rules->tail && !v->kind ? run_of_newlines(text, v->n, end, rules->tail)
                                       : end;
    }
    return match_white(v, at);
}

uint64_t davit_scan_cased(const davit_scan_rules *rules, const char *text, uint64_t n,
                          uint64_t from, uint64_t *out_ends, uint64_t cap)
{
    View v = {text, n, rules->front, 0, rules->han};
    uint64_t count = 0;

    while (count < cap && from < n) {
        uint64_t end = from;

        if (rules->front == DAVIT_FRONT_GROUPS)
            end = match_group(text, n, from);
        else if (rules->front == DAVIT_FRONT_SCRIPTS)
            v.kind = script_at(text, n, from);
        from = end > from ? end : next_piece(rules, &v, from);
        out_ends[count++] = from;
    }
    return count;
}
