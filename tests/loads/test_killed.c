/* SPDX-License-Identifier: Apache-2.0
 * Commands that write are killed at random points. Under its final name a file is then absent, as
 * it was before, or complete; never anything between. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models/"
#define ROUNDS 12u /* of each command */
/* the order of kernels is kept in plugins.json */
#define OPS_WRITE                                                                             \
    "plugin ops linear --model " MODELS "llama_mini --measure --rounds 1 --tokens 1 --write"

static char *folder;

/* ---- the program ---- */

/* Command lines are words apart; {out} is the file. Returns the process. */
static pid_t start(const char *line, const char *out)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    GPid pid;

    g_ptr_array_add(argv, (gpointer)(uintptr_t)DAVIT_PROGRAM);
    for (char **w = words; *w; w++)
        g_ptr_array_add(argv, strcmp(*w, "{out}") == 0 ? (gpointer)(uintptr_t)out : *w);
    g_ptr_array_add(argv, NULL);
    g_spawn_async(NULL, (char **)argv->pdata, NULL,
                  G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                      G_SPAWN_STDERR_TO_DEV_NULL,
                  NULL, NULL, &pid, &error);
    g_assert_no_error(error);
    return pid;
}

/* Exit code, or -signal. */
static int end_of(pid_t pid)
{
    int status;

    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Run it to the end once; how long it took, in microseconds. */
static int64_t whole_run(const char *line, const char *out)
{
    const int64_t begin = g_get_monotonic_time();

    g_assert_cmpint(end_of(start(line, out)), ==, 0);
    return g_get_monotonic_time() - begin;
}

static void kill_somewhere(const char *line, const char *out, int64_t most)
{
    const pid_t pid = start(line, out);

    /* more often where it writes: near the end */
    g_usleep((gulong)((double)most * (1 - g_test_rand_double() * g_test_rand_double())));
    kill(pid, SIGKILL);
    end_of(pid);
}

/* ---- files ---- */

static GBytes *content(const char *path)
{
    char *text = NULL;
    gsize n;

    return g_file_get_contents(path, &text, &n, NULL) ? g_bytes_new_take(text, n) : NULL;
}

/* What a killed writer leaves beside the file has another name; the folder is swept. */
static void sweep(const char *dir)
{
    g_autoptr(GDir) list = g_dir_open(dir, 0, NULL);

    for (const char *name; list && (name = g_dir_read_name(list));) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            sweep(path);
        g_remove(path);
    }
}

/* ---- results of a command ---- */

static void test_result(const void *data)
{
    g_autofree char *out = g_build_filename(folder, "out.npy", NULL);
    const int64_t most = whole_run(data, out);
    g_autoptr(GBytes) want = content(out);

    g_assert_nonnull(want);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const bool before = i % 2; /* there is a complete one already */
        g_autoptr(GBytes) have = NULL;

        g_remove(out);
        if (before)
            g_assert_true(g_file_set_contents(out, g_bytes_get_data(want, NULL),
                                              (gssize)g_bytes_get_size(want), NULL));
        kill_somewhere(data, out, most);
        have = content(out);
        g_assert_true(have || !before);
        g_assert_true(!have || g_bytes_equal(have, want));
    }
    sweep(folder);
}

/* ---- a folder ---- */

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files below @dir and their lengths, sorted. */
static void list_files(const char *dir, GPtrArray *out)
{
    g_autoptr(GDir) list = g_dir_open(dir, 0, NULL);

    for (const char *name; list && (name = g_dir_read_name(list));) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        GStatBuf st;

        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            list_files(path, out);
            continue;
        }
        g_assert_cmpint(g_stat(path, &st), ==, 0);
        g_ptr_array_add(out, g_strdup_printf("%s %" G_GUINT64_FORMAT, path, (guint64)st.st_size));
    }
    g_ptr_array_sort(out, by_text);
}

/* A project is there in whole or not at all. */
static void project_is_whole_or_absent(void)
{
    static const char line[] = "plugin new arch killed";
    g_autofree char *made = g_build_filename(folder, "killed", NULL);
    g_autofree char *before = g_get_current_dir();
    g_autoptr(GPtrArray) want = g_ptr_array_new_with_free_func(g_free);
    int64_t most;

    g_assert_cmpint(chdir(folder), ==, 0);
    most = whole_run(line, "");
    list_files(made, want);
    g_assert_cmpuint(want->len, >, 1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        g_autoptr(GPtrArray) have = g_ptr_array_new_with_free_func(g_free);

        sweep(folder);
        kill_somewhere(line, "", most);
        if (!g_file_test(made, G_FILE_TEST_EXISTS))
            continue;
        list_files(made, have);
        g_assert_cmpuint(have->len, ==, want->len);
        for (guint f = 0; f < have->len; f++)
            g_assert_cmpstr(g_ptr_array_index(have, f), ==, g_ptr_array_index(want, f));
    }
    g_assert_cmpint(chdir(before), ==, 0);
    sweep(folder);
}

/* ---- files of davit's own ---- */

/* Every *.json below @dir is whole. */
static void check_documents(const char *dir)
{
    g_autoptr(GDir) list = g_dir_open(dir, 0, NULL);

    for (const char *name; list && (name = g_dir_read_name(list));) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        json_t *doc;

        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            check_documents(path);
            continue;
        }
        if (!g_str_has_suffix(name, ".json"))
            continue;
        doc = json_load_file(path, 0, NULL);
        if (!doc)
            g_error("%s is not whole", path);
        json_decref(doc);
    }
}

/* The cache of plugins, and the user's choices and measured ranks in plugins.json. */
static void own_files_are_half_written(void)
{
    static const char *const lines[] = {"plugin list", "plugin disable org.davit.arch.qwen2",
                                        "plugin enable org.davit.arch.qwen2",
                                        "plugin rescan", OPS_WRITE,
                                        "plugin clear-quarantine"};
    g_autofree char *cache = g_build_filename(folder, "cache", NULL);
    g_autofree char *config = g_build_filename(folder, "config", NULL);

    g_mkdir(cache, 0700);
    g_mkdir(config, 0700);
    g_setenv("XDG_CACHE_HOME", cache, TRUE);
    g_setenv("XDG_CONFIG_HOME", config, TRUE);
    for (size_t l = 0; l < G_N_ELEMENTS(lines); l++) {
        const int64_t most = whole_run(lines[l], "");

        for (unsigned i = 0; i < ROUNDS / 2; i++) {
            if (l == 0)
                sweep(cache); /* it is written when there is something to remember */
            kill_somewhere(lines[l], "", most);
            check_documents(cache);
            check_documents(config);
        }
    }
    g_assert_cmpint(end_of(start("plugin list", "")), ==, 0); /* and all is read again */
    sweep(folder);
}

int main(int argc, char **argv)
{
    int code;

    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("davit-killed-XXXXXX", NULL);
    g_test_add_data_func("/killed/dump",
                         "dump " MODELS "gemma3 model.embed_tokens.weight --out {out}", test_result);
    g_test_add_data_func("/killed/dump_raw",
                         "dump " MODELS "gemma3 model.embed_tokens.weight --raw --out {out}",
                         test_result);
    g_test_add_data_func("/killed/eval",
                         "eval " MODELS "llama_mini --ids 1,2,3,4,5,6,7,8 --logits {out}",
                         test_result);
    g_test_add_func("/killed/project", project_is_whole_or_absent);
    g_test_add_func("/killed/own_files", own_files_are_half_written);
    code = g_test_run();
    g_rmdir(folder);
    g_free(folder);
    return code;
}
