/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/differ.h"

#include "tokenizer/test_golden.h"

#define FILE(name) DAVIT_SOURCE_DIR "/tests/golden/tokenizers/" name

static void a_file_is_like_itself(void)
{
    static const char *const names[] = {FILE("spm_legacy.json"), FILE("o200k.json"),
                                        FILE("unigram_t5.json"), FILE("bert_cased.json")};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(DavitTokenizer) a = davit_test_load(names[i]);
        g_autoptr(DavitTokenizer) b = davit_test_load(names[i]);
        DavitDiffer differ;

        davit_tokenizer_differ(a, b, &differ);
        g_test_message("%s", names[i]);
        g_assert_cmpuint(differ.n_both, >, 250);
        g_assert_cmpuint(differ.n_other, ==, 0);
        g_assert_cmpint(differ.first_other, ==, -1);
        g_assert_cmpuint(differ.n_texts, >=, 18);
        g_assert_cmpuint(differ.n_cut, ==, 0);
        g_assert_null(differ.first_cut);
        davit_differ_clear(&differ);
    }
}

static void other_tokens_are_counted(void)
{
    g_autoptr(DavitTokenizer) a = davit_test_load(FILE("llama3.json"));
    g_autoptr(DavitTokenizer) b = davit_test_load(FILE("spm_legacy.json"));
    DavitDiffer differ;

    davit_tokenizer_differ(a, b, &differ);
    g_assert_cmpuint(differ.n_other, >, differ.n_both / 2);
    g_assert_cmpint(differ.first_other, >=, 0);
    davit_differ_clear(&differ);
}

/* One vocabulary, and another place for the mark in front. */
static void other_ids_are_found_with_equal_tokens(void)
{
    g_autoptr(DavitTokenizer) a = davit_test_load(FILE("spm_always.json"));
    g_autoptr(DavitTokenizer) b = davit_test_load(FILE("spm_never.json"));
    DavitDiffer differ;

    davit_tokenizer_differ(a, b, &differ);
    g_assert_cmpuint(differ.n_other, ==, 0);
    g_assert_cmpuint(differ.n_cut, >, 0);
    g_assert_nonnull(differ.first_cut);
    g_assert_true(differ.left.n > 0 && differ.right.n > 0);
    g_assert_cmpint(differ.left.ids[0], !=, differ.right.ids[0]);
    davit_differ_clear(&differ);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/differ/a_file_is_like_itself", a_file_is_like_itself);
    g_test_add_func("/differ/other_tokens_are_counted", other_tokens_are_counted);
    g_test_add_func("/differ/other_ids_are_found_with_equal_tokens",
                    other_ids_are_found_with_equal_tokens);
    return g_test_run();
}
