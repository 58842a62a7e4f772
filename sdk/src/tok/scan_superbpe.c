/* SPDX-License-Identifier: Apache-2.0
 * Scanner body of SuperBPE: runs of numbers are cut out, and inside them before each
 * three digits counted from the right; words and blanks are not cut at all.
 */
#include "scan_front.h"

/* End of the piece at @at, which is a number. The empty regex matches before a digit that
 * has a multiple of three digits from itself on; other numbers end such a count. */
static uint64_t next_numbers(const char *text, uint64_t n, uint64_t at)
{
    const uint64_t start = at;
    uint64_t count;
    uint32_t len, bits;

    if (follows_digit(text, n, at)) {
        /* cut here before: a multiple of three follows */
        at += count_digits(text, n, at, 3, &count);
        if (davit_ucd_at(text, n, at, &len) & DAVIT_UCD_ND)
            return at;
    }
    for (; (bits = davit_ucd_at(text, n, at, &len)) & DAVIT_UCD_N; at += len) {
        uint64_t bytes;

        if (!(bits & DAVIT_UCD_ND))
            continue;
        bytes = count_digits(text, n, at, UINT64_MAX, &count);
        if (count % 3 == 0 && at > start)
            return at;
        if (count > 3)
            return at + count_digits(text, n, at, (count - 1) % 3 + 1, &count);
        len = (uint32_t)bytes;
    }
    return at;
}

uint64_t davit_scan_superbpe(const char *text, uint64_t n, uint64_t from,
                             uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;
    uint32_t len;

    while (count < cap && from < n) {
        if (davit_ucd_at(text, n, from, &len) & DAVIT_UCD_N)
            from = next_numbers(text, n, from);
        else
            from = run_without(text, n, from + len, DAVIT_UCD_N);
        out_ends[count++] = from;
    }
    return count;
}
