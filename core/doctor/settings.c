/* SPDX-License-Identifier: Apache-2.0
 * Rotary and context settings: lost, doubled, or spelled so that nobody reads them. */
#include <math.h>
#include <string.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

#define LONG_CONTEXT 16384 /* beyond it a base of 10000 is rare */

static const json_t *rope_part(const DavitPatient *p)
{
    const json_t *part = davit_patient_value(p, "rope_parameters");

    return part ? part : davit_patient_value(p, "rope_scaling");
}

/* Is a base stated anywhere: flat, in the part, or by layer type within it? */
static bool has_theta(const DavitPatient *p)
{
    static const char *const flat[] = {"rope_theta", "rotary_emb_base", "rope_base"};
    const json_t *part = rope_part(p);
    const char *key;
    json_t *inner;

    for (size_t i = 0; i < G_N_ELEMENTS(flat); i++)
        if (davit_patient_value(p, flat[i]))
            return true;
    if (json_object_get(part, "rope_theta"))
        return true;
    json_object_foreach((json_t *)(uintptr_t)part, key, inner)
    {
        if (json_object_get(inner, "rope_theta"))
            return true;
    }
    return false;
}

/* Architectures without rotary embedding have nothing to lose. */
static bool is_rotary(const DavitDoctor *d)
{
    const davit_arch_iface *arch = d->patient.plan ? d->patient.plan->arch_iface : NULL;
    const uint8_t *at = arch ? (const uint8_t *)arch->config : NULL;

    for (; at != NULL; at += arch->config_stride) {
        const char *sym = ((const davit_config_row *)(const void *)at)->sym;

        if (!sym)
            return false;
        if (strcmp(sym, "theta") == 0)
            return true;
    }
    /* no plan: what the config speaks of */
    return davit_patient_value(&d->patient, "rope_scaling") ||
           davit_patient_value(&d->patient, "rope_parameters");
}

static void check_theta(DavitDoctor *d)
{
    int64_t context = 0;
    bool is_long;

    if (davit_settings_is_gguf(d->patient.settings) || has_theta(&d->patient) ||
        !is_rotary(d))
        return;
    davit_patient_int(&d->patient, "max_position_embeddings", &context);
    is_long = context > LONG_CONTEXT;
    davit_doctor_say(
        d, "D20",
        &(DavitFinding){
            .severity = is_long ? DAVIT_WARNING : DAVIT_NOTE,
            .subject = "config.json: rope_theta",
            .expected = "rope_theta, or rope_parameters with it",
            .found = context ? davit_doctor_text(d, "neither, for a context of %" PRId64,
                                                 context)
                             : "neither",
            .message = is_long ? "the rotary base is not stated: for a context this long "
                                 "the class's default is rarely what was trained with, so "
                                 "the key may have been lost"
                               : "the rotary base is not stated; the class's default is "
                                 "taken"});
}

static void check_doubled(DavitDoctor *d)
{
    const json_t *new_part = davit_patient_value(&d->patient, "rope_parameters");
    const json_t *old_part = davit_patient_value(&d->patient, "rope_scaling");
    const json_t *flat = davit_patient_value(&d->patient, "rope_theta");
    const json_t *inner = json_object_get(new_part, "rope_theta");
    double a, b;

    if (new_part && old_part && !json_equal(new_part, old_part))
        davit_doctor_say(d, "D20",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = "config.json: rope_scaling",
                                         .expected = "one of rope_scaling and "
                                                     "rope_parameters",
                                         .found = "both, and they differ",
                                         .message = "the rotary settings are stated in "
                                                    "two spellings; programs differ in "
                                                    "which one they take"});
    if (davit_tree_number(flat, &a) && davit_tree_number(inner, &b) && a != b)
        davit_doctor_say(
            d, "D20",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = "config.json: rope_theta",
                            .expected = davit_doctor_text(d, "%g, as in rope_parameters", b),
                            .found = davit_doctor_text(d, "%g outside of it", a),
                            .message = "the rotary base is stated twice and differs"});
}

/* Scaling that ends below what the model is said to take. Only of kinds whose factor is
 * the ratio of the two lengths; llama3's is not. */
static void check_range(DavitDoctor *d)
{
    const json_t *part = rope_part(&d->patient);
    const char *kind = json_string_value(json_object_get(part, "rope_type"));
    double factor, original;
    int64_t context;

    kind = kind ? kind : json_string_value(json_object_get(part, "type"));
    if (!kind || (strcmp(kind, "yarn") != 0 && strcmp(kind, "linear") != 0))
        return;
    if (!davit_tree_number(json_object_get(part, "factor"), &factor) ||
        !davit_tree_number(json_object_get(part, "original_max_position_embeddings"),
                           &original) ||
        !davit_patient_int(&d->patient, "max_position_embeddings", &context))
        return;
    if ((double)context > original * factor * 1.01)
        davit_doctor_say(
            d, "D20",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = "config.json: max_position_embeddings",
                            .expected = davit_doctor_text(d, "at most %g = %g * %g",
                                                          original * factor, original,
                                                          factor),
                            .found = davit_doctor_text(d, "%" PRId64, context),
                            .message = "the context is longer than the rotary scaling "
                                       "reaches"});
}

/* Two spellings of the kind of scaling that contradict each other. */
static void check_kind(DavitDoctor *d)
{
    const json_t *part = rope_part(&d->patient);
    const char *a = json_string_value(json_object_get(part, "rope_type"));
    const char *b = json_string_value(json_object_get(part, "type"));
    const bool same = a && b &&
                      (strcmp(a, b) == 0 ||
                       (strcmp(a, "longrope") == 0 && strcmp(b, "su") == 0) ||
                       (strcmp(a, "default") == 0 && strcmp(b, "mrope") == 0));

    if (a && b && !same && davit_report_count(davit_doctor_of(d, "D20")->findings) == 0)
        davit_doctor_say(d, "D20",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = "config.json: rope_type",
                                         .expected = a,
                                         .found = b,
                                         .message = "rope_type and type name different "
                                                    "kinds of scaling"});
}

/* Longrope's lists have a factor for each pair of the rotated part of a head. Where the architecture
 * is known, reading the settings says this; a size that only such a plugin knows is not guessed. */
static void check_factors(DavitDoctor *d)
{
    static const char *const keys[] = {"short_factor", "long_factor"};
    const DavitPatient *p = &d->patient;
    const json_t *part = rope_part(p);
    int64_t head = 0, hidden = 0, heads = 0;
    double partial = 1, half;

    if (p->plan || davit_report_count(davit_doctor_of(d, "D20")->findings) > 0)
        return;
    if (!davit_patient_int(p, "head_dim", &head) && davit_patient_int(p, "hidden_size", &hidden) &&
        davit_patient_int(p, "num_attention_heads", &heads) && heads > 0)
        head = hidden / heads;
    if (!davit_tree_number(davit_patient_value(p, "partial_rotary_factor"), &partial))
        davit_tree_number(json_object_get(part, "partial_rotary_factor"), &partial);
    if (davit_patient_value(p, "qk_rope_head_dim") || head <= 0 || head > 65536 ||
        !(partial > 0 && partial <= 1))
        return;
    half = ceil(floor((double)head * partial) / 2);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const json_t *list = json_object_get(part, keys[i]);

        if (!json_is_array(list) || (double)json_array_size(list) == half)
            continue;
        davit_doctor_say(
            d, "D20",
            &(DavitFinding){
                .code = DAVIT_R_CONFIG_INVALID,
                .status = DAVIT_E_MISMATCH,
                .subject = davit_doctor_text(d, "config.json: %s", keys[i]),
                .expected = davit_doctor_text(d, "%.0f numbers, one a pair of a head of %" PRId64, half, head),
                .found = davit_doctor_text(d, "%zu", json_array_size(list)),
                .message = "longrope factors do not fit the head: they are another model's",
                .hint = "take the list from this model's origin; to cut or fill it is no remedy"});
    }
}

void davit_check_settings(DavitDoctor *doctor)
{
    const DavitPlan *plan = doctor->patient.plan;

    if (!doctor->patient.settings) {
        davit_doctor_skip(doctor, "D20", "a config that can be read");
        return;
    }
    check_kind(doctor);
    check_theta(doctor);
    check_doubled(doctor);
    check_range(doctor);
    check_factors(doctor);
    if (plan)
        davit_doctor_fact(doctor, "D20", "context %" PRIu64 "%s", (uint64_t)plan->max_ctx,
                          doctor->options->base ? "" : "; --base MODEL compares with a base");
    else if (doctor->patient.checkpoint)
        davit_doctor_skip(doctor, "D20", "a plan, which other findings prevent");
}
