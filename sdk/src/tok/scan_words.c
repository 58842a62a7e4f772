/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of the Llama-3 regex and its kin. The alternatives are tried in the order
 * of the regex; each needs at most one character of lookahead, so nothing backtracks.
 *
 * A stage in front changes only what white space and newlines behind symbols see: it cuts
 * where words and numbers end anyway.
 */
#include "scan_private.h"

#define MARKED (DAVIT_UCD_L | DAVIT_UCD_M)

/* End of a word of EXAONE-MoE that has begun with a letter before @off. */
static uint64_t run_of_spaced(const char *text, uint64_t n, uint64_t off)
{
    uint32_t len;

    for (;;) {
        off = run_of(text, n, off, MARKED);
        if (off >= n || text[off] != ' ' ||
            !(davit_ucd_at(text, n, off + 1, &len) & DAVIT_UCD_L))
            return off;
        off += 1 + len;
    }
}

static uint64_t run_of_word(const davit_scan_rules *rules, const char *text, uint64_t n,
                            uint64_t off, uint32_t word)
{
    return rules->spaced ? run_of_spaced(text, n, off) : run_of(text, n, off, word);
}

/* What may follow symbols that end at @off. */
static uint64_t match_tail(const davit_scan_rules *rules, const char *text, uint64_t n,
                           uint64_t off)
{
    if (rules->tail == DAVIT_TAIL_NONE)
        return off;
    if (rules->tail == DAVIT_TAIL_ONE)
        return off < n && (text[off] == '\r' || text[off] == '\n') ? off + 1 : off;
    if (rules->front != DAVIT_FRONT_LINES)
        return run_of_newlines(text, n, off, rules->tail);
    while (off < n && text[off] == '\r')
        off++;
    return off;
}

/* \s{512}(?!\S) and so on at @off. Behind white space that is no newline stands the rest
 * of a run that had no newline, or it would have been cut behind that. */
static uint64_t match_halves(const char *text, uint64_t n, uint64_t off)
{
    uint64_t at = off, fits = off, count = 0, step = 1;
    uint32_t len;

    if (off == 0 || text[off - 1] == '\r' || text[off - 1] == '\n' ||
        !(davit_ucd_at(text, n, davit_ucd_back(text, off), &len) & DAVIT_UCD_SPACE)) {
        at = match_space(text, n, off, 1);
        if (text[at - 1] == '\r' || text[at - 1] == '\n')
            return at;
        at = off;
    }
    while (count < 512 && (davit_ucd_at(text, n, at, &len) & DAVIT_UCD_SPACE)) {
        at += len;
        count++;
        if (count != step)
            continue;
        step *= 2;
        if (at >= n || (davit_ucd_at(text, n, at, &len) & DAVIT_UCD_SPACE) || count == 1)
            fits = at;
    }
    return fits;
}

/* White space at @off in a part that the stage in front ends before a number or a line
 * feed. */
static uint64_t match_front_space(uint32_t front, const char *text, uint64_t n,
                                  uint64_t off)
{
    uint64_t at = off, last = off, newline = 0;
    uint32_t len, bits;

    while ((bits = davit_ucd_at(text, n, at, &len)) & DAVIT_UCD_SPACE) {
        if (front == DAVIT_FRONT_LINES && text[at] == '\n')
            break;
        if (text[at] == '\r' || text[at] == '\n')
            newline = at + 1;
        last = at;
        at += len;
    }
    if (newline)
        return newline;
    if (at >= n || last == off || (bits & DAVIT_UCD_SPACE) ||
        (front == DAVIT_FRONT_NUMBERS && (bits & DAVIT_UCD_N)))
        return at;
    return last;
}

/* White space at @at, where no symbols follow. */
static uint64_t next_space(const davit_scan_rules *rules, const char *text, uint64_t n,
                           uint64_t at)
{
    if (rules->end_space && run_of(text, n, at, DAVIT_UCD_SPACE) >= n)
        return n;
    if (rules->halves)
        return match_halves(text, n, at);
    if (rules->front == DAVIT_FRONT_NONE)
        return match_space(text, n, at, 1);
    if (rules->front == DAVIT_FRONT_LINES && text[at] == '\n') {
        while (at < n && text[at] == '\n')
            at++;
        return at;
    }
    return match_front_space(rules->front, text, n, at);
}

/* End of the piece that starts at @at < @n. */
static uint64_t next_piece(const davit_scan_rules *rules, const char *text, uint64_t n,
                           uint64_t at)
{
    const uint32_t word = rules->marks ? MARKED : DAVIT_UCD_L;
    uint32_t len, len2, bits = davit_ucd_at(text, n, at, &len), after;
    uint64_t end;

    if (bits & word)
        return run_of_word(rules, text, n, at + len, word);
    if (rules->contraction && text[at] == '\'') {
        end = match_contraction(text, n, at);
        if (end > at)
            return end;
    }
    if (bits & DAVIT_UCD_N) {
        uint64_t left = rules->max_digits ? rules->max_digits : UINT64_MAX;

        for (; left > 0 && davit_ucd_at(text, n, at, &len) & DAVIT_UCD_N; left--)
            at += len;
        return at;
    }

    after = davit_ucd_at(text, n, at + len, &len2);
    if ((after & word) && text[at] != '\r' && text[at] != '\n')
        return run_of_word(rules, text, n, at + len + len2, word);

    if (!(bits & DAVIT_UCD_SPACE) ||
        (text[at] == ' ' && len2 > 0 &&
         !(after & (DAVIT_UCD_SPACE | DAVIT_UCD_N | word)))) {
        end = run_without(text, n, at + len, DAVIT_UCD_SPACE | DAVIT_UCD_N | word);
        return match_tail(rules, text, n, end);
    }
    return next_space(rules, text, n, at);
}

uint64_t davit_scan_words(const davit_scan_rules *rules, const char *text, uint64_t n,
                          uint64_t from, uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        from = next_piece(rules, text, n, from);
        out_ends[count++] = from;
    }
    return count;
}

uint64_t davit_cut_lines(const char *text, uint64_t n, uint64_t from)
{
    for (uint64_t at = from > 0 ? from : 1; at < n; at++) {
        const char c = (char)(text[at] | 0x20);

        if (text[at - 1] == '\n' && c >= 'a' && c <= 'z')
            return at;
    }
    return n;
}
