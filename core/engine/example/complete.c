/* SPDX-License-Identifier: Apache-2.0
 * The smallest client of libdavit: complete token ids and print the answer's ids.
 *   complete MODEL 1 2 3 ... */
#include <libdavit.h>

#include <stdio.h>
#include <stdlib.h>

static void print_records(davit_records *records)
{
    for (size_t i = 0; i < davit_records_count(records); i++) {
        davit_record r = {.struct_size = sizeof r};
        davit_records_get(records, i, &r);
        fprintf(stderr, "%s: %s: %s\n", r.severity, r.subject ? r.subject : "", r.message);
    }
    davit_records_free(records);
}

static int print_event(void *ctx, const davit_event *event)
{
    (void)ctx;
    if (event->kind == DAVIT_EVENT_TOKEN)
        printf("%d ", (int)event->id);
    return 1; /* go on */
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: complete MODEL ID ...\n");
        return 2;
    }
    davit_records *records = NULL;
    davit_model *model = NULL;
    const davit_model_params mp = {
        .struct_size = sizeof mp, .model = argv[1], .no_tokenizer = 1};
    int status = davit_model_load(&mp, &model, &records);
    print_records(records);
    if (status)
        return 1;

    davit_engine *engine = NULL;
    const davit_engine_params ep = {.struct_size = sizeof ep, .ctx = 64};
    status = davit_engine_new(model, &ep, &engine, &records);
    print_records(records);
    int32_t ids[32];
    size_t n = 0;
    for (; n < 32 && (int)n + 2 < argc; n++)
        ids[n] = (int32_t)strtol(argv[n + 2], NULL, 10);
    davit_request *request = NULL;
    const davit_request_params rp = {
        .struct_size = sizeof rp, .prompt = ids, .n_prompt = n, .max_tokens = 8, .ignore_eos = 1};
    if (!status) {
        status = davit_request_submit(engine, &rp, &request, &records);
        print_records(records);
    }
    if (!status)
        status = davit_request_wait(engine, request, print_event, NULL);
    printf("\n");
    davit_request_free(request);
    davit_engine_free(engine);
    davit_model_free(model);
    return status ? 1 : 0;
}
