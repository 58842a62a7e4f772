/* SPDX-License-Identifier: Apache-2.0
 * Every folder of tests/golden/quant through libdavit: logits and greedy ids equal those of
 * transformers on the dequantised weights, with float32 copies of the weights and with what the plan chooses. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <glib.h>
#include <jansson.h>

#include "engine/libdavit.h"

#define FOLDERS   DAVIT_SOURCE_DIR "/tests/golden/quant"
#define TOLERANCE 1e-4 /* of the largest logit: float32 sums in another order */

typedef struct Rows {
    float *x;
    size_t cols;
} Rows;

static int keep_row(void *ctx, size_t position, const float *logits)
{
    Rows *rows = ctx;

    memcpy(rows->x + position * rows->cols, logits, rows->cols * sizeof(float));
    return 1;
}

static void fail_with(const char *what, davit_records *records)
{
    for (size_t i = 0; i < davit_records_count(records); i++) {
        davit_record r = {.struct_size = sizeof r};

        davit_records_get(records, i, &r);
        if (strcmp(r.severity, "error") == 0)
            g_test_message("%s: %s %s: %s (found %s)", what, r.code, r.subject ? r.subject : "",
                           r.message, r.found ? r.found : "-");
    }
    g_test_fail();
}

/* Largest difference of the prompt's logits, relative to the largest one. */
static double difference(davit_engine *engine, const char *dir, const json_t *prompt)
{
    const json_t *list = json_object_get(prompt, "ids");
    g_autofree char *file =
        g_build_filename(dir, json_string_value(json_object_get(prompt, "logits")), NULL);
    g_autofree char *npy = NULL;
    const size_t n = json_array_size(list);
    g_autofree int32_t *ids = g_new(int32_t, n);
    double most = 0, scale = 0;
    Rows rows;
    gsize n_bytes, header;

    g_assert_true(g_file_get_contents(file, &npy, &n_bytes, NULL));
    header = 10 + (guchar)npy[8] + 256u * (guchar)npy[9];
    rows.cols = (n_bytes - header) / sizeof(float) / n;
    rows.x = g_new0(float, n * rows.cols);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    g_assert_cmpint(davit_engine_eval(engine, ids, n, keep_row, &rows, NULL), ==, 0);
    for (size_t i = 0; i < n * rows.cols; i++) {
        float want;

        memcpy(&want, npy + header + i * sizeof want, sizeof want);
        most = isnan(rows.x[i]) ? INFINITY : MAX(most, fabs((double)rows.x[i] - (double)want));
        scale = MAX(scale, fabs((double)want));
    }
    g_free(rows.x);
    return most / scale;
}

static int keep_id(void *ctx, const davit_event *event)
{
    if (event->kind == DAVIT_EVENT_TOKEN)
        g_array_append_val((GArray *)ctx, event->id);
    return 1;
}

/* Does `run` answer the prompt with the ids of the golden? */
static bool same_answer(davit_engine *engine, const json_t *prompt)
{
    const json_t *list = json_object_get(prompt, "ids"), *want = json_object_get(prompt, "greedy");
    g_autoptr(GArray) got = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autofree int32_t *ids = g_new(int32_t, json_array_size(list));
    davit_request_params params = {.struct_size = sizeof params,
                                   .prompt = ids,
                                   .n_prompt = json_array_size(list),
                                   .max_tokens = json_array_size(want),
                                   .ignore_eos = 1};
    davit_request *request = NULL;
    bool same = true;

    if (params.max_tokens == 0)
        return true; /* the first step was too close to call */
    for (size_t i = 0; i < params.n_prompt; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    g_assert_cmpint(davit_request_submit(engine, &params, &request, NULL), ==, 0);
    g_assert_cmpint(davit_request_wait(engine, request, keep_id, got), ==, 0);
    davit_request_free(request);
    for (size_t i = 0; i < params.max_tokens; i++)
        same = same && i < got->len &&
               g_array_index(got, int32_t, i) == json_integer_value(json_array_get(want, i));
    return same;
}

/* @dtype, @access: of davit_model_params. */
static void check(const char *dir, unsigned dtype, const char *what)
{
    g_autofree char *file = g_build_filename(dir, "golden.json", NULL);
    json_t *golden = json_load_file(file, 0, NULL);
    const davit_model_params params = {.struct_size = sizeof params,
                                       .model = dir,
                                       .kv_dtype = json_string_value(json_object_get(golden, "kv_dtype")),
                                       .activations = DAVIT_LIB_ACTIVATIONS_F32,
                                       .dtype = dtype,
                                       .n_threads = 1,
                                       .no_tokenizer = 2};
    const davit_engine_params engine_params = {.struct_size = sizeof engine_params,
                                               .n_threads = 1,
                                               .ctx = 64};
    const json_t *prompts = json_object_get(golden, "prompts");
    davit_records *records = NULL;
    davit_model *model = NULL;
    davit_engine *engine = NULL;

    if (json_array_size(prompts) == 0) { /* no forward of its architecture */
        json_decref(golden);
        return;
    }
    if (davit_model_load(&params, &model, &records)) {
        fail_with(what, records);
    } else {
        g_assert_cmpint(davit_engine_new(model, &engine_params, &engine, NULL), ==, 0);
        for (size_t i = 0; i < json_array_size(prompts); i++) {
            const double d = difference(engine, dir, json_array_get(prompts, i));

            if (!(d <= TOLERANCE)) {
                g_test_message("%s, prompt %zu: relative difference %g", what, i, d);
                g_test_fail();
            }
            if (!same_answer(engine, json_array_get(prompts, i))) {
                g_test_message("%s, prompt %zu: other greedy ids", what, i);
                g_test_fail();
            }
        }
        davit_engine_free(engine);
        davit_model_free(model);
    }
    davit_records_free(records);
    json_decref(golden);
}

static void run_folder(gconstpointer data)
{
    g_autofree char *dir = g_build_filename(FOLDERS, data, NULL);

    check(dir, DAVIT_LIB_DTYPE_F32, "float32 copies");
    check(dir, DAVIT_LIB_DTYPE_STORED, "as the plan chooses");
}

int main(int argc, char **argv)
{
    g_autoptr(GDir) dir = g_dir_open(FOLDERS, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    g_test_init(&argc, &argv, NULL);
    g_test_set_nonfatal_assertions();
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/quant/eval/%s", name);

        g_ptr_array_add(names, g_strdup(name));
        g_test_add_data_func(path, g_ptr_array_index(names, names->len - 1), run_folder);
    }
    return g_test_run();
}
