/* SPDX-License-Identifier: Apache-2.0
 * The speculative document. Keys and rules as vllm.cpp documents them for its engine; the
 * keys that only vLLM has are known, so that they are told apart from typing errors. */
#include <stdlib.h>
#include <string.h>

#include "config/document_private.h"

#define NAME  "--speculative-config"
#define NO_MAX INT64_MAX
#define CHAIN "vllm_cpp.drafter_chain"

#define METHODS       "mtp|dflash|dspark|ngram|draft_model"
#define CHAIN_METHODS "mtp|dflash|dspark|ngram"

#define UNBUILT(path) {path, DAVIT_DOC_UNBUILT, 0, 0, NULL}

static const DavitDocKey keys[] = {
    {"method", DAVIT_DOC_CHOICE, 0, 0, METHODS},
    {"num_speculative_tokens", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"model", DAVIT_DOC_TEXT, 0, 0, NULL},
    {"prompt_lookup_min", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"prompt_lookup_max", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"draft_sample_method", DAVIT_DOC_CHOICE, 0, 0, "greedy"},
    {"rejection_sample_method", DAVIT_DOC_CHOICE, 0, 0, "standard"},
    {"vllm_cpp", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {CHAIN, DAVIT_DOC_ARRAY, 0, 0, NULL},
    UNBUILT("enforce_eager"),
    UNBUILT("draft_tensor_parallel_size"),
    UNBUILT("tensor_parallel_size"),
    UNBUILT("quantization"),
    UNBUILT("moe_backend"),
    UNBUILT("attention_backend"),
    UNBUILT("kv_cache_dtype"),
    UNBUILT("max_model_len"),
    UNBUILT("revision"),
    UNBUILT("code_revision"),
    UNBUILT("disable_padded_drafter_batch"),
    UNBUILT("use_local_argmax_reduction"),
    UNBUILT("use_heterogeneous_vocab"),
    UNBUILT("parallel_drafting"),
    UNBUILT("target_model_config"),
    UNBUILT("target_parallel_config"),
    UNBUILT("num_speculative_tokens_per_batch_size"),
    UNBUILT("draft_model_config"),
    UNBUILT("draft_parallel_config"),
    UNBUILT("suffix_decoding_max_tree_depth"),
    UNBUILT("suffix_decoding_max_cached_requests"),
    UNBUILT("suffix_decoding_max_spec_factor"),
    UNBUILT("suffix_decoding_min_token_prob"),
    UNBUILT("draft_load_config"),
    UNBUILT("synthetic_acceptance_rates"),
    UNBUILT("synthetic_acceptance_length"),
    {NULL, DAVIT_DOC_OBJECT, 0, 0, NULL},
};

/* Keys of one link of the chain. */
static const DavitDocKey link_keys[] = {
    {"method", DAVIT_DOC_CHOICE, 0, 0, CHAIN_METHODS},
    {"num_speculative_tokens", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"model", DAVIT_DOC_TEXT, 0, 0, NULL},
    {"prompt_lookup_min", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"prompt_lookup_max", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {NULL, DAVIT_DOC_OBJECT, 0, 0, NULL},
};

/* ---- rules between keys ---- */

#define DEFAULT_LOOKUP 5

static void check_lookup(DavitDoc *doc, const char *method)
{
    const int64_t high = davit_doc_int(doc, "prompt_lookup_max", 0);
    const int64_t low = davit_doc_int(doc, "prompt_lookup_min", 0);

    if (high > 0 && low > high)
        davit_doc_bad(doc, "prompt_lookup_min",
                      davit_report_text(doc->report, "at most prompt_lookup_max, %lld",
                                        (long long)high),
                      davit_doc_get(doc, "prompt_lookup_min"), "out of range");
    if (method && strcmp(method, "ngram") == 0 &&
        !davit_doc_get(doc, "num_speculative_tokens"))
        davit_doc_bad(doc, "num_speculative_tokens", "a number, since the method is ngram",
                      NULL, "missing");
}

static void check_method(DavitDoc *doc, const char *method)
{
    if (!method && json_object_size(doc->root) > 0 && !davit_doc_get(doc, CHAIN))
        davit_doc_bad(doc, "method", METHODS, NULL, "missing");
    if (method && strcmp(method, "draft_model") == 0 && !davit_doc_get(doc, "model"))
        davit_doc_bad(doc, "model", "a model, since the method is draft_model", NULL,
                      "missing");
}

/* Each link is a document of its own with fewer keys. */
static void check_chain(DavitDoc *doc)
{
    const json_t *item;
    size_t i;

    json_array_foreach(davit_doc_get(doc, CHAIN), i, item)
    {
        g_autofree char *above = g_strdup_printf(CHAIN "[%zu].", i);
        char *text = json_is_object(item) ? json_dumps(item, 0) : NULL;
        DavitDoc one = {
            .name = NAME, .above = above, .keys = link_keys, .report = doc->report};

        if (!text) {
            davit_doc_bad(doc, CHAIN, "objects", item, "wrong type");
            continue;
        }
        davit_doc_read(&one, text, strlen(text));
        if (!one.status && !davit_doc_get(&one, "method"))
            davit_doc_bad(&one, "method", CHAIN_METHODS, NULL, "missing");
        doc->status = doc->status ? doc->status : one.status;
        json_decref(one.root);
        free(text);
    }
}

int32_t davit_speculative_parse(const char *text, size_t len, DavitSpeculativeConfig *out,
                                DavitReport *report)
{
    DavitDoc doc = {.name = NAME, .keys = keys, .report = report};
    const char *method;

    *out = (DavitSpeculativeConfig){0};
    davit_doc_read(&doc, text, len);
    out->doc = doc.root;
    if (!doc.root)
        return doc.status;
    method = davit_doc_text(&doc, "method", NULL);
    if (!doc.status) {
        check_method(&doc, method);
        check_lookup(&doc, method);
    }
    check_chain(&doc);
    if (doc.status)
        return doc.status;
    *out = (DavitSpeculativeConfig){
        .doc = doc.root,
        .method = method,
        .model = davit_doc_text(&doc, "model", NULL),
        .n_tokens = davit_doc_int(&doc, "num_speculative_tokens", 0),
        .lookup_max = davit_doc_int(&doc, "prompt_lookup_max", DEFAULT_LOOKUP),
        .chained = json_array_size(davit_doc_get(&doc, CHAIN)) > 0};
    out->lookup_min = davit_doc_int(&doc, "prompt_lookup_min", out->lookup_max);
    return DAVIT_OK;
}

void davit_speculative_clear(DavitSpeculativeConfig *config)
{
    json_decref(config->doc);
    *config = (DavitSpeculativeConfig){0};
}

int32_t davit_speculative_check_built(const DavitSpeculativeConfig *c,
                                      DavitReport *report)
{
    int32_t status = DAVIT_OK;

    if (c->chained)
        status = davit_doc_unbuilt(NAME, CHAIN, NULL, "leave the key out", report);
    if (c->method)
        status = davit_doc_unbuilt(NAME, "method", c->method,
                                   "leave the flag out: answers are the same, only slower",
                                   report);
    return status;
}
