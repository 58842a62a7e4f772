/* SPDX-License-Identifier: Apache-2.0
 * Opening all of a model that can be opened. Each part is tried for itself, so that one
 * that is broken does not hide the next. */
#include "doctor/doctor_private.h"

#include <string.h>

#include "checkpoint/rename.h"
#include "config/tree.h"
#include "engine/private.h"
#include "plan/outline.h"
#include "source/source.h"

#define MAX_TOKENIZER (512ull << 20) /* bytes, as when a model is run */

GBytes *davit_patient_read(const DavitPatient *patient, const char *name,
                           DavitReport *report)
{
    g_autofree char *full = NULL;
    g_autofree char *text = NULL;
    g_autoptr(DavitSource) source = NULL;
    uint64_t n;

    if (!patient->path.dir || !davit_model_path_has(&patient->path, name) ||
        davit_model_path_join(&patient->path, name, &full, report))
        return NULL;
    source = davit_source_open(full, report);
    n = source ? davit_source_size(source) : 0;
    if (!source || n > MAX_TOKENIZER)
        return NULL;
    text = g_try_malloc((gsize)n + 1);
    if (!text || davit_source_read(source, 0, text, n, report))
        return NULL;
    text[n] = '\0';
    return g_bytes_new_take(g_steal_pointer(&text), (gsize)n);
}

/* (owned) a JSON object beside the weights. What the settings' reader reads is complained
 * about by it. */
static json_t *read_object(const DavitPatient *patient, const char *name,
                           DavitReport *report)
{
    g_autoptr(GBytes) bytes = davit_patient_read(patient, name, report);
    const char *text;
    gsize n;

    if (!bytes)
        return NULL;
    text = g_bytes_get_data(bytes, &n);
    if (n == 0 || n > DAVIT_TREE_MAX_BYTES)
        return NULL;
    return davit_tree_parse(text, n, name, report);
}

/* ---- template ---- */

/* One of several named templates, or the only one. */
static const char *template_of(const json_t *value)
{
    const json_t *item;
    size_t i;

    if (json_is_string(value))
        return json_string_value(value);
    json_array_foreach(value, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));

        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(item, "template"));
    }
    return NULL;
}

static char *read_template(const DavitPatient *patient, DavitReport *report)
{
    g_autoptr(GBytes) file = davit_patient_read(patient, "chat_template.jinja", report);
    const char *text = template_of(json_object_get(patient->tokenizer_config, "chat_template"));
    const davit_kv *kv;
    davit_span span;

    if (file)
        return g_strndup(g_bytes_get_data(file, NULL), g_bytes_get_size(file));
    if (text)
        return g_strdup(text);
    kv = patient->checkpoint
             ? davit_checkpoint_find_key(patient->checkpoint, "tokenizer.chat_template")
             : NULL;
    return kv && davit_kv_text(kv, &span) ? g_strndup(span.ptr, span.len) : NULL;
}

/* ---- tokenizer ---- */

static DavitTokenizer *open_tokenizer(const DavitPatient *patient, DavitReport *report)
{
    g_autoptr(GBytes) bytes = NULL;
    const char *text;
    gsize n;

    if (patient->checkpoint)
        return davit_tokenizer_of(patient->checkpoint, patient->registry, report);
    bytes = davit_patient_read(patient, "tokenizer.json", report);
    if (!bytes)
        return NULL;
    text = g_bytes_get_data(bytes, &n);
    return davit_tokenizer_from_json(text, n, "tokenizer.json", patient->registry, report);
}

/* ---- settings ---- */

/* config.json without its weights. */
static DavitSettings *settings_alone(const DavitPatient *patient, DavitReport *report)
{
    g_autoptr(GBytes) config = davit_patient_read(patient, "config.json", report);
    g_autoptr(GBytes) generation =
        davit_patient_read(patient, "generation_config.json", report);
    gsize n = 0, n_generation = 0;
    const char *text = config ? g_bytes_get_data(config, &n) : NULL;
    const char *more = generation ? g_bytes_get_data(generation, &n_generation) : NULL;

    if (!text)
        return NULL;
    return davit_settings_parse(text, n, more, n_generation, "config.json", report);
}

static bool is_part(const DavitPatient *p)
{
    DavitShardName shard;

    return p->path.entry && p->checkpoint && davit_checkpoint_n_files(p->checkpoint) == 1 &&
           davit_shard_name_parse(p->path.entry, &shard) && shard.count > 1;
}

static void make_plan(DavitPatient *patient, const DavitDoctorOptions *options,
                      DavitReport *report)
{
    /* keys and values are a program's: without a wish for them the map is enough */
    const DavitPlanOptions how = {.purposes = DAVIT_MAP | (options->kv_dtype ? DAVIT_RUN : 0),
                                  .force_tie = options->tie,
                                  .force_untie = options->no_tie,
                                  .quant_allow = options->quant_allow,
                                  .kv_dtype = options->kv_dtype,
                                  .ignore = options->ignore,
                                  .keep_refused = true};
    DavitPlan *plan = davit_plan_make(patient->registry, patient->checkpoint,
                                      patient->settings, &how, report);

    if (plan && plan->refused)
        patient->refused = plan;
    else
        patient->plan = plan;
}

/* ---- all ---- */

/* A model without tokenizer is a model still: ids can be given. */
static void soften_absent_tokenizer(DavitDoctor *doctor, const DavitReport *said)
{
    const DavitRecord *r = davit_report_first_error(said, 0);

    if (!doctor)
        return;
    if (r && r->code == DAVIT_R_NOT_FOUND) {
        davit_doctor_skip(doctor, "D14", "a tokenizer.json");
        davit_doctor_say(doctor, "D14",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = r->subject,
                                         .expected = r->expected,
                                         .found = "absent",
                                         .message = r->message,
                                         .hint = r->hint});
    } else {
        davit_doctor_sort(doctor, said);
    }
}

/* Files that are read twice would be complained about twice: once is enough. */
static void hand_over(DavitDoctor *doctor, const DavitReport *said)
{
    if (doctor)
        davit_doctor_sort(doctor, said);
}

static void open_small_files(DavitPatient *p, DavitDoctor *doctor)
{
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitReport) aside = davit_report_new();

    p->config = read_object(p, "config.json", aside);
    p->generation = read_object(p, "generation_config.json", aside);
    p->tokenizer_config = read_object(p, "tokenizer_config.json", said);
    p->template = read_template(p, said);
    hand_over(doctor, said);
}

void davit_patient_open(DavitPatient *p, DavitRegistry *registry, const char *model,
                        const DavitDoctorOptions *options, DavitDoctor *doctor,
                        DavitReport *report)
{
    g_autoptr(DavitReport) path = davit_report_new();
    g_autoptr(DavitReport) open = davit_report_new();
    g_autoptr(DavitReport) settings = davit_report_new();
    g_autoptr(DavitReport) plan = davit_report_new();
    g_autoptr(DavitReport) words = davit_report_new();

    (void)report;
    *p = (DavitPatient){.registry = registry, .model = model};
    if (davit_model_path_init(&p->path, model, path)) {
        hand_over(doctor, path);
        return;
    }
    /* files that contradict each other are looked at all the same */
    p->checkpoint = davit_checkpoint_open_loose(registry, model, DAVIT_INSPECT, open);
    if (p->checkpoint && doctor &&
        davit_checkpoint_repair(p->checkpoint, options->strip_prefix, options->rename,
                                open))
        g_clear_pointer(&p->checkpoint, davit_checkpoint_free);
    hand_over(doctor, open);
    open_small_files(p, doctor);
    p->settings = p->checkpoint ? davit_settings_open(p->checkpoint, settings)
                                : settings_alone(p, settings);
    hand_over(doctor, settings);
    p->is_part = is_part(p);
    if (p->checkpoint && p->settings && !p->is_part)
        make_plan(p, options, plan);
    if (!p->checkpoint && p->settings) /* the config is judged all the same */
        davit_plan_free(davit_plan_outline(registry, p->settings, plan));
    hand_over(doctor, plan);
    p->tokenizer = open_tokenizer(p, words);
    soften_absent_tokenizer(doctor, words);
}

void davit_patient_clear(DavitPatient *p)
{
    davit_plan_free(p->plan);
    davit_plan_free(p->refused);
    davit_tokenizer_free(p->tokenizer);
    davit_settings_free(p->settings);
    davit_checkpoint_free(p->checkpoint);
    json_decref(p->config);
    json_decref(p->generation);
    json_decref(p->tokenizer_config);
    g_free(p->template);
    davit_model_path_clear(&p->path);
    *p = (DavitPatient){0};
}

/* ---- reading settings ---- */

const json_t *davit_patient_value(const DavitPatient *patient, const char *key)
{
    const json_t *value =
        patient->settings
            ? json_object_get(davit_settings_json(patient->settings), key)
            : json_object_get(patient->config, key);

    return json_is_null(value) ? NULL : value;
}

bool davit_patient_int(const DavitPatient *patient, const char *key, int64_t *out)
{
    const json_t *value = davit_patient_value(patient, key);

    if (!json_is_integer(value))
        return false;
    *out = json_integer_value(value);
    return true;
}
