/* SPDX-License-Identifier: Apache-2.0
 * Cuts of vocabularies of characters (SentencePiece's) change no id: random models and texts.
 */
#include "tokenizer/bpe.h"

#include <string.h>

/* Neighbours with equal last bytes, the mark among them; some have no token in some models. */
static const char *const some_chars[] = {"\xe2\x96\x81", "a",  "b", ",", ".",        "1",
                                         "2",            "\"", "\n", "\xc3\xa1", "\xc2\x81",
                                         "\xe4\xb8\x81", "\xe2\x96\x82", "\xf0\x9f\x98\x81", " "};
#define N_CHARS G_N_ELEMENTS(some_chars)

typedef struct Model {
    DavitVocab *vocab;
    GPtrArray *tokens; /* (owned) texts by id, those that merges may join */
    GArray *merges;    /* DavitMerge */
    DavitBpe bpe;
    DavitBpeScratch scratch;
    int64_t n_ids;
} Model;

static int64_t add(Model *m, const char *text)
{
    int32_t old = -1;

    for (guint i = 0; i < m->tokens->len && old < 0; i++)
        old = strcmp(m->tokens->pdata[i], text) == 0 ? (int32_t)i : -1;
    if (old >= 0)
        return old;
    g_assert_cmpint(davit_vocab_add(m->vocab, m->n_ids, text, strlen(text)), ==,
                    DAVIT_VOCAB_ADDED);
    g_ptr_array_add(m->tokens, g_strdup(text));
    return m->n_ids++;
}

/* Merges of tokens so far: those that follow each other in words, at random. */
static void add_merges(GRand *rand, Model *m, guint first, int n)
{
    while (n-- > 0) {
        const guint left = (guint)g_rand_int_range(rand, (int)first, (int)m->tokens->len);
        const guint right = (guint)g_rand_int_range(rand, (int)first, (int)m->tokens->len);
        g_autofree char *joined =
            g_strconcat(m->tokens->pdata[left], m->tokens->pdata[right], NULL);
        const DavitMerge merge = {left, right, m->merges->len, (uint32_t)add(m, joined)};

        g_array_append_val(m->merges, merge);
    }
}

static void make(GRand *rand, Model *m)
{
    const bool bytes = g_rand_boolean(rand);

    *m = (Model){.vocab = davit_vocab_new(),
                 .tokens = g_ptr_array_new_with_free_func(g_free),
                 .merges = g_array_new(FALSE, FALSE, sizeof(DavitMerge))};
    add(m, "<unk>");
    for (int b = 0; bytes && b < 256; b++) {
        g_autofree char *text = g_strdup_printf("<0x%02X>", b);

        if (b != 7 || g_rand_boolean(rand)) /* seldom not all of them */
            add(m, text);
    }
    const guint first = m->tokens->len;
    for (size_t i = 0; i < N_CHARS; i++) {
        if (i == 0 || g_rand_int_range(rand, 0, 6) > 0)
            add(m, some_chars[i]);
    }
    add_merges(rand, m, first, g_rand_int_range(rand, 0, 30));
    g_assert_cmpint(davit_vocab_seal(m->vocab), ==, -1);
    g_assert_true(davit_bpe_init(&m->bpe, m->vocab, m->merges->len));
    m->bpe.byte_fallback = bytes;
    m->bpe.fuse_unk = g_rand_boolean(rand);
    m->bpe.has_unk_name = true;
    m->bpe.unk = 0;
    g_assert_true(davit_bpe_fill(&m->bpe, (const DavitMerge *)(const void *)m->merges->data,
                                 m->merges->len));
}

static void clear(Model *m)
{
    davit_bpe_clear(&m->bpe);
    davit_bpe_scratch_clear(&m->scratch);
    davit_vocab_free(m->vocab);
    g_ptr_array_free(m->tokens, TRUE);
    g_array_free(m->merges, TRUE);
}

static void encode(Model *m, const char *text, size_t n, DavitIds *out)
{
    g_assert_cmpint(davit_bpe_encode(&m->bpe, &m->scratch, text, n, true, NULL, out), ==,
                    DAVIT_OK);
}

static void cuts_change_no_id(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    size_t n_cuts = 0, n_models = 0;

    for (int model = 0; model < 400; model++) {
        Model m;

        make(rand, &m);
        n_models += m.bpe.cuts;
        for (int i = 0; i < 60; i++) {
            g_autoptr(GString) text = g_string_new(NULL);
            DavitIds want = {0}, got = {0};

            for (int n = g_rand_int_range(rand, 1, i % 10 == 0 ? 150 : 14); n > 0; n--)
                g_string_append(text, some_chars[g_rand_int_range(rand, 0, N_CHARS)]);
            encode(&m, text->str, text->len, &want);
            for (size_t from = 0; from < text->len;) {
                const size_t end = davit_bpe_cut(&m.bpe, text->str, text->len, from);

                g_assert_cmpuint(end, >, from);
                encode(&m, text->str + from, end - from, &got);
                n_cuts += end < text->len;
                from = end;
            }
            g_assert_cmpuint(got.n, ==, want.n);
            g_assert_true(memcmp(got.ids, want.ids, want.n * sizeof *want.ids) == 0);
            davit_ids_clear(&want);
            davit_ids_clear(&got);
        }
        clear(&m);
    }
    g_test_message("%zu of 400 models cut, %zu cuts", n_models, n_cuts);
    g_assert_cmpuint(n_models, >, 250);
    g_assert_cmpuint(n_cuts, >, 20000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bpe_cuts/cuts_change_no_id", cuts_change_no_id);
    return g_test_run();
}
