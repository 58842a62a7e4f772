/* SPDX-License-Identifier: Apache-2.0
 * Runs the program on every case file of tests/cli/cases and compares exit code and output.
 *
 * A case is lines of "key: value":
 *   args: WORDS        one argument per shell word; {models} = the golden checkpoints, {copy} =
 *                      what "copy" made, {dir} = the same, or an empty folder without "copy"
 *   copy: NAME JSON    before args: a golden checkpoint with one thing changed (golden/folder.h)
 *   recipe: LINE       a line of a recipe (tests/faults/recipe.h): files made in {dir}
 *   exit: N            required
 *   stdout: TEXT       a line that stdout must be, in order and in whole ("stdout:" alone = empty)
 *   stdout-has: TEXT   stdout contains TEXT;  stderr-has: likewise;  stdout-lacks: it does not
 *   stderr-empty:      nothing on stderr
 *   stdout-json:       stdout is one JSON document whose "ok" tells exit 0 from others
 *   terminal: COLUMNS  stdout and stderr are one terminal of that width; no line is longer
 *   rows: N            stdout and stderr together fit N rows of 80 columns
 *   no-json: WHY       the same call with --json is not tried
 *   stdin: TEXT        text fed to the program
 * Every call is made again with --json: the exit code must be the same, stdout one document.
 * Lines that start with # are comments. */
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>

#include "base/report.h"
#include "faults/recipe.h"
#include "golden/folder.h"

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models"

typedef struct Case {
    char **argv;
    char *dir; /* {dir} and {copy} */
    GString *recipe;
    guint rows;     /* 0 = not asked */
    guint terminal; /* columns, 0 = pipes */
    int exit;
    GString *want_stdout; /* NULL = not compared */
    GPtrArray *stdout_has, *stderr_has, *stdout_lacks;
    bool stderr_empty, json, no_json;
    char *input;
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

/* ---- {dir} ---- */

static void make_dir(Case *c)
{
    g_autofree char *path = g_build_filename(c->dir, "recipe", NULL);
    g_assert_true(g_file_set_contents(path, c->recipe->str, -1, NULL));
    GPtrArray *files = recipe_read(path);
    g_assert_cmpint(g_remove(path), ==, 0);
    recipe_write(files, c->dir);
    g_ptr_array_unref(files);
}

/* (owned) @text with the marks replaced. */
static char *with_paths(const Case *c, const char *text)
{
    g_autoptr(GString) out = g_string_new(text);
    g_string_replace(out, "{models}", MODELS, 0);
    g_string_replace(out, "{dir}", c->dir, 0);
    g_string_replace(out, "{copy}", c->dir, 0);
    return g_strdup(out->str);
}

static void add_line(Case *c, const char *key, const char *value)
{
    if (strcmp(key, "args") == 0) {
        g_autofree char *program = g_shell_quote(DAVIT_PROGRAM);
        g_autofree char *args = with_paths(c, value); /* neither path has blanks */
        g_autofree char *line = g_strconcat(program, " ", args, NULL);
        g_assert_true(g_shell_parse_argv(line, NULL, &c->argv, NULL));
    } else if (strcmp(key, "copy") == 0) {
        folder_free(c->dir);
        c->dir = make_copy(value);
    } else if (strcmp(key, "recipe") == 0) {
        g_string_append_printf(c->recipe, "%s\n", value);
    } else if (strcmp(key, "terminal") == 0) {
        c->terminal = (guint)atoi(value);
    } else if (strcmp(key, "rows") == 0) {
        c->rows = (guint)atoi(value);
    } else if (strcmp(key, "exit") == 0) {
        c->exit = atoi(value);
    } else if (strcmp(key, "stdout") == 0) {
        if (!c->want_stdout)
            c->want_stdout = g_string_new(NULL);
        if (*value)
            g_string_append_printf(c->want_stdout, "%s\n", value);
    } else if (strcmp(key, "stdout-has") == 0) {
        g_ptr_array_add(c->stdout_has, g_strdup(value));
    } else if (strcmp(key, "stdout-lacks") == 0) {
        g_ptr_array_add(c->stdout_lacks, g_strdup(value));
    } else if (strcmp(key, "stderr-has") == 0) {
        g_ptr_array_add(c->stderr_has, g_strdup(value));
    } else if (strcmp(key, "stderr-empty") == 0) {
        c->stderr_empty = true;
    } else if (strcmp(key, "stdout-json") == 0) {
        c->json = true;
    } else if (strcmp(key, "no-json") == 0) {
        c->no_json = true;
    } else if (strcmp(key, "stdin") == 0) {
        c->input = g_strdup(value);
    } else {
        g_error("unknown key %s", key);
    }
}

static Case read_case(const char *path)
{
    Case c = {.exit = -1,
              .dir = g_dir_make_tmp("davit-cli-XXXXXX", NULL),
              .recipe = g_string_new(NULL),
              .stdout_has = g_ptr_array_new_with_free_func(g_free),
              .stdout_lacks = g_ptr_array_new_with_free_func(g_free),
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
    make_dir(&c);
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

/* Each record is complete, and the witness (tests/refusals) sees its code. */
static void check_records(const json_t *records)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const json_t *r;
    size_t i;
    json_array_foreach(records, i, r) {
#define FIELD(name) json_string_value(json_object_get(r, name))
        const char *severity = FIELD("severity");
        g_assert_nonnull(severity);
        g_assert_cmpuint(davit_code_number(FIELD("code")), !=, 0);
        if (strcmp(severity, "note") != 0 && !FIELD("hint")) {
            g_test_message("%s has no hint: %s", FIELD("code"), FIELD("message"));
            g_test_fail();
        }
        davit_report_add(report, &(DavitFinding){
                                     .code = davit_code_number(FIELD("code")),
                                     .severity = strcmp(severity, "error") == 0     ? DAVIT_ERROR
                                                 : strcmp(severity, "warning") == 0 ? DAVIT_WARNING
                                                                                    : DAVIT_NOTE,
                                     .stage = FIELD("stage"),
                                     .subject = FIELD("subject"),
                                     .expected = FIELD("expected"),
                                     .found = FIELD("found"),
                                     .message = FIELD("message"),
                                     .hint = FIELD("hint")});
#undef FIELD
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
    check_records(json_object_get(doc, "records"));
    json_decref(doc);
}

/* Rows of a terminal of 80 columns that @text takes. */
static guint rows_of(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    guint rows = 0;
    for (char **l = lines; *l; l++)
        rows += **l || l[1] ? (guint)(g_utf8_strlen(*l, -1) + 79) / 80 + !**l : 0;
    return rows;
}

static void check_rows(const Case *c, const char *out, const char *err)
{
    const guint rows = rows_of(out) + rows_of(err);
    if (rows <= c->rows)
        return;
    g_test_message("%u rows of 80 columns, at most %u:\n%s%s", rows, c->rows, out, err);
    g_test_fail();
}

/* (owned) What @argv printed, with @input on stdin (NULL = nothing is said of it). */
static char *spawn(char **argv, const char *input, char **out_err, int *out_code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) line = g_string_new(NULL);
    char shell[] = "/bin/sh", option[] = "-c";
    char *words[] = {shell, option, NULL, NULL};
    char *out = NULL;
    int status = 0;
    if (input) { /* a shell feeds stdin; the words are quoted */
        g_autofree char *quoted = g_shell_quote(input);
        g_string_printf(line, "printf %%s %s |", quoted);
        for (char **a = argv; *a; a++) {
            g_autofree char *word = g_shell_quote(*a);
            g_string_append_printf(line, " %s", word);
        }
        words[2] = line->str;
    }
    g_spawn_sync(NULL, input ? words : argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, out_err,
                 &status, &error);
    g_assert_no_error(error);
    if (!g_spawn_check_wait_status(status, &error) && error->domain != G_SPAWN_EXIT_ERROR)
        g_error("the program died: %s", error->message);
    *out_code = error ? error->code : 0;
    return out;
}

/* (owned) As spawn, on a terminal of @columns; what it shows, without carriage returns. */
static char *spawn_on_terminal(char **argv, guint columns, int *out_code)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    GString *shown = g_string_new(NULL);
    char buf[4096];
    int terminal, status;
    ssize_t n;
    const pid_t child = forkpty(&terminal, NULL, NULL, &size);
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    while ((n = read(terminal, buf, sizeof buf)) > 0) /* EIO: the other end is closed */
        for (ssize_t i = 0; i < n; i++)
            if (buf[i] != '\r')
                g_string_append_c(shown, buf[i]);
    close(terminal);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status));
    *out_code = WEXITSTATUS(status);
    return g_string_free(shown, FALSE);
}

static void check_columns(const Case *c, const char *shown)
{
    g_auto(GStrv) lines = g_strsplit(shown, "\n", -1);
    for (char **l = lines; *l; l++) {
        const char *word = *l + strspn(*l, " "); /* one that is longer by itself stays whole */
        if (g_utf8_strlen(*l, -1) > (glong)c->terminal && strchr(word, ' ')) {
            g_test_message("longer than %u columns: %s", c->terminal, *l);
            g_test_fail();
        }
    }
}

/* Does the case ask for a document already, or for something that is none? */
static bool has_document(const Case *c)
{
    for (char **a = c->argv + 1; *a; a++)
        if (strcmp(*a, "--json") == 0 || strcmp(*a, "-h") == 0 || strcmp(*a, "--help") == 0)
            return true;
    return c->no_json;
}

/* The same call with --json: the same exit code and one document, whatever goes wrong. */
static void run_as_json(const Case *c)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *err = NULL;
    int code;
    for (char **a = c->argv; *a; a++)
        g_ptr_array_add(argv, *a);
    g_ptr_array_add(argv, (gpointer)(uintptr_t) "--json");
    g_ptr_array_add(argv, NULL);
    g_autofree char *out = spawn((char **)argv->pdata, c->input, &err, &code);
    if (code != c->exit) {
        g_test_message("exit %d with --json, expected %d; stdout:\n%s", code, c->exit, out);
        g_test_fail();
    }
    check_json(out, code);
}

static void case_clear(Case *c)
{
    folder_free(c->dir);
    g_string_free(c->recipe, TRUE);
    g_strfreev(c->argv);
    g_ptr_array_unref(c->stdout_has);
    g_ptr_array_unref(c->stdout_lacks);
    g_ptr_array_unref(c->stderr_has);
    if (c->want_stdout)
        g_string_free(c->want_stdout, TRUE);
    g_free(c->input);
}

static void run_case(gconstpointer data)
{
    Case c = read_case(data);
    g_autofree char *err = NULL;
    int code;
    g_autofree char *out = c.terminal ? spawn_on_terminal(c.argv, c.terminal, &code)
                                      : spawn(c.argv, c.input, &err, &code);
    if (c.terminal) {
        err = g_strdup("");
        check_columns(&c, out);
    }
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
    for (guint i = 0; i < c.stdout_lacks->len; i++)
        g_assert_null(strstr(out, g_ptr_array_index(c.stdout_lacks, i)));
    check_has("stderr", err, c.stderr_has);
    if (c.rows)
        check_rows(&c, out, err);
    if (!has_document(&c))
        run_as_json(&c);
    case_clear(&c);
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
