/* SPDX-License-Identifier: Apache-2.0
 * Every plugin that is built exports one symbol, needs no symbol of the core by its
 * libraries, and passes the static gates. Arguments: the files. */
#include "plugin/elf.h"

#include <string.h>

static void plugin_exports_its_entry_only(gconstpointer data)
{
    const char *path = data;
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(GMappedFile) map = g_mapped_file_new(path, FALSE, &error);
    g_autoptr(DavitElf) elf = NULL;

    g_assert_no_error(error);
    elf = davit_elf_read((const uint8_t *)g_mapped_file_get_contents(map),
                         g_mapped_file_get_length(map), path, report);
    g_assert_nonnull(elf);
    for (size_t i = 0; i < elf->exports->len; i++)
        g_test_message("exports %s", (const char *)g_ptr_array_index(elf->exports, i));
    g_assert_cmpuint(elf->n_exports, ==, 1);
    g_assert_true(elf->has_entry);
    g_assert_cmpuint(elf->notes->len, >=, 2);
    g_assert_cmpint(davit_elf_check(elf, path, report), ==, DAVIT_OK);
    for (size_t i = 0; i < elf->needed->len; i++)
        g_assert_null(strstr(g_ptr_array_index(elf->needed, i), "davit"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int i = 1; i < argc; i++) {
        g_autofree char *base = g_path_get_basename(argv[i]);
        g_autofree char *name = g_strdup_printf("/exports/%s", base);

        g_test_add_data_func(name, argv[i], plugin_exports_its_entry_only);
    }
    return g_test_run();
}
