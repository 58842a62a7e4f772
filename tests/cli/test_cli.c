/* SPDX-License-Identifier: Apache-2.0
 * Runs the program on every case file of tests/cli/cases and compares exit code and output.
 *
 * A case is lines of "key: value":
 *   args: WORDS        one argument per shell word; {models} = the golden checkpoints, {copy} =
 *                      what "copy" made
 *   copy: NAME JSON    before args: a golden checkpoint with one thing changed (golden/folder.h)
 *   exit: N            required
 *   stdout: TEXT       a line that stdout must be, in order and in whole ("stdout:" alone = empty)
 *   stdout-has: TEXT   stdout contains TEXT;  stderr-has: likewise
 *   stderr-empty:      nothing on stderr
 *   stdout-json:       stdout is one JSON document whose "ok" tells exit 0 from others
 *   stdin: TEXT        text fed to the program
 * Lines that start with # are comments. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>
#include <jansson.h>

#include "golden/folder.h"

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models"

typedef struct Case {
    char **argv;
    int exit;
    GString *want_stdout; /* NULL = not compared */
    GPtrArray *stdout_has, *stderr_has;
    bool stderr_empty, json;
    char *input;
    char *copy; /* (folder_free) NULL = none */
} Case;

/* "llama_mini {...}" */
static char *make_copy(const char *value)
{
    const char *change = strchr(value, ' ');
    g_autofree char *name = g_strndup(value, strcspn(value, " "));
    g_autofree char *from = g_build_filename(MODELS, name, NULL);
    char *path = folder_copy(from);
    json_t *doc = json_loads(change ? change : "{}", 0, NULL);

    g_assert_nonnull(doc);
    folder_change(path, doc);
    json_decref(doc);
    return path;
}

static void add_line(Case *c, const char *key, const char *value)
{
    if (strcmp(key, "args") == 0) {
        g_auto(GStrv) parts = g_strsplit(value, "{models}", -1);
        g_autofree char *models = g_shell_quote(MODELS);
        g_autofree char *program = g_shell_quote(DAVIT_PROGRAM);
        g_autofree char *args = g_strjoinv(models, parts);
        g_auto(GStrv) copies = g_strsplit(args, "{copy}", -1);
        g_autofree char *placed = g_strjoinv(c->copy ? c->copy : "", copies);
        g_autofree char *line = g_strconcat(program, " ", placed, NULL);
        g_assert_true(g_shell_parse_argv(line, NULL, &c->argv, NULL));
    } else if (strcmp(key, "copy") == 0) {
        c->copy = make_copy(value);
    } else if (strcmp(key, "exit") == 0) {
        c->exit = atoi(value);
    } else if (strcmp(key, "stdout") == 0) {
        if (!c->want_stdout)
            c->want_stdout = g_string_new(NULL);
        if (*value)
            g_string_append_printf(c->want_stdout, "%s\n", value);
    } else if (strcmp(key, "stdout-has") == 0) {
        g_ptr_array_add(c->stdout_has, g_strdup(value));
    } else if (strcmp(key, "stderr-has") == 0) {
        g_ptr_array_add(c->stderr_has, g_strdup(value));
    } else if (strcmp(key, "stderr-empty") == 0) {
        c->stderr_empty = true;
    } else if (strcmp(key, "stdout-json") == 0) {
        c->json = true;
    } else if (strcmp(key, "stdin") == 0) {
        c->input = g_strdup(value);
    } else {
        g_error("unknown key %s", key);
    }
}

static Case read_case(const char *path)
{
    Case c = {.exit = -1,
              .stdout_has = g_ptr_array_new_with_free_func(g_free),
              .stderr_has = g_ptr_array_new_with_free_func(g_free)};
    char *text;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l; l++) {
        char *colon = strchr(*l, ':');
        if ((*l)[0] == '#' || !colon)
            continue;
        *colon = '\0';
        add_line(&c, *l, colon[1] == ' ' ? colon + 2 : colon + 1);
    }
    g_free(text);
    g_assert_nonnull(c.argv);
    g_assert_cmpint(c.exit, >=, 0);
    return c;
}

static void check_has(const char *name, const char *text, const GPtrArray *wants)
{
    for (guint i = 0; i < wants->len; i++)
        if (!strstr(text, g_ptr_array_index(wants, i))) {
            g_test_message("%s lacks '%s'; it is:\n%s", name, (char *)g_ptr_array_index(wants, i),
                           text);
            g_test_fail();
        }
}

static void check_json(const char *text, int code)
{
    json_error_t error;
    json_t *doc = json_loads(text, 0, &error);
    if (!doc) {
        g_test_message("stdout is not JSON: %s", error.text);
        g_test_fail();
        return;
    }
    g_assert_true(json_is_string(json_object_get(doc, "schema")));
    g_assert_true(json_is_array(json_object_get(doc, "records")));
    g_assert_cmpint(json_is_true(json_object_get(doc, "ok")), ==, code == 0);
    json_decref(doc);
}

static void run_case(gconstpointer data)
{
    Case c = read_case(data);
    g_autofree char *out = NULL, *err = NULL;
    g_autoptr(GError) error = NULL;
    int status = 0;
    g_autofree char *command = NULL;
    if (c.input) { /* a shell feeds stdin; the words are quoted */
        GString *line = g_string_new("printf %s ");
        g_autofree char *quoted = g_shell_quote(c.input);
        g_string_append_printf(line, "%s |", quoted);
        for (char **a = c.argv; *a; a++) {
            g_autofree char *word = g_shell_quote(*a);
            g_string_append_printf(line, " %s", word);
        }
        command = g_string_free(line, FALSE);
        g_strfreev(c.argv);
        char *words[] = {g_strdup("/bin/sh"), g_strdup("-c"), g_strdup(command), NULL};
        c.argv = g_memdup2(words, sizeof words);
    }
    g_spawn_sync(NULL, c.argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status, &error);
    g_assert_no_error(error);
    if (!g_spawn_check_wait_status(status, &error) && error->domain != G_SPAWN_EXIT_ERROR)
        g_error("the program died: %s", error->message);
    const int code = error ? error->code : 0;
    if (code != c.exit) {
        g_test_message("exit %d, expected %d; stderr:\n%s", code, c.exit, err);
        g_test_fail();
    }
    if (c.want_stdout)
        g_assert_cmpstr(out, ==, c.want_stdout->str);
    if (c.json)
        check_json(out, code);
    if (c.stderr_empty)
        g_assert_cmpstr(err, ==, "");
    check_has("stdout", out, c.stdout_has);
    check_has("stderr", err, c.stderr_has);
    g_strfreev(c.argv);
    g_ptr_array_unref(c.stdout_has);
    g_ptr_array_unref(c.stderr_has);
    if (c.want_stdout)
        g_string_free(c.want_stdout, TRUE);
    g_free(c.input);
    if (c.copy)
        folder_free(c.copy);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_set_nonfatal_assertions();
    g_autoptr(GDir) dir = g_dir_open(DAVIT_SOURCE_DIR "/tests/cli/cases", 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        if (g_str_has_suffix(name, ".case"))
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_name);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < names->len; i++) {
        char *path = g_build_filename(DAVIT_SOURCE_DIR "/tests/cli/cases",
                                      (char *)g_ptr_array_index(names, i), NULL);
        g_autofree char *test = g_strdup_printf("/cli/%s", (char *)g_ptr_array_index(names, i));
        g_ptr_array_add(paths, path);
        g_test_add_data_func(test, path, run_case);
    }
    return g_test_run();
}
