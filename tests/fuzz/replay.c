/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target as a plain test: every input as it is, every prefix of it, and a
 * fixed number of mutations from a fixed generator, so that two runs do the same. fuzz_x
 * [--faults EXT] [PATH...]
 * --faults takes the files ending in EXT out of all recipes in tests/faults; a PATH is a
 * file or a directory of files. With -N (a number) that many mutations per input. With
 * --seeds DIR the inputs are written there, one file each, and nothing is run: a first
 * corpus for the libFuzzer program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "faults/recipe.h"
#include "fuzz/fuzz.h"

#define MAX_PREFIXES 256u

static uint64_t n_runs;
static uint64_t n_mutations = 300;
static const char *seed_dir;

/* Each run gets bytes of its own size on the heap, so that ASan sees a read past the end.
 */
static void run(const uint8_t *data, size_t len)
{
    uint8_t *copy = g_malloc(len ? len : 1);

    if (len)
        memcpy(copy, data, len);
    LLVMFuzzerTestOneInput(copy, len);
    g_free(copy);
    n_runs++;
}

/* xorshift64*: the same numbers everywhere. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* One to four bytes changed; now and then a whole little-endian number becomes extreme.
 */
static void mutate(uint8_t *data, size_t len, uint64_t *state)
{
    static const uint64_t extreme[] = {0,          1,          0x7f,       0xff,
                                       0x7fffffff, 0xffffffff, INT64_MAX,  UINT64_MAX,
                                       1u << 31,   1ull << 62, 1ull << 63, 1000000};
    const uint64_t n = 1 + next_random(state) % 4;

    for (uint64_t i = 0; i < n; i++) {
        const size_t at = (size_t)(next_random(state) % len);
        const uint64_t kind = next_random(state) % 4;

        if (kind == 0 && len - at >= 8) {
            memcpy(data + at, &extreme[next_random(state) % G_N_ELEMENTS(extreme)], 8);
        } else if (kind == 1) {
            data[at] ^= (uint8_t)(1u << (next_random(state) % 8));
        } else if (kind == 2) {
            data[at] = (uint8_t) "\"{}[],:0-9.eE\\ux"[next_random(state) % 16];
        } else {
            data[at] = (uint8_t)next_random(state);
        }
    }
}

/* One file, named by its bytes. */
static void write_seed(const uint8_t *data, size_t len)
{
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA1, data, len);
    g_autofree char *path = g_build_filename(seed_dir, sum, NULL);

    if (!g_file_set_contents(path, (const char *)data, (gssize)len, NULL))
        g_error("%s: cannot be written", path);
    n_runs++;
}

static void run_input(const uint8_t *data, size_t len)
{
    uint64_t state = 0x9e3779b97f4a7c15u ^ len;
    const size_t step = len / MAX_PREFIXES + 1;
    g_autofree uint8_t *copy = NULL;

    if (seed_dir) {
        write_seed(data, len);
        return;
    }
    copy = g_malloc(len + 1);
    run(data, len);
    for (size_t n = 0; n < len; n += step)
        run(data, n);
    for (uint64_t i = 0; i < n_mutations && len > 0; i++) {
        memcpy(copy, data, len);
        mutate(copy, len, &state);
        run(copy, len);
    }
}

/* ---- where inputs come from ---- */

static void run_path(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autofree char *bytes = NULL;
    gsize len;
    const char *name;

    if (dir) {
        while ((name = g_dir_read_name(dir))) {
            g_autofree char *inner = g_build_filename(path, name, NULL);

            run_path(inner);
        }
    } else if (g_file_get_contents(path, &bytes, &len, NULL)) {
        run_input((const uint8_t *)bytes, len);
    } else {
        g_error("%s: cannot be read", path);
    }
}

static void run_recipe(const char *path, const char *ext)
{
    GPtrArray *files = recipe_read(path);

    for (guint i = 0; i < files->len; i++) {
        const RecipeFile *file = g_ptr_array_index(files, i);

        if (file->kind == 'f' && g_str_has_suffix(file->name, ext))
            run_input(file->bytes->data, file->bytes->len);
    }
    g_ptr_array_unref(files);
}

static void run_faults(const char *ext)
{
    g_autofree char *root = g_build_filename(DAVIT_SOURCE_DIR, "tests", "faults", NULL);
    g_autoptr(GDir) dir = g_dir_open(root, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *recipe = g_build_filename(root, name, "recipe", NULL);

        if (g_file_test(recipe, G_FILE_TEST_EXISTS))
            run_recipe(recipe, ext);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--faults") == 0 && i + 1 < argc)
            run_faults(argv[++i]);
        else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
            seed_dir = argv[++i];
        else if (argv[i][0] == '-')
            n_mutations = g_ascii_strtoull(argv[i] + 1, NULL, 10);
        else
            run_path(argv[i]);
    }
    printf("%s: %" G_GUINT64_FORMAT " inputs\n", argv[0], n_runs);
    return n_runs ? EXIT_SUCCESS : EXIT_FAILURE;
}
