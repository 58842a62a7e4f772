/* SPDX-License-Identifier: Apache-2.0
 * Scanner bodies that cut at a literal: SentencePiece's mark, a space.
 */
#include <davit/help/scan.h>

#include <string.h>

static const char mark[3] = {'\xe2', '\x96', '\x81'}; /* U+2581 */

uint64_t davit_scan_before_mark(const char *text, uint64_t n, uint64_t from,
                                uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        do
            from++;
        while (from < n &&
               (n - from < sizeof mark || memcmp(text + from, mark, sizeof mark) != 0));
        out_ends[count++] = from;
    }
    return count;
}

uint64_t davit_scan_after_space(const char *text, uint64_t n, uint64_t from,
                                uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        const char *space = memchr(text + from, ' ', (size_t)(n - from));

        from = space ? (uint64_t)(space - text) + 1 : n;
        out_ends[count++] = from;
    }
    return count;
}
