/* SPDX-License-Identifier: Apache-2.0
 * Scanner bodies of stages that drop white space.
 */
#include <davit/tokenizer.h>

#include "scan_private.h"

uint64_t davit_scan_whitespace(const char *text, uint64_t n, uint64_t from,
                               uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;
    uint32_t len;

    while (count < cap && from < n) {
        if (davit_ucd_at(text, n, from, &len) & DAVIT_UCD_SPACE) {
            from = run_of(text, n, from + len, DAVIT_UCD_SPACE);
            out_ends[count++] = from | DAVIT_TOK_DROP;
        } else {
            from = run_without(text, n, from + len, DAVIT_UCD_SPACE);
            out_ends[count++] = from;
        }
    }
    return count;
}

uint64_t davit_scan_bert(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                         uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        uint32_t len;
        const uint32_t bits = davit_ucd_at(text, n, from, &len);

        from += len;
        if (bits & DAVIT_UCD_SPACE) {
            from = run_of(text, n, from, DAVIT_UCD_SPACE);
            out_ends[count++] = from | DAVIT_TOK_DROP;
            continue;
        }
        if (!(bits & DAVIT_UCD_PUNCT))
            from = run_without(text, n, from, DAVIT_UCD_SPACE | DAVIT_UCD_PUNCT);
        out_ends[count++] = from;
    }
    return count;
}

uint64_t davit_scan_word_runs(const char *text, uint64_t n, uint64_t from,
                              uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        uint32_t len;
        const uint32_t bits = davit_ucd_at(text, n, from, &len);

        from += len;
        if (bits & DAVIT_UCD_WORD) {
            from = run_of(text, n, from, DAVIT_UCD_WORD);
        } else if (bits & DAVIT_UCD_SPACE) {
            from = run_of(text, n, from, DAVIT_UCD_SPACE) | DAVIT_TOK_DROP;
        } else {
            from = run_without(text, n, from, DAVIT_UCD_SPACE | DAVIT_UCD_WORD);
        }
        out_ends[count++] = from;
        from &= ~DAVIT_TOK_DROP;
    }
    return count;
}
