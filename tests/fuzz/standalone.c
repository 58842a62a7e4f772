/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target over files and directories without libFuzzer: the plain test of each
 * target over its corpus. */
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "fuzz.h"

static size_t run_file(const char *path)
{
    char *bytes = NULL;
    gsize n = 0;

    if (!g_file_get_contents(path, &bytes, &n, NULL))
        return 0;
    /* a copy of exactly n bytes: g_file_get_contents adds a NUL that hides a step too far */
    {
        uint8_t *copy = n ? g_memdup2(bytes, n) : NULL;

        LLVMFuzzerTestOneInput(copy ? copy : (const uint8_t *)"", n);
        g_free(copy);
    }
    g_free(bytes);
    return 1;
}

static size_t run_dir(const char *dir, int depth)
{
    GDir *handle = g_dir_open(dir, 0, NULL);
    const char *name;
    size_t n = 0;

    while (handle && (name = g_dir_read_name(handle))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        if (!g_file_test(path, G_FILE_TEST_IS_DIR))
            n += run_file(path);
        else if (depth > 0)
            n += run_dir(path, depth - 1);
    }
    if (handle)
        g_dir_close(handle);
    return n;
}

int main(int argc, char **argv)
{
    size_t n = 0;

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') /* options of libFuzzer */
            continue;
        n += g_file_test(argv[i], G_FILE_TEST_IS_DIR) ? run_dir(argv[i], 4) : run_file(argv[i]);
    }
    printf("%zu inputs\n", n);
    return n > 0 ? 0 : 1;
}
