/* SPDX-License-Identifier: Apache-2.0
 * The cache file: what is not sound is as if it were not there; two writers lose nothing. */
#include "plugin/cache.h"

#include <stdlib.h>

#include "plugins/fixture.h"

#define NAME "plugins-1-" DAVIT_BUILD_ARCH ".json"

static json_t *value(int n)
{
    return json_pack("{s:i}", "n", n);
}

static int get(const DavitCache *cache, const char *path)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    return (int)json_integer_value(
        json_object_get(davit_cache_get(cache, path, &st, "probe"), "n"));
}

static void put(DavitCache *cache, const char *path, int n)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    davit_cache_put(cache, path, &st, "probe", value(n));
}

static int get_fresh(const char *dir, const char *path)
{
    DavitCache *cache = davit_cache_open(dir, NULL);
    const int n = get(cache, path);

    davit_cache_free(cache);
    return n;
}

static void put_fresh(const char *dir, const char *path, int n)
{
    DavitCache *cache = davit_cache_open(dir, NULL);

    put(cache, path, n);
    davit_cache_free(cache);
}

static void the_system_answers_where_the_user_has_nothing(void)
{
    char *dir = scratch_new();
    char *system = scratch_new();
    g_autofree char *a = scratch_write(dir, "a", "a", 1);
    g_autofree char *b = scratch_write(dir, "b", "b", 1);
    g_autofree char *crashed = scratch_write(dir, "c", "c", 1);
    g_autofree char *file = g_build_filename(system, NAME, NULL);
    DavitCache *cache = davit_cache_open(system, NULL);
    struct stat st;

    put(cache, a, 1);
    put(cache, b, 2);
    g_assert_cmpint(stat(crashed, &st), ==, 0);
    davit_cache_put(cache, crashed, &st, "probe",
                    json_pack("{s:s, s:i}", "outcome", "crashed", "n", 9));
    davit_cache_free(cache);
    put_fresh(dir, b, 3);

    cache = davit_cache_open(dir, NULL);
    g_assert_cmpint(get(cache, a), ==, 0);
    davit_cache_read_system(cache, system);
    g_assert_cmpint(get(cache, a), ==, 1);
    g_assert_cmpint(get(cache, b), ==, 3);       /* the user's own comes first */
    g_assert_cmpint(get(cache, crashed), ==, 0); /* root's crash is not this user's */
    davit_cache_free(cache);

    /* a file that others can write is not believed */
    g_assert_cmpint(chmod(file, 0666), ==, 0);
    cache = davit_cache_open(dir, NULL);
    davit_cache_read_system(cache, system);
    g_assert_cmpint(get(cache, a), ==, 0);
    davit_cache_free(cache);
    scratch_free(dir);
    scratch_free(system);
}

static void what_is_put_is_found_until_the_file_changes(void)
{
    char *dir = scratch_new();
    g_autofree char *a = scratch_write(dir, "a", "a", 1);

    put_fresh(dir, a, 7);
    g_assert_cmpint(get_fresh(dir, a), ==, 7);
    g_free(scratch_write(dir, "a", "b", 1));
    g_assert_cmpint(get_fresh(dir, a), ==, 0);
    scratch_free(dir);
}

static void put_outcome(DavitCache *cache, const char *path, const char *outcome)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    davit_cache_put(cache, path, &st, "probe",
                    json_pack("{s:s, s:i}", "outcome", outcome, "n", 7));
}

static void failures_are_forgotten_and_nothing_else(void)
{
    static const char *const outcomes[] = {"ok", "refused", "crashed", "timeout"};
    char *dir = scratch_new();
    char *files[4];
    DavitCache *cache = davit_cache_open(dir, NULL);
    json_t *all;

    for (size_t i = 0; i < 4; i++) {
        files[i] = scratch_write(dir, outcomes[i], "x", 1);
        put_outcome(cache, files[i], outcomes[i]);
    }
    davit_cache_free(cache);
    cache = davit_cache_open(dir, NULL);
    all = davit_cache_forget_failures(cache);
    g_assert_cmpuint(json_array_size(all), ==, 2);
    json_decref(all);
    davit_cache_free(cache);
    for (size_t i = 0; i < 4; i++) {
        g_assert_cmpint(get_fresh(dir, files[i]), ==, i < 2 ? 7 : 0);
        g_free(files[i]);
    }
    scratch_free(dir);
}

static void two_writers_lose_nothing(void)
{
    char *dir = scratch_new();
    g_autofree char *a = scratch_write(dir, "a", "a", 1);
    g_autofree char *b = scratch_write(dir, "b", "b", 1);
    DavitCache *first = davit_cache_open(dir, NULL);
    DavitCache *second = davit_cache_open(dir, NULL);

    put(first, a, 1);
    put(second, b, 2);
    davit_cache_free(first);
    davit_cache_free(second);
    g_assert_cmpint(get_fresh(dir, a), ==, 1);
    g_assert_cmpint(get_fresh(dir, b), ==, 2);
    scratch_free(dir);
}

/* Directory and file of one thread. */
typedef struct Writer {
    const char *dir;
    char *file;
    GThread *thread;
} Writer;

static void *write_often(void *data)
{
    const Writer *w = data;

    for (int i = 1; i <= 20; i++)
        put_fresh(w->dir, w->file, i);
    return NULL;
}

static void writers_at_once_leave_a_sound_file(void)
{
    char *dir = scratch_new();
    Writer writers[4];

    for (size_t i = 0; i < G_N_ELEMENTS(writers); i++) {
        g_autofree char *name = g_strdup_printf("f%zu", i);

        writers[i] = (Writer){.dir = dir, .file = scratch_write(dir, name, "x", 1)};
    }
    for (size_t i = 0; i < G_N_ELEMENTS(writers); i++)
        writers[i].thread = g_thread_new("write", write_often, &writers[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(writers); i++)
        g_thread_join(writers[i].thread);
    for (size_t i = 0; i < G_N_ELEMENTS(writers); i++) {
        /* one that waited too long for the lock may have lost an update, never the file */
        g_assert_cmpint(get_fresh(dir, writers[i].file), >, 0);
        g_free(writers[i].file);
    }
    scratch_free(dir);
}

static void unsound_files_are_ignored_and_replaced(void)
{
    static const char *const bad[] = {"", "{", "[]", "{\"schema\":\"x\",\"files\":{}}",
                                      "{\"schema\":\"davit-plugin-cache/1\",\"files\":[]}",
                                      "{\"schema\":\"davit-plugin-cache/1\",\"files\":{\"a\":1}}"};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *dir = scratch_new();
        g_autofree char *a = scratch_write(dir, "a", "a", 1);

        g_free(scratch_write(dir, NAME, bad[i], strlen(bad[i])));
        g_assert_cmpint(get_fresh(dir, a), ==, 0);
        put_fresh(dir, a, 5);
        g_assert_cmpint(get_fresh(dir, a), ==, 5);
        scratch_free(dir);
    }
}

/* Any byte may be wrong: nothing crashes, and a registry over it lists what is there. */
static void damaged_bytes_cost_nothing(void)
{
    char *dir = scratch_new();
    g_autofree char *path = fixture_path("good");
    g_autofree char *file = g_build_filename(dir, NAME, NULL);
    g_autofree char *bytes = NULL;
    size_t n;

    {
        g_autoptr(DavitReport) report = davit_report_new();

        davit_registry_free(registry_probing(path, dir, report));
    }
    g_assert_true(g_file_get_contents(file, &bytes, &n, NULL));
    for (size_t at = 0; at < n; at += 37) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitRegistry) registry = NULL;
        const char kept = bytes[at];

        bytes[at] = (char)g_test_rand_int_range(0, 256);
        g_free(scratch_write(dir, NAME, bytes, n));
        bytes[at] = kept;
        registry = registry_probing(path, dir, report);
        g_assert_cmpuint(davit_registry_files(registry)->len, ==, 1);
    }
    scratch_free(dir);
}

static void others_file_or_link_is_not_read(void)
{
    char *dir = scratch_new();
    g_autofree char *a = scratch_write(dir, "a", "a", 1);
    g_autofree char *file = g_build_filename(dir, NAME, NULL);
    g_autofree char *moved = g_build_filename(dir, "moved", NULL);

    put_fresh(dir, a, 3);
    g_assert_cmpint(g_chmod(file, 0666), ==, 0);
    g_assert_cmpint(get_fresh(dir, a), ==, 0);
    g_assert_cmpint(g_chmod(file, 0600), ==, 0);
    g_assert_cmpint(get_fresh(dir, a), ==, 3);
    g_assert_cmpint(g_rename(file, moved), ==, 0);
    g_assert_cmpint(symlink(moved, file), ==, 0);
    g_assert_cmpint(get_fresh(dir, a), ==, 0);
    scratch_free(dir);
}

static void directory_that_cannot_be_written_is_no_error(void)
{
    DavitCache *cache = davit_cache_open("/proc/nowhere", NULL);
    char *dir = scratch_new();
    g_autofree char *a = scratch_write(dir, "a", "a", 1);

    put(cache, a, 1);
    g_assert_cmpint(get(cache, a), ==, 1);
    g_assert_false(davit_cache_flush(cache));
    davit_cache_free(cache);
    scratch_free(dir);
}

static void files_that_are_gone_are_dropped(void)
{
    char *dir = scratch_new();
    g_autofree char *a = scratch_write(dir, "a", "a", 1);
    g_autofree char *b = scratch_write(dir, "b", "b", 1);
    g_autofree char *file = g_build_filename(dir, NAME, NULL);
    g_autofree char *text = NULL;

    put_fresh(dir, a, 1);
    g_assert_cmpint(g_remove(a), ==, 0);
    put_fresh(dir, b, 2);
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_null(strstr(text, a));
    g_assert_nonnull(strstr(text, b));
    scratch_free(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cache/system", the_system_answers_where_the_user_has_nothing);
    g_test_add_func("/cache/key", what_is_put_is_found_until_the_file_changes);
    g_test_add_func("/cache/failures", failures_are_forgotten_and_nothing_else);
    g_test_add_func("/cache/merge", two_writers_lose_nothing);
    g_test_add_func("/cache/at_once", writers_at_once_leave_a_sound_file);
    g_test_add_func("/cache/unsound", unsound_files_are_ignored_and_replaced);
    g_test_add_func("/cache/damaged", damaged_bytes_cost_nothing);
    g_test_add_func("/cache/foreign", others_file_or_link_is_not_read);
    g_test_add_func("/cache/unwritable", directory_that_cannot_be_written_is_no_error);
    g_test_add_func("/cache/gone", files_that_are_gone_are_dropped);
    return g_test_run();
}
