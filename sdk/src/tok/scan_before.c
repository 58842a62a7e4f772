/* SPDX-License-Identifier: Apache-2.0
 * Scanner bodies that cut at a literal mark.
 */
#include <davit/help/scan.h>

#include <string.h>

uint64_t davit_scan_before(const char *mark, uint64_t mark_len, const char *text, uint64_t n,
                           uint64_t from, uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        do
            from++;
        while (from < n &&
               (n - from < mark_len || memcmp(text + from, mark, (size_t)mark_len) != 0));
        out_ends[count++] = from;
    }
    return count;
}

uint64_t davit_scan_after(const char *mark, uint64_t mark_len, const char *text, uint64_t n,
                          uint64_t from, uint64_t *out_ends, uint64_t cap)
{
    uint64_t count = 0;

    while (count < cap && from < n) {
        while (n - from >= mark_len && memcmp(text + from, mark, (size_t)mark_len) != 0)
            from++;
        from = n - from >= mark_len ? from + mark_len : n;
        out_ends[count++] = from;
    }
    return count;
}
