/* SPDX-License-Identifier: Apache-2.0
 * The same on real files, which the tree may not carry: DAVIT_TOKENIZER_DATA names a
 * folder with <name>/tokenizer.json for the names of real.golden.json. Skipped by name
 * without.
 */
#include <string.h>

#include "tokenizer/test_golden.h"

static const char *const names[] = {"deepseek_v3", "gptoss", "llama2", "llama3_1",
                                    "qwen3"};

static void test_file(const void *data)
{
    const char *name = data, *folder = g_getenv("DAVIT_TOKENIZER_DATA");
    g_autofree char *file =
        g_strdup_printf("%s/%s/tokenizer.json", folder ? folder : "", name);
    g_autoptr(DavitTokenizer) tokenizer = NULL;
    json_t *golden;

    if (!folder || !g_file_test(file, G_FILE_TEST_IS_REGULAR)) {
        g_autofree char *why = g_strdup_printf(
            "no %s/tokenizer.json in the folder that DAVIT_TOKENIZER_DATA names", name);

        g_test_skip(why);
        return;
    }
    tokenizer = davit_test_load(file);
    golden = json_load_file(DAVIT_SOURCE_DIR "/tests/golden/tokenizers/real.golden.json",
                            JSON_ALLOW_NUL, NULL);
    g_assert_nonnull(golden);
    davit_test_golden(tokenizer, name, json_object_get(golden, name));
    json_decref(golden);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf("/tokenizer/real/%s", names[i]);

        g_test_add_data_func(path, names[i], test_file);
    }
    return g_test_run();
}
