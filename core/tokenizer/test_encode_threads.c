/* SPDX-License-Identifier: Apache-2.0
 * One long text on several threads gives the ids of one thread, whatever the family.
 */
#include <string.h>

#include "tokenizer/test_golden.h"

#define MAX_THREADS 5

/* About @n bytes with everything that a cut may not cross: special tokens, runs of blanks
 * and newlines, marks, digits, lines that begin with letters. */
static GString *make_text(GRand *rand, size_t n)
{
    static const char *const parts[] = {
        "word",   "Word",   " and",      " 123456",      "\n",
        "\n\n",   "\r\n",   "  ",        "\t",           "a\xcc\x81",
        "\nline", "\nLine", " <s>",      "<s>",          "\xe6\x97\xa5\xe6\x9c\xac",
        "'s",     "!?",     ".",         "\xe2\x96\x81", " \xf0\x9f\x98\x80",
        "e",      "<tool>", "\n<tool>x", "\xc3\xa9",     "\ne\xcc\x81",
        "ing",    "day"};
    GString *text = g_string_new(NULL);

    while (text->len < n) {
        const char *part = parts[g_rand_int_range(rand, 0, G_N_ELEMENTS(parts))];
        int times =
            g_rand_int_range(rand, 0, 40) == 0 ? g_rand_int_range(rand, 1, 300) : 1;

        while (times-- > 0)
            g_string_append(text, part);
    }
    return text;
}

static void check_family(const void *data)
{
    g_autofree char *file = g_strdup_printf("%s/tests/golden/tokenizers/%s.json",
                                            DAVIT_SOURCE_DIR, (const char *)data);
    g_autoptr(DavitTokenizer) tokenizer = davit_test_load(file);
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    g_autoptr(GString) text = make_text(rand, 300000);
    DavitEncoder *encoders[MAX_THREADS];
    DavitIds want = {0}, got = {0};

    for (int i = 0; i < MAX_THREADS; i++)
        encoders[i] = davit_encoder_new(tokenizer);
    for (uint32_t flags = 0; flags < 2; flags++) {
        want.n = 0;
        g_assert_cmpint(
            davit_encode(encoders[0], text->str, text->len, flags, &want, report), ==, 0);
        for (size_t n = 2; n <= MAX_THREADS; n += 3) {
            got.n = 0;
            g_assert_cmpint(davit_encode_threads(encoders, n, text->str, text->len, flags,
                                                 &got, report),
                            ==, 0);
            g_assert_cmpuint(got.n, ==, want.n);
            g_assert_true(memcmp(got.ids, want.ids, want.n * sizeof *want.ids) == 0);
        }
    }
    for (int i = 0; i < MAX_THREADS; i++)
        davit_encoder_free(encoders[i]);
    davit_ids_clear(&want);
    davit_ids_clear(&got);
}

/* An unknown token that the vocabulary lacks, late in the text: the same refusal, and the
 * ids that were there before stay. */
static void failure_leaves_ids_alone(void)
{
    static const char json[] =
        "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
        "\"content\":\"\xe2\x96\x81\"},\"model\":{\"type\":\"BPE\",\"unk_token\":\"<u>\","
        "\"vocab\":{\"a\":0,\"\xe2\x96\x81\":1},\"merges\":[]}}";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_from_json(
        json, strlen(json), "x.json", davit_test_registry(), report);
    g_autoptr(GString) text = g_string_new(NULL);
    DavitEncoder *encoders[2];
    DavitIds ids = {0};

    davit_test_show(report);
    g_assert_nonnull(tokenizer);
    for (int i = 0; i < 2; i++)
        encoders[i] = davit_encoder_new(tokenizer);
    while (text->len < 400000)
        g_string_append(text, "aaa aa ");
    g_assert_cmpint(
        davit_encode_threads(encoders, 2, text->str, text->len, 0, &ids, report), ==,
        DAVIT_OK);
    const size_t before = ids.n;
    g_assert_cmpuint(before, ==, text->len);
    g_string_append(text, "z");
    g_assert_cmpint(
        davit_encode_threads(encoders, 2, text->str, text->len, 0, &ids, report), ==,
        DAVIT_E_CORRUPT);
    g_assert_cmpuint(ids.n, ==, before);
    for (int i = 0; i < 2; i++)
        davit_encoder_free(encoders[i]);
    davit_ids_clear(&ids);
}

int main(int argc, char **argv)
{
    static const char *const families[] = {
        "llama3",      "qwen2",      "o200k",     "gpt2_prefix", "gpt2_digits",
        "deepseek_v3", "spm_legacy", "spm_gemma", "spm_first",   "spm_unk",
        "added",       "superbpe",   "jais2",     "bloom",       "unigram_t5"};

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(families); i++) {
        g_autofree char *path =
            g_strdup_printf("/encode/threads_give_the_same_ids/%s", families[i]);

        g_test_add_data_func(path, families[i], check_family);
    }
    g_test_add_func("/encode/failure_leaves_ids_alone", failure_leaves_ids_alone);
    return g_test_run();
}
