/* SPDX-License-Identifier: Apache-2.0
 * A scanner against expected pieces and against itself. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

const davit_tok_shape *davit_test_shape(const davit_test *t, uint64_t index)
{
    const davit_tokenizer_iface *iface = davit_test_iface(t);

    for (uint64_t i = 0; iface && iface->shapes[i]; i++)
        if (i == index)
            return iface->shapes[i];
    return NULL;
}

typedef struct ends_list {
    uint64_t *ends; /* (owned) */
    uint64_t n;
} ends_list;

static uint64_t place(uint64_t end)
{
    return end & ~DAVIT_TOK_DROP;
}

/* Dropped neighbours are one: a scanner may give them either way. */
static void append(ends_list *list, uint64_t end)
{
    if (list->n && end & list->ends[list->n - 1] & DAVIT_TOK_DROP)
        list->n--;
    list->ends[list->n++] = end;
}

/* All ends of @text from @from on, at most @cap per call. A scanner that breaks its contract
 * is a failed check and ends the list. */
static ends_list scan_all(davit_test *t, const davit_tok_shape *shape, const char *text,
                          uint64_t n, uint64_t from, uint64_t cap)
{
    ends_list list = {.ends = test_alloc((n + 2) * sizeof(uint64_t))};
    uint64_t *got = test_alloc(cap * sizeof *got), at = from;

    while (at < n) {
        const uint64_t k = shape->scan(text, n, at, got, cap);

        if (!test_expect(t, k > 0 && k <= cap, "scan from %llu of %llu gives %llu ends",
                         (unsigned long long)at, (unsigned long long)n,
                         (unsigned long long)k))
            break;
        for (uint64_t i = 0; i < k && at < n; i++) {
            if (!test_expect(t, place(got[i]) > at && place(got[i]) <= n,
                             "end %llu after %llu of %llu", (unsigned long long)place(got[i]),
                             (unsigned long long)at, (unsigned long long)n))
                got[i] = n;
            append(&list, got[i]);
            at = place(got[i]);
        }
        if (!test_expect(t, k == cap || at == n,
                         "scan gives fewer ends than asked before the text's end"))
            break;
    }
    free(got);
    return list;
}

/* Is @b what @a is from @from on? */
static int continues(const ends_list *a, const ends_list *b, uint64_t from)
{
    uint64_t skip = 0;

    while (skip < a->n && place(a->ends[skip]) <= from)
        skip++;
    return a->n - skip == b->n &&
           (b->n == 0 || memcmp(a->ends + skip, b->ends, b->n * sizeof *b->ends) == 0);
}

/* The same ends with any cap, from any end, and from any cut. @text is of exactly @n. */
static void check_splits(davit_test *t, const davit_tok_shape *shape, const char *text,
                         uint64_t n, const ends_list *whole)
{
    const uint64_t caps[] = {1, 2, 7};

    for (size_t c = 0; c < sizeof caps / sizeof *caps; c++) {
        ends_list parts = scan_all(t, shape, text, n, 0, caps[c]);
        test_expect(t, continues(whole, &parts, 0), "other ends with %llu per call",
                    (unsigned long long)caps[c]);
        free(parts.ends);
    }
    for (uint64_t i = 0; i < whole->n; i++) {
        const uint64_t from = place(whole->ends[i]);
        ends_list rest = scan_all(t, shape, text, n, from, n + 1);

        test_expect(t, continues(whole, &rest, from),
                    "other ends when the scan goes on from %llu", (unsigned long long)from);
        free(rest.ends);
    }
    if (!shape->cut)
        return;
    for (uint64_t from = 0; from < n;) {
        const uint64_t at = shape->cut(text, n, from);

        if (!test_expect(t, at >= from && at <= n, "cut leaves the text"))
            return;
        ends_list fresh = scan_all(t, shape, text + at, n - at, 0, n + 1);
        for (uint64_t i = 0; i < fresh.n; i++)
            fresh.ends[i] += at;
        test_expect(t, continues(whole, &fresh, at),
                    "a scan begun at the cut %llu differs from the continued one",
                    (unsigned long long)at);
        free(fresh.ends);
        from = at + 1;
    }
}

static void check_piece(davit_test *t, const char *text, const char *want, uint64_t from,
                        uint64_t end)
{
    const int drop = want[0] == DAVIT_TEST_DROP[0];
    const uint64_t n = place(end) - from;

    want += drop;
    test_expect(t, strlen(want) == n && memcmp(text + from, want, n) == 0,
                "piece '%.*s', expected '%s'", (int)n, text + from, want);
    test_expect(t, drop == ((end & DAVIT_TOK_DROP) != 0), "piece '%s' is %s", want,
                drop ? "kept, not dropped" : "dropped, not kept");
}

void davit_test_scan(davit_test *t, const davit_tok_shape *shape, const char *text,
                     const char *const *pieces)
{
    const uint64_t n = strlen(text);
    char *exact = malloc(n ? n : 1); /* no NUL: a read past the end is seen */
    ends_list whole;
    uint64_t n_pieces = 0;

    if (!test_expect(t, shape && shape->scan, "the shape has no scan") || !exact) {
        free(exact);
        return;
    }
    memcpy(exact, text, n);
    while (pieces[n_pieces])
        n_pieces++;
    whole = scan_all(t, shape, exact, n, 0, n + 1);
    test_expect(t, whole.n == n_pieces, "'%s' is cut into %llu pieces, expected %llu", text,
                (unsigned long long)whole.n, (unsigned long long)n_pieces);
    for (uint64_t i = 0; i < whole.n && i < n_pieces; i++)
        check_piece(t, text, pieces[i], i ? place(whole.ends[i - 1]) : 0, whole.ends[i]);
    check_splits(t, shape, exact, n, &whole);
    free(whole.ends);
    free(exact);
}

/* One random unit of text; returns its bytes. */
static uint64_t random_unit(davit_test *t, char *out)
{
    static const char *const units[] = {
        "a",  "B",  "z",    "I'm",        "'s",       "0",        "7",    "42",      " ",
        "  ", "\n", "\r\n", "\t",         ".",        ",",        "!?",   "--",      "_",
        "$",  "/",  "é",    "\xcc\x81",   "ß",        "Ж",        "中文", "日",      "ह",
        "ि",  "٣",  "½",    "\xe2\x80\x83", "\xc2\xa0", "😀",       "👍🏽",   "\xe2\x96\x81", "ﬁ"};
    const uint64_t pick = davit_test_between(t, 0, sizeof units / sizeof *units + 1);
    const char *unit;

    if (pick >= sizeof units / sizeof *units) { /* any byte: broken UTF-8 */
        out[0] = (char)davit_test_random(t);
        return 1;
    }
    unit = units[pick];
    memcpy(out, unit, strlen(unit));
    return strlen(unit);
}

void davit_test_scan_random(davit_test *t, const davit_tok_shape *shape, uint64_t rounds)
{
    char text[512];

    if (!test_expect(t, shape && shape->scan, "the shape has no scan"))
        return;
    for (uint64_t r = 0; r < rounds; r++) {
        const uint64_t n_units = davit_test_between(t, 1, 40);
        uint64_t n = 0;
        ends_list whole;
        char *exact;

        for (uint64_t i = 0; i < n_units && n + 16 < sizeof text; i++)
            n += random_unit(t, text + n);
        exact = test_alloc(n);
        memcpy(exact, text, n);
        whole = scan_all(t, shape, exact, n, 0, n + 1);
        check_splits(t, shape, exact, n, &whole);
        free(whole.ends);
        free(exact);
    }
}
