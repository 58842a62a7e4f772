/* SPDX-License-Identifier: Apache-2.0
 * Several ranks against one process: logits, greedy ids; and what is left when a rank, or all of
 * them, are killed or interrupted. */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>

#include "base/sanitizer.h"
#include "ranks/quantised.h"

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models/"
#define QUANTS DAVIT_SOURCE_DIR "/tests/golden/quant/"
#define IDS    "3 17 42 5 9 61 24 7 33 12 50 2 8 44 29 11 6 19 55 1"
#define CLOSE  1e-5 /* of the largest logit */
#define MARGIN 1e-2 /* below, two ids are as good */
#define EVERY  (DAVIT_SANITIZED ? 3u : 1u) /* model: the rest takes too long there */

static char *folder; /* of this test run */

/* ---- the program ---- */

typedef struct Run {
    GPid pid;
    int out, err;
} Run;

static Run start(const char *first, ...) G_GNUC_NULL_TERMINATED;
static Run start(const char *first, ...)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    Run run;
    va_list args;

    g_ptr_array_add(argv, (gpointer)(uintptr_t)DAVIT_PROGRAM);
    va_start(args, first);
    for (const char *word = first; word; word = va_arg(args, const char *))
        g_ptr_array_add(argv, (gpointer)(uintptr_t)word);
    va_end(args);
    g_ptr_array_add(argv, NULL);
    g_spawn_async_with_pipes(NULL, (char **)argv->pdata, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL,
                             NULL, &run.pid, NULL, &run.out, &run.err, &error);
    g_assert_no_error(error);
    return run;
}

/* (owned) All of a pipe; closes it. */
static char *drain(int fd)
{
    GString *text = g_string_new(NULL);
    char buffer[4096];
    ssize_t n;

    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        g_string_append_len(text, buffer, n);
    close(fd);
    return g_string_free(text, FALSE);
}

/* Exit code, or -signal. @out_text, @out_err (may be NULL): what it wrote. */
static int finish(Run *run, char **out_text, char **out_err)
{
    g_autofree char *text = drain(run->out), *err = drain(run->err);
    int status;

    g_assert_cmpint(waitpid(run->pid, &status, 0), ==, run->pid);
    if (out_text)
        *out_text = g_steal_pointer(&text);
    if (out_err)
        *out_err = g_steal_pointer(&err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- agreement ---- */

/* (owned) float32 values behind the header of a .npy. */
static float *logits_of(const char *path, size_t *out_n)
{
    g_autofree char *file = NULL;
    gsize len;
    size_t head;

    g_assert_true(g_file_get_contents(path, &file, &len, NULL));
    g_assert_cmpuint(len, >, 10);
    head = 10u + (uint8_t)file[8] + 256u * (uint8_t)file[9];
    *out_n = (len - head) / sizeof(float);
    return g_memdup2(file + head, *out_n * sizeof(float));
}

static float *eval(const char *model, const char *tp, size_t *out_n)
{
    g_autofree char *npy = g_build_filename(folder, "logits.npy", NULL), *err = NULL;
    Run run = start("eval", model, "--ids", IDS, "--logits", npy, "--tp", tp, NULL);

    if (finish(&run, NULL, &err))
        g_error("eval %s --tp %s: %s", model, tp, err);
    return logits_of(npy, out_n);
}

static void compare(const char *model, const char *tp, const float *one, const float *many,
                    size_t n)
{
    double most = 0, apart = 0;

    for (size_t i = 0; i < n; i++) {
        most = MAX(most, fabs((double)one[i]));
        apart = MAX(apart, fabs((double)one[i] - (double)many[i]));
    }
    if (!(apart <= CLOSE * most))
        g_error("%s --tp %s: logits are %.3g apart, the largest is %.3g", model, tp, apart, most);
}

/* Greedy ids and whether each was clearly the best (by the logits of the eval before). */
static json_t *greedy(const char *model, const char *tp)
{
    g_autofree char *text = NULL, *err = NULL;
    Run run = start("run", model, "--ids", IDS, "-n", "8", "--ignore-eos", "--activations", "f32",
                    "--json", "--tp", tp, NULL);
    json_t *doc;

    if (finish(&run, &text, &err))
        g_error("run %s --tp %s: %s%s", model, tp, text, err);
    doc = json_loads(text, 0, NULL);
    g_assert_nonnull(doc);
    /* what the rank read and made is what its plan says */
    g_assert_true(json_is_true(json_object_get(
        json_object_get(json_object_get(doc, "load"), "planned"), "equal")));
    return doc;
}

/* Is the last position's best id ahead of the second by more than MARGIN? */
static bool is_clear(const float *logits, size_t n, size_t n_vocab)
{
    const float *row = logits + n - n_vocab;
    float best = -INFINITY, second = -INFINITY;

    for (size_t v = 0; v < n_vocab; v++) {
        if (row[v] > best) {
            second = best;
            best = row[v];
        } else if (row[v] > second) {
            second = row[v];
        }
    }
    return best - second > MARGIN;
}

static void check_agreement(const char *model, const char *const *counts)
{
    size_t n, m;
    g_autofree float *one = eval(model, "1", &n);
    json_t *alone = greedy(model, "1"), *ids = json_object_get(alone, "ids");

    g_assert_true(is_clear(one, n, n / 20)); /* the prompt was chosen so */
    for (; *counts; counts++) {
        g_autofree float *many = eval(model, *counts, &m);
        json_t *doc = greedy(model, *counts);

        g_assert_cmpuint(n, ==, m);
        compare(model, *counts, one, many, n);
        g_assert_cmpint(json_integer_value(json_array_get(json_object_get(doc, "ids"), 0)), ==,
                        json_integer_value(json_array_get(ids, 0)));
        if (!json_equal(json_object_get(doc, "ids"), ids))
            g_error("%s --tp %s: other greedy ids", model, *counts);
        json_decref(doc);
    }
    json_decref(alone);
}

static void test_model(const void *data)
{
    static const char *const counts[] = {"2", "4", NULL};
    g_autofree char *path = g_strconcat(MODELS, (const char *)data, NULL);

    check_agreement(path, counts);
}

static const Blocks kinds[] = {{"q8_0", 8, 32, 34, 1, 0x0c00},
                               {"q4_0", 2, 32, 18, 1, 0x2000},
                               {"q4_k", 12, 256, 144, 2, 0x0c00}};

static void test_quantised(const void *data)
{
    static const char *const counts[] = {"2", "4", NULL}, *const two[] = {"2", NULL};
    const Blocks *b = data;
    g_autofree char *path = g_strdup_printf("%s/%s.gguf", folder, b->name);

    quantised_write(path, b);
    check_agreement(path, b->elems == 32 ? counts : two); /* 128 columns are no K block */
    g_unlink(path);
}

/* Layouts of several parts, each once; with float32 copies where a rank's part has no codes (columns
 * in an order of their own). The MLP of these has 96 columns: ranks get 32 and 64 of them. */
static const struct {
    const char *name, *dtype;
    bool whole_parts; /* every rank has all scales, or a table */
    const char *kv;   /* --kv-dtype; NULL = without */
} layouts[] = {
    {"awq_gemm", NULL, false, NULL},      {"awq_gemv", NULL, false, NULL},
    {"gptq_asym", NULL, false, NULL},     {"gptq_act_order", NULL, true, NULL},
    {"ct_w4_asym", NULL, false, NULL},    {"ct_int8_asym", NULL, false, NULL},
    {"fp8_block_bf16", NULL, false, NULL}, {"fp8_channel", NULL, false, NULL},
    {"mxfp8", NULL, false, NULL},         {"ct_nvfp4", NULL, false, NULL},
    {"ct_mxfp4", NULL, false, NULL},      {"modelopt_int4", NULL, false, NULL},
    {"bnb_int8", NULL, false, NULL},      {"bnb_nf4_double", NULL, true, NULL},
    {"moe_gptq", NULL, false, NULL},      {"gpt_oss_mxfp4", NULL, false, NULL},
    /* one layer, whose keys are computed from the same inputs on every rank: codes are the same */
    {"kv_fp8_heads", NULL, false, "fp8"}
};

/* Bytes that a plan takes of slots that ranks cut (@cut: of two, by their names); how often each byte
 * of the file is taken as a part of a weight is added to @times. */
static uint64_t taken(const char *path, const char *dtype, const char *tp, const char *rank,
                      GHashTable *cut, GByteArray *times)
{
    g_autofree char *text = NULL;
    Run run = start("plan", path, "--tp", tp, "--rank", rank, "--json", "--dtype",
                    dtype, NULL);
    uint64_t sum = 0;
    json_t *doc, *slot, *source, *word;
    size_t i, k;

    g_assert_cmpint(finish(&run, &text, NULL), ==, 0);
    doc = json_loads(text, 0, NULL);
    json_array_foreach(json_object_get(doc, "slots"), i, slot) {
        g_autofree char *name =
            g_strdup_printf("%s %" JSON_INTEGER_FORMAT,
                            json_string_value(json_object_get(slot, "slot")),
                            json_integer_value(json_object_get(slot, "layer")));

        json_array_foreach(json_object_get(slot, "transforms"), k, word)
            if (g_str_has_prefix(json_string_value(word), "rank: "))
                g_hash_table_add(cut, g_strdup(name));
        if (!g_hash_table_contains(cut, name))
            continue;
        json_array_foreach(json_object_get(slot, "sources"), k, source) {
            const uint64_t off = (uint64_t)json_integer_value(json_object_get(source, "offset"));
            const uint64_t n = (uint64_t)json_integer_value(json_object_get(source, "bytes"));
            const uint64_t stride =
                (uint64_t)json_integer_value(json_object_get(source, "stride"));
            const uint64_t runs = (uint64_t)json_integer_value(json_object_get(source, "runs"));
            const uint64_t run_bytes = n / MAX(runs, 1);

            sum += n;
            for (uint64_t b = 0; b < n; b++) {
                const uint64_t at = off + b / run_bytes * stride + b % run_bytes;

                if (times->len <= at)
                    g_byte_array_set_size(times, (guint)at + 1);
                if (strcmp(json_string_value(json_object_get(source, "role")), "weight") == 0)
                    times->data[at]++;
            }
        }
    }
    json_decref(doc);
    return sum;
}

/* Every byte of a weight is one rank's; scales and zeros go with their weights, except for what a
 * layout leaves whole. Padding of AWQ-GEMV's groups is nobody's. */
static void check_bytes(const char *path, const char *dtype, bool whole_parts)
{
    g_autoptr(GHashTable) cut = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GByteArray *times[2] = {g_byte_array_new(), g_byte_array_new()};
    uint64_t ranks, one;

    for (int k = 0; k < 2; k++) {
        g_byte_array_set_size(times[k], 1 << 20);
        memset(times[k]->data, 0, times[k]->len);
    }
    ranks = taken(path, dtype, "2", "0", cut, times[0]);
    ranks += taken(path, dtype, "2", "1", cut, times[0]);
    one = taken(path, dtype, "1", "0", cut, times[1]);
    g_assert_cmpuint(g_hash_table_size(cut), >, 6);
    g_assert_cmpmem(times[0]->data, times[0]->len, times[1]->data, times[1]->len);
    if (!whole_parts)
        g_assert_cmpuint(ranks * 100, <=, one * 102);
    g_byte_array_unref(times[0]);
    g_byte_array_unref(times[1]);
}

static void test_layout(const void *data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const char *dtype = layouts[i].dtype ? layouts[i].dtype : "stored";
    g_autofree char *path = g_strconcat(QUANTS, layouts[i].name, NULL);
    g_autofree char *npy = g_build_filename(folder, "logits.npy", NULL);
    float *logits[2] = {NULL, NULL};
    static const char *const counts[] = {"1", "2"};
    size_t n[2] = {0, 0};

    for (int k = 0; k < 2; k++) {
        g_autofree char *err = NULL;
        Run run = start("eval", path, "--ids", IDS, "--logits", npy, "--tp", counts[k], "--dtype",
                        dtype, layouts[i].kv ? "--kv-dtype" : NULL, layouts[i].kv, NULL);

        if (finish(&run, NULL, &err))
            g_error("eval %s --tp %s: %s", path, counts[k], err);
        logits[k] = logits_of(npy, &n[k]);
    }
    g_assert_cmpuint(n[0], ==, n[1]);
    compare(path, "2", logits[0], logits[1], n[0]);
    g_free(logits[0]);
    g_free(logits[1]);
    check_bytes(path, dtype, layouts[i].whole_parts);
}

/* ---- ends ---- */

/* Child processes of @pid. */
static GArray *children_of(GPid pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    g_autofree char *text = NULL;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(pid_t));

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return list;
    for (char *at = text, *end; *at; at = end) {
        const pid_t child = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        g_array_append_val(list, child);
    }
    return list;
}

static bool lives(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *text = NULL;
    const char *state;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return false;
    state = strrchr(text, ')'); /* a zombie is gone: its parent has not looked yet */
    return state && strlen(state) > 2 && state[2] != 'Z' && state[2] != 'X';
}

static void until_gone(pid_t pid)
{
    while (lives(pid)) /* ctest ends a test that does not */
        g_usleep(10000);
}

/* A run of four ranks in the middle of its answer. */
static Run start_long(GArray **out_children)
{
    Run run = start("run", MODELS "llama_mini", "--ids", IDS, "-n", "200", "--repeat",
                    "1000000", "--ignore-eos", "--stream", "--tp", "4", NULL);
    char some[16];

    g_assert_cmpint(read(run.out, some, sizeof some), >, 0);
    *out_children = children_of(run.pid);
    g_assert_cmpuint((*out_children)->len, ==, 3);
    return run;
}

static void check_all_gone(GArray *children)
{
    for (guint i = 0; i < children->len; i++)
        until_gone(g_array_index(children, pid_t, i));
    g_array_unref(children);
}

static void killed_rank_hangs_the_run(void)
{
    g_autofree char *err = NULL;
    GArray *children;
    Run run = start_long(&children);

    kill(g_array_index(children, pid_t, 1), SIGKILL);
    g_assert_cmpint(finish(&run, NULL, &err), ==, 1);
    if (!strstr(err, "another rank has ended") || !strstr(err, "ended by signal 9"))
        g_error("said: %s", err);
    check_all_gone(children);
}

static void killed_first_rank_leaves_the_others(void)
{
    GArray *children;
    Run run = start_long(&children);

    kill(run.pid, SIGKILL);
    g_assert_cmpint(finish(&run, NULL, NULL), ==, -SIGKILL);
    check_all_gone(children);
}

static void interrupt_leaves_ranks(void)
{
    GArray *children;
    Run run = start_long(&children);

    kill(run.pid, SIGINT);
    g_assert_cmpint(finish(&run, NULL, NULL), ==, 130);
    check_all_gone(children);
}

/* ---- ranks that others start ---- */

static bool shm_has(const char *name)
{
    g_autofree char *path = g_strdup_printf("/dev/shm/davit-%u-%s", (unsigned)geteuid(), name);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* Two runs at once under names of their own, ranks in any order. */
static void runs_meet(void)
{
    static const char *const models[] = {MODELS "qwen3", MODELS "llama_mini"};
    Run run[2][2];
    char *text[2], *name[2], *place[2];

    for (int i = 0; i < 2; i++) {
        name[i] = g_strdup_printf("runs-%d-%d", (int)getpid(), i);
        place[i] = g_strconcat("shm:", name[i], NULL);
        run[i][1] = start("run", models[i], "--tp", "2", "--rank", "1", "--comm", place[i], NULL);
    }
    for (int i = 0; i < 2; i++)
        run[i][0] = start("run", models[i], "--tp", "2", "--rank", "0", "--comm", place[i],
                          "--ids", IDS, "-n", "4", "--activations", "f32", "--ignore-eos", "--json",
                          NULL);
    for (int i = 0; i < 2; i++) {
        json_t *doc, *alone = greedy(models[i], "1");

        g_assert_cmpint(finish(&run[i][0], &text[i], NULL), ==, 0);
        g_assert_cmpint(finish(&run[i][1], NULL, NULL), ==, 0);
        doc = json_loads(text[i], 0, NULL);
        for (size_t k = 0; k < 4; k++)
            g_assert_true(json_equal(json_array_get(json_object_get(doc, "ids"), k),
                                     json_array_get(json_object_get(alone, "ids"), k)));
        g_assert_false(shm_has(name[i]));
        json_decref(doc);
        json_decref(alone);
        g_free(name[i]);
        g_free(place[i]);
        g_free(text[i]);
    }
}

static void other_model_is_taken(void)
{
    g_autofree char *name = g_strdup_printf("other-%d", (int)getpid());
    g_autofree char *place = g_strconcat("shm:", name, NULL), *err = NULL;
    Run other = start("run", MODELS "llama_mini", "--tp", "2", "--rank", "1", "--comm", place, NULL);
    Run first = start("run", MODELS "qwen3", "--tp", "2", "--rank", "0", "--comm", place, "--ids",
                      "1", NULL);

    g_assert_cmpint(finish(&first, NULL, &err), ==, 4);
    g_assert_nonnull(strstr(err, "another model"));
    g_assert_cmpint(finish(&other, NULL, NULL), ==, 4);
    g_assert_false(shm_has(name));
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"llama_mini", "qwen2",    "qwen3",     "qwen3_moe",
                                         "gemma3",     "gguf_llama", "gguf_qwen3_moe"};
    int code;

    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("davit-ranks-XXXXXX", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(models); i += EVERY) {
        g_autofree char *name = g_strconcat("/ranks/agree/", models[i], NULL);
        g_test_add_data_func(name, models[i], test_model);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i += EVERY) {
        g_autofree char *name = g_strconcat("/ranks/agree/", kinds[i].name, NULL);
        g_test_add_data_func(name, &kinds[i], test_quantised);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i += EVERY) {
        g_autofree char *name = g_strconcat("/ranks/layout/", layouts[i].name, NULL);
        g_test_add_data_func(name, GSIZE_TO_POINTER(i), test_layout);
    }
    g_test_add_func("/ranks/killed_rank", killed_rank_hangs_the_run);
    g_test_add_func("/ranks/killed_first_rank", killed_first_rank_leaves_the_others);
    g_test_add_func("/ranks/interrupt", interrupt_leaves_ranks);
    g_test_add_func("/ranks/runs_meet", runs_meet);
    g_test_add_func("/ranks/other_model", other_model_is_taken);
    code = g_test_run();
    {
        g_autofree char *npy = g_build_filename(folder, "logits.npy", NULL);
        g_unlink(npy);
    }
    g_rmdir(folder);
    g_free(folder);
    return code;
}
