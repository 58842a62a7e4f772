/* SPDX-License-Identifier: Apache-2.0
 * Every family against Hugging Face's tokenizers, on the small vocabularies of
 * tests/golden/tokenizers. A failure there means other ids for some text.
 */
#include <string.h>

#include "tokenizer/test_golden.h"

static const char *const names[] = {
    "gpt2",           "gpt2_prefix",    "gpt2_digits",    "llama3",
    "llama3_removed", "qwen2",          "qwen35",         "o200k",
    "tekken",         "deepseek_v3",    "added",          "spm_legacy",
    "spm_gemma",      "spm_first",      "spm_always",     "spm_never",
    "spm_unk",        "spm_fuse",       "kimi",           "bailing",
    "seed_coder",     "deepseek_coder", "deepseek_llm",   "bloom",
    "viking",         "falcon",         "jais2",          "exaone_moe",
    "minicpm5",       "laguna",         "tiny_aya",       "youtu",
    "superbpe",       "afmoe",          "afmoe_wide",     "chameleon",
    "unigram_t5",     "unigram_blanks", "unigram_albert", "unigram_bytes",
    "bert_uncased",   "bert_cased",     "bert_plain",     "bert_forms", "bert_fit", "bert_fit_left",
};

static void test_family(const void *data)
{
    const char *name = data;
    /* Set by hand to a folder that make_tokenizer_goldens.py --to wrote: more strings. */
    const char *given = g_getenv("DAVIT_GOLDEN_DIR");
    const char *folder = given ? given : DAVIT_SOURCE_DIR "/tests/golden/tokenizers";
    g_autofree char *file = g_strdup_printf("%s/%s.json", folder, name);
    g_autofree char *golden_file = g_strdup_printf("%s/%s.golden.json", folder, name);
    g_autoptr(DavitTokenizer) tokenizer = davit_test_load(file);
    json_t *golden = json_load_file(golden_file, JSON_ALLOW_NUL, NULL);

    g_assert_nonnull(golden);
    davit_test_golden(tokenizer, name, golden);
    json_decref(golden);
}

/* Many more random strings, made by the script's --random: FOLDER/<name>.<chunk>. */
static int compare_folder(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *file;
    guint64 count = 0;

    g_assert_nonnull(dir);
    while ((file = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, file, NULL);
        g_autofree char *name = g_strndup(file, strcspn(file, "."));
        g_autofree char *json =
            g_strdup_printf("%s/tests/golden/tokenizers/%s.json", DAVIT_SOURCE_DIR, name);
        g_autoptr(DavitTokenizer) tokenizer = davit_test_load(json);
        json_t *golden = json_load_file(path, JSON_ALLOW_NUL, NULL);

        g_test_message("%s", file);
        davit_test_golden(tokenizer, name, golden);
        count += (guint64)json_integer_value(json_object_get(golden, "count"));
        json_decref(golden);
    }
    g_test_message("%" G_GUINT64_FORMAT " strings are equal", count);
    return 0;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (argc > 1)
        return compare_folder(argv[1]);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf("/tokenizer/golden/%s", names[i]);

        g_test_add_data_func(path, names[i], test_family);
    }
    return g_test_run();
}
