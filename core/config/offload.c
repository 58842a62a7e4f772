/* SPDX-License-Identifier: Apache-2.0
 * The offload document. Keys and rules as vllm.cpp documents them for its engine. */
#include <string.h>

#include "base/regex.h"
#include "config/document_private.h"

#define NAME       "--offload-config"
#define MAX_LAYERS 10000 /* as of any plan */
#define NO_MAX     INT64_MAX

static const DavitDocKey keys[] = {
    {"offload_backend", DAVIT_DOC_CHOICE, 0, 0, "auto|uva|prefetch"},
    {"uva", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"uva.cpu_offload_gb", DAVIT_DOC_NUMBER, 0, NO_MAX, NULL},
    {"uva.cpu_offload_params", DAVIT_DOC_TEXTS, 0, 0, NULL},
    {"prefetch", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"prefetch.offload_group_size", DAVIT_DOC_INT, 0, NO_MAX, NULL},
    {"prefetch.offload_num_in_group", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"prefetch.offload_prefetch_step", DAVIT_DOC_INT, 0, NO_MAX, NULL},
    {"prefetch.offload_params", DAVIT_DOC_TEXTS, 0, 0, NULL},
    {"vllm_cpp", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"vllm_cpp.mmap", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"vllm_cpp.mmap.enabled", DAVIT_DOC_BOOL, 0, 0, NULL},
    {"vllm_cpp.mmap.prefault", DAVIT_DOC_BOOL, 0, 0, NULL},
    {"vllm_cpp.expert_stream", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"vllm_cpp.expert_stream.enabled", DAVIT_DOC_BOOL, 0, 0, NULL},
    {"vllm_cpp.expert_stream.slots", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"vllm_cpp.expert_stream.slot_bytes", DAVIT_DOC_INT, 1, NO_MAX, NULL},
    {"vllm_cpp.device_fit", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"vllm_cpp.device_fit.weight_budget_bytes", DAVIT_DOC_INT, 0, NO_MAX, NULL},
    {"vllm_cpp.placement", DAVIT_DOC_OBJECT, 0, 0, NULL},
    {"vllm_cpp.placement.overrides", DAVIT_DOC_ARRAY, 0, 0, NULL},
    {"vllm_cpp.placement.cpu_moe", DAVIT_DOC_BOOL, 0, 0, NULL},
    {"vllm_cpp.placement.fit", DAVIT_DOC_BOOL, 0, 0, NULL},
    {"vllm_cpp.placement.n_cpu_moe", DAVIT_DOC_INT, 0, MAX_LAYERS, NULL},
    {NULL, DAVIT_DOC_OBJECT, 0, 0, NULL},
};

/* ---- overrides ---- */

#define OVERRIDES "vllm_cpp.placement.overrides"

static void check_pattern(DavitDoc *doc, const char *path, const json_t *value)
{
    const char *text = json_string_value(value);
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitRegex) regex = NULL;

    if (!text || !*text) {
        davit_doc_bad(doc, path, "a pattern that is not empty", value, "wrong type");
        return;
    }
    regex = davit_regex_compile(text, strlen(text), 0, path, aside);
    if (!regex)
        davit_doc_bad(doc, path, "a regular expression", value, "does not compile");
}

static void check_device(DavitDoc *doc, const char *path, const json_t *value)
{
    const char *text = json_string_value(value);

    if (!text || !*text)
        davit_doc_bad(doc, path, "a device", value, "wrong type");
    else if (strcmp(text, "cpu") != 0)
        davit_doc_bad(doc, path, "cpu", value,
                      "experts can be placed on the host only; accelerators are no "
                      "target");
}

static void check_override(DavitDoc *doc, size_t i, const json_t *item)
{
    g_autofree char *path = g_strdup_printf(OVERRIDES "[%zu]", i);
    g_autofree char *pattern = g_strconcat(path, ".pattern", NULL);
    g_autofree char *device = g_strconcat(path, ".device", NULL);
    const char *name;
    json_t *value;

    if (!json_is_object(item)) {
        davit_doc_bad(doc, path, "an object with pattern and device", item, "wrong type");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)item, name, value)
    {
        g_autofree char *at = g_strdup_printf("%s.%s", path, name);

        if (strcmp(name, "pattern") != 0 && strcmp(name, "device") != 0)
            davit_doc_bad(doc, at, "pattern, device", NULL, "unknown key");
    }
    check_pattern(doc, pattern, json_object_get(item, "pattern"));
    check_device(doc, device, json_object_get(item, "device"));
}

/* ---- rules between keys ---- */

static void check_groups(DavitDoc *doc, const DavitOffloadConfig *c)
{
    if (c->group_size > 0 && c->num_in_group > c->group_size)
        davit_doc_bad(doc, "prefetch.offload_num_in_group",
                      davit_report_text(doc->report, "at most offload_group_size, %lld",
                                        (long long)c->group_size),
                      davit_doc_get(doc, "prefetch.offload_num_in_group"),
                      "out of range");
    if (c->group_size > 0 && c->prefetch_step < 1)
        davit_doc_bad(doc, "prefetch.offload_prefetch_step",
                      "at least 1, since prefetch is enabled",
                      davit_doc_get(doc, "prefetch.offload_prefetch_step"),
                      "out of range");
}

static void check_placement(DavitDoc *doc, const DavitOffloadConfig *c)
{
    const json_t *item;
    size_t i;

    json_array_foreach(c->overrides, i, item)
    {
        check_override(doc, i, item);
    }
    if (c->fit && (json_array_size(c->overrides) || c->cpu_moe || c->n_cpu_moe > 0))
        davit_doc_bad(doc, "vllm_cpp.placement.fit",
                      "fit alone, or overrides, cpu_moe and n_cpu_moe without it", NULL,
                      "fit and a manual placement exclude each other");
}

/* The backend that is named wins; fields of the other one are only told. */
static void warn_backend(const DavitDoc *doc, const DavitOffloadConfig *c)
{
    const bool other = (strcmp(c->backend, "uva") == 0 && c->group_size > 0) ||
                       (strcmp(c->backend, "prefetch") == 0 && c->cpu_offload_gb > 0);

    if (other)
        davit_report_add(doc->report,
                         &(DavitFinding){.code = DAVIT_R_USAGE,
                                         .severity = DAVIT_WARNING,
                                         .stage = "options",
                                         .subject = NAME ": offload_backend",
                                         .found = c->backend,
                                         .message = "fields of another backend are set; "
                                                    "the backend that is named counts"});
}

int32_t davit_offload_parse(const char *text, size_t len, DavitOffloadConfig *out,
                            DavitReport *report)
{
    DavitDoc doc = {.name = NAME, .keys = keys, .report = report};

    *out = (DavitOffloadConfig){.backend = "auto", .mmap = true};
    davit_doc_read(&doc, text, len);
    out->doc = doc.root;
    if (doc.status)
        return doc.status;
    *out = (DavitOffloadConfig){
        .doc = doc.root,
        .backend = davit_doc_text(&doc, "offload_backend", "auto"),
        .cpu_offload_gb = json_number_value(davit_doc_get(&doc, "uva.cpu_offload_gb")),
        .group_size = davit_doc_int(&doc, "prefetch.offload_group_size", 0),
        .num_in_group = davit_doc_int(&doc, "prefetch.offload_num_in_group", 1),
        .prefetch_step = davit_doc_int(&doc, "prefetch.offload_prefetch_step", 1),
        .mmap = davit_doc_bool(&doc, "vllm_cpp.mmap.enabled", true),
        .prefault = davit_doc_bool(&doc, "vllm_cpp.mmap.prefault", false),
        .expert_stream = davit_doc_bool(&doc, "vllm_cpp.expert_stream.enabled", false),
        .slots = davit_doc_int(&doc, "vllm_cpp.expert_stream.slots", 64),
        .slot_bytes = davit_doc_int(&doc, "vllm_cpp.expert_stream.slot_bytes", 0),
        .weight_budget_bytes =
            davit_doc_int(&doc, "vllm_cpp.device_fit.weight_budget_bytes", -1),
        .overrides = davit_doc_get(&doc, OVERRIDES),
        .cpu_moe = davit_doc_bool(&doc, "vllm_cpp.placement.cpu_moe", false),
        .fit = davit_doc_bool(&doc, "vllm_cpp.placement.fit", false),
        .n_cpu_moe = davit_doc_int(&doc, "vllm_cpp.placement.n_cpu_moe", 0)};
    check_groups(&doc, out);
    check_placement(&doc, out);
    warn_backend(&doc, out);
    return doc.status;
}

void davit_offload_clear(DavitOffloadConfig *config)
{
    json_decref(config->doc);
    *config = (DavitOffloadConfig){0};
}

/* ---- what this build has ---- */

int32_t davit_offload_check_built(const DavitOffloadConfig *c, DavitReport *report)
{
    const struct {
        bool asks;
        const char *path, *hint;
    } rows[] = {
        {c->cpu_offload_gb > 0, "uva.cpu_offload_gb",
         "on the CPU every weight is in host memory; leave it 0"},
        {c->group_size > 0, "prefetch.offload_group_size",
         "on the CPU there is no device to prefetch to; leave it 0"},
        {!c->mmap, "vllm_cpp.mmap.enabled",
         "weights are mapped where a kernel takes them as they lie; leave it true"},
        {c->prefault, "vllm_cpp.mmap.prefault", "leave it false"},
        {c->expert_stream, "vllm_cpp.expert_stream.enabled", "leave it false"},
        {c->weight_budget_bytes > 0, "vllm_cpp.device_fit.weight_budget_bytes",
         "leave it 0, or use --memory"},
        {json_array_size(c->overrides) > 0, OVERRIDES, "leave it empty"},
        {c->cpu_moe, "vllm_cpp.placement.cpu_moe", "leave it false"},
        {c->fit, "vllm_cpp.placement.fit", "leave it false"},
        {c->n_cpu_moe > 0, "vllm_cpp.placement.n_cpu_moe", "leave it 0"},
    };
    int32_t status = DAVIT_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].asks)
            status = davit_doc_unbuilt(NAME, rows[i].path, NULL, rows[i].hint, report);
    return status;
}
