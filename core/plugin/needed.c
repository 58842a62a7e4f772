/* SPDX-License-Identifier: Apache-2.0
 * The loader's search, by names. ld.so.cache: glibc's sysdeps/generic/dl-cache.h, the format
 * "glibc-ld.so.cache1.1": a header, entries {flags, key, value, os version, hwcap}, strings
 * with offsets from the start of the header. */
#include "plugin/needed.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_FILE  "/etc/ld.so.cache"
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define HEADER_LEN  48 /* magic 20, count 4, string length 4, flags 4, extension 4, unused 12 */
#define ENTRY_LEN   24

struct DavitLibraries {
    GHashTable *known; /* name -> is it there (GINT_TO_POINTER) */
    GHashTable *cache; /* set of names in ld.so.cache; NULL = not read yet */
    bool unreadable;   /* the cache is not there or is of another format */
};

static int add_loaded(struct dl_phdr_info *info, size_t size, void *names)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    g_hash_table_insert(names, g_strdup(slash ? slash + 1 : info->dlpi_name),
                        GINT_TO_POINTER(true));
    return 0;
}

DavitLibraries *davit_libraries_new(void)
{
    DavitLibraries *l = g_new0(DavitLibraries, 1);

    l->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    dl_iterate_phdr(add_loaded, l->known); /* what the process has, the loader takes again */
    return l;
}

void davit_libraries_free(DavitLibraries *libraries)
{
    if (!libraries)
        return;
    g_hash_table_unref(libraries->known);
    if (libraries->cache)
        g_hash_table_unref(libraries->cache);
    g_free(libraries);
}

static uint32_t u32_at(const char *bytes, size_t off)
{
    uint32_t x;

    memcpy(&x, bytes + off, sizeof x);
    return x;
}

/* Names of the cache in @bytes; false if it is something else. An old-format cache may stand
 * before ours: the magic is looked for. */
static bool parse_cache(const char *bytes, size_t len, GHashTable *names)
{
    const char *at = memmem(bytes, len, CACHE_MAGIC, strlen(CACHE_MAGIC));
    size_t left, n;

    if (!at || len - (size_t)(at - bytes) < HEADER_LEN)
        return false;
    left = len - (size_t)(at - bytes);
    n = u32_at(at, 20);
    if (n > (left - HEADER_LEN) / ENTRY_LEN)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = u32_at(at, HEADER_LEN + i * ENTRY_LEN + 4);

        if (key >= left || !memchr(at + key, '\0', left - key))
            return false;
        g_hash_table_add(names, g_strdup(at + key));
    }
    return n > 0;
}

static void read_cache(DavitLibraries *l)
{
    g_autofree char *bytes = NULL;
    size_t len = 0;

    l->cache = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    l->unreadable = !g_file_get_contents(CACHE_FILE, &bytes, &len, NULL) ||
                    !parse_cache(bytes, len, l->cache);
}

static bool lies_in(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return access(path, F_OK) == 0;
}

/* (owned) path of @name in the first of the colon-separated @dirs that has it, $ORIGIN being the
 * directory of @path; NULL = none. */
static char *find_in_list(const char *dirs, const char *name, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(dirs, ":", -1);
    g_autofree char *origin = g_path_get_dirname(path);

    for (size_t i = 0; parts[i]; i++) {
        g_autoptr(GString) dir = g_string_new(parts[i]);

        g_string_replace(dir, "${ORIGIN}", origin, 0);
        g_string_replace(dir, "$ORIGIN", origin, 0);
        if (dir->len && lies_in(dir->str, name))
            return g_build_filename(dir->str, name, NULL);
    }
    return NULL;
}

static bool lies_in_list(const char *dirs, const char *name, const char *path)
{
    g_autofree char *found = find_in_list(dirs, name, path);

    return found != NULL;
}

/* Without the object's own paths. */
static bool is_installed(DavitLibraries *l, const char *name)
{
    static const char *const usual[] = {"/lib", "/usr/lib", "/lib64", "/usr/lib64"};
    const char *path = getenv("LD_LIBRARY_PATH");

    if (strchr(name, '/'))
        return access(name, F_OK) == 0;
    if (path && lies_in_list(path, name, "/"))
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(usual); i++) {
        if (lies_in(usual[i], name))
            return true;
    }
    if (!l->cache)
        read_cache(l);
    return l->unreadable || g_hash_table_contains(l->cache, name);
}

static bool is_there(DavitLibraries *l, const char *name)
{
    gpointer known;

    if (g_hash_table_lookup_extended(l->known, name, NULL, &known))
        return GPOINTER_TO_INT(known);
    known = GINT_TO_POINTER(is_installed(l, name));
    g_hash_table_insert(l->known, g_strdup(name), known);
    return GPOINTER_TO_INT(known);
}

int32_t davit_needed_check(DavitLibraries *libraries, const GPtrArray *needed,
                           const char *runpath, const char *path, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < needed->len; i++) {
        const char *name = g_ptr_array_index(needed, i);

        if (is_there(libraries, name) ||
            (runpath && lies_in_list(runpath, name, path)))
            continue;
        status = davit_report_add(
            report,
            &(DavitFinding){
                .code = DAVIT_R_MISSING_DEP,
                .status = DAVIT_E_UNSUPPORTED,
                .stage = "policy",
                .subject = name,
                .expected = "a library on the loader's search path",
                .found = davit_report_text(report, "not found, needed by %s", path),
                .message = "a library that the plugin needs is not on this machine",
                .hint = "install it: davit looks again at every run"});
    }
    return status;
}

/* ---- one name, two libraries ---- */

typedef struct Loaded {
    const char *name; /* looked for */
    char *path;       /* (owned) of the object of that name; NULL = none */
} Loaded;

static int find_loaded(struct dl_phdr_info *info, size_t size, void *ctx)
{
    Loaded *loaded = ctx;
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    if (!slash || strcmp(slash + 1, loaded->name) != 0)
        return 0;
    loaded->path = g_strdup(info->dlpi_name);
    return 1;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) != 0 || stat(b, &y) != 0 ||
           (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

size_t davit_needed_clashes(const GPtrArray *needed, const char *runpath, const char *path,
                            DavitReport *report)
{
    size_t n = 0;

    for (size_t i = 0; runpath && i < needed->len; i++) {
        Loaded loaded = {.name = g_ptr_array_index(needed, i)};
        g_autofree char *own = find_in_list(runpath, loaded.name, path);

        if (!own)
            continue;
        dl_iterate_phdr(find_loaded, &loaded);
        if (loaded.path && !is_same_file(own, loaded.path)) {
            n++;
            davit_report_add(report,
                             &(DavitFinding){
                                 .code = DAVIT_R_LIBRARY_CLASH,
                                 .severity = DAVIT_WARNING,
                                 .stage = "dlopen",
                                 .subject = path,
                                 .expected = own,
                                 .found = loaded.path,
                                 .message = "a library of this name was loaded before, and the "
                                            "plugin runs on that one instead of its own",
                                 .hint = "the plugin's author can link the library statically "
                                         "or give it a name of its own"});
        }
        g_free(loaded.path);
    }
    return n;
}
