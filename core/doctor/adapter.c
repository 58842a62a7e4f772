/* SPDX-License-Identifier: Apache-2.0
 * A LoRA adapter in the model's folder: settings, pairs of matrices, modules of the base
 * that they are for. */
#include <string.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

#define ADAPTER  "adapter_model.safetensors"
#define MAX_SAID 8

static json_t *read_config(DavitDoctor *d)
{
    g_autoptr(GBytes) bytes = davit_patient_read(&d->patient, "adapter_config.json",
                                                 davit_doctor_of(d, "D22")->findings);
    gsize n;
    const char *text = bytes ? g_bytes_get_data(bytes, &n) : NULL;

    return text ? davit_tree_parse(text, n, "adapter_config.json",
                                   davit_doctor_of(d, "D22")->findings)
                : NULL;
}

static void say(DavitDoctor *d, int32_t status, const char *subject, const char *expected,
                const char *found, const char *message)
{
    davit_doctor_say(d, "D22",
                     &(DavitFinding){.severity = DAVIT_WARNING,
                                     .status = status,
                                     .subject = subject,
                                     .expected = expected,
                                     .found = found,
                                     .message = message});
}

/* Module of the base for "base_model.model.X.lora_A.weight". (owned) NULL: not a pair's. */
static char *module_of(const char *name, const char *mark)
{
    const char *prefix = "base_model.model.";
    const char *at = strstr(name, mark);

    if (!at)
        return NULL;
    if (g_str_has_prefix(name, prefix))
        name += strlen(prefix);
    return name < at ? g_strndup(name, (gsize)(at - name)) : NULL;
}

static void check_pair(DavitDoctor *d, const DavitCheckpoint *adapter,
                       const davit_tensor_info *a, int64_t rank)
{
    g_autofree char *module = module_of(a->name, ".lora_A");
    g_auto(GStrv) parts = g_strsplit(a->name, ".lora_A", 2);
    g_autofree char *b_name = g_strjoinv(".lora_B", parts);
    const davit_tensor_info *b = davit_checkpoint_find(adapter, b_name);
    g_autofree char *weight = g_strconcat(module ? module : "", ".weight", NULL);
    const davit_tensor_info *w =
        d->patient.checkpoint ? davit_checkpoint_find(d->patient.checkpoint, weight) : NULL;

    if (!b) {
        say(d, DAVIT_E_CORRUPT, a->name, b_name, "absent", "half of a pair is missing");
        return;
    }
    if (a->rank != 2 || b->rank != 2 || a->shape[0] != b->shape[1] ||
        (rank > 0 && a->shape[0] != (uint64_t)rank))
        say(d, DAVIT_E_MISMATCH, a->name, davit_doctor_text(d, "rank %" PRId64, rank),
            davit_doctor_text(d, "%" PRIu64 " rows", a->shape[0]),
            "a pair's rank is not the adapter's");
    else if (w && w->rank == 2 &&
             (w->shape[1] != a->shape[1] || w->shape[0] != b->shape[0]))
        say(d, DAVIT_E_MISMATCH, a->name,
            davit_doctor_text(d, "[%" PRIu64 ", %" PRIu64 "] of %s", w->shape[0],
                              w->shape[1], weight),
            davit_doctor_text(d, "[%" PRIu64 ", %" PRIu64 "]", b->shape[0], a->shape[1]),
            "a pair's shape is not its module's");
    else if (!w && d->patient.checkpoint)
        say(d, DAVIT_E_MISMATCH, a->name, weight, "absent",
            "the module that a pair is for is not in the base model");
}

static void check_pairs(DavitDoctor *d, int64_t rank)
{
    g_autofree char *full = g_build_filename(d->patient.path.dir, ADAPTER, NULL);
    g_autoptr(DavitCheckpoint) adapter =
        davit_checkpoint_open(d->patient.registry, full, DAVIT_INSPECT,
                              davit_doctor_of(d, "D22")->findings);
    DavitReport *findings = davit_doctor_of(d, "D22")->findings;
    size_t n_pairs = 0;

    if (!adapter)
        return;
    for (size_t i = 0; i < davit_checkpoint_n_tensors(adapter); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(adapter, i);

        if (!strstr(t->name, ".lora_A"))
            continue;
        n_pairs++;
        if (davit_report_count(findings) < MAX_SAID)
            check_pair(d, adapter, t, rank);
    }
    davit_doctor_fact(d, "D22", "%zu pairs", n_pairs);
    if (n_pairs == 0)
        say(d, DAVIT_E_CORRUPT, ADAPTER, "pairs lora_A and lora_B", "none",
            "the adapter holds no pair and would change nothing");
}

void davit_check_adapter(DavitDoctor *doctor)
{
    const DavitPatient *p = &doctor->patient;
    json_t *config;
    int64_t rank;

    if (!p->path.dir || !davit_model_path_has(&p->path, "adapter_config.json")) {
        davit_doctor_skip(doctor, "D22", "an adapter in the folder");
        return;
    }
    config = read_config(doctor);
    rank = json_integer_value(json_object_get(config, "r"));
    if (config && rank <= 0)
        say(doctor, DAVIT_E_CORRUPT, "adapter_config.json: r", "a rank above 0",
            davit_doctor_text(doctor, "%" PRId64, rank), "the adapter states no rank");
    if (davit_model_path_has(&p->path, ADAPTER))
        check_pairs(doctor, rank);
    else
        say(doctor, DAVIT_E_CORRUPT, ADAPTER, "beside adapter_config.json", "absent",
            "the adapter's weights are not there");
    json_decref(config);
}
