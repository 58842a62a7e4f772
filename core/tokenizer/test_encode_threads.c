/* SPDX-License-Identifier: Apache-2.0
 * One long text on several threads gives the ids of one thread, whatever the family.
 */
#include <string.h>

#include "base/sanitizer.h"
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
        for (size_t n = 1; n <= MAX_THREADS; n += n == 1 ? 1 : 3) {
            DavitEncodeWatch watch = {0};

            got.n = 0;
            davit_encoder_watch(encoders[0], &watch);
            g_assert_cmpint(davit_encode_threads(encoders, n, text->str, text->len, flags,
                                                 &got, report),
                            ==, 0);
            davit_encoder_watch(encoders[0], NULL);
            g_assert_cmpuint(watch.done, ==, watch.total); /* all of it was counted, once */
            g_assert_cmpuint(watch.total > 0, ==, text->len >= 262144);
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

/* ---- loading ---- */

#define LETTERS "abcdefghijklmnopqrstuvwxyz\"\\"
#define N_LETTERS 28

static void put_letters(GString *s, const int *letters, int n)
{
    for (int i = 0; i < n; i++) {
        if (strchr("\"\\", LETTERS[letters[i]]))
            g_string_append_c(s, '\\');
        g_string_append_c(s, LETTERS[letters[i]]);
    }
}

/* All tokens of one to three letters, the pairs with their merges, the triples with both. In
 * lines the list of merges takes 2 MB. @wrong: the left half of that merge is no token. */
static char *make_file(bool lines, bool pairs, int wrong)
{
    static const int counts[] = {28, 784, 21952};
    g_autoptr(GString) vocab = g_string_new(NULL);
    g_autoptr(GString) merges = g_string_new(NULL);
    const char *gap = lines ? "\n      " : "";
    int id = 0, n_merges = 0;

    for (int n = 1; n <= 3; n++) {
        for (int i = 0; i < counts[n - 1]; i++) {
            /* a step prime to 28 mixes the order of merges */
            const int mixed = n == 3 ? i * 9239 % 21952 : i;
            const int at[3] = {mixed % 28, mixed / 28 % 28, mixed / 784};

            g_string_append_printf(vocab, "%s%s\"", id > 0 ? "," : "", gap);
            put_letters(vocab, at, n);
            g_string_append_printf(vocab, "\": %d", id++);
            for (int left = 1; left < n; left++) {
                g_string_append_printf(merges, "%s%s%s\"%s", n_merges > 0 ? "," : "", gap,
                                       pairs ? "[" : "", n_merges == wrong ? "!" : "");
                n_merges++;
                put_letters(merges, at, left);
                g_string_append(merges, pairs ? "\"," : " ");
                if (pairs)
                    g_string_append_printf(merges, "%s\"", gap);
                put_letters(merges, at + left, n - left);
                g_string_append(merges, pairs ? "\"]" : "\"");
            }
        }
    }
    return g_strdup_printf(
        "{\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":null,"
        "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":"
        "\"BPE\",\"vocab\":{%s},\"merges\":[%s%s]}}",
        vocab->str, merges->str, gap);
}

static DavitTokenizer *load(const char *file, DavitReport *report)
{
    return davit_tokenizer_from_json(file, strlen(file), "t.json", davit_test_registry(),
                                     report);
}

/* A list in lines is read by two threads, one without by one. */
static void list_read_in_halves_is_the_same_list(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    g_autoptr(GString) text = g_string_new(NULL);
    DavitIds ids[3] = {{0}};

    for (int i = 0; i < 20000; i++)
        g_string_append_c(text, LETTERS[g_rand_int_range(rand, 0, N_LETTERS)]);
    for (int way = 0; way < 3; way++) {
        g_autofree char *file = make_file(way > 0, way < 2, -1);
        g_autoptr(DavitTokenizer) tokenizer = load(file, report);
        g_autoptr(DavitEncoder) encoder = NULL;

        davit_test_show(report);
        g_assert_nonnull(tokenizer);
        encoder = davit_encoder_new(tokenizer);
        g_assert_cmpint(
            davit_encode(encoder, text->str, text->len, 0, &ids[way], report), ==, 0);
        g_assert_cmpuint(ids[way].n, ==, ids[0].n);
        g_assert_true(memcmp(ids[way].ids, ids[0].ids, ids[0].n * sizeof(int32_t)) == 0);
    }
    g_assert_cmpuint(ids[0].n, <, text->len / 2);
    for (int way = 0; way < 3; way++)
        davit_ids_clear(&ids[way]);
}

/* Private memory of this process in bytes. */
static size_t private_bytes(void)
{
    g_autofree char *text = NULL;
    const char *line;

    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    line = strstr(text, "RssAnon:");
    g_assert_nonnull(line);
    return (size_t)g_ascii_strtoull(line + strlen("RssAnon:"), NULL, 10) * 1024;
}

/* Vocabulary, merges and their tables take less than three times the bytes of the file (2.4 here): merges of 32 bytes
 * each, as they once were, take more. */
static void loaded_file_takes_less_than_three_times_its_bytes(void)
{
    enum { COPIES = 8 };
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *file = make_file(false, true, -1);
    DavitTokenizer *copies[COPIES];
    size_t before;

    davit_tokenizer_free(load(file, report)); /* what is made once is there */
    before = private_bytes();
    for (int i = 0; i < COPIES; i++) {
        copies[i] = load(file, report);
        g_assert_nonnull(copies[i]);
    }
    if (!DAVIT_SANITIZED)
        g_assert_cmpuint(private_bytes() - before, <, 3 * COPIES * strlen(file));
    for (int i = 0; i < COPIES; i++)
        davit_tokenizer_free(copies[i]);
}

/* Wherever a merge is wrong, the first record names it. */
static void wrong_merge_of_either_half_is_named(void)
{
    static const int wrong[] = {0, 70, 22000, 30000, 44687};

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *file = make_file(true, true, wrong[i]);
        g_autofree char *want = g_strdup_printf("t.json: merges[%d]", wrong[i]);

        g_assert_null(load(file, report));
        g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, want);
        g_assert_cmpstr(davit_report_get(report, 0)->message, ==,
                        "left half is not in the vocabulary");
    }
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
    g_test_add_func("/load/list_read_in_halves_is_the_same_list",
                    list_read_in_halves_is_the_same_list);
    g_test_add_func("/load/wrong_merge_of_either_half_is_named",
                    wrong_merge_of_either_half_is_named);
    g_test_add_func("/load/memory", loaded_file_takes_less_than_three_times_its_bytes);
    return g_test_run();
}
