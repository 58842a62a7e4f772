/* SPDX-License-Identifier: Apache-2.0
 * The search path. */
#include "plugin/search.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/trust.h"

#define PLUGIN_DIR  "davit/plugins-1" /* the ABI major is in the name */
#define MAX_ENTRIES 4096              /* .so files of one directory */

enum { RANK_OPTION, RANK_ENV, RANK_CONFIG, RANK_USER, RANK_LOCAL, RANK_BUILTIN };
static const char *const tier_names[] = {"option", "env",   "config",
                                         "user",   "local", "builtin"};

typedef struct Search {
    GPtrArray *found; /* DavitCandidate */
    GPtrArray *dirs;  /* char * */
    char *builtin;    /* real path of davit's own directory; NULL = there is none */
    DavitReport *report;
} Search;

static void candidate_free(void *p)
{
    DavitCandidate *c = p;

    g_free(c->path);
    g_free(c);
}

/* (owned) NULL if @path does not exist. */
static char *real_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    char *copy = g_strdup(resolved);

    free(resolved);
    return copy;
}

static void complain(Search *search, DavitSeverity severity, uint32_t code,
                     const char *subject, const char *expected, const char *found,
                     const char *message)
{
    davit_report_add(
        search->report,
        &(DavitFinding){.code = code,
                        .severity = severity,
                        .status = severity == DAVIT_ERROR ? DAVIT_E_USAGE : DAVIT_OK,
                        .stage = "search",
                        .subject = subject,
                        .expected = expected,
                        .found = found,
                        .message = message,
                        .hint = "`davit plugin list` shows where davit looks"});
}

/* ---- files ---- */

static void add_file(Search *search, const char *path, int rank, bool is_named)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *real = real_path(dir);
    DavitCandidate *c = g_new0(DavitCandidate, 1);

    c->path = g_strdup(path);
    c->is_named = is_named;
    c->is_builtin = real && search->builtin && strcmp(real, search->builtin) == 0;
    c->rank = c->is_builtin ? RANK_BUILTIN : rank;
    c->tier = tier_names[c->rank];
    g_ptr_array_add(search->found, c);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns: false if @dir cannot be read. */
static bool add_dir(Search *search, const char *dir, int rank)
{
    GDir *handle = g_dir_open(dir, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    if (!handle)
        return false;
    while ((name = g_dir_read_name(handle))) {
        if (name[0] != '.' && g_str_has_suffix(name, ".so"))
            g_ptr_array_add(names, g_strdup(name));
        if (names->len > MAX_ENTRIES)
            break;
    }
    g_dir_close(handle);
    g_ptr_array_add(search->dirs, g_strdup(dir));
    if (names->len > MAX_ENTRIES) {
        complain(search, DAVIT_WARNING, DAVIT_R_USAGE, dir,
                 davit_report_text(search->report, "at most %d files", MAX_ENTRIES), NULL,
                 "the directory holds too many .so files and is not searched");
        return true;
    }
    g_ptr_array_sort(names, by_text);
    for (size_t i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(dir, g_ptr_array_index(names, i), NULL);

        add_file(search, path, rank, false);
    }
    return true;
}

/* ---- tiers ---- */

static void search_options(Search *search, const char *const *paths)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        g_autofree char *path = NULL;

        if (!*paths[i]) {
            complain(search, DAVIT_ERROR, DAVIT_R_USAGE, "--plugin-path", "a path",
                     "\"\"", "an empty plugin path");
            continue;
        }
        path = g_canonicalize_filename(paths[i], NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            const guint before = search->found->len;

            if (!add_dir(search, path, RANK_OPTION))
                complain(search, DAVIT_ERROR, DAVIT_R_IO_FAILED, path,
                         "a readable directory", NULL,
                         "the plugin directory cannot be read");
            else if (search->found->len == before)
                complain(search, DAVIT_WARNING, DAVIT_R_NOT_FOUND, path, "files that end in .so",
                         "none", "a directory of --plugin-path holds no plugin");
        } else if (g_file_test(path, G_FILE_TEST_EXISTS)) {
            add_file(search, path, RANK_OPTION, true);
        } else {
            complain(search, DAVIT_ERROR, DAVIT_R_NOT_FOUND, path,
                     "a directory or a plugin file", "nothing",
                     "the plugin path does not exist");
        }
    }
}

static void search_env(Search *search)
{
    const char *value = getenv("DAVIT_PLUGIN_PATH");
    g_auto(GStrv) parts = NULL;

    if (!value || !*value)
        return;
    parts = g_strsplit(value, ":", -1);
    for (size_t i = 0; parts[i]; i++) {
        if (parts[i][0] != '/')
            complain(search, DAVIT_ERROR, DAVIT_R_USAGE, "DAVIT_PLUGIN_PATH",
                     "absolute directories separated by ':'",
                     davit_report_text(search->report, "\"%s\"", parts[i]),
                     "an empty or relative part would mean the current directory");
        else if (!add_dir(search, parts[i], RANK_ENV))
            complain(search, DAVIT_WARNING, DAVIT_R_NOT_FOUND, parts[i],
                     "a readable directory", NULL,
                     "a part of DAVIT_PLUGIN_PATH cannot be read");
    }
}

/* plugin_path of the user's and the system's plugins.json. */
static void search_config(Search *search, const DavitPrefs *prefs)
{
    g_autoptr(GPtrArray) list = davit_prefs_list(prefs, "plugin_path");

    for (size_t i = 0; i < list->len; i++) {
        const char *dir = g_ptr_array_index(list, i);

        if (dir[0] != '/')
            complain(search, DAVIT_ERROR, DAVIT_R_USAGE, "plugin_path of plugins.json",
                     "absolute directories",
                     davit_report_text(search->report, "\"%s\"", dir),
                     "an empty or relative part would mean the current directory");
        else if (!add_dir(search, dir, RANK_CONFIG))
            complain(search, DAVIT_WARNING, DAVIT_R_NOT_FOUND, dir,
                     "a readable directory", NULL,
                     "a part of plugin_path cannot be read");
    }
}

/* A usual place, unless it is davit's own directory: that comes last, under its own name.
 */
static void search_usual(Search *search, const char *dir, int rank)
{
    g_autofree char *real = real_path(dir);

    if (real && g_strcmp0(real, search->builtin) != 0)
        add_dir(search, dir, rank);
}

static void search_user(Search *search)
{
    g_autofree char *dir = NULL;

    if (geteuid() == 0 || !g_path_is_absolute(g_get_user_data_dir()))
        return;
    dir = g_build_filename(g_get_user_data_dir(), PLUGIN_DIR, NULL);
    search_usual(search, dir, RANK_USER);
}

/* The directory beside the object that this function is in: libdavit, wherever it lies.
 */
static char *find_builtin(void)
{
    Dl_info info;
    g_autofree char *file = NULL;
    g_autofree char *dir = NULL;

    if (!dladdr((const void *)&tier_names, &info) || !info.dli_fname)
        return NULL;
    file = real_path(info.dli_fname);
    if (!file)
        return NULL;
    dir = g_path_get_dirname(file);
    return g_build_filename(dir, PLUGIN_DIR, NULL);
}

GPtrArray *davit_search(const DavitRegistryOptions *options, const DavitPrefs *prefs,
                        GPtrArray *dirs, DavitReport *report)
{
    const bool privileged = davit_trust_privileged();
    Search search = {.dirs = dirs, .report = report};
    g_autofree char *builtin = NULL;
    g_autofree char *builtin_real = NULL;

    search.found = g_ptr_array_new_with_free_func(candidate_free);
    if (options->builtin_dir)
        builtin = g_canonicalize_filename(options->builtin_dir, NULL);
    else if (!options->only_paths)
        builtin = find_builtin();
    builtin_real = builtin ? real_path(builtin) : NULL;
    search.builtin = builtin_real;

    if (!privileged)
        search_options(&search, options->plugin_paths);
    else if (options->plugin_paths && options->plugin_paths[0])
        complain(&search, DAVIT_WARNING, DAVIT_R_DISABLED, "--plugin-path", NULL, NULL,
                 "ignored: the process runs with more rights than its user");
    if (!options->only_paths) {
        if (!privileged)
            search_env(&search);
        search_config(&search, prefs);
        if (!privileged)
            search_user(&search);
        search_usual(&search, "/usr/local/lib/" PLUGIN_DIR, RANK_LOCAL);
    }
    if (builtin && !add_dir(&search, builtin, RANK_BUILTIN))
        g_ptr_array_add(dirs, g_strdup(builtin)); /* absent: shown, so that one knows */
    return search.found;
}
