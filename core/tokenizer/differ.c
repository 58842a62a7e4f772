/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/differ.h"

#include <string.h>

/* Where readers of one vocabulary are known to part: blanks in front, between and behind, line
 * feeds, digits, contractions, forms that a normaliser changes, what has no token. */
static const char *const samples[] = {
    "The quick brown fox jumps over the lazy dog.",
    " leading blank",
    "trailing blank ",
    "two  blanks   three    four",
    "line\nfeeds\n\nand\r\ntabs\t\tand\n  indents",
    "1 12 123 1234 1234567890 3.14159 1,000,000",
    "I'm, you're, it's, WE'LL, don't, O'Neill's",
    "def f(x):\n    return {'a': x[0] + 1} # ok\n",
    "https://example.org/path?q=1&r=%20#frag",
    "caf\xc3\xa9 na\xc3\xafve \xc3\x9c"
    "berma\xc3\x9f",
    "cafe\xcc\x81 decomposed",
    "\xe4\xb8\xad\xe6\x96\x87\xe5\x88\x86\xe8\xaf\x8d\xe6\xb5\x8b\xe8\xaf\x95\xe3\x80\x82",
    "\xe3\x81\xb2\xe3\x82\x89\xe3\x81\x8c\xe3\x81\xaa\xe3\x82\xab\xe3\x82\xbf\xe3\x82\xab\xe3\x83\x8a",
    "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4 \xd1\x80\xd1\x83\xd1\x81\xd1\x81\xd0\xba\xd0\xb8\xd0\xb9 "
    "\xd8\xb9\xd8\xb1\xd8\xa8\xd9\x8a",
    "\xef\xbc\xa6\xef\xbd\x95\xef\xbd\x8c\xef\xbd\x8c\xef\xbc\x91\xef\xbc\x92 \xef\xac\x81 "
    "\xc2\xbd \xe2\x84\xa2",
    "\xf0\x9f\x98\x80\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd \xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
    "\xc2\xa0no-break\xe3\x80\x80ideographic\xe2\x80\x83"
    "em",
    "zero\xe2\x80\x8bwidth \xe2\x96\x81mark \xef\xb8\x8f",
    "\x01\x02 control \x7f",
    "!!!??...---===***((()))",
};

static bool is_other(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return n_a != n_b || memcmp(a, b, n_a) != 0;
}

static void compare_tokens(const DavitTokenizer *left, const DavitTokenizer *right, DavitDiffer *out)
{
    const size_t n = MIN(davit_tokenizer_n_ids(left), davit_tokenizer_n_ids(right));

    for (size_t id = 0; id < n; id++) {
        size_t n_a = 0, n_b = 0;
        const char *a = davit_tokenizer_text(left, (int32_t)id, &n_a);
        const char *b = davit_tokenizer_text(right, (int32_t)id, &n_b);

        if (!a || !b)
            continue;
        out->n_both++;
        if (is_other(a, n_a, b, n_b) && out->n_other++ == 0)
            out->first_other = (int32_t)id;
    }
}

/* Ids in front that both have go away. */
static void skip_common(DavitIds *left, DavitIds *right)
{
    size_t n = 0;

    while (n < left->n && n < right->n && left->ids[n] == right->ids[n])
        n++;
    left->n -= n;
    right->n -= n;
    if (left->n > 0)
        memmove(left->ids, left->ids + n, left->n * sizeof *left->ids);
    if (right->n > 0)
        memmove(right->ids, right->ids + n, right->n * sizeof *right->ids);
}

static void compare_texts(DavitEncoder *left, DavitEncoder *right, DavitDiffer *out)
{
    g_autoptr(DavitReport) aside = davit_report_new();

    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        const size_t len = strlen(samples[i]);
        DavitIds a = {0}, b = {0};

        if (davit_encode(left, samples[i], len, 0, &a, aside) == DAVIT_OK &&
            davit_encode(right, samples[i], len, 0, &b, aside) == DAVIT_OK) {
            out->n_texts++;
            skip_common(&a, &b);
            if ((a.n > 0 || b.n > 0) && out->n_cut++ == 0) {
                out->first_cut = samples[i];
                out->left = a;
                out->right = b;
                continue; /* they are the caller's now */
            }
        }
        davit_ids_clear(&a);
        davit_ids_clear(&b);
    }
}

void davit_tokenizer_differ(const DavitTokenizer *left, const DavitTokenizer *right,
                            DavitDiffer *out)
{
    g_autoptr(DavitEncoder) a = davit_encoder_new(left);
    g_autoptr(DavitEncoder) b = davit_encoder_new(right);

    *out = (DavitDiffer){.first_other = -1};
    compare_tokens(left, right, out);
    compare_texts(a, b, out);
}

void davit_differ_clear(DavitDiffer *differ)
{
    davit_ids_clear(&differ->left);
    davit_ids_clear(&differ->right);
}
