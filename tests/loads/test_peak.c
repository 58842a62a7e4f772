/* SPDX-License-Identifier: Apache-2.0
 * The whole program on a model of 590 MiB, whose file has a head and then a hole: private memory
 * stays inside what plan predicts for weights, keys and values, values and scratch, and 16 MiB for
 * the program itself; 64 MiB less is refused before anything is read. From disk it stays inside
 * the budget of --memory, pages of the file included. And what plan prints of a load is what run
 * counts. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>

#include "base/sanitizer.h"

#define MIB    (1ull << 20)
#define HIDDEN 1024
#define INNER  2816
#define LAYERS 12
#define VOCAB  259
/* two threads, so that their stacks are two of 8 MiB at most whatever the machine has */
#define CALL   "--ctx", "64", "--threads", "2", "--io-threads", "2", "--json"

static char *model; /* directory */

/* ---- the model ---- */

static void add_tensor(GString *head, uint64_t *off, const char *name, uint64_t rows,
                       uint64_t cols)
{
    const uint64_t end = *off + rows * cols * 4;

    g_string_append_printf(head, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%" G_GUINT64_FORMAT,
                           head->len > 1 ? "," : "", name, rows);
    if (cols > 1)
        g_string_append_printf(head, ",%" G_GUINT64_FORMAT, cols);
    g_string_append_printf(head, "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
                                 "]}",
                           *off, end);
    *off = end;
}

static void add_layer(GString *head, uint64_t *off, unsigned layer)
{
    static const struct {
        const char *name;
        uint64_t rows, cols;
    } rows[] = {{"input_layernorm", HIDDEN, 1},          {"post_attention_layernorm", HIDDEN, 1},
                {"self_attn.q_proj", HIDDEN, HIDDEN},    {"self_attn.k_proj", HIDDEN, HIDDEN},
                {"self_attn.v_proj", HIDDEN, HIDDEN},    {"self_attn.o_proj", HIDDEN, HIDDEN},
                {"mlp.gate_proj", INNER, HIDDEN},        {"mlp.up_proj", INNER, HIDDEN},
                {"mlp.down_proj", HIDDEN, INNER}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name =
            g_strdup_printf("model.layers.%u.%s.weight", layer, rows[i].name);

        add_tensor(head, off, name, rows[i].rows, rows[i].cols);
    }
}

/* The file's bytes behind its head are a hole: zeros that take no disk. */
static void write_weights(const char *path)
{
    g_autoptr(GString) head = g_string_new("{");
    uint64_t off = 0, n;
    FILE *file = fopen(path, "wb");

    g_assert_nonnull(file);
    add_tensor(head, &off, "model.embed_tokens.weight", VOCAB, HIDDEN);
    add_tensor(head, &off, "lm_head.weight", VOCAB, HIDDEN);
    add_tensor(head, &off, "model.norm.weight", HIDDEN, 1);
    for (unsigned layer = 0; layer < LAYERS; layer++)
        add_layer(head, &off, layer);
    g_string_append_c(head, '}');
    while (head->len % 64 != 56) /* tensors at multiples of 64 */
        g_string_append_c(head, ' ');
    n = GUINT64_TO_LE(head->len);
    g_assert_cmpuint(fwrite(&n, sizeof n, 1, file), ==, 1);
    g_assert_cmpuint(fwrite(head->str, head->len, 1, file), ==, 1);
    g_assert_cmpint(fclose(file), ==, 0);
    g_assert_cmpuint(off, >=, 512 * MIB);
    g_assert_cmpint(truncate(path, (off_t)(8 + head->len + off)), ==, 0);
}

static void make_model(void)
{
    g_autofree char *weights = NULL, *config = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":%d,"
        "\"intermediate_size\":%d,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
        "\"num_key_value_heads\":16,\"vocab_size\":%d,\"rms_norm_eps\":1e-5,"
        "\"rope_theta\":10000.0,\"max_position_embeddings\":256,\"tie_word_embeddings\":false}",
        HIDDEN, INNER, LAYERS, VOCAB);

    model = g_dir_make_tmp("davit-peak-XXXXXX", NULL);
    weights = g_build_filename(model, "model.safetensors", NULL);
    config = g_build_filename(model, "config.json", NULL);
    g_assert_true(g_file_set_contents(config, text, -1, NULL));
    write_weights(weights);
}

static void remove_model(void)
{
    g_autofree char *weights = g_build_filename(model, "model.safetensors", NULL);
    g_autofree char *config = g_build_filename(model, "config.json", NULL);

    g_unlink(weights);
    g_unlink(config);
    g_rmdir(model);
    g_free(model);
}

/* ---- the program ---- */

typedef struct Ended {
    int exit;
    json_t *doc;       /* NULL if stdout is none */
    uint64_t rss_most; /* private and file pages */
} Ended;

static void limit_data(gpointer bytes)
{
    const struct rlimit limit = {*(uint64_t *)bytes, *(uint64_t *)bytes};

    if (*(uint64_t *)bytes && setrlimit(RLIMIT_DATA, &limit) != 0)
        _exit(99);
}

/* @data: most private memory, 0 = no limit. */
static Ended run(const char *const *argv, uint64_t data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    struct rusage usage;
    Ended end = {0};
    GPid pid;
    char buffer[4096];
    int out, status;

    g_spawn_async_with_pipes(NULL, (char **)(uintptr_t)argv, NULL,
                             G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL, limit_data,
                             &data, &pid, NULL, &out, NULL, &error);
    g_assert_no_error(error);
    for (ssize_t n; (n = read(out, buffer, sizeof buffer)) > 0;)
        g_string_append_len(text, buffer, n);
    close(out);
    g_assert_cmpint(wait4(pid, &status, 0, &usage), ==, pid);
    end.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    end.doc = json_loads(text->str, 0, NULL);
    end.rss_most = (uint64_t)usage.ru_maxrss * 1024;
    return end;
}

static uint64_t number_at(const json_t *doc, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);

    for (char **k = keys; *k; k++)
        doc = json_is_array(doc) ? json_array_get(doc, (size_t)atoi(*k))
                                 : json_object_get(doc, *k);
    g_assert_true(json_is_integer(doc));
    return (uint64_t)json_integer_value(doc);
}

static const char *error_of(const json_t *doc)
{
    const json_t *records = json_object_get(doc, "records");

    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *r = json_array_get(records, i);

        if (strcmp(json_string_value(json_object_get(r, "severity")), "error") == 0)
            return json_string_value(json_object_get(r, "code"));
    }
    return NULL;
}

/* ---- tests ---- */

static bool skipped(void)
{
    if (DAVIT_SANITIZED)
        g_test_skip("sanitizers map more than the limit");
    return DAVIT_SANITIZED;
}

/* What plan says of a load with private copies, and of a step. */
static uint64_t predicted(const char *window)
{
    const char *argv[] = {DAVIT_PROGRAM, "plan", model, "--access", "direct", "--device-map",
                          "auto", "--memory", "cpu=8GiB", "--window", window, CALL, NULL};
    Ended end = run(argv, 0);
    const uint64_t n = number_at(end.doc, "memory.peak_host_bytes") +
                       number_at(end.doc, "placed.0.state_bytes") +
                       number_at(end.doc, "placed.0.step_bytes");

    g_assert_cmpint(end.exit, ==, 0);
    g_assert_cmpuint(n, >=, 512 * MIB);
    json_decref(end.doc);
    return n;
}

static void private_memory_is_predicted(const void *window)
{
    const char *argv[] = {DAVIT_PROGRAM, "run", model, "--ids", "1 2", "--max-tokens", "2",
                          "--access", "direct", "--window", window, CALL, NULL};

    if (skipped())
        return;
    const uint64_t most = predicted(window);
    Ended fits = run(argv, most + 16 * MIB);
    g_assert_cmpint(fits.exit, ==, 0);
    g_assert_true(json_is_true(json_object_get(
        json_object_get(json_object_get(fits.doc, "load"), "planned"), "equal")));
    Ended less = run(argv, most - 64 * MIB);
    g_assert_cmpint(less.exit, ==, 1);
    g_assert_cmpstr(error_of(less.doc), ==, "memory-short");
    json_decref(fits.doc);
    json_decref(less.doc);
}

/* From disk: the same ids, and neither private memory nor pages of the file past the budget. */
static void disk_stays_in_the_budget(void)
{
    const char *whole[] = {DAVIT_PROGRAM, "run", model, "--ids", "1 2", "--max-tokens", "2", CALL,
                           NULL};
    const char *budget[] = {DAVIT_PROGRAM, "run", model, "--ids", "1 2", "--max-tokens", "2",
                            "--device-map", "auto", "--memory", "cpu=200MiB", CALL, NULL};
    const char *small[] = {DAVIT_PROGRAM, "run", model, "--ids", "1 2", "--max-tokens", "2",
                           "--device-map", "auto", "--memory", "cpu=20MiB", CALL, NULL};

    if (skipped())
        return;
    Ended all = run(whole, 0), disk = run(budget, 200 * MIB), none = run(small, 0);
    g_assert_cmpint(all.exit, ==, 0);
    g_assert_cmpint(disk.exit, ==, 0);
    g_assert_true(json_equal(json_object_get(all.doc, "ids"), json_object_get(disk.doc, "ids")));
    g_assert_cmpuint(all.rss_most, >=, 512 * MIB); /* or the measure measures nothing */
    g_assert_cmpuint(disk.rss_most, <=, 200 * MIB + 16 * MIB);
    g_assert_cmpuint(number_at(disk.doc, "load.slots.defer"), >, 0);
    g_assert_cmpuint(number_at(disk.doc, "load.slots.borrow"), >, 2); /* and some are kept */
    g_assert_cmpint(none.exit, ==, 1);
    g_assert_cmpstr(error_of(none.doc), ==, "memory-short");
    json_decref(all.doc);
    json_decref(disk.doc);
    json_decref(none.doc);
}

/* ---- what plan prints is what run counts ---- */

/* GGUF blocks with every pair of access and window; layouts of several parts with each once. */
static const char *const goldens[] = {DAVIT_SOURCE_DIR "/tests/golden/models/gguf_q4_k_m",
                                      DAVIT_SOURCE_DIR "/tests/golden/quant/gptq_act_order",
                                      DAVIT_SOURCE_DIR "/tests/golden/quant/moe_fp8"};

/* Bytes of a stage of plan's document. */
static uint64_t stage_bytes(const json_t *doc, const char *stage)
{
    const json_t *list = json_object_get(doc, "stages");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        if (strcmp(json_string_value(json_object_get(one, "stage")), stage) == 0)
            return number_at(one, "bytes");
    }
    g_assert_not_reached();
}

/* Slots of plan's document with @access, those that have bytes of their own. */
static uint64_t count_slots(const json_t *doc, const char *access)
{
    const json_t *list = json_object_get(doc, "slots");
    uint64_t n = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        n += json_is_true(json_object_get(one, "used")) &&
             json_is_null(json_object_get(one, "tied_to")) &&
             strcmp(json_string_value(json_object_get(one, "access")), access) == 0;
    }
    return n;
}

static void compare(const json_t *plan, const json_t *run_doc)
{
    static const struct {
        const char *stage, *counter;
    } bytes[] = {{"borrow", "load.borrowed_bytes"}, {"read", "load.read_bytes"},
                 {"copy", "load.copied_bytes"},     {"pack", "load.packed_bytes"},
                 {"decode", "load.decoded_bytes"},  {"upload", "load.uploaded_bytes"}};
    static const struct {
        const char *access, *counter;
    } slots[] = {{"BORROW", "load.slots.borrow"}, {"DIRECT", "load.slots.direct"},
                 {"STREAM", "load.slots.stream"}, {"DEFER", "load.slots.defer"}};

    for (size_t i = 0; i < G_N_ELEMENTS(bytes); i++)
        g_assert_cmpuint(stage_bytes(plan, bytes[i].stage), ==,
                         number_at(run_doc, bytes[i].counter));
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++)
        g_assert_cmpuint(count_slots(plan, slots[i].access), ==,
                         number_at(run_doc, slots[i].counter));
    g_assert_cmpuint(number_at(plan, "memory.window_bytes"), ==,
                     number_at(run_doc, "load.window_bytes"));
    g_assert_cmpuint(number_at(plan, "memory.resident_bytes"), ==,
                     number_at(run_doc, "load.resident_bytes"));
}

/* Equal figures, the same ids. */
static void check_golden(const char *golden, bool each_once)
{
    static const char *const accesses[] = {"auto", "borrow", "direct", "stream"};
    static const char *const windows[] = {"8MiB", "32MiB", "128MiB", "256MiB"};
    json_t *ids = NULL;

    for (size_t i = 0; i < 16; i++) {
        const char *access = accesses[i / 4], *window = windows[i % 4];

        if (each_once && i % 5)
            continue;

        const char *plan[] = {DAVIT_PROGRAM, "plan", golden, "--access", access, "--window",
                              window, CALL, NULL};
        const char *load[] = {DAVIT_PROGRAM, "run", golden, "--ids", "1 20 30", "--ignore-eos",
                              "--max-tokens", "4", "--access", access, "--window", window, CALL,
                              NULL};
        Ended a = run(plan, 0), b = run(load, 0);
        g_assert_cmpint(a.exit, ==, 0);
        g_assert_cmpint(b.exit, ==, 0);
        compare(a.doc, b.doc);
        if (!ids)
            ids = json_incref(json_object_get(b.doc, "ids"));
        g_assert_cmpuint(json_array_size(ids), ==, 4);
        g_assert_true(json_equal(ids, json_object_get(b.doc, "ids")));
        json_decref(a.doc);
        json_decref(b.doc);
    }
    json_decref(ids);
}

static void plan_is_what_run_does(void)
{
    for (size_t g = 0; g < G_N_ELEMENTS(goldens); g++)
        if (g == 0 || !DAVIT_SANITIZED) /* core/exec/test_weights.c has them there */
            check_golden(goldens[g], g > 0 || DAVIT_SANITIZED);
}

int main(int argc, char **argv)
{
    int code;

    g_test_init(&argc, &argv, NULL);
    make_model();
    g_test_add_data_func("/peak/private/8MiB", "8MiB", private_memory_is_predicted);
    /* other windows: core/exec/test_limits.c, without the program around */
    g_test_add_func("/peak/plan_is_run", plan_is_what_run_does);
    g_test_add_func("/peak/disk", disk_stays_in_the_budget);
    code = g_test_run();
    remove_model();
    return code;
}
