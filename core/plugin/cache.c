/* SPDX-License-Identifier: Apache-2.0
 * The cache file: one JSON object, read whole. */
#include "plugin/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <gnu/libc-version.h>

#include <davit/plugin.h>

#include "plugin/trust.h"

#define SCHEMA    "davit-plugin-cache/1"
#define MAX_BYTES (16 * 1024 * 1024)
#define MAX_FILES 1024 /* entries that are kept */

struct DavitCache {
    char *path;        /* NULL = nothing is remembered */
    char *host;        /* hash of what every entry depends on beside its file */
    json_t *files;     /* real path -> {"key", "elf", "probe"} */
    json_t *system;    /* the same of the system's file; NULL = none */
    bool is_shared;    /* this is the system's file: others read it */
    GHashTable *dirty; /* real paths that changed here */
};

/* ---- keys ---- */

/* Version, ABI, C library, and the helper program itself: a rebuilt one probes again. Part of
 * each entry's key, so that two davits share the file in peace. */
static char *make_host(const char *helper)
{
    struct stat st = {0};
    g_autofree char *text = NULL;
    g_autofree char *sum = NULL;

    if (helper && stat(helper, &st) != 0)
        memset(&st, 0, sizeof st);
    text = g_strdup_printf("davit %s abi %d.%d %s glibc %s helper %" G_GINT64_FORMAT
                           ":%" G_GINT64_FORMAT ".%09ld",
                           DAVIT_VERSION, DAVIT_ABI_MAJOR, DAVIT_ABI_MINOR,
                           DAVIT_BUILD_TAG, gnu_get_libc_version(), (gint64)st.st_size,
                           (gint64)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec);
    sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    return g_strndup(sum, 16);
}

static char *make_key(const DavitCache *cache, const struct stat *st)
{
    return g_strdup_printf("%s:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT
                           ":%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT
                           ".%09ld:%" G_GINT64_FORMAT ".%09ld",
                           cache->host, (guint64)st->st_dev, (guint64)st->st_ino, (gint64)st->st_size,
                           (gint64)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec,
                           (gint64)st->st_ctim.tv_sec, (long)st->st_ctim.tv_nsec);
}

/* ---- reading ---- */

/* (owned) bytes of a file that is ours, or root's where @may_be_root, and that nobody else can
 * write; else NULL. */
static char *read_own(const char *path, bool may_be_root, size_t *out_len)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    char *bytes = NULL;
    size_t len = 0;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_uid == geteuid() || (may_be_root && st.st_uid == 0)) && !(st.st_mode & (S_IWGRP | S_IWOTH)) && st.st_size <= MAX_BYTES) {
        bytes = g_malloc((size_t)st.st_size + 1);
        while (len < (size_t)st.st_size) {
            const ssize_t n = read(fd, bytes + len, (size_t)st.st_size - len);

            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            len += (size_t)n;
        }
    }
    close(fd);
    *out_len = len;
    return bytes;
}

/* (owned) the object of files in @path; empty for anything unexpected. */
static json_t *read_files(const char *path, bool may_be_root)
{
    size_t len = 0;
    g_autofree char *bytes = read_own(path, may_be_root, &len);
    json_t *doc = bytes ? json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *files = json_object_get(doc, "files");
    const char *schema = json_string_value(json_object_get(doc, "schema"));

    if (json_is_object(files) && g_strcmp0(schema, SCHEMA) == 0)
        json_incref(files);
    else
        files = json_object();
    json_decref(doc);
    return files;
}

DavitCache *davit_cache_open(const char *dir, const char *helper)
{
    DavitCache *cache = g_new0(DavitCache, 1);
    g_autofree char *file = NULL;

    cache->dirty = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    cache->host = make_host(helper);
    /* a relative HOME or XDG_CACHE_HOME would be a folder of the current directory */
    if (davit_trust_privileged() || (dir && !*dir) ||
        (!dir && !g_path_is_absolute(g_get_user_cache_dir()))) {
        cache->files = json_object();
        return cache;
    }
    file = g_strdup_printf("plugins-1-%s.json", DAVIT_BUILD_ARCH);
    cache->path = dir ? g_build_filename(dir, file, NULL)
                      : g_build_filename(g_get_user_cache_dir(), "davit", file, NULL);
    cache->is_shared = g_strcmp0(dir, DAVIT_SYSTEM_CACHE) == 0;
    cache->files = read_files(cache->path, false);
    return cache;
}

void davit_cache_read_system(DavitCache *cache, const char *dir)
{
    g_autofree char *file = g_strdup_printf("plugins-1-%s.json", DAVIT_BUILD_ARCH);
    g_autofree char *path = g_build_filename(dir, file, NULL);

    if (davit_trust_privileged())
        return;
    json_decref(cache->system);
    cache->system = read_files(path, true);
}

void davit_cache_free(DavitCache *cache)
{
    if (!cache)
        return;
    davit_cache_flush(cache);
    json_decref(cache->files);
    json_decref(cache->system);
    g_hash_table_unref(cache->dirty);
    g_free(cache->path);
    g_free(cache->host);
    g_free(cache);
}

const char *davit_cache_path(const DavitCache *cache)
{
    return cache->path;
}

/* ---- look-up ---- */

static json_t *entry_of(const DavitCache *cache, json_t *files, const char *real,
                        const struct stat *st)
{
    json_t *entry = json_object_get(files, real);
    g_autofree char *key = make_key(cache, st);

    return g_strcmp0(json_string_value(json_object_get(entry, "key")), key) == 0 ? entry
                                                                                 : NULL;
}

json_t *davit_cache_get(const DavitCache *cache, const char *real, const struct stat *st,
                        const char *part)
{
    json_t *value = json_object_get(entry_of(cache, cache->files, real, st), part);
    const char *outcome;

    if (json_is_object(value))
        return value;
    value = json_object_get(entry_of(cache, cache->system, real, st), part);
    outcome = json_string_value(json_object_get(value, "outcome"));
    /* what failed for root may not fail for this user */
    return json_is_object(value) && (!outcome || strcmp(outcome, "ok") == 0) ? value : NULL;
}

void davit_cache_put(DavitCache *cache, const char *real, const struct stat *st,
                     const char *part, json_t *value)
{
    json_t *entry = entry_of(cache, cache->files, real, st);

    if (!g_utf8_validate(real, -1, NULL)) { /* JSON could not name it */
        json_decref(value);
        return;
    }
    if (!entry) {
        g_autofree char *key = make_key(cache, st);

        entry = json_pack("{s:s}", "key", key);
        json_object_set_new(cache->files, real, entry);
    }
    if (value)
        json_object_set_new(entry, part, value);
    else
        json_object_del(entry, part);
    g_hash_table_add(cache->dirty, g_strdup(real));
}

static bool is_failure(const json_t *entry)
{
    const char *outcome =
        json_string_value(json_object_get(json_object_get(entry, "probe"), "outcome"));

    return outcome && strcmp(outcome, "ok") != 0 && strcmp(outcome, "refused") != 0;
}

json_t *davit_cache_forget_failures(DavitCache *cache)
{
    json_t *all = json_array();
    const char *path;
    json_t *entry;

    json_object_foreach(cache->files, path, entry)
    {
        struct stat st;

        if (!is_failure(entry) || stat(path, &st) != 0 ||
            !entry_of(cache, cache->files, path, &st))
            continue;
        json_array_append_new(
            all, json_pack("{s:s, s:O}", "path", path, "outcome",
                           json_object_get(json_object_get(entry, "probe"), "outcome")));
        json_object_del(entry, "probe");
        g_hash_table_add(cache->dirty, g_strdup(path));
    }
    return all;
}

/* ---- writing ---- */

/* What is on disk now, with our changes over it; without files that are gone. (owned) */
static json_t *merge(const DavitCache *cache)
{
    json_t *files = read_files(cache->path, false);
    g_autoptr(GPtrArray) gone = g_ptr_array_new();
    GHashTableIter iter;
    gpointer path;
    const char *name;
    json_t *entry;

    g_hash_table_iter_init(&iter, cache->dirty);
    while (g_hash_table_iter_next(&iter, &path, NULL))
        json_object_set(files, path, json_object_get(cache->files, path));
    json_object_foreach(files, name, entry)
    {
        if (json_object_size(files) - gone->len > MAX_FILES ||
            access(name, F_OK) != 0)
            g_ptr_array_add(gone, g_strdup(name));
    }
    for (size_t i = 0; i < gone->len; i++) {
        json_object_del(files, g_ptr_array_index(gone, i));
        g_free(g_ptr_array_index(gone, i));
    }
    return files;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Temporary file beside @path, synced, renamed over it. */
static bool replace_file(const char *path, const char *text, mode_t mode)
{
    g_autofree char *temporary = g_strdup_printf("%s.XXXXXX", path);
    const int fd = g_mkstemp_full(temporary, O_WRONLY | O_CLOEXEC, 0600);
    bool done;

    if (fd < 0)
        return false;
    done = fchmod(fd, mode) == 0 && write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    done = close(fd) == 0 && done;
    if (done && rename(temporary, path) == 0)
        return true;
    unlink(temporary);
    return false;
}

/* The lock is waited for a little: losing another's entry costs one probe, no more. */
static int take_lock(const char *path)
{
    g_autofree char *name = g_strconcat(path, ".lock", NULL);
    const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    for (int i = 0; fd >= 0 && i < 200; i++) { /* a second */
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            break;
        g_usleep(5000);
    }
    return fd;
}

/* The cache's folder and the one above it, ~/.cache/davit; never a home that is not there. */
static void make_folders(const char *path, mode_t mode)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *above = g_path_get_dirname(dir);

    (void)g_mkdir(above, mode);
    (void)g_mkdir(dir, mode);
}

bool davit_cache_flush(DavitCache *cache)
{
    char *text;
    json_t *doc;
    int lock;
    bool done;

    if (!cache->path || g_hash_table_size(cache->dirty) == 0)
        return true;
    make_folders(cache->path, cache->is_shared ? 0755 : 0700);
    lock = take_lock(cache->path);
    if (lock < 0)
        return false;
    doc = json_pack("{s:s, s:o}", "schema", SCHEMA, "files", merge(cache));
    text = json_dumps(doc, JSON_COMPACT);
    done = text && replace_file(cache->path, text, cache->is_shared ? 0644 : 0600);
    free(text);
    json_decref(doc);
    close(lock);
    if (done)
        g_hash_table_remove_all(cache->dirty);
    return done;
}
