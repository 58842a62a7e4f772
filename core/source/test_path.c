/* SPDX-License-Identifier: Apache-2.0
 * Shard names and names inside a model directory. Whole directories: tests/faults. */
#include <string.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "source/path.h"

static void shard_names(void)
{
    static const char *const bad[] = {"model.safetensors",
                                      "model-0001-of-0002.safetensors",
                                      "model-00000-of-00002.safetensors",
                                      "model-00003-of-00002.safetensors",
                                      "model-0000a-of-00002.safetensors",
                                      "model-00001-of-00002",
                                      "-of-.gguf",
                                      ""};
    DavitShardName s;

    g_assert_true(davit_shard_name_parse("model-00002-of-00004.safetensors", &s));
    g_assert_cmpuint(s.n_prefix, ==, 5);
    g_assert_cmpuint(s.no, ==, 2);
    g_assert_cmpuint(s.count, ==, 4);
    g_assert_cmpstr(s.ext, ==, ".safetensors");
    g_assert_true(davit_shard_name_parse("-00001-of-00001.gguf", &s));
    g_assert_cmpuint(s.n_prefix, ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(davit_shard_name_parse(bad[i], &s));
}

static void names_with_path_parts(void)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "/etc/passwd", "../x"};
    g_autoptr(DavitReport) report = davit_report_new();
    DavitModelPath path = {.dir = g_strdup("/"), .names = g_ptr_array_new()};
    char *out = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmpint(davit_model_path_join(&path, bad[i], &out, report), ==,
                        DAVIT_E_CORRUPT);
        g_assert_null(out);
    }
    g_assert_cmpuint(davit_report_get(report, 0)->code, ==, DAVIT_R_HEADER_INVALID);
    davit_model_path_clear(&path);
}

static void directory_is_listed_sorted(void)
{
    static const char *const files[] = {"b", "a", "c", ".hidden"};
    g_autofree char *dir = g_dir_make_tmp("davit-path-XXXXXX", NULL);
    g_autoptr(DavitReport) report = davit_report_new();
    DavitModelPath path;

    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *file = g_build_filename(dir, files[i], NULL);

        g_assert_true(g_file_set_contents(file, "x", 1, NULL));
    }
    g_assert_cmpint(davit_model_path_init(&path, dir, report), ==, DAVIT_OK);
    g_assert_null(path.entry);
    g_assert_cmpuint(path.names->len, ==, 3);
    g_assert_cmpstr(path.names->pdata[0], ==, "a");
    g_assert_true(davit_model_path_has(&path, "c"));
    g_assert_false(davit_model_path_has(&path, "d"));
    davit_model_path_clear(&path);
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *file = g_build_filename(dir, files[i], NULL);

        g_unlink(file);
    }
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/path/shard_names", shard_names);
    g_test_add_func("/path/names_with_path_parts", names_with_path_parts);
    g_test_add_func("/path/directory_is_listed_sorted", directory_is_listed_sorted);
    return g_test_run();
}
