/* SPDX-License-Identifier: Apache-2.0
 * The examination from start to end, and how checks speak. */
#include "doctor/doctor_private.h"

#include <stdarg.h>
#include <string.h>

#include "doctor/table.h"

/* ---- saying ---- */

DavitCheck *davit_doctor_of(DavitDoctor *doctor, const char *id)
{
    for (size_t i = 0; i < doctor->n_checks; i++)
        if (strcmp(doctor->checks[i].info->id, id) == 0)
            return &doctor->checks[i];
    g_assert_not_reached(); /* ids are ours */
}

void davit_doctor_say(DavitDoctor *doctor, const char *id, const DavitFinding *finding)
{
    DavitCheck *check = davit_doctor_of(doctor, id);
    DavitFinding said = *finding;

    if (!said.code)
        said.code = DAVIT_CODE_DOCTOR((uint32_t)strtoul(id + 1, NULL, 10));
    if (!said.stage)
        said.stage = "doctor";
    if (!said.hint)
        said.hint = check->info->remedy;
    davit_report_add(check->findings, &said);
}

void davit_doctor_drop(DavitDoctor *doctor, const char *id,
                       bool (*is)(const DavitRecord *r, const void *ctx), const void *ctx)
{
    DavitReport *f = davit_doctor_of(doctor, id)->findings;
    g_autoptr(DavitReport) kept = davit_report_new();

    for (size_t i = 0; i < davit_report_count(f); i++) {
        const DavitRecord *r = davit_report_get(f, i);

        if (is(r, ctx))
            continue;
        davit_report_add(kept, &(DavitFinding){.code = r->code,
                                               .severity = r->severity,
                                               .status = r->status,
                                               .purposes = r->purposes,
                                               .stage = r->stage,
                                               .who = r->who,
                                               .subject = r->subject,
                                               .expected = r->expected,
                                               .found = r->found,
                                               .message = r->message,
                                               .hint = r->hint});
    }
    if (davit_report_count(kept) == davit_report_count(f))
        return;
    davit_report_truncate(f, 0);
    davit_report_append(f, kept);
}

void davit_doctor_skip(DavitDoctor *doctor, const char *id, const char *needs)
{
    DavitCheck *check = davit_doctor_of(doctor, id);

    if (!check->skipped)
        check->skipped = g_strdup_printf("needs %s", needs);
}

void davit_doctor_fact(DavitDoctor *doctor, const char *id, const char *format, ...)
{
    DavitCheck *check = davit_doctor_of(doctor, id);
    va_list args;

    va_start(args, format);
    g_free(check->fact);
    check->fact = g_strdup_vprintf(format, args);
    va_end(args);
}

const char *davit_doctor_text(DavitDoctor *doctor, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    return davit_report_text(doctor->checks[0].findings, "%s", text);
}

char *davit_doctor_bytes(uint64_t n)
{
    return g_format_size_full(n, G_FORMAT_SIZE_IEC_UNITS);
}

/* ---- asking ---- */

size_t davit_doctor_n_checks(const DavitDoctor *doctor)
{
    return doctor->n_checks;
}

const DavitCheck *davit_doctor_check(const DavitDoctor *doctor, size_t index)
{
    g_assert(index < doctor->n_checks);
    return &doctor->checks[index];
}

const DavitCheck *davit_doctor_find(const DavitDoctor *doctor, const char *id)
{
    for (size_t i = 0; i < doctor->n_checks; i++)
        if (strcmp(doctor->checks[i].info->id, id) == 0)
            return &doctor->checks[i];
    return NULL;
}

bool davit_doctor_stopped(const DavitDoctor *doctor)
{
    return doctor->stopped;
}

const char *davit_check_state(const DavitCheck *check)
{
    static const char *const names[] = {"note", "warning", "error"};
    int worst = -1;

    for (size_t i = 0; i < davit_report_count(check->findings); i++)
        worst = MAX(worst, (int)davit_report_get(check->findings, i)->severity);
    if (worst >= 0)
        return names[worst];
    return check->skipped ? "skipped" : "ok";
}

/* Later in the list is graver. */
static int gravity(int32_t status)
{
    switch (status) {
    case DAVIT_OK:
        return 0;
    case DAVIT_E_UNSUPPORTED:
        return 2;
    case DAVIT_E_CORRUPT:
    case DAVIT_E_MISMATCH:
        return 3;
    default:
        return 1;
    }
}

int32_t davit_doctor_status(const DavitDoctor *doctor)
{
    int32_t worst = DAVIT_OK;

    for (size_t c = 0; c < doctor->n_checks; c++) {
        const DavitReport *findings = doctor->checks[c].findings;

        for (size_t i = 0; i < davit_report_count(findings); i++) {
            const int32_t status = davit_report_get(findings, i)->status;

            if (gravity(status) > gravity(worst))
                worst = status;
        }
    }
    return worst;
}

/* ---- all of it ---- */

static DavitDoctor *doctor_new(const DavitDoctorOptions *options)
{
    DavitDoctor *doctor = g_new0(DavitDoctor, 1);

    doctor->options = options;
    doctor->n_checks = davit_n_checks;
    doctor->checks = g_new0(DavitCheck, davit_n_checks);
    for (size_t i = 0; i < davit_n_checks; i++) {
        doctor->checks[i].info = &davit_check_table[i];
        doctor->checks[i].findings = davit_report_new();
    }
    return doctor;
}

void davit_doctor_free(DavitDoctor *doctor)
{
    if (!doctor)
        return;
    davit_patient_clear(&doctor->patient);
    for (size_t i = 0; i < doctor->n_checks; i++) {
        davit_report_free(doctor->checks[i].findings);
        g_free(doctor->checks[i].skipped);
        g_free(doctor->checks[i].fact);
    }
    g_free(doctor->checks);
    g_free(doctor);
}

static void compare_base(DavitDoctor *doctor, DavitReport *report)
{
    DavitPatient base = {0};

    davit_patient_open(&base, doctor->patient.registry, doctor->options->base,
                       doctor->options, NULL, report);
    if (!base.path.dir)
        davit_doctor_say(doctor, "D20",
                         &(DavitFinding){.status = DAVIT_E_IO,
                                         .subject = doctor->options->base,
                                         .found = "nothing there",
                                         .message = "the base model cannot be opened",
                                         .hint = "give --base a model that is there"});
    else
        davit_check_base(doctor, &base);
    davit_patient_clear(&base);
}

static bool is_said_of(const DavitReport *f, const char *subject)
{
    for (size_t i = 0; subject && i < davit_report_count(f); i++) {
        const char *file = davit_report_get(f, i)->subject;

        if (davit_report_get(f, i)->status && file && g_str_has_suffix(file, ".json") &&
            g_str_has_prefix(subject, file))
            return true;
    }
    return false;
}

static bool is_consequence(const DavitRecord *r, const void *cause)
{
    return is_said_of(cause, r->subject);
}

/* A tokenizer file that is no file of its kind (D02) cannot be read either: once is
 * enough. */
static void drop_consequences(DavitDoctor *doctor)
{
    const DavitReport *f = davit_doctor_of(doctor, "D14")->findings;
    const size_t before = davit_report_count(f);

    davit_doctor_drop(doctor, "D14", is_consequence,
                      davit_doctor_find(doctor, "D02")->findings);
    if (davit_report_count(f) < before)
        davit_doctor_skip(doctor, "D14", "a tokenizer that can be read (D02)");
}

DavitDoctor *davit_doctor_examine(DavitRegistry *registry, const char *model,
                                  const DavitDoctorOptions *options, DavitReport *report)
{
    DavitDoctor *doctor = doctor_new(options);

    davit_patient_open(&doctor->patient, registry, model, options, doctor, report);
    davit_check_files(doctor);
    drop_consequences(doctor);
    davit_check_links(doctor);
    davit_check_cache(doctor);
    davit_check_copies(doctor);
    davit_check_absent_shards(doctor);
    davit_check_revisions(doctor);
    davit_check_names(doctor);
    davit_check_shapes(doctor);
    davit_check_gguf_heads(doctor);
    davit_check_quant(doctor);
    davit_check_settings(doctor);
    davit_check_rotary(doctor);
    davit_check_strict(doctor);
    davit_check_gguf_types(doctor);
    davit_check_vocabulary(doctor);
    davit_check_second_tokenizer(doctor);
    davit_check_words(doctor);
    davit_check_token_settings(doctor);
    davit_check_adapter(doctor);
    davit_check_rank_files(doctor);
    davit_check_no_model(doctor);
    davit_check_conflict_marks(doctor);
    davit_check_machine(doctor);
    davit_check_devices(doctor);
    if (options->base)
        compare_base(doctor, report);
    davit_check_deep(doctor);
    davit_check_zeros(doctor);
    davit_check_load(doctor);
    doctor->options = NULL;
    return doctor;
}
