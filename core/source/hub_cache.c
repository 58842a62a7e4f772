/* SPDX-License-Identifier: Apache-2.0
 * Hub ids, refs and snapshots of the Hugging Face cache. */
#include "source/hub_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_REF   512u /* bytes of a ref file that are looked at */
#define MAX_SHOWN 6u   /* snapshots that a message names */
#define LEAST_HEX 7u   /* of a commit that is cut short, as git shows it */
#define MAX_DEPTH 6    /* folders of a subfolder model below its snapshot */

/* ---- ids ---- */

static bool is_word(const char *text, size_t n)
{
    if (n == 0 || n > 96 || text[0] == '.' || text[0] == '-' || text[n - 1] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!g_ascii_isalnum(text[i]) && !memchr("-_.", text[i], 3))
            return false;
    return true;
}

/* A revision becomes part of a path. */
static bool is_revision(const char *text)
{
    if (*text == '\0' || *text == '/' || strlen(text) > 200 || strstr(text, ".."))
        return false;
    for (; *text; text++)
        if (!g_ascii_isgraph(*text) || *text == '\\')
            return false;
    return true;
}

bool davit_hub_is_id(const char *model)
{
    const char *at = strchr(model, '@');
    const size_t n = at ? (size_t)(at - model) : strlen(model);
    const char *slash = memchr(model, '/', n);

    if (at && !is_revision(at + 1))
        return false;
    if (!slash)
        return is_word(model, n);
    return is_word(model, (size_t)(slash - model)) &&
           is_word(slash + 1, n - (size_t)(slash + 1 - model));
}

/* ---- root ---- */

char *davit_hub_root(void)
{
    const char *cache = g_getenv("HF_HUB_CACHE");
    const char *home = g_getenv("HF_HOME");
    const char *xdg = g_getenv("XDG_CACHE_HOME");
    const char *user = g_getenv("HOME");

    cache = cache && *cache ? cache : g_getenv("HUGGINGFACE_HUB_CACHE");
    if (cache && *cache)
        return g_strdup(cache);
    if (home && *home)
        return g_build_filename(home, "hub", NULL);
    if (xdg && *xdg)
        return g_build_filename(xdg, "huggingface", "hub", NULL);
    return user && *user
               ? g_build_filename(user, ".cache", "huggingface", "hub", NULL)
               : NULL;
}

/* (owned) ROOT/models--org--name. NULL without a root. */
static char *repository_of(const char *model)
{
    g_autofree char *root = davit_hub_root();
    const size_t n = strcspn(model, "@");
    g_autofree char *name = g_strndup(model, n);
    g_auto(GStrv) parts = g_strsplit(name, "/", 2);
    g_autofree char *joined = g_strjoinv("--", parts);
    g_autofree char *folder = g_strconcat("models--", joined, NULL);

    return root ? g_build_filename(root, folder, NULL) : NULL;
}

bool davit_hub_has(const char *model)
{
    g_autofree char *repository = davit_hub_is_id(model) ? repository_of(model) : NULL;

    return repository && g_file_test(repository, G_FILE_TEST_IS_DIR);
}

char *davit_hub_repository(const char *real_dir)
{
    g_autofree char *at = g_strdup(real_dir);

    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        g_autofree char *up = g_path_get_dirname(at);
        g_autofree char *name = g_path_get_basename(up);

        if (strcmp(name, "snapshots") == 0)
            return g_path_get_dirname(up);
        if (strcmp(up, at) == 0)
            return NULL;
        g_free(at);
        at = g_steal_pointer(&up);
    }
    return NULL;
}

char *davit_hub_id_of(const char *dir)
{
    char *real = realpath(dir, NULL);
    g_autofree char *name = g_path_get_basename(real ? real : "");
    g_autofree char *above = g_path_get_dirname(real ? real : "");
    g_autofree char *folder = NULL;
    g_autofree char *id = NULL;
    char *gap;

    /* the repository, or the folder of its snapshots */
    folder = strcmp(name, "snapshots") == 0 ? g_path_get_basename(above) : g_steal_pointer(&name);
    free(real);
    if (!g_str_has_prefix(folder, "models--"))
        return NULL;
    id = g_strdup(folder + strlen("models--"));
    gap = strstr(id, "--");
    if (gap) {
        *gap = '/';
        memmove(gap + 1, gap + 2, strlen(gap + 2) + 1);
    }
    return davit_hub_is_id(id) ? g_steal_pointer(&id) : NULL;
}

/* ---- refs and snapshots ---- */

static bool is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* (owned) names in @dir, sorted; empty if there is none. */
static GPtrArray *list(const char *dir)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d)) && names->len < 10000)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_text);
    return names;
}

static const char *list_text(DavitReport *report, const GPtrArray *names)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < names->len && i < MAX_SHOWN; i++)
        g_string_append_printf(text, "%s%.12s", i ? ", " : "",
                               (const char *)names->pdata[i]);
    if (names->len > MAX_SHOWN)
        g_string_append_printf(text, " and %u more", names->len - MAX_SHOWN);
    return davit_report_text(report, "%s", text->len ? text->str : "none");
}

static int32_t absent(DavitReport *report, const char *model, const char *path,
                      const char *found, const char *message, const char *hint)
{
    return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                                    .status = DAVIT_E_IO,
                                                    .stage = "path",
                                                    .subject = model,
                                                    .expected = path,
                                                    .found = found,
                                                    .message = message,
                                                    .hint = hint});
}

/* (owned) the commit in refs/@revision, "" if there is no such ref; NULL with a record if
 * it holds something else. */
static char *read_ref(const char *repository, const char *revision, DavitReport *report)
{
    g_autofree char *path = g_build_filename(repository, "refs", revision, NULL);
    g_autofree char *text = NULL;
    struct stat st;

    if (stat(path, &st) != 0)
        return g_strdup("");
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_REF ||
        !g_file_get_contents(path, &text, NULL, NULL) || !is_commit(g_strstrip(text))) {
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_HEADER_INVALID,
                                         .status = DAVIT_E_CORRUPT,
                                         .stage = "hub",
                                         .subject = path,
                                         .expected = "a commit of 40 hex digits",
                                         .found = text,
                                         .message = "a ref of the hub cache holds no "
                                                    "commit",
                                         .hint = "download the model again, or name the "
                                                 "commit: org/name@COMMIT"});
        return NULL;
    }
    return g_steal_pointer(&text);
}

/* The only one of @names that begins with @text, if that looks like the beginning of a commit.
 * (borrowed) NULL otherwise. */
static const char *begun_by(const GPtrArray *names, const char *text)
{
    const char *found = NULL;

    if (strlen(text) < LEAST_HEX || text[strspn(text, "0123456789abcdef")])
        return NULL;
    for (guint i = 0; i < names->len; i++) {
        if (!g_str_has_prefix(names->pdata[i], text))
            continue;
        if (found)
            return NULL;
        found = names->pdata[i];
    }
    return found;
}

/* No ref of that name: where one snapshot alone can be meant it is taken, of several none is
 * chosen. A commit may be cut short, as messages show it. */
static int32_t without_ref(const char *model, const char *repository,
                           const char *revision, char **out_commit, DavitReport *report)
{
    g_autofree char *snapshots = g_build_filename(repository, "snapshots", NULL);
    g_autofree char *ref = g_build_filename(repository, "refs", revision, NULL);
    g_autoptr(GPtrArray) names = list(snapshots);
    const char *begun = begun_by(names, revision);

    if (!begun && (names->len != 1 || strcmp(revision, "main") != 0))
        return absent(report, model, ref,
                      davit_report_text(report, "no such ref; snapshots: %s",
                                        list_text(report, names)),
                      "this revision of the model is not in the hub cache",
                      names->len ? "name a commit that is there: org/name@COMMIT"
                                 : "download the model");
    *out_commit = g_strdup(begun ? begun : names->pdata[0]);
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                     .severity = DAVIT_NOTE,
                                     .stage = "path",
                                     .subject = model,
                                     .expected = ref,
                                     .found = *out_commit,
                                     .message = begun
                                                    ? "the only snapshot whose commit begins "
                                                      "so is taken"
                                                    : "the cache has no ref of that name; its "
                                                      "only snapshot is taken"});
    return DAVIT_OK;
}

static int32_t find_commit(const char *model, const char *repository, char **out_commit,
                           DavitReport *report)
{
    const char *at = strchr(model, '@');
    const char *revision = at ? at + 1 : "main";
    g_autofree char *commit = is_commit(revision)
                                  ? g_strdup(revision)
                                  : read_ref(repository, revision, report);

    if (!commit)
        return DAVIT_E_CORRUPT;
    if (!*commit)
        return without_ref(model, repository, revision, out_commit, report);
    *out_commit = g_steal_pointer(&commit);
    return DAVIT_OK;
}

int32_t davit_hub_find(const char *model, char **out_dir, DavitReport *report)
{
    g_autofree char *repository = repository_of(model);
    g_autofree char *commit = NULL;
    g_autofree char *dir = NULL;
    g_autofree char *snapshots = NULL;
    g_autoptr(GPtrArray) names = NULL;
    int32_t status;

    if (!repository || !g_file_test(repository, G_FILE_TEST_IS_DIR))
        return absent(report, model,
                      davit_report_text(report, "a path, or %s",
                                        repository ? repository : "a hub cache"),
                      "neither is there", "there is no such model",
                      "check the path; HF_HUB_CACHE and HF_HOME say where the cache is");
    status = find_commit(model, repository, &commit, report);
    if (status)
        return status;
    snapshots = g_build_filename(repository, "snapshots", NULL);
    dir = g_build_filename(snapshots, commit, NULL);
    if (g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        *out_dir = g_steal_pointer(&dir);
        return DAVIT_OK;
    }
    names = list(snapshots);
    return absent(report, model, dir,
                  davit_report_text(report, "not there; snapshots: %s",
                                    list_text(report, names)),
                  "the snapshot that the revision stands for is not in the hub cache",
                  "download the model, or name a commit that is there: "
                  "org/name@COMMIT");
}

/* ---- partial downloads ---- */

void davit_hub_note_partial(const char *dir, DavitReport *report)
{
    char *real = realpath(dir, NULL);
    g_autofree char *repository = real ? davit_hub_repository(real) : NULL;
    g_autofree char *blobs =
        repository ? g_build_filename(repository, "blobs", NULL) : NULL;
    g_autoptr(GPtrArray) names = blobs ? list(blobs) : NULL;

    free(real);
    for (guint i = 0; names && i < names->len; i++) {
        const char *name = names->pdata[i];
        g_autofree char *full = g_build_filename(blobs, name, NULL);
        struct stat st;

        if (!g_str_has_suffix(name, ".incomplete") || stat(full, &st) != 0)
            continue;
        davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_STRAY_SHARD,
                            .severity = DAVIT_NOTE,
                            .stage = "hub",
                            .subject = name,
                            .found = davit_report_text(report,
                                                       "%" G_GUINT64_FORMAT " bytes",
                                                       (uint64_t)st.st_size),
                            .message = "a download that did not end lies in the cache",
                            .hint = "start the download again"});
    }
}
