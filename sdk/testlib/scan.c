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

/* Is @at an end of @list, or the text's beginning? */
static int is_end(const ends_list *list, uint64_t at)
{
    for (uint64_t i = 0; i < list->n; i++)
        if (place(list->ends[i]) == at)
            return 1;
    return at == 0;
}

/* A cut at @at: an end of the whole text's pieces, and a fresh scan of what follows, which sees
 * nothing before it, gives the rest of them. */
static int check_cut(davit_test *t, const davit_tok_shape *shape, const char *text, uint64_t n,
                     uint64_t at, const ends_list *whole)
{
    uint8_t *rest;
    ends_list fresh;
    int same;

    if (!test_expect(t, is_end(whole, at), "the cut %llu of '%.*s' lies inside a piece",
                     (unsigned long long)at, (int)n, text))
        return 0;
    if (at == n)
        return 1;
    rest = test_exact(text + at, n - at);
    fresh = scan_all(t, shape, (const char *)rest, n - at, 0, n - at + 1);
    for (uint64_t i = 0; i < fresh.n; i++)
        fresh.ends[i] += at;
    same = continues(whole, &fresh, at);
    free(fresh.ends);
    test_exact_free(rest, n - at);
    return test_expect(t, same,
                       "a scan begun at the cut %llu of '%.*s' differs from the continued one",
                       (unsigned long long)at, (int)n, text);
}

/* Every cut that a thread may be given: from every offset of the text. */
static void check_cuts(davit_test *t, const davit_tok_shape *shape, const char *text,
                       uint64_t n, const ends_list *whole)
{
    uint64_t done = UINT64_MAX; /* the cut that was looked at last */

    for (uint64_t from = 0; from <= n; from++) {
        const uint64_t at = shape->cut(text, n, from);

        if (!test_expect(t, at >= from && at <= n, "the cut from %llu of %llu is %llu",
                         (unsigned long long)from, (unsigned long long)n,
                         (unsigned long long)at))
            return;
        if (at != done && !check_cut(t, shape, text, n, at, whole))
            return;
        done = at;
    }
}

/* The same ends with any cap, from any end, and from any cut. @text is of exactly @n. */
static void check_splits(davit_test *t, const davit_tok_shape *shape, const char *text,
                         uint64_t n, const ends_list *whole)
{
    const uint64_t caps[] = {1, 2, 7};

    for (size_t c = 0; c < sizeof caps / sizeof *caps; c++) {
        ends_list parts = scan_all(t, shape, text, n, 0, caps[c]);
        test_expect(t, continues(whole, &parts, 0), "'%.*s': other ends with %llu per call",
                    (int)n, text, (unsigned long long)caps[c]);
        free(parts.ends);
    }
    for (uint64_t i = 0; i < whole->n; i++) {
        const uint64_t from = place(whole->ends[i]);
        ends_list rest = scan_all(t, shape, text, n, from, n + 1);

        test_expect(t, continues(whole, &rest, from),
                    "'%.*s': other ends when the scan goes on from %llu", (int)n, text,
                    (unsigned long long)from);
        free(rest.ends);
    }
    if (shape->cut)
        check_cuts(t, shape, text, n, whole);
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
    char *exact;
    ends_list whole;
    uint64_t n_pieces = 0;

    if (!test_expect(t, shape && shape->scan, "the shape has no scan"))
        return;
    exact = (char *)test_exact(text, n); /* no NUL: a read past the end is seen */
    while (pieces[n_pieces])
        n_pieces++;
    whole = scan_all(t, shape, exact, n, 0, n + 1);
    test_expect(t, whole.n == n_pieces, "'%s' is cut into %llu pieces, expected %llu", text,
                (unsigned long long)whole.n, (unsigned long long)n_pieces);
    for (uint64_t i = 0; i < whole.n && i < n_pieces; i++)
        check_piece(t, text, pieces[i], i ? place(whole.ends[i - 1]) : 0, whole.ends[i]);
    check_splits(t, shape, exact, n, &whole);
    free(whole.ends);
    test_exact_free((uint8_t *)exact, n);
}

#define MAX_BAD_TEXTS 8 /* then a random run ends: the reader has seen enough */

/* A text that nobody knows the pieces of, against itself. */
static void check_itself(davit_test *t, const davit_tok_shape *shape, const char *text,
                         uint64_t n)
{
    char *exact = (char *)test_exact(text, n);
    ends_list whole;

    test_round(t);
    whole = scan_all(t, shape, exact, n, 0, n + 1);
    check_splits(t, shape, exact, n, &whole);
    free(whole.ends);
    test_exact_free((uint8_t *)exact, n);
}

void davit_test_scan_random(davit_test *t, const davit_tok_shape *shape, uint64_t rounds)
{
    const uint64_t failed = t->n_failed;
    char text[512];

    if (!test_expect(t, shape && shape->scan, "the shape has no scan"))
        return;
    for (uint64_t r = 0; r < rounds && t->n_failed - failed < MAX_BAD_TEXTS; r++) {
        const uint64_t n_units = davit_test_between(t, 1, 40);
        uint64_t n = 0;

        for (uint64_t i = 0; i < n_units && n + 16 < sizeof text; i++)
            n += test_text_unit(t, text + n);
        check_itself(t, shape, text, n);
    }
}

void davit_test_scan_classes(davit_test *t, const davit_tok_shape *shape)
{
    const uint64_t failed = t->n_failed;
    char text[128];
    uint64_t n;

    if (!test_expect(t, shape && shape->scan, "the shape has no scan"))
        return;
    for (uint64_t i = 0; (n = test_text_border(i, text, sizeof text)) > 0 &&
                         t->n_failed - failed < MAX_BAD_TEXTS;
         i++)
        check_itself(t, shape, text, n);
}
