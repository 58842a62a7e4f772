/* SPDX-License-Identifier: Apache-2.0
 * A snapshot of a Hugging Face cache: links into blobs, refs, partial downloads, sizes.
 * Layout: models--ORG--NAME/{blobs,refs,snapshots,trees}; a snapshot's files are links
 * into blobs, or copies where links are not possible. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

typedef struct Cache {
    char *root;   /* (owned) models--a--b */
    char *commit; /* (owned) name of the snapshot's folder */
} Cache;

static void cache_clear(Cache *cache)
{
    g_free(cache->root);
    g_free(cache->commit);
}

static bool find_cache(const DavitPatient *p, Cache *out)
{
    char *real = p->path.dir ? realpath(p->path.dir, NULL) : NULL;
    g_autofree char *snapshots = real ? g_path_get_dirname(real) : NULL;
    g_autofree char *last = snapshots ? g_path_get_basename(snapshots) : NULL;
    const bool found = last && strcmp(last, "snapshots") == 0;

    if (found)
        *out = (Cache){.root = g_path_get_dirname(snapshots),
                       .commit = g_path_get_basename(real)};
    free(real);
    return found;
}

/* ---- D35 ---- */

static void check_link(DavitDoctor *d, const char *name, size_t *n_copies)
{
    g_autofree char *full = g_build_filename(d->patient.path.dir, name, NULL);
    g_autofree char *target = g_file_read_link(full, NULL);
    struct stat st;

    if (!target) {
        *n_copies += g_file_test(full, G_FILE_TEST_IS_REGULAR);
        return;
    }
    if (stat(full, &st) == 0 && st.st_size == 0) /* what dangles links.c tells */
        davit_doctor_say(d, "D35",
                         &(DavitFinding){.code = DAVIT_R_EMPTY_FILE,
                                         .status = DAVIT_E_CORRUPT,
                                         .subject = name,
                                         .found = "0 bytes",
                                         .message = "a blob of the snapshot is empty",
                                         .hint = "delete the blob and download it "
                                                 "again"});
}

static void check_blobs(DavitDoctor *d, const Cache *cache)
{
    g_autofree char *blobs = g_build_filename(cache->root, "blobs", NULL);
    g_autoptr(GDir) dir = g_dir_open(blobs, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *full = g_build_filename(blobs, name, NULL);
        g_autofree char *bytes = NULL;
        struct stat st;

        if (!g_str_has_suffix(name, ".incomplete") || stat(full, &st) != 0)
            continue;
        bytes = davit_doctor_bytes((uint64_t)st.st_size);
        davit_doctor_say(
            d, "D35",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = name,
                            .found = davit_doctor_text(
                                d, "%s, last written %.0f hours ago", bytes,
                                difftime(time(NULL), st.st_mtime) / 3600),
                            .message = "a download that did not end lies in the cache; "
                                       "it is not read",
                            .hint = "start the download again, or delete the file"});
    }
}

static void check_shape(DavitDoctor *d, const Cache *cache)
{
    const GPtrArray *names = d->patient.path.names;
    size_t n_copies = 0;

    for (guint i = 0; i < names->len; i++)
        check_link(d, g_ptr_array_index(names, i), &n_copies);
    check_blobs(d, cache);
    davit_doctor_fact(d, "D35", "snapshot %.12s, %u names, %zu of them copies and not links",
                      cache->commit, names->len, n_copies);
}

/* ---- D36: sizes as the hub stated them ---- */

static void check_size(DavitDoctor *d, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "path"));
    const json_t *size = json_object_get(row, "size");
    g_autofree char *full = NULL;
    struct stat st;

    if (!name || strchr(name, '/') || !json_is_integer(size))
        return; /* a size that is not stated is unknown, not zero */
    full = g_build_filename(d->patient.path.dir, name, NULL);
    if (stat(full, &st) == 0 && st.st_size != json_integer_value(size))
        davit_doctor_say(
            d, "D36",
            &(DavitFinding){
                .code = DAVIT_R_FILE_TRUNCATED,
                .status = DAVIT_E_CORRUPT,
                .subject = name,
                .expected = davit_doctor_text(d, "%lld bytes, as the hub listed it",
                                              (long long)json_integer_value(size)),
                .found = davit_doctor_text(d, "%lld bytes", (long long)st.st_size),
                .message = "the file has another size than the hub stated"});
}

static void check_tree(DavitDoctor *d, const Cache *cache)
{
    g_autofree char *name = g_strconcat(cache->commit, ".json", NULL);
    g_autofree char *full = g_build_filename(cache->root, "trees", name, NULL);
    json_t *doc = json_load_file(full, JSON_REJECT_DUPLICATES, NULL);
    const json_t *rows = json_is_array(doc) ? doc : json_object_get(doc, "files");
    const json_t *row;
    size_t i;

    if (!json_is_array(rows))
        davit_doctor_skip(d, "D36", "a file list of the hub (trees/COMMIT.json)");
    json_array_foreach(rows, i, row)
    {
        check_size(d, row);
    }
    json_decref(doc);
}

/* ---- D40, D41 ---- */

static char *read_ref(const Cache *cache, const char *name)
{
    g_autofree char *full = g_build_filename(cache->root, "refs", name, NULL);
    char *text = NULL;

    return g_file_get_contents(full, &text, NULL, NULL) ? g_strstrip(text) : NULL;
}

static void check_revision(DavitDoctor *d, const Cache *cache)
{
    g_autofree char *main_commit = read_ref(cache, "main");

    if (!main_commit) {
        davit_doctor_fact(d, "D41", "snapshot %.12s; the cache has no refs/main",
                          cache->commit);
        return;
    }
    davit_doctor_fact(d, "D41", "snapshot %.12s, refs/main %.12s", cache->commit,
                      main_commit);
    if (strcmp(main_commit, cache->commit) != 0)
        davit_doctor_say(d, "D41",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = cache->commit,
                                         .expected = davit_doctor_text(
                                             d, "%.12s, to which refs/main points",
                                             main_commit),
                                         .found = "another snapshot",
                                         .message = "this is not the snapshot that the "
                                                    "branch main stands for",
                                         .hint = "name the commit if this one is meant"});
}

void davit_check_cache(DavitDoctor *doctor)
{
    static const char *const ids[] = {"D35", "D36", "D41"};
    Cache cache;

    if (doctor->patient.path.dir)
        davit_doctor_fact(doctor, "D40", "found at %s without a network",
                          doctor->patient.path.dir);
    else
        davit_doctor_skip(doctor, "D40", "a model that is there");
    if (!find_cache(&doctor->patient, &cache)) {
        for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
            davit_doctor_skip(doctor, ids[i], "a snapshot of a hub cache");
        return;
    }
    check_shape(doctor, &cache);
    check_tree(doctor, &cache);
    check_revision(doctor, &cache);
    cache_clear(&cache);
}
