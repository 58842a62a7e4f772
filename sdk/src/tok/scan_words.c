/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of the Llama-3 regex and its kin. The alternatives are tried in the order
 * of the regex; each needs at most one character of lookahead, so nothing backtracks.
 */
#include "scan_private.h"

/* End of the piece that starts at @at < @n. */
static uint64_t next_piece(const davit_scan_rules *rules, const char *text, uint64_t n,
                           uint64_t at)
{
    const uint32_t word = rules->marks ? DAVIT_UCD_L | DAVIT_UCD_M : DAVIT_UCD_L;
    uint32_t len, len2, bits = davit_ucd_at(text, n, at, &len), after;
    uint64_t end;

    if (bits & word)
        return run_of(text, n, at + len, word);
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
        return run_of(text, n, at + len + len2, word);

    if (!(bits & DAVIT_UCD_SPACE) ||
        (text[at] == ' ' && len2 > 0 &&
         !(after & (DAVIT_UCD_SPACE | DAVIT_UCD_N | word)))) {
        end = run_without(text, n, at + len, DAVIT_UCD_SPACE | DAVIT_UCD_N | word);
        return rules->tail ? run_of_newlines(text, n, end, rules->tail) : end;
    }
    if (rules->end_space && run_of(text, n, at, DAVIT_UCD_SPACE) >= n)
        return n;
    return match_space(text, n, at, 1);
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
