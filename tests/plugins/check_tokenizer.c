/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer family: lines, each with the run of line feeds behind it. Sound as it is; FAULT
 * (CMakeLists.txt) breaks one rule that only some texts show. */
#include <davit/tokenizer.h>
#include <davit/help/ucd.h>

enum { NONE, CUT_INSIDE, CUT_IN_RUN, CUT_BACK, OVER_READ, LOOKS_BACK, MARKS, FAMILY, NO_JSON };

static int is_feed(char c)
{
    return c == '\n' || c == '\r';
}

/* End of the piece that begins at @at. */
static uint64_t end_of(const char *text, uint64_t n, uint64_t at)
{
    while (at < n && !is_feed(text[at])) {
        uint32_t len;
        const uint32_t bits = davit_ucd_at(text, n, at, &len);

        /* a contraction in capitals is its own piece, unless something stands before it */
        if (FAULT == LOOKS_BACK && at + 1 < n && text[at] == '\'' && text[at + 1] == 'S' && at > 0)
            return at + 2;
        /* a mark ends a piece where a scan goes on, and does not where it begins */
        if (FAULT == MARKS && bits & DAVIT_UCD_MCE && at > 0)
            return at + len;
        at += len;
    }
    while (FAULT == OVER_READ ? is_feed(text[at]) : at < n && is_feed(text[at]))
        at++;
    return at < n ? at : n;
}

static uint64_t lines_scan(const char *text, uint64_t n, uint64_t from, uint64_t *out_ends,
                           uint64_t cap)
{
    uint64_t k = 0;

    while (k < cap && from < n)
        from = out_ends[k++] = end_of(text, n, from);
    return k;
}

static uint64_t lines_cut(const char *text, uint64_t n, uint64_t from)
{
    if (FAULT == CUT_INSIDE)
        return from < n ? from : n;
    if (FAULT == CUT_BACK && from > 2 && from < n)
        return from - 1;
    for (uint64_t at = from ? from : 1; at < n; at++)
        if (is_feed(text[at - 1]) && (FAULT == CUT_IN_RUN || !is_feed(text[at])))
            return at;
    return n;
}

static const davit_tok_shape shape = {
    .struct_size = DAVIT_END(davit_tok_shape, rank_facts),
    .name = "lines",
    .pre_tokenizer = FAULT == NO_JSON ? "{\"type\": Lines}" : "{\"type\": \"ExampleLines\"}",
    .scan = lines_scan,
    .cut = lines_cut};
static const davit_tok_shape *const shapes[] = {&shape, NULL};
static const davit_tokenizer_iface iface = {
    .struct_size = DAVIT_END(davit_tokenizer_iface, shapes), .shapes = shapes};

DAVIT_COMPONENT(lines, DAVIT_KIND_TOKENIZER, "org.example.check_tokenizer." NAME,
                "family=" FAMILY_NAME, DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.example.bundle.check_tokenizer." NAME, NAME, "Example", "1.0.0", "MIT", &lines);
