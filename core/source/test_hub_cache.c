/* SPDX-License-Identifier: Apache-2.0
 * Hub ids against a cache made for each test. */
#include <ftw.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "source/hub_cache.h"
#include "source/path.h"

#define A "0123456789abcdef0123456789abcdef01234567"
#define B "89abcdef0123456789abcdef0123456789abcdef"

typedef struct Fixture {
    char *root;
    DavitReport *report;
} Fixture;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return g_remove(path);
}

static void set_up(Fixture *f, gconstpointer data)
{
    (void)data;
    f->root = g_dir_make_tmp("davit-hub-XXXXXX", NULL);
    f->report = davit_report_new();
    g_setenv("HF_HUB_CACHE", f->root, TRUE);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    (void)data;
    nftw(f->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    g_free(f->root);
    davit_report_free(f->report);
}

static void put(const Fixture *f, const char *path, const char *text)
{
    g_autofree char *full = g_build_filename(f->root, "models--org--name", path, NULL);
    g_autofree char *dir = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

static void finds(Fixture *f, const char *model, const char *commit)
{
    g_autofree char *dir = NULL;

    g_assert_cmpint(davit_hub_find(model, &dir, f->report), ==, DAVIT_OK);
    g_assert_true(g_str_has_suffix(dir, commit));
}

/* The last record: what was looked for, and what is there. */
static void refuses(Fixture *f, const char *model, int32_t status, const char *expected,
                    const char *found)
{
    char *dir = NULL;
    const DavitRecord *r;

    g_assert_cmpint(davit_hub_find(model, &dir, f->report), ==, status);
    g_assert_null(dir);
    r = davit_report_get(f->report, davit_report_count(f->report) - 1);
    g_assert_nonnull(strstr(r->expected, expected));
    g_assert_nonnull(strstr(r->found, found));
    g_assert_nonnull(r->hint);
}

static void ids(void)
{
    static const char *const good[] = {"gpt2", "org/name", "org/name-1.5_B@main",
                                       "org/name@refs/pr/3", ("o/n@" A)};
    static const char *const bad[] = {"",       "a/b/c",     "/abs/olute", "./a",  "../a",
                                      "org/",   "/name",     "org/na me",  "-x/y", ".x/y",
                                      "o/n@",   "o/n@../..", "o/n@/etc",   "a//b", "o/n@a b",
                                      "http://x/y"};

    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(davit_hub_is_id(good[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(davit_hub_is_id(bad[i]));
}

static void environment(void)
{
    static const char *const keys[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                       "XDG_CACHE_HOME", "HOME"};
    static const char *const roots[] = {"/0", "/1", "/2/hub", "/3/huggingface/hub",
                                        "/4/.cache/huggingface/hub"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *value = g_strdup_printf("/%zu", i);

        g_setenv(keys[i], value, TRUE);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *root = davit_hub_root();

        g_assert_cmpstr(root, ==, roots[i]);
        g_setenv(keys[i], "", TRUE); /* empty is not set */
    }
    g_assert_null(davit_hub_root());
}

static void revisions(Fixture *f, gconstpointer data)
{
    (void)data;
    put(f, "refs/main", A "\n");
    put(f, "refs/v1", B);
    put(f, "snapshots/" A "/config.json", "{}");
    put(f, "snapshots/" B "/config.json", "{}");
    finds(f, "org/name", A);
    finds(f, "org/name@main", A);
    finds(f, "org/name@v1", B);
    finds(f, "org/name@" B, B);
    g_assert_true(davit_hub_has("org/name"));
    g_assert_false(davit_hub_has("org/other"));
    finds(f, "org/name@0123456", A); /* cut short, as messages show it */
    finds(f, "org/name@89abcdef0123", B);
    refuses(f, "org/name@012345", DAVIT_E_IO, "refs/012345", "snapshots: ");
    refuses(f, "org/name@0123457", DAVIT_E_IO, "refs/0123457", "snapshots: ");
    refuses(f, "org/name@v2", DAVIT_E_IO, "refs/v2", "snapshots: 0123456789ab, 89abcdef");
    refuses(f, "org/other", DAVIT_E_IO, "models--org--other", "neither");
    put(f, "snapshots/0123456" B "/config.json", "{}");
    refuses(f, "org/name@0123456", DAVIT_E_IO, "refs/0123456", "snapshots: "); /* of two */
}

/* A folder of the cache that is given as a model: the id that is meant. */
static void folder_of_the_cache(Fixture *f, gconstpointer data)
{
    static const struct {
        const char *folder, *id;
    } rows[] = {{"models--org--name", "org/name"},
                {"models--org--name/snapshots", "org/name"},
                {"models--gpt2", "gpt2"},
                {"models--org--a--b", "org/a--b"},
                {"datasets--org--name", NULL},
                {"models--", NULL},
                {"nothere", NULL}};

    (void)data;
    put(f, "snapshots/" A "/config.json", "{}");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *dir = g_build_filename(f->root, rows[i].folder, NULL);
        g_autofree char *id = NULL;

        if (strcmp(rows[i].folder, "nothere") != 0)
            g_mkdir_with_parents(dir, 0755);
        id = davit_hub_id_of(dir);
        g_assert_cmpstr(id, ==, rows[i].id);
    }
}

/* A branch that moved on is not the folder that happens to be there. */
static void ref_without_its_snapshot(Fixture *f, gconstpointer data)
{
    (void)data;
    put(f, "refs/main", A);
    put(f, "snapshots/" B "/config.json", "{}");
    refuses(f, "org/name", DAVIT_E_IO, "snapshots/" A, "89abcdef0123");
}

static void only_snapshot_without_ref(Fixture *f, gconstpointer data)
{
    (void)data;
    put(f, "snapshots/" B "/config.json", "{}");
    finds(f, "org/name", B);
    g_assert_cmpuint(davit_report_get(f->report, 0)->code, ==, DAVIT_R_SOURCE_CHOSEN);
    put(f, "snapshots/" A "/config.json", "{}");
    refuses(f, "org/name", DAVIT_E_IO, "refs/main", "0123456789ab, 89abcdef0123");
}

static void ref_is_no_commit(Fixture *f, gconstpointer data)
{
    static const char *const bad[] = {"", "main", "../../../etc", (A "0")};

    (void)data;
    put(f, "snapshots/" A "/config.json", "{}");
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        put(f, "refs/main", bad[i]);
        refuses(f, "org/name", DAVIT_E_CORRUPT, "40 hex digits", bad[i]);
    }
}

static void path_comes_before_id(Fixture *f, gconstpointer data)
{
    g_autofree char *before = g_get_current_dir();
    DavitModelPath path;

    (void)data;
    put(f, "refs/main", A);
    put(f, "snapshots/" A "/config.json", "{}");
    g_assert_cmpint(g_chdir(f->root), ==, 0);
    g_assert_cmpint(davit_model_path_init(&path, "org/name", f->report), ==, DAVIT_OK);
    g_assert_true(g_str_has_suffix(path.dir, A));
    g_assert_true(davit_model_path_has(&path, "config.json"));
    davit_model_path_clear(&path);
    g_assert_cmpint(g_mkdir_with_parents("org/name", 0755), ==, 0);
    g_assert_cmpint(davit_model_path_init(&path, "org/name", f->report), ==, DAVIT_OK);
    g_assert_cmpstr(path.dir, ==, "org/name");
    davit_model_path_clear(&path);
    g_assert_cmpuint(davit_report_count(f->report), ==, 1);
    g_assert_cmpuint(davit_report_get(f->report, 0)->code, ==, DAVIT_R_SOURCE_CHOSEN);
    g_assert_cmpint(g_chdir(before), ==, 0);
}

/* Links of a folder below a snapshot lead into the repository's blobs, too. */
static void subfolder_of_a_snapshot(Fixture *f, gconstpointer data)
{
    g_autofree char *dir =
        g_build_filename(f->root, "models--org--name/snapshots/" A "/sub", NULL);
    g_autofree char *link = g_build_filename(dir, "w", NULL);
    g_autofree char *out = NULL;
    DavitModelPath path;

    (void)data;
    put(f, "blobs/x", "x");
    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_cmpint(symlink("../../../blobs/x", link), ==, 0);
    g_assert_cmpint(davit_model_path_init(&path, dir, f->report), ==, DAVIT_OK);
    g_assert_cmpint(davit_model_path_join(&path, "w", &out, f->report), ==, DAVIT_OK);
    davit_model_path_clear(&path);
}

static void partial_downloads_are_named(Fixture *f, gconstpointer data)
{
    g_autofree char *dir =
        g_build_filename(f->root, "models--org--name/snapshots/" A, NULL);

    (void)data;
    put(f, "snapshots/" A "/config.json", "{}");
    put(f, "blobs/abc", "whole");
    put(f, "blobs/def.incomplete", "12345");
    davit_hub_note_partial(dir, f->report);
    g_assert_cmpuint(davit_report_count(f->report), ==, 1);
    g_assert_cmpstr(davit_report_get(f->report, 0)->subject, ==, "def.incomplete");
    g_assert_cmpstr(davit_report_get(f->report, 0)->found, ==, "5 bytes");
}

#define ADD(test) g_test_add("/hub/" #test, Fixture, NULL, set_up, test, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD(revisions);
    ADD(folder_of_the_cache);
    ADD(ref_without_its_snapshot);
    ADD(only_snapshot_without_ref);
    ADD(ref_is_no_commit);
    ADD(path_comes_before_id);
    ADD(subfolder_of_a_snapshot);
    ADD(partial_downloads_are_named);
    g_test_add_func("/hub/ids", ids);
    g_test_add_func("/hub/environment", environment);
    return g_test_run();
}
