/* SPDX-License-Identifier: Apache-2.0
 * Traces and origins, byte by byte.
 */
#include "tokenizer/origin.h"

#include <string.h>

#include <davit/help/ucd.h>

void davit_trace_keep(GArray *trace, size_t from, size_t n)
{
    for (size_t i = 0; trace && i < n; i++) {
        const uint32_t at = (uint32_t)(from + i) | DAVIT_TRACE_SAME;

        g_array_append_val(trace, at);
    }
}

void davit_trace_put(GArray *trace, size_t n, uint32_t at)
{
    for (size_t i = 0; trace && i < n; i++)
        g_array_append_val(trace, at);
}

void davit_trace_changes(GArray *trace, const char *in, size_t in_len, const char *out,
                         size_t out_len, const GArray *changes)
{
    size_t place = 0, off = 0;
    uint32_t n, skip;

    for (guint i = 0; i < changes->len && off < out_len; i++, off += n) {
        const int32_t change = g_array_index(changes, int32_t, i);

        davit_ucd_decode(out, out_len, off, &n);
        if (change > 0) {
            davit_trace_put(trace, n, place > 0 ? (uint32_t)place - 1 : DAVIT_TRACE_NONE);
            continue;
        }
        davit_ucd_decode(in, in_len, place, &skip);
        if (change == 0 && skip == n && memcmp(in + place, out + off, n) == 0)
            davit_trace_keep(trace, place, n);
        else
            davit_trace_put(trace, n, (uint32_t)place);
        for (int32_t gone = change; gone <= 0 && place < in_len; gone++, place += skip)
            davit_ucd_decode(in, in_len, place, &skip);
    }
}

void davit_origin_start(GArray *origin, size_t len)
{
    g_array_set_size(origin, 0);
    for (size_t off = 0; off < len; off++) {
        const DavitOrigin one = {(uint32_t)off, (uint32_t)(off + 1)};

        g_array_append_val(origin, one);
    }
}

/* Of the character with byte @at of @text. */
static DavitOrigin of_char(const GArray *origin, guint len, const char *text, size_t at)
{
    size_t end = at + 1;

    while (at > 0 && ((uint8_t)text[at] & 0xc0) == 0x80)
        at--;
    while (end < len && ((uint8_t)text[end] & 0xc0) == 0x80)
        end++;
    return (DavitOrigin){g_array_index(origin, DavitOrigin, at).start,
                         g_array_index(origin, DavitOrigin, end - 1).end};
}

void davit_origin_follow(GArray *origin, const GArray *trace, const char *text)
{
    const guint before = origin->len;

    for (guint i = 0; i < trace->len; i++) {
        const uint32_t entry = g_array_index(trace, uint32_t, i);
        const uint32_t at = entry & ~DAVIT_TRACE_SAME;
        DavitOrigin one = {0, 0};

        if (at < before)
            one = entry & DAVIT_TRACE_SAME ? g_array_index(origin, DavitOrigin, at)
                                           : of_char(origin, before, text, at);
        g_array_append_val(origin, one);
    }
    g_array_remove_range(origin, 0, before);
}

void davit_origin_narrow(GArray *origin, size_t from, size_t len)
{
    g_array_remove_range(origin, 0, (guint)from);
    g_array_set_size(origin, (guint)len);
}
