/* SPDX-License-Identifier: Apache-2.0
 * The same on real files, which the tree may not carry: DAVIT_TOKENIZER_DATA names a
 * folder with NAME/tokenizer.json, NAME a member of real.golden.json. Skipped by name
 * without (exit 77).
 */
#include <stdio.h>
#include <string.h>

#include "tokenizer/test_golden.h"

static char *file_of(const char *name)
{
    const char *folder = g_getenv("DAVIT_TOKENIZER_DATA");

    return g_strdup_printf("%s/%s/tokenizer.json", folder ? folder : "", name);
}

static void test_file(const void *data)
{
    const char *name = data;
    g_autofree char *file = file_of(name);
    g_autoptr(DavitTokenizer) tokenizer = davit_test_load(file);
    json_t *golden =
        json_load_file(DAVIT_SOURCE_DIR "/tests/golden/tokenizers/real.golden.json",
                       JSON_ALLOW_NUL, NULL);

    g_assert_nonnull(golden);
    davit_test_golden(tokenizer, name, json_object_get(golden, name));
    json_decref(golden);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (argc != 2) {
        fprintf(stderr, "usage: test_tokenizer_real NAME\n");
        return 2;
    }
    g_autofree char *file = file_of(argv[1]);
    g_autofree char *path = g_strdup_printf("/tokenizer/real/%s", argv[1]);

    if (!g_file_test(file, G_FILE_TEST_IS_REGULAR)) {
        fprintf(stderr,
                "skipped: no %s/tokenizer.json in the folder that DAVIT_TOKENIZER_DATA "
                "names\n",
                argv[1]);
        return 77;
    }
    g_test_add_data_func(path, argv[1], test_file);
    return g_test_run();
}
