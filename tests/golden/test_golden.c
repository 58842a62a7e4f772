/* SPDX-License-Identifier: Apache-2.0
 * Every golden checkpoint through libdavit: logits and greedy ids equal transformers', other
 * spellings of its config change nothing, a flipped quirk is seen, what must be refused is;
 * and logits are the same bits for any threads, chunks and block sizes. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "golden/folder.h"
#include "golden/run_model.h"

#define MODELS DAVIT_SOURCE_DIR "/tests/golden/models"

static const Setup reference = {.n_threads = 1, .activations = DAVIT_LIB_ACTIVATIONS_F32};

static json_t *load_json(const char *path)
{
    json_error_t error;
    json_t *doc = json_load_file(path, 0, &error);
    if (!doc)
        g_error("%s: %s", path, error.text);
    return doc;
}

/* A .npy of float32 in C order, as the golden script writes them. */
static Matrix load_npy(const char *path)
{
    gsize n;
    char *data;
    g_assert_true(g_file_get_contents(path, &data, &n, NULL));
    g_assert_cmpmem(data, 6, "\x93NUMPY", 6);
    const gsize header = 10 + (guchar)data[8] + 256u * (guchar)data[9];
    const char *shape = strstr(data + 10, "'shape': (");
    Matrix m = {0};
    g_assert_nonnull(strstr(data + 10, "'<f4'"));
    g_assert_cmpint(sscanf(shape, "'shape': (%zu, %zu)", &m.rows, &m.cols), ==, 2);
    g_assert_cmpuint(n - header, ==, m.rows * m.cols * sizeof(float));
    m.x = g_memdup2(data + header, n - header);
    g_free(data);
    return m;
}

static GArray *load_ids(const json_t *list)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const int32_t id = (int32_t)json_integer_value(json_array_get(list, i));
        g_array_append_val(ids, id);
    }
    return ids;
}

/* Largest difference relative to the largest golden logit. @rows: which rows @want holds. */
static double difference(const Matrix *got, const Matrix *want, const json_t *rows)
{
    double most = 0, scale = 0;
    g_assert_cmpuint(got->cols, ==, want->cols);
    for (size_t r = 0; r < want->rows; r++) {
        const size_t row =
            json_is_array(rows) ? (size_t)json_integer_value(json_array_get(rows, r)) : r;
        g_assert_cmpuint(row, <, got->rows);
        for (size_t c = 0; c < want->cols; c++) {
            const double w = want->x[r * want->cols + c];
            const double d = fabs(got->x[row * got->cols + c] - w);
            most = isnan(d) ? INFINITY : MAX(most, d);
            scale = MAX(scale, fabs(w));
        }
    }
    return most / scale;
}

/* ---- one golden folder ---- */

static const json_t *prompt_at(const json_t *golden, size_t i)
{
    return json_array_get(json_object_get(golden, "prompts"), i);
}

/* The prompt past a window of 4096 takes the plain C kernels most of a minute: test_attn has
 * their windows. */
static bool too_long(const json_t *prompt)
{
    return json_array_size(json_object_get(prompt, "ids")) > 1000 &&
           g_strcmp0(g_getenv("DAVIT_CPU_LEVEL"), "scalar") == 0;
}

static double tolerance_of(const json_t *golden, const json_t *prompt)
{
    const json_t *own = json_object_get(prompt, "tolerance");
    return json_number_value(own ? own : json_object_get(golden, "tolerance"));
}

static double prompt_difference(davit_model *model, const Setup *setup, const char *dir,
                                const json_t *prompt)
{
    g_autoptr(GArray) ids = load_ids(json_object_get(prompt, "ids"));
    g_autofree char *file =
        g_build_filename(dir, json_string_value(json_object_get(prompt, "logits")), NULL);
    Matrix want = load_npy(file);
    Matrix got = run_logits(model, setup, ids);
    const double d = difference(&got, &want, json_object_get(prompt, "rows"));
    g_free(want.x);
    g_free(got.x);
    return d;
}

static void check_prompts(davit_model *model, const char *dir, const json_t *golden,
                          const char *what)
{
    for (size_t i = 0; i < json_array_size(json_object_get(golden, "prompts")); i++) {
        const json_t *prompt = prompt_at(golden, i);
        const double d = too_long(prompt) ? 0 : prompt_difference(model, &reference, dir, prompt);
        if (!(d <= tolerance_of(golden, prompt))) {
            g_test_message("%s, prompt %zu: relative difference %g", what, i, d);
            g_test_fail();
        }
    }
}

static void check_greedy(davit_model *model, const json_t *golden)
{
    for (size_t i = 0; i < json_array_size(json_object_get(golden, "prompts")); i++) {
        const json_t *prompt = prompt_at(golden, i);
        g_autoptr(GArray) ids = load_ids(json_object_get(prompt, "ids"));
        g_autoptr(GArray) want = load_ids(json_object_get(prompt, "greedy"));
        if (want->len == 0)
            continue; /* the 4200-token prompt has logits only */
        g_autoptr(GArray) got = run_greedy(model, &reference, ids, want->len, true);
        g_assert_cmpmem(got->data, got->len * 4, want->data, want->len * 4);
    }
}

static void check_stop(davit_model *model, const json_t *golden)
{
    const json_t *stop = json_object_get(golden, "stop");
    if (!stop)
        return;
    const json_t *prompt = prompt_at(golden, (size_t)json_integer_value(json_object_get(stop, "prompt")));
    g_autoptr(GArray) ids = load_ids(json_object_get(prompt, "ids"));
    g_autoptr(GArray) want = load_ids(json_object_get(stop, "ids"));
    g_autoptr(GArray) got = run_greedy(model, &reference, ids, 12, false);
    g_assert_cmpmem(got->data, got->len * 4, want->data, want->len * 4);
}

/* The copy's model path; (owned). */
enum { TURNS = 5, ANSWER = 4 };

/* A conversation has the same answers with held keys and values as without. Turns 1 and 2 go
 * on from the one before, turn 3 parts from it after half, turn 4 asks turn 3's again.
 * @varies: angles depend on the length, so that only a prompt of the same may be held. */
static void check_reuse(davit_model *model, bool varies)
{
    davit_engine *engine = open_engine(model, &reference);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    const davit_request_params without = {.max_tokens = ANSWER, .ignore_eos = 1};
    davit_request_params with = without;
    size_t held = 0;
    with.reuse_prefix = 1;
    for (int32_t i = 0; i < 9; i++)
        g_array_append_vals(ids, &(int32_t){(i * 7 + 3) % 40}, 1);
    for (int turn = 0; turn < TURNS; turn++) {
        davit_engine *fresh = open_engine(model, &reference);
        uint64_t reused = 0, none = 0;
        if (turn == 3) {
            held = ids->len / 2;
            g_array_set_size(ids, (guint)held);
            g_array_append_vals(ids, &(int32_t){39}, 1);
        }
        g_autoptr(GArray) got = ask(engine, ids, with, &reused);
        g_autoptr(GArray) want = ask(fresh, ids, without, &none);
        g_assert_cmpuint(got->len, ==, ANSWER);
        g_assert_true(got->len == want->len &&
                      memcmp(got->data, want->data, got->len * sizeof(int32_t)) == 0);
        g_assert_cmpuint(none, ==, 0);
        g_assert_cmpuint(reused, ==, varies && turn != 4 ? 0 : held);
        held = ids->len + ANSWER - 1; /* the last id of an answer is not computed */
        if (turn < 3) {
            g_array_append_vals(ids, got->data, got->len);
            g_array_append_vals(ids, ((int32_t[]){5, 11, 2}), 3);
        } else {
            held = ids->len - 1; /* one is computed anew for its logits */
        }
        davit_engine_free(fresh);
    }
    davit_engine_free(engine);
}

static char *model_path(const char *folder, const json_t *golden)
{
    const char *path = json_string_value(json_object_get(golden, "path"));
    return strcmp(path, ".") == 0 ? g_strdup(folder) : g_build_filename(folder, path, NULL);
}

static davit_model *open_changed(const char *dir, const json_t *golden, const json_t *change,
                                 davit_records **records)
{
    char *folder = folder_copy(dir);
    if (change)
        folder_change(folder, change);
    g_autofree char *path = model_path(folder, golden);
    davit_model *model = open_model(path, &reference, records);
    folder_free(folder); /* the mapping keeps the bytes */
    return model;
}

static void check_same(const char *dir, const json_t *golden)
{
    size_t i;
    json_t *same;
    json_array_foreach(json_object_get(golden, "same"), i, same)
    {
        const char *name = json_string_value(json_object_get(same, "name"));
        davit_records *records = NULL;
        davit_model *model = open_changed(dir, golden, same, &records);
        if (!model) {
            g_autofree char *text = records_text(records);
            g_test_message("spelling %s does not load:%s", name, text);
            g_test_fail();
        } else {
            check_prompts(model, dir, golden, name);
        }
        davit_records_free(records);
        davit_model_free(model);
    }
}

/* A twin misses by what transformers measured for it: 100 times the tolerance at least, and
 * the same miss within 5 percent, so that the flip itself is computed right, too. */
static void check_twins(const char *dir, const json_t *golden)
{
    size_t i;
    json_t *twin;
    json_array_foreach(json_object_get(golden, "twins"), i, twin)
    {
        const char *name = json_string_value(json_object_get(twin, "name"));
        const double want = json_number_value(json_object_get(twin, "rel_diff"));
        const json_t *prompt =
            prompt_at(golden, (size_t)json_integer_value(json_object_get(twin, "prompt")));
        davit_records *records = NULL;
        if (too_long(prompt))
            continue;
        davit_model *model = open_changed(dir, golden, twin, &records);
        if (!model) {
            g_autofree char *text = records_text(records);
            g_test_message("twin %s does not load:%s", name, text);
            g_test_fail();
        } else {
            const double d = prompt_difference(model, &reference, dir, prompt);
            if (!(d >= 100 * 1e-4) || fabs(d - want) > 0.05 * want) {
                g_test_message("twin %s: misses by %g, transformers by %g", name, d, want);
                g_test_fail();
            }
        }
        davit_records_free(records);
        davit_model_free(model);
    }
}

static void check_refused(const char *dir, const json_t *golden)
{
    size_t i;
    json_t *refused;
    json_array_foreach(json_object_get(golden, "refused"), i, refused)
    {
        davit_records *records = NULL;
        davit_model *model = open_changed(dir, golden, refused, &records);
        if (model) {
            g_test_message("%s loads, and must not",
                           json_string_value(json_object_get(refused, "name")));
            g_test_fail();
        }
        davit_records_free(records);
        davit_model_free(model);
    }
}

/* Is the model of @a also that of @b? The chunk is the engine's alone. */
static bool same_model(const Setup *a, const Setup *b)
{
    return a->n_threads == b->n_threads && a->block_tokens == b->block_tokens;
}

/* Bit-equal logits for all cuts of the work, with one kind of activations and one layout. */
static void check_cuts(const char *path, const GArray *ids, unsigned activations, unsigned layout)
{
    static const Setup cuts[] = {{1, 64, 0, 0, 0},  {1, 1, 0, 0, 0},   {1, 7, 0, 0, 0},
                                 {1, 4096, 0, 0, 0}, {2, 64, 0, 0, 0},  {5, 64, 0, 0, 0},
                                 {1, 64, 1, 0, 0},  {1, 64, 16, 0, 0}, {1, 64, 8192, 0, 0}};
    davit_model *model = NULL;
    Matrix first = {0};
    for (size_t c = 0; c < G_N_ELEMENTS(cuts); c++) {
        Setup setup = cuts[c];
        setup.activations = activations;
        setup.layout = layout;
        if (c == 0 || !same_model(&cuts[c - 1], &cuts[c])) {
            davit_model_free(model);
            model = must_open(path, &setup);
        }
        if (!model)
            break;
        Matrix got = run_logits(model, &setup, ids);
        if (!first.x) {
            first = got;
            continue;
        }
        if (memcmp(first.x, got.x, got.rows * got.cols * sizeof(float)) != 0) {
            g_test_message("activations %u, layout %u: threads %u, chunk %u, block %u give "
                           "other bits (difference %g)",
                           activations, layout, setup.n_threads, setup.chunk,
                           setup.block_tokens, difference(&got, &first, NULL));
            g_test_fail();
        }
        g_free(got.x);
    }
    davit_model_free(model);
    g_free(first.x);
}

static void check_invariance(const char *path, const json_t *golden)
{
    static const unsigned layouts[] = {DAVIT_LIB_LAYOUT_STORED, DAVIT_LIB_LAYOUT_PACKED};
    const json_t *prompt = prompt_at(golden, 1);
    g_autoptr(GArray) ids = load_ids(json_object_get(prompt, "ids"));
    if (ids->len > 300)
        g_array_set_size(ids, 300);
    for (unsigned act = DAVIT_LIB_ACTIVATIONS_F32; act <= DAVIT_LIB_ACTIVATIONS_INT8; act++)
        for (size_t l = 0; l < G_N_ELEMENTS(layouts); l++)
            check_cuts(path, ids, act, layouts[l]);
}

/* stablelm belongs to a third party's plugin: it is refused for run, and the record says why. */
static bool refused_family(const char *dir, const json_t *golden)
{
    const char *family = json_string_value(json_object_get(golden, "family"));
    const char *code = strcmp(family, "stablelm") == 0 ? "all-declined" : NULL;
    if (!code)
        return false;
    davit_records *records = NULL;
    davit_model *model = open_changed(dir, golden, NULL, &records);
    g_assert_null(model);
    bool said = false;
    for (size_t i = 0; i < davit_records_count(records); i++) {
        davit_record r = {.struct_size = sizeof r};
        davit_records_get(records, i, &r);
        said |= strcmp(r.code, code) == 0;
    }
    g_assert_true(said);
    davit_records_free(records);
    return true;
}

static void test_folder(const void *data)
{
    const char *name = data;
    g_autofree char *dir = g_build_filename(MODELS, name, NULL);
    g_autofree char *file = g_build_filename(dir, "golden.json", NULL);
    json_t *golden = load_json(file);
    if (!refused_family(dir, golden)) {
        char *folder = folder_copy(dir);
        g_autofree char *path = model_path(folder, golden);
        davit_model *model = must_open(path, &reference);
        if (model) {
            check_prompts(model, dir, golden, "as made");
            check_greedy(model, golden);
            check_stop(model, golden);
            check_reuse(model, strstr(name, "longrope") || strstr(name, "dynamic"));
            davit_model_free(model);
            check_invariance(path, golden);
        }
        folder_free(folder);
        check_same(dir, golden);
        check_twins(dir, golden);
        check_refused(dir, golden);
    }
    json_decref(golden);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_set_nonfatal_assertions();
    json_t *index = load_json(MODELS "/INDEX.json");
    size_t i;
    json_t *model;
    json_array_foreach(json_object_get(index, "models"), i, model)
    {
        const char *name = json_string_value(json_object_get(model, "name"));
        g_autofree char *path = g_strdup_printf("/golden/%s", name);
        g_test_add_data_func(path, name, test_folder);
    }
    const int result = g_test_run();
    json_decref(index);
    return result;
}
