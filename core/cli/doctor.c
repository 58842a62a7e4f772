/* SPDX-License-Identifier: Apache-2.0
 * davit doctor: findings about a model, each with its check, evidence, meaning and remedy. */
#include "doctor/doctor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/repair.h"
#include "cli/run.h"

static const DavitFlag flags[] = {
    {"base", 0, DAVIT_FLAG_TEXT, "MODEL",
     "compare settings, tokenizer, template and shapes with the model that this one was made from",
     NULL, NULL, false},
    {"deep", 0, DAVIT_FLAG_SWITCH, NULL,
     "read the weights: NaN, infinite and zero values, tied copies, hashes of cached files", NULL,
     NULL, false},
    {"tp", 0, DAVIT_FLAG_COUNT, "N", "judge a split among N tensor-parallel ranks", NULL, "0",
     false},
    DAVIT_REPAIR_FLAGS,
    DAVIT_QUANT_FLAGS,
    {"kv-dtype", 0, DAVIT_FLAG_CHOICE, "TYPE",
     "judge keys and values stored so: the scales of fp8 are then read", "f32|f16|fp8", NULL, false},
    {0},
};
static const char *const examples[] = {
    "davit doctor model/", "findings from headers and small files",
    "davit doctor model/ --deep", "the same, and every weight is looked at",
    "davit doctor tuned/ --base org/base", "what was lost or changed since the base model",
    "davit doctor model/ --strip-prefix _orig_mod.", "would this repair help?",
    "davit doctor model/ --deep --gptq-zeros v2", "would this decision help?",
    "davit doctor model/ --json", "every check with its state as one JSON document", NULL};

/* ---- JSON ---- */

static json_t *finding_json(const DavitCheck *check, const DavitRecord *r)
{
    json_t *o = davit_record_json(r);
    json_object_set_new(o, "check", json_string(check->info->id));
    json_object_set_new(o, "meaning", json_string(check->info->meaning));
    return o;
}

static json_t *text_or_null(const char *text)
{
    return text ? davit_json_text(text) : json_null();
}

/* A check with findings was made, though some part of it could not be. */
static bool is_skipped(const DavitCheck *c)
{
    return strcmp(davit_check_state(c), "skipped") == 0;
}

static void fill_document(DavitCall *call, const DavitDoctor *doctor)
{
    json_t *checks = json_array();
    for (size_t i = 0; i < davit_doctor_n_checks(doctor); i++) {
        const DavitCheck *c = davit_doctor_check(doctor, i);
        json_t *findings = json_array();
        for (size_t k = 0; k < davit_report_count(c->findings); k++)
            json_array_append_new(findings, finding_json(c, davit_report_get(c->findings, k)));
        json_array_append_new(checks,
                              json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", c->info->id,
                                        "title", c->info->title, "state", davit_check_state(c),
                                        "skipped", text_or_null(is_skipped(c) ? c->skipped : NULL),
                                        "fact",
                                        text_or_null(c->fact), "findings", findings));
        davit_report_append(call->report, c->findings);
    }
    json_object_set_new(call->doc, "checks", checks);
}

/* ---- text ---- */

#define SHOWN_PER_CHECK   6u
#define SHOWN_BELOW_CAUSE 2u

static void print_finding(const DavitCall *call, const DavitCheck *check, const DavitRecord *r)
{
    static const char *const words[] = {"note", "warning", "error"};
    printf("%s %s %s", check->info->id, words[r->severity], check->info->title);
    if (r->subject)
        printf(": %s", r->subject);
    printf("\n    %s\n", r->message);
    if (r->found)
        printf("    found:    %s\n", r->found);
    if (r->expected)
        printf("    expected: %s\n", r->expected);
    if (r->severity != DAVIT_NOTE || call->verbose)
        printf("    why:      %s\n", check->info->meaning);
    if (r->hint)
        printf("    do:       %s\n", r->hint);
}

static bool is_shown(const DavitCall *call, const DavitRecord *r, DavitSeverity severity)
{
    return r->severity == severity && (!call->quiet || severity == DAVIT_ERROR);
}

/* Findings of one check and severity; the first few tell it, -v tells all. */
static size_t print_check(const DavitCall *call, const DavitCheck *c, DavitSeverity severity,
                          size_t shown)
{
    size_t n = 0;
    for (int own = 1; own >= 0; own--) /* the doctor's own explain the others */
        for (size_t k = 0; k < davit_report_count(c->findings); k++) {
            const DavitRecord *r = davit_report_get(c->findings, k);
            if (r->severity != severity || (r->code > DAVIT_CODE_DOCTOR(0)) != own)
                continue;
            if (is_shown(call, r, severity) && (n < shown || call->verbose))
                print_finding(call, c, r);
            n++;
        }
    if (n > shown && !call->verbose && (!call->quiet || severity == DAVIT_ERROR))
        printf("%s %zu more of these (-v shows them)\n", c->info->id, n - shown);
    return n;
}

/* Names or projections are wrong as a whole: missing tensors only follow from it. */
static bool has_cause(const DavitDoctor *doctor)
{
    return davit_report_failed(davit_doctor_find(doctor, "D08")->findings) ||
           davit_report_failed(davit_doctor_find(doctor, "D09")->findings);
}

/* Errors first: who reads one finding should read the one that blocks. Of those the tensors
 * that are missing come last: they are many, and the other checks name the cause. */
static void print_findings(const DavitCall *call, const DavitDoctor *doctor, size_t count[3])
{
    const DavitCheck *slots = davit_doctor_find(doctor, "D07");
    for (int severity = DAVIT_ERROR; severity >= DAVIT_NOTE; severity--) {
        for (size_t i = 0; i < davit_doctor_n_checks(doctor); i++) {
            const DavitCheck *c = davit_doctor_check(doctor, i);
            if (c != slots)
                count[severity] += print_check(call, c, (DavitSeverity)severity, SHOWN_PER_CHECK);
        }
        count[severity] += print_check(call, slots, (DavitSeverity)severity,
                                       has_cause(doctor) ? SHOWN_BELOW_CAUSE : SHOWN_PER_CHECK);
    }
}

static void print_rest(const DavitCall *call, const DavitDoctor *doctor)
{
    for (size_t i = 0; call->verbose && i < davit_doctor_n_checks(doctor); i++) {
        const DavitCheck *c = davit_doctor_check(doctor, i);
        const char *state = davit_check_state(c);
        if (strcmp(state, "ok") == 0 || c->fact)
            printf("%s %-7s %s%s%s\n", c->info->id, state, c->info->title, c->fact ? ": " : "",
                   c->fact ? davit_shown(c->fact) : "");
        else if (strcmp(state, "skipped") == 0)
            printf("%s skipped %s: %s\n", c->info->id, c->info->title, davit_shown(c->skipped));
    }
}

/* Is a model without fault never skipped here? What is asked for by a flag, and what a folder or
 * a machine may well lack, is no consequence of an error. */
static bool is_blocked(const DavitCheck *c)
{
    return strstr(c->skipped, "weights") || strstr(c->skipped, "a config") ||
           strstr(c->skipped, "a plan") || strstr(c->skipped, "can be read");
}

/* Does no plugin know the architecture? */
static bool is_unknown(const DavitDoctor *doctor)
{
    const DavitRecord *r =
        davit_report_first_error(davit_doctor_find(doctor, "D06")->findings, 0);
    return r && r->code == DAVIT_R_ALL_DECLINED;
}

static void print_text(const DavitCall *call, const DavitDoctor *doctor)
{
    size_t count[3] = {0}, n_ok = 0, n_skipped = 0, n_blocked = 0;
    for (size_t i = 0; i < davit_doctor_n_checks(doctor); i++) {
        const char *state = davit_check_state(davit_doctor_check(doctor, i));
        n_ok += strcmp(state, "ok") == 0;
        n_skipped += strcmp(state, "skipped") == 0;
        n_blocked += strcmp(state, "skipped") == 0 && is_blocked(davit_doctor_check(doctor, i));
    }
    print_findings(call, doctor, count);
    print_rest(call, doctor);
    if (!call->quiet)
        printf("%zu error%s, %zu warning%s, %zu note%s; %zu checks without finding, %zu "
               "skipped%s\n",
               count[DAVIT_ERROR], count[DAVIT_ERROR] == 1 ? "" : "s", count[DAVIT_WARNING],
               count[DAVIT_WARNING] == 1 ? "" : "s", count[DAVIT_NOTE],
               count[DAVIT_NOTE] == 1 ? "" : "s", n_ok, n_skipped,
               call->verbose ? "" : " (-v tells each)");
    if (!call->quiet && is_unknown(doctor))
        printf("davit has no plugin for this architecture, which says nothing against the files; "
               "they were checked as far as that needs none: findings beside it: %zu\n",
               count[DAVIT_ERROR] + count[DAVIT_WARNING] + count[DAVIT_NOTE] - 1);
    else if (!call->quiet && count[DAVIT_ERROR] && n_blocked)
        printf("the errors kept %zu check%s from being made: mend them, then run davit doctor "
               "again\n", n_blocked, n_blocked == 1 ? "" : "s");
    if (!call->quiet && !davit_call_has(call, "deep"))
        puts("the weights' values were not looked at (--deep)");
}

/* ---- run ---- */

static bool show_progress(void *ctx, uint64_t done, uint64_t total)
{
    bool *terminal = ctx;
    if (*terminal) {
        g_autofree char *all = davit_bytes_text(total);
        fprintf(stderr, "\rreading %3.0f %% of %s ", 100.0 * (double)done / (double)total, all);
    }
    return !davit_interrupted();
}

static int exit_of(const DavitDoctor *doctor)
{
    switch (davit_doctor_status(doctor)) {
    case DAVIT_OK:
        return DAVIT_EXIT_OK;
    case DAVIT_E_UNSUPPORTED:
        return DAVIT_EXIT_REFUSED;
    case DAVIT_E_CORRUPT:
    case DAVIT_E_MISMATCH:
        return DAVIT_EXIT_MALFORMED;
    case DAVIT_E_USAGE:
        return DAVIT_EXIT_USAGE;
    default:
        return DAVIT_EXIT_FAILED;
    }
}

static const char *dtype_name(const char *word)
{
    return strcmp(word, "stored") == 0 ? NULL
           : strcmp(word, "f16") == 0  ? "f16/1"
           : strcmp(word, "bf16") == 0 ? "bf16/1"
                                       : "f32/1";
}

static int run(DavitCall *call)
{
    const char *prefix = davit_call_text(call, "strip-prefix");
    if (prefix && !*prefix)
        return davit_call_usage(call, "--strip-prefix", "the prefix is empty", NULL);
    if (davit_call_has(call, "tie") && davit_call_has(call, "no-tie"))
        return davit_call_usage(call, "--tie", "--tie and --no-tie exclude each other", NULL);
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    g_autofree const char **ignore = davit_call_list(call, "ignore");
    bool terminal = isatty(STDERR_FILENO) && !call->quiet;
    const DavitDoctorOptions options = {.base = davit_call_text(call, "base"),
                                        .n_ranks = davit_call_count(call, "tp"),
                                        .dtype = dtype_name(davit_call_text(call, "dtype")),
                                        .deep = davit_call_has(call, "deep"),
                                        .quant_allow = davit_call_quant_allow(call),
                                        .kv_dtype = davit_call_kv_dtype(call),
                                        .tie = davit_call_has(call, "tie"),
                                        .no_tie = davit_call_has(call, "no-tie"),
                                        .strip_prefix = prefix,
                                        .rename = davit_call_text(call, "rename"),
                                        .ignore = ignore,
                                        .progress = show_progress,
                                        .progress_ctx = &terminal};
    if (options.deep)
        davit_catch_interrupt();
    g_autoptr(DavitDoctor) doctor =
        davit_doctor_examine(registry, call->args[0], &options, call->report);
    if (options.deep && terminal)
        fprintf(stderr, "\r%50s\r", "");
    if (call->json)
        fill_document(call, doctor);
    else
        print_text(call, doctor);
    if (davit_doctor_stopped(doctor)) {
        davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_CANCELLED,
                                                       .severity = DAVIT_NOTE,
                                                       .stage = "doctor",
                                                       .subject = call->args[0],
                                                       .message = "stopped before all weights "
                                                                  "were read"});
        return DAVIT_EXIT_INTERRUPT;
    }
    return exit_of(doctor);
}

const DavitCommand davit_command_doctor = {
    .name = "doctor",
    .args = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "check a model for known faults",
    .description =
        "Reads headers and small files and reports what is wrong, what it means and what to do. "
        "Every check has a stable id (D01 to D49); -v lists those that found nothing and those "
        "that could not be made. Exit 4 when files are damaged or contradict each other, 3 when "
        "something is understood and not supported, 0 with warnings.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
