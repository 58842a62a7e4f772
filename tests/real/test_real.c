/* SPDX-License-Identifier: Apache-2.0
 * A real model gives transformers' prompt ids and greedy ids, activations in float32.
 *   test_real MODEL GOLDEN     MODEL a file or directory, GOLDEN a member of goldens.json
 * A missing model is a skip (exit 77) that names it. */
#include <stdio.h>
#include <string.h>

#include <glib.h>
#include <jansson.h>

#include "engine/libdavit.h"

static const char *model_path, *golden_name;

static int keep_id(void *ctx, const davit_event *event)
{
    if (event->kind == DAVIT_EVENT_TOKEN)
        g_array_append_val((GArray *)ctx, event->id);
    return 1;
}

static GArray *ids_of(const json_t *list)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const int32_t id = (int32_t)json_integer_value(json_array_get(list, i));
        g_array_append_val(ids, id);
    }
    return ids;
}

static void check_prompt(davit_model *model, davit_engine *engine, const json_t *prompt)
{
    const char *text = json_string_value(json_object_get(prompt, "text"));
    g_autoptr(GArray) want_ids = ids_of(json_object_get(prompt, "ids"));
    g_autoptr(GArray) want = ids_of(json_object_get(prompt, "greedy"));
    g_autoptr(GArray) got = g_array_new(FALSE, FALSE, sizeof(int32_t));
    int32_t *ids = NULL;
    size_t n = 0;
    g_assert_cmpint(davit_model_tokenize(model, text, strlen(text), 0, &ids, &n, NULL), ==, 0);
    g_assert_cmpmem(ids, (int)(n * 4), want_ids->data, want_ids->len * 4);

    const davit_request_params params = {.struct_size = sizeof params,
                                         .prompt = ids,
                                         .n_prompt = n,
                                         .max_tokens = want->len,
                                         .ignore_eos = 1};
    davit_request *request = NULL;
    g_assert_cmpint(davit_request_submit(engine, &params, &request, NULL), ==, 0);
    g_assert_cmpint(davit_request_wait(engine, request, keep_id, got), ==, 0);
    g_assert_cmpmem(got->data, got->len * 4, want->data, want->len * 4);
    davit_request_free(request);
    davit_free(ids);
}

static void test_model(void)
{
    json_t *doc = json_load_file(DAVIT_SOURCE_DIR "/tests/real/goldens.json", 0, NULL);
    g_assert_nonnull(doc);
    const davit_model_params mp = {.struct_size = sizeof mp,
                                   .model = model_path,
                                   .activations = DAVIT_LIB_ACTIVATIONS_F32};
    davit_model *model = NULL;
    davit_records *records = NULL;
    const int status = davit_model_load(&mp, &model, &records);
    for (size_t i = 0; i < davit_records_count(records); i++) {
        davit_record r = {.struct_size = sizeof r};
        davit_records_get(records, i, &r);
        g_test_message("%s %s: %s", r.severity, r.subject ? r.subject : "", r.message);
    }
    davit_records_free(records);
    g_assert_cmpint(status, ==, 0);
    const davit_engine_params ep = {.struct_size = sizeof ep, .ctx = 256};
    davit_engine *engine = NULL;
    g_assert_cmpint(davit_engine_new(model, &ep, &engine, NULL), ==, 0);
    size_t i;
    json_t *prompt;
    json_array_foreach(json_object_get(json_object_get(doc, golden_name), "prompts"), i, prompt)
        check_prompt(model, engine, prompt);
    g_assert_cmpuint(i, >=, 5);
    davit_engine_free(engine);
    davit_model_free(model);
    json_decref(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (argc != 3) {
        fprintf(stderr, "usage: test_real MODEL GOLDEN\n");
        return 2;
    }
    model_path = argv[1];
    golden_name = argv[2];
    if (!g_file_test(model_path, G_FILE_TEST_EXISTS)) {
        fprintf(stderr, "skipped: %s is missing (scripts/fetch-models.sh fetches it)\n", model_path);
        return 77;
    }
    g_test_add_func("/real/greedy-ids-equal-transformers", test_model);
    return g_test_run();
}
