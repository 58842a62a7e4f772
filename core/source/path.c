/* SPDX-License-Identifier: Apache-2.0
 * The MODEL argument, names in a model directory, and where links may lead. */
#include "source/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "source/hub_cache.h"

static int32_t fail(DavitReport *report, uint32_t code, int32_t status,
                    const char *subject, const char *found, const char *message)
{
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = status,
                                                    .stage = "path",
                                                    .subject = subject,
                                                    .found = found,
                                                    .message = message});
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted names of @path->dir, hidden ones left out. */
static int32_t list_names(DavitModelPath *path, DavitReport *report)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) dir = g_dir_open(path->dir, 0, &error);
    const char *name;

    if (!dir)
        return fail(report, DAVIT_R_IO_FAILED, DAVIT_E_IO, path->dir, error->message,
                    "the directory cannot be read");
    while ((name = g_dir_read_name(dir))) {
        if (name[0] == '.')
            continue;
        if (path->names->len == DAVIT_MAX_DIR_ENTRIES)
            return davit_report_add(
                report,
                &(DavitFinding){.code = DAVIT_R_USAGE,
                                .status = DAVIT_E_LIMIT,
                                .stage = "path",
                                .subject = path->dir,
                                .expected = "at most 65536 names",
                                .message = "the directory holds too many files to be "
                                           "a model"});
        g_ptr_array_add(path->names, g_strdup(name));
    }
    g_ptr_array_sort(path->names, compare_names);
    return DAVIT_OK;
}

/* A path that is there wins over a cached hub id that is spelled the same. */
static void note_shadowed(const char *model, DavitReport *report)
{
    if (strchr(model, '/') && davit_hub_has(model))
        davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                    .severity = DAVIT_NOTE,
                                    .stage = "path",
                                    .subject = model,
                                    .found = "a directory, and a model of the hub cache",
                                    .message = "the directory is taken",
                                    .hint = "give the snapshot's path for the cached "
                                            "one"});
}

int32_t davit_model_path_init(DavitModelPath *path, const char *model,
                              DavitReport *report)
{
    struct stat st;
    int32_t status;

    *path = (DavitModelPath){.names = g_ptr_array_new_with_free_func(g_free)};
    if (stat(model, &st) != 0) {
        const bool absent = errno == ENOENT || errno == ENOTDIR;

        if (absent && davit_hub_is_id(model) &&
            (strchr(model, '/') || davit_hub_has(model))) {
            status = davit_hub_find(model, &path->dir, report);
            status = status ? status : list_names(path, report);
            if (status)
                davit_model_path_clear(path);
            return status;
        }

        status = davit_report_add(
            report, &(DavitFinding){
                        .code = absent ? DAVIT_R_NOT_FOUND : DAVIT_R_IO_FAILED,
                        .status = DAVIT_E_IO,
                        .stage = "path",
                        .subject = model,
                        .found = g_strerror(errno),
                        .expected = "a model directory, a .gguf or a .safetensors",
                        .message = absent ? "there is no such model"
                                          : "the model cannot be reached"});
    } else if (S_ISDIR(st.st_mode)) {
        path->dir = g_strdup(model);
        note_shadowed(model, report);
        status = list_names(path, report);
    } else {
        path->dir = g_path_get_dirname(model);
        path->entry = g_path_get_basename(model);
        status = list_names(path, report);
    }
    if (status)
        davit_model_path_clear(path);
    return status;
}

void davit_model_path_clear(DavitModelPath *path)
{
    g_clear_pointer(&path->dir, g_free);
    g_clear_pointer(&path->entry, g_free);
    g_clear_pointer(&path->names, g_ptr_array_unref);
}

bool davit_model_path_has(const DavitModelPath *path, const char *name)
{
    guint low = 0;
    guint high = path->names->len;

    while (low < high) {
        const guint mid = low + (high - low) / 2;
        const int order = strcmp(name, g_ptr_array_index(path->names, mid));

        if (order == 0)
            return true;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return false;
}

/* ---- joining ---- */

/* Does @path lie in @root? Both are real paths. */
static bool is_under(const char *path, const char *root)
{
    const size_t n = strlen(root);

    return strncmp(path, root, n) == 0 &&
           (path[n] == '/' || (n > 0 && root[n - 1] == '/'));
}

/* Folder that links of @real_dir may lead into: the directory itself, or for a snapshot
 * of a hub cache (models--a--b/snapshots/REV) and folders in it the cached repository.
 * (owned) */
static char *link_root(const char *real_dir)
{
    char *repository = davit_hub_repository(real_dir);

    return repository ? repository : g_strdup(real_dir);
}

static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static int32_t check_link(const DavitModelPath *path, const char *name, const char *full,
                          DavitReport *report)
{
    g_autofree char *root = NULL;
    char *target = realpath(full, NULL);
    char *dir = realpath(path->dir, NULL);
    bool inside = true;

    if (target && dir) {
        root = link_root(dir);
        inside = is_under(target, root);
    }
    if (!inside)
        davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_HEADER_INVALID,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .stage = "path",
                                    .subject = name,
                                    .expected = root,
                                    .found = target,
                                    .message = "a link leads out of the model's folder",
                                    .hint = "copy the file into the folder, or name the "
                                            "folder that really holds it"});
    free(target);
    free(dir);
    return inside ? DAVIT_OK : DAVIT_E_UNSUPPORTED;
}

int32_t davit_model_path_join(const DavitModelPath *path, const char *name,
                              char **out_path, DavitReport *report)
{
    g_autofree char *full = NULL;
    struct stat st;
    int32_t status = DAVIT_OK;

    if (!is_plain_name(name))
        return davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_HEADER_INVALID,
                            .status = DAVIT_E_CORRUPT,
                            .stage = "path",
                            .subject = name,
                            .expected = "a file name without path parts",
                            .found = name,
                            .message = "a file of a model must lie in its folder"});
    full = g_build_filename(path->dir, name, NULL);
    if (lstat(full, &st) != 0)
        return fail(report, errno == ENOENT ? DAVIT_R_NOT_FOUND : DAVIT_R_IO_FAILED,
                    DAVIT_E_IO, name, g_strerror(errno),
                    "there is no such file in the model's folder");
    if (S_ISLNK(st.st_mode) && stat(full, &st) != 0) {
        g_autofree char *target = g_file_read_link(full, NULL);

        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_NOT_FOUND,
                                    .status = DAVIT_E_IO,
                                    .stage = "path",
                                    .subject = name,
                                    .found = target,
                                    .message = "a link in the model's folder leads to nothing",
                                    .hint = "what it stood for was deleted or never came: "
                                            "download the model again"});
    }
    /* The file that the user named may be a link to anywhere. */
    if (g_strcmp0(name, path->entry) != 0)
        status = check_link(path, name, full, report);
    if (!status)
        *out_path = g_steal_pointer(&full);
    return status;
}

/* ---- shard names ---- */

/* "-NNNNN" with exactly five digits at @p. */
static bool read_five(const char *p, uint32_t *out)
{
    uint32_t n = 0;

    for (int i = 0; i < 5; i++) {
        if (!g_ascii_isdigit(p[i]))
            return false;
        n = n * 10 + (uint32_t)(p[i] - '0');
    }
    *out = n;
    return true;
}

bool davit_shard_name_parse(const char *name, DavitShardName *out)
{
    const size_t n_tail = strlen("-00001-of-00004");
    const char *dot = strrchr(name, '.');
    const char *tail;
    DavitShardName shard = {0};

    if (!dot || (size_t)(dot - name) < n_tail)
        return false;
    tail = dot - n_tail;
    if (tail[0] != '-' || strncmp(tail + 6, "-of-", 4) != 0)
        return false;
    if (!read_five(tail + 1, &shard.no) || !read_five(tail + 10, &shard.count))
        return false;
    if (shard.no < 1 || shard.no > shard.count)
        return false;
    shard.n_prefix = (size_t)(tail - name);
    shard.ext = dot;
    *out = shard;
    return true;
}
