/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a pattern of a tokenizer file, up to a NUL; the rest is the text. */
#include <string.h>

#include "base/regex.h"
#include "fuzz/fuzz.h"

/* Matches are in order, inside the text, and the batch ends where it says. */
static void match_all(const DavitRegex *regex, davit_span text)
{
    uint64_t pairs[32];
    uint64_t from = 0;
    uint64_t last = 0;

    for (int rounds = 0; rounds < 8 && (rounds == 0 || from < text.len); rounds++) {
        const int64_t n = davit_regex_matches(regex, text, from, pairs, 16, &from);

        for (int64_t i = 0; i < n; i++) {
            g_assert_cmpuint(pairs[2 * i], >=, last);
            g_assert_cmpuint(pairs[2 * i + 1], >=, pairs[2 * i]);
            last = pairs[2 * i + 1];
        }
        if (n < 0)
            return;
        g_assert_cmpuint(last, <=, text.len);
        g_assert_cmpuint(from, <=, text.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    const size_t n_pattern = nul ? (size_t)(nul - data) : size;
    const size_t n_text = nul ? size - n_pattern - 1 : 0;
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitRegex) regex = NULL;

    regex = davit_regex_compile(n_pattern ? (const char *)data : "", n_pattern,
                                size & DAVIT_REGEX_CASELESS, "fuzz", report);
    g_assert((regex != NULL) == !davit_report_failed(report));
    if (regex)
        match_all(regex, (davit_span){nul ? (const char *)nul + 1 : "", n_text});
    return 0;
}
