/* SPDX-License-Identifier: Apache-2.0
 * The user's and the system's plugins.json. */
#include "plugin/prefs.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/small_file.h"
#include "plugin/trust.h"

#define FILE_NAME   "plugins.json"
#define LOCK_NAME   "plugins.lock"
#define SYSTEM_FILE "/etc/davit/" FILE_NAME
#define MAX_BYTES   (1024 * 1024)

static int32_t bad(DavitReport *report, const char *path, const char *subject,
                   const char *expected, const char *found)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                .status = DAVIT_E_USAGE,
                                .stage = "search",
                                .subject = subject,
                                .expected = expected,
                                .found = found,
                                .message = davit_report_text(
                                    report, "%s is not what davit reads there", path),
                                .hint = "mend the file, or remove it"});
}

/* @path is there, or may be, and cannot be read. A directory that this user may not enter is
 * another user's (HOME was kept by su or a container): told, and gone on without. */
static void unreadable(DavitReport *report, const char *path, const char *why)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *above = g_path_get_dirname(dir);
    const bool is_foreign = access(dir, X_OK) != 0 || access(above, X_OK) != 0;

    davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                .severity = DAVIT_WARNING,
                                .status = is_foreign ? DAVIT_OK : DAVIT_E_USAGE,
                                .stage = "search",
                                .subject = path,
                                .expected = "a file of at most 1 MiB, or none",
                                .found = why,
                                .message = is_foreign
                                               ? "the folder of settings is closed to this user; "
                                                 "davit goes on without settings"
                                               : "the settings cannot be read",
                                .hint = is_foreign ? "set HOME or XDG_CONFIG_HOME to a folder "
                                                     "of this user's"
                                                   : "mend the file, or remove it"});
}

/* (owned) the object in @path; NULL if there is no file, or after a record. */
static json_t *read_object(const char *path, DavitReport *report)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    json_error_t where;
    size_t len = 0;
    json_t *doc;

    text = davit_small_file_read(path, MAX_BYTES, &len, &error);
    if (!text) {
        if (!g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT) &&
            !g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOTDIR))
            unreadable(report, path, error->message);
        return NULL;
    }
    doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(doc))
        return doc;
    bad(report, path, path, "one JSON object",
        doc ? "an array" : davit_report_text(report, "line %d: %s", where.line, where.text));
    json_decref(doc);
    return NULL;
}

/* ---- types ---- */

static bool is_strings(const json_t *value)
{
    size_t i;
    json_t *item;

    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return json_is_array(value);
}

static bool is_numbers(const json_t *value)
{
    const char *name;
    json_t *item;

    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        if (!json_is_integer(item) || json_integer_value(item) < -1000000 ||
            json_integer_value(item) > 1000000)
            return false;
    }
    return json_is_object(value);
}

static bool is_tables(const json_t *value)
{
    const char *name;
    json_t *item;

    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        if (!is_numbers(item))
            return false;
    }
    return json_is_object(value);
}

static void check(const json_t *doc, const char *path, DavitReport *report)
{
    static const struct {
        const char *key, *expected;
        bool (*is_fit)(const json_t *value);
    } keys[] = {{"disabled", "an array of id globs", is_strings},
                {"plugin_path", "an array of absolute directories", is_strings},
                {"trust", "an array of absolute directories", is_strings},
                {"ranks", "an object of id: whole number", is_numbers},
                {"kernel_ranks", "an object of op: {entry: whole number}", is_tables}};
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)doc, name, value)
    {
        size_t i = 0;

        while (i < G_N_ELEMENTS(keys) && strcmp(keys[i].key, name) != 0)
            i++;
        if (i == G_N_ELEMENTS(keys))
            bad(report, path, name,
                "disabled, ranks, plugin_path, trust or kernel_ranks", "another key");
        else if (!keys[i].is_fit(value))
            bad(report, path, name, keys[i].expected, "something else");
    }
}

/* A relative HOME or XDG_CONFIG_HOME would be the current directory's: as if it were not set. */
static void open_user(DavitPrefs *prefs, const char *dir, DavitReport *report)
{
    g_autofree char *usual = g_build_filename(g_get_user_config_dir(), "davit", NULL);
    const size_t before = davit_report_count(report);

    if (!dir && !g_path_is_absolute(usual))
        return;
    prefs->user_path = g_build_filename(dir ? dir : usual, FILE_NAME, NULL);
    prefs->user = read_object(prefs->user_path, report);
    prefs->lock_path = g_build_filename(dir ? dir : usual, LOCK_NAME, NULL);
    if (davit_report_count(report) > before && !davit_report_failed(report))
        return; /* closed: said once */
    prefs->lock = read_object(prefs->lock_path, report);
}

DavitPrefs *davit_prefs_open(const char *dir, DavitReport *report)
{
    DavitPrefs *prefs = g_new0(DavitPrefs, 1);

    if (dir && !*dir)
        return prefs;
    if (!dir)
        prefs->system = read_object(SYSTEM_FILE, report);
    if (!davit_trust_privileged())
        open_user(prefs, dir, report);
    if (prefs->system)
        check(prefs->system, SYSTEM_FILE, report);
    if (prefs->user)
        check(prefs->user, prefs->user_path, report);
    return prefs;
}

void davit_prefs_free(DavitPrefs *prefs)
{
    if (!prefs)
        return;
    json_decref(prefs->system);
    json_decref(prefs->user);
    json_decref(prefs->lock);
    g_free(prefs->user_path);
    g_free(prefs->lock_path);
    g_free(prefs);
}

/* ---- answers ---- */

static const char *disabled_by(const json_t *doc, const char *id)
{
    size_t i;
    json_t *glob;

    json_array_foreach(json_object_get(doc, "disabled"), i, glob)
    {
        const char *text = json_string_value(glob);

        if (text && fnmatch(text, id, 0) == 0)
            return text;
    }
    return NULL;
}

const char *davit_prefs_disabled(const DavitPrefs *prefs, const char *id,
                                 const char **out_path)
{
    const char *glob = disabled_by(prefs->user, id);

    *out_path = prefs->user_path;
    if (glob)
        return glob;
    *out_path = SYSTEM_FILE;
    return disabled_by(prefs->system, id);
}

int32_t davit_prefs_rank(const DavitPrefs *prefs, const char *id)
{
    json_t *rank = json_object_get(json_object_get(prefs->user, "ranks"), id);

    if (!rank)
        rank = json_object_get(json_object_get(prefs->system, "ranks"), id);
    return (int32_t)json_integer_value(rank);
}

int32_t davit_prefs_kernel_rank(const DavitPrefs *prefs, const char *op, const char *id,
                                const char *entry)
{
    g_autofree char *name = NULL;
    const json_t *tables[] = {json_object_get(prefs->user, "kernel_ranks"),
                              json_object_get(prefs->system, "kernel_ranks")};

    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        const json_t *table = json_object_get(tables[i], op);
        const json_t *rank;

        if (!table)
            continue;
        if (!name)
            name = g_strdup_printf("%s:%s", id, entry);
        rank = json_object_get(table, name);
        if (rank)
            return (int32_t)json_integer_value(rank);
    }
    return 0;
}

GPtrArray *davit_prefs_list(const DavitPrefs *prefs, const char *key)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    const json_t *docs[] = {prefs->user, prefs->system};

    for (size_t d = 0; d < G_N_ELEMENTS(docs); d++) {
        size_t i;
        json_t *text;

        json_array_foreach(json_object_get(docs[d], key), i, text)
        {
            if (json_is_string(text))
                g_ptr_array_add(list, g_strdup(json_string_value(text)));
        }
    }
    return list;
}

const char *davit_prefs_lock(const DavitPrefs *prefs, const char *id)
{
    const char *sum = json_string_value(json_object_get(prefs->lock, id));

    if (!prefs->lock)
        return NULL;
    return sum ? sum : "";
}

/* ---- changing ---- */

static int32_t write_user(DavitPrefs *prefs, DavitReport *report)
{
    g_autoptr(GError) error = NULL;
    char *text = json_dumps(prefs->user, JSON_INDENT(2) | JSON_SORT_KEYS);
    g_autofree char *whole = g_strconcat(text ? text : "{}", "\n", NULL);

    free(text);
    if (g_file_set_contents_full(prefs->user_path, whole, -1, G_FILE_SET_CONTENTS_CONSISTENT,
                                 0644, &error))
        return DAVIT_OK;
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                            .status = DAVIT_E_IO,
                                            .stage = "write",
                                            .subject = prefs->user_path,
                                            .expected = "a file that can be written",
                                            .found = error->message,
                                            .message = "the list could not be written",
                                            .hint = "check the directory, or set "
                                                    "XDG_CONFIG_HOME"});
}

/* Runs at the same time change the file one after the other. The lock is a file beside it, which
 * stays, since each change replaces the file itself. Returns: to be closed; -1 = none: what is in
 * its way is in the way of writing too, and told there. */
static int take_turn(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *name = g_strconcat(path, ".lock", NULL);
    int fd;

    g_mkdir_with_parents(dir, 0700);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    return fd;
}

static void end_turn(int turn)
{
    if (turn >= 0)
        close(turn);
}

/* The user's object as the file has it now, made if there is none; NULL after a record.
 * *out_turn is for end_turn, once it is written. */
static json_t *user_object(DavitPrefs *prefs, int *out_turn, DavitReport *report)
{
    g_autoptr(DavitReport) said = davit_report_new();
    json_t *now;

    *out_turn = -1;
    if (!prefs->user_path) {
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                                 .status = DAVIT_E_USAGE,
                                                 .stage = "options",
                                                 .subject = FILE_NAME,
                                                 .message = "there is no folder of this user's to "
                                                            "keep the list in",
                                                 .hint = "run davit as the user"});
        return NULL;
    }
    *out_turn = take_turn(prefs->user_path);
    now = read_object(prefs->user_path, said);
    davit_report_append(report, said);
    if (!now && davit_report_failed(said))
        return NULL;
    json_decref(prefs->user);
    prefs->user = now ? now : json_object();
    return prefs->user;
}

static int32_t held_elsewhere(DavitReport *report, const char *id, const char *glob,
                              const char *path)
{
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_DISABLED,
                        .status = DAVIT_E_USAGE,
                        .stage = "options",
                        .subject = id,
                        .expected = "the id itself in your own list",
                        .found = davit_report_text(report, "\"%s\" in %s", glob, path),
                        .message = "it stays disabled by another entry",
                        .hint = "take that entry out with an editor"});
}

/* @id in or out of the list of @user. */
static void change_list(json_t *user, const char *id, bool disabled)
{
    json_t *list = json_array();
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(user, "disabled"), i, item)
    {
        if (g_strcmp0(json_string_value(item), id) != 0)
            json_array_append(list, item);
    }
    if (disabled)
        json_array_append_new(list, json_string(id));
    json_object_set_new(user, "disabled", list);
}

int32_t davit_prefs_set_disabled(DavitPrefs *prefs, const char *id, bool disabled,
                                 DavitReport *report)
{
    int turn;
    json_t *user = user_object(prefs, &turn, report);
    int32_t status = DAVIT_E_USAGE;
    const char *glob, *path;

    if (user) {
        change_list(user, id, disabled);
        status = write_user(prefs, report);
    }
    end_turn(turn);
    if (status)
        return status;
    glob = disabled ? NULL : davit_prefs_disabled(prefs, id, &path);
    return glob ? held_elsewhere(report, id, glob, path) : DAVIT_OK;
}

int32_t davit_prefs_set_kernel_ranks(DavitPrefs *prefs, const char *op, json_t *ranks,
                                     DavitReport *report)
{
    int turn;
    json_t *user = user_object(prefs, &turn, report);
    json_t *tables = json_object_get(user, "kernel_ranks");
    int32_t status = DAVIT_E_USAGE;

    if (user && !json_is_object(tables)) {
        tables = json_object();
        json_object_set_new(user, "kernel_ranks", tables);
    }
    if (user) {
        json_object_set_new(tables, op, ranks);
        status = write_user(prefs, report);
    } else {
        json_decref(ranks);
    }
    end_turn(turn);
    return status;
}
