/* SPDX-License-Identifier: Apache-2.0
 * For tests: paths of the built fixture plugins, scratch directories, registries over
 * them. */
#ifndef TEST_PLUGINS_FIXTURE_H
#define TEST_PLUGINS_FIXTURE_H

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "plugin/registry.h"

/* (owned) */
static inline char *fixture_path(const char *name)
{
    return g_strdup_printf("%s/%s.so", DAVIT_FIXTURE_DIR, name);
}

/* (owned) the bytes of a built fixture. */
static inline uint8_t *fixture_bytes(const char *name, size_t *out_len)
{
    g_autofree char *path = fixture_path(name);
    g_autoptr(GError) error = NULL;
    char *bytes = NULL;

    g_file_get_contents(path, &bytes, out_len, &error);
    g_assert_no_error(error);
    return (uint8_t *)bytes;
}

/* (owned) a new empty directory; end with scratch_free. */
static inline char *scratch_new(void)
{
    g_autoptr(GError) error = NULL;
    char *dir = g_dir_make_tmp("davit-test-XXXXXX", &error);

    g_assert_no_error(error);
    return dir;
}

/* Remove @dir, what is in it, and the string. One level deep below @dir at most. */
static inline void scratch_free(char *dir)
{
    GDir *handle = g_dir_open(dir, 0, NULL);
    const char *name;

    while (handle && (name = g_dir_read_name(handle))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_DIR) &&
            !g_file_test(path, G_FILE_TEST_IS_SYMLINK)) {
            GDir *inner = g_dir_open(path, 0, NULL);

            while (inner && (name = g_dir_read_name(inner))) {
                g_autofree char *file = g_build_filename(path, name, NULL);

                g_assert_cmpint(g_remove(file), ==, 0);
            }
            if (inner)
                g_dir_close(inner);
        }
        g_assert_cmpint(g_remove(path), ==, 0);
    }
    if (handle)
        g_dir_close(handle);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
    g_free(dir);
}

/* Write @bytes as @dir/@name with mode 0644. Returns: (owned) the path. */
static inline char *scratch_write(const char *dir, const char *name, const void *bytes,
                                  size_t n)
{
    char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;

    g_file_set_contents_full(path, bytes, (gssize)n, G_FILE_SET_CONTENTS_NONE, 0644,
                             &error);
    g_assert_no_error(error);
    g_assert_cmpint(g_chmod(path, 0644), ==, 0);
    return path;
}

/* Copy fixture @name to @dir/@as. Returns: (owned) the path. */
static inline char *scratch_copy(const char *dir, const char *name, const char *as)
{
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes(name, &n);

    return scratch_write(dir, as, bytes, n);
}

/* The same where the path is not needed. */
static inline void scratch_add(const char *dir, const char *name, const char *as)
{
    g_free(scratch_copy(dir, name, as));
}

/* (owned) a registry over one directory or file and nothing else. */
static inline DavitRegistry *registry_over(const char *path, DavitReport *report)
{
    const char *paths[] = {path, NULL};

    return davit_registry_open(
        &(DavitRegistryOptions){.plugin_paths = paths, .only_paths = true}, report);
}

#ifdef DAVIT_HELPER
/* The same with the probe helper and a cache in directory @cache ("" = none). */
static inline DavitRegistry *registry_probing(const char *path, const char *cache,
                                              DavitReport *report)
{
    const char *paths[] = {path, NULL};

    return davit_registry_open(&(DavitRegistryOptions){.plugin_paths = paths,
                                                       .only_paths = true,
                                                       .helper = DAVIT_HELPER,
                                                       .cache_dir = cache},
                               report);
}
#endif

/* (borrowed) the component @id in whatever state, or NULL. */
static inline DavitComponent *any_component(const DavitRegistry *registry, const char *id)
{
    const GPtrArray *all = davit_registry_components(registry);

    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (strcmp(c->id, id) == 0)
            return c;
    }
    return NULL;
}

/* (borrowed) first record with @code name, or NULL. */
static inline const DavitRecord *record_of(const DavitReport *report, const char *code)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);

        if (strcmp(davit_code_name(r->code), code) == 0)
            return r;
    }
    return NULL;
}

/* All records of @report, for the message of a failing test. */
static inline void show_records(const DavitReport *report)
{
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);
        g_autofree char *s = davit_record_sentence(r);

        g_test_message("%s %s %s: %s", davit_code_name(r->code), r->stage, r->who, s);
    }
}

#endif
