/* SPDX-License-Identifier: Apache-2.0
 * Opening, asking, keeping what comes. */
#include "golden/run_model.h"

#include <string.h>

davit_model *open_model(const char *path, const Setup *setup, davit_records **records)
{
    const davit_model_params params = {.struct_size = sizeof params,
                                       .model = path,
                                       .activations = setup->activations,
                                       .layout = setup->layout,
                                       .n_threads = setup->n_threads,
                                       .block_tokens = setup->block_tokens,
                                       .no_tokenizer = 2};
    davit_model *model = NULL;
    davit_model_load(&params, &model, records);
    return model;
}

char *records_text(const davit_records *records)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < davit_records_count(records); i++) {
        davit_record r = {.struct_size = sizeof r};
        davit_records_get(records, i, &r);
        if (strcmp(r.severity, "error") == 0)
            g_string_append_printf(text, "\n  %s %s: %s (found %s, expected %s)", r.code,
                                   r.subject ? r.subject : "", r.message,
                                   r.found ? r.found : "-", r.expected ? r.expected : "-");
    }
    return g_string_free(text, FALSE);
}

davit_model *must_open(const char *path, const Setup *setup)
{
    davit_records *records = NULL;
    davit_model *model = open_model(path, setup, &records);
    if (!model) {
        g_autofree char *text = records_text(records);
        g_test_message("%s does not load:%s", path, text);
        g_test_fail();
    }
    davit_records_free(records);
    return model;
}

davit_engine *open_engine(davit_model *model, const Setup *setup)
{
    const davit_engine_params params = {.struct_size = sizeof params,
                                        .n_threads = setup->n_threads,
                                        .chunk = setup->chunk,
                                        .ctx = 4300};
    davit_engine *engine = NULL;
    g_assert_cmpint(davit_engine_new(model, &params, &engine, NULL), ==, 0);
    return engine;
}

static int keep_row(void *ctx, size_t position, const float *logits)
{
    Matrix *m = ctx;
    memcpy(m->x + position * m->cols, logits, m->cols * sizeof(float));
    return 1;
}

Matrix run_logits(davit_model *model, const Setup *setup, const GArray *ids)
{
    davit_model_info info = {.struct_size = sizeof info};
    davit_model_describe(model, &info);
    Matrix m = {.rows = ids->len, .cols = info.n_vocab};
    m.x = g_new0(float, m.rows * m.cols);
    davit_engine *engine = open_engine(model, setup);
    davit_records *records = NULL;
    if (davit_engine_eval(engine, (const int32_t *)(void *)ids->data, ids->len, keep_row, &m,
                          &records)) {
        g_autofree char *text = records_text(records);
        g_test_message("eval fails:%s", text);
        g_test_fail();
    }
    davit_records_free(records);
    davit_engine_free(engine);
    return m;
}

static int keep_id(void *ctx, const davit_event *event)
{
    if (event->kind == DAVIT_EVENT_TOKEN)
        g_array_append_val((GArray *)ctx, event->id);
    return 1;
}

GArray *ask(davit_engine *engine, const GArray *ids, davit_request_params params,
                   uint64_t *out_reused)
{
    GArray *out = g_array_new(FALSE, FALSE, sizeof(int32_t));
    davit_request_stats stats = {.struct_size = sizeof stats};
    davit_request *request = NULL;
    params.struct_size = sizeof params;
    params.prompt = (const int32_t *)(void *)ids->data;
    params.n_prompt = ids->len;
    g_assert_cmpint(davit_request_submit(engine, &params, &request, NULL), ==, 0);
    g_assert_cmpint(davit_request_wait(engine, request, keep_id, out), ==, 0);
    davit_request_describe(request, &stats);
    davit_request_free(request);
    *out_reused = stats.reused_tokens;
    return out;
}

GArray *run_greedy(davit_model *model, const Setup *setup, const GArray *ids, size_t n,
                          bool ignore_eos)
{
    const davit_request_params params = {.max_tokens = n, .ignore_eos = ignore_eos};
    davit_engine *engine = open_engine(model, setup);
    uint64_t none;
    GArray *out = ask(engine, ids, params, &none);
    davit_engine_free(engine);
    return out;
}
