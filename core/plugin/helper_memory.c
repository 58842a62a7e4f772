/* SPDX-License-Identifier: Apache-2.0
 * Gate 5: what the cache remembers of a run of the helper, as records and as states. */
#include "plugin/helper_memory.h"

#include <signal.h>
#include <string.h>

#define DAY_S (24 * 60 * 60)

/* ---- outcomes ---- */

const char *davit_probe_text(const json_t *probe, const char *key)
{
    const char *text = json_string_value(json_object_get(probe, key));

    return text ? text : "";
}

/* Outcomes that are no word of the plugin's own, and their codes. All but the last are its
 * own doing, and likely again. */
static const struct {
    const char *outcome;
    uint32_t code;
} ends[] = {{"crashed", DAVIT_R_CRASHED},
            {"timeout", DAVIT_R_TIMEOUT},
            {"exited-early", DAVIT_R_EXITED_EARLY},
            {"bad-report", DAVIT_R_BAD_REPORT},
            {"killed", DAVIT_R_OUT_OF_MEMORY}};

/* 0 if @outcome is none of them. */
static uint32_t code_of_end(const char *outcome)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (strcmp(ends[i].outcome, outcome) == 0)
            return ends[i].code;
    }
    return 0;
}

bool davit_probe_is_quarantine(const json_t *probe)
{
    const char *outcome = davit_probe_text(probe, "outcome");
    const uint32_t code = code_of_end(outcome);
    const int64_t age = g_get_real_time() / G_USEC_PER_SEC -
                        json_integer_value(json_object_get(probe, "time"));

    /* a slow machine is no property of the file */
    if (strcmp(outcome, "timeout") == 0 && (age > DAY_S || age < 0))
        return false;
    return code && code != DAVIT_R_OUT_OF_MEMORY;
}

static char *local_time(const json_t *probe)
{
    g_autoptr(GDateTime) at = g_date_time_new_from_unix_local(
        json_integer_value(json_object_get(probe, "time")));

    return at ? g_date_time_format(at, "%Y-%m-%d %H:%M") : g_strdup("?");
}

/* "SIGSEGV": the name of the signal, without the sentence of strsignal. (static) */
static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
                 {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"},
                 {SIGSYS, "SIGSYS"},   {SIGXCPU, "SIGXCPU"}, {SIGKILL, "SIGKILL"},
                 {SIGPIPE, "SIGPIPE"}, {SIGTERM, "SIGTERM"}, {SIGALRM, "SIGALRM"}};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (names[i].number == number)
            return names[i].name;
    }
    return "a signal";
}

/* ---- records ---- */

static const char *outcome_hint(DavitReport *report, const json_t *probe,
                                const DavitPluginFile *file)
{
    if (json_integer_value(json_object_get(probe, "signal")) == SIGILL) {
        g_autofree char *tag = g_strdup(file->build_tag ? file->build_tag : "?");

        return davit_report_text(
            report, "this processor may lack what it was built for (build: %s)", tag);
    }
    return "tell the plugin's author; `davit plugin retry FILE` looks again, and so does a "
           "changed file";
}

/* The record for an outcome that is no refusal of the plugin's own. */
int32_t davit_probe_report(const DavitPluginFile *file, const json_t *probe,
                              DavitReport *report)
{
    const char *outcome = davit_probe_text(probe, "outcome");
    const char *stage = davit_probe_text(probe, "stage");
    const char *output = davit_probe_text(probe, "output");
    const char *said_by = davit_probe_text(probe, "who");
    const char *who = *said_by ? said_by : file->bundle_id;
    const bool killed = strcmp(outcome, "killed") == 0;
    const char *found = NULL;

    if (strcmp(outcome, "crashed") == 0 || killed)
        found = davit_report_text(
            report, "%s during %s%s",
            signal_name((int)json_integer_value(json_object_get(probe, "signal"))), stage,
            strcmp(stage, "dlopen") == 0 ? " (constructor)" : "");
    else if (strcmp(outcome, "timeout") == 0)
        found = davit_report_text(
            report, "no end of %s after %d s", stage,
            (int)json_integer_value(json_object_get(probe, "step_s")));
    else if (strcmp(outcome, "exited-early") == 0)
        found = davit_report_text(
            report, "exit status %d during %s",
            (int)json_integer_value(json_object_get(probe, "exit")), stage);
    else
        found = davit_report_text(report, "after %s", stage);
    if (*output)
        found = davit_report_text(report, "%s; it printed \"%s\"", found, output);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = code_of_end(outcome),
            .status = killed ? DAVIT_E_IO : DAVIT_E_UNSUPPORTED,
            .stage = "probe-helper",
            .who = who,
            .subject = file->path,
            .expected = "the plugin loads and answers in a process of its own",
            .found = found,
            .message = killed ? "the probe helper was killed from outside, as a machine "
                                "that is out of memory does"
                              : NULL,
            .hint = killed ? "free some memory and run davit again"
                           : outcome_hint(report, probe, file)});
}

static int32_t report_quarantine(const DavitPluginFile *file, const json_t *probe,
                                 DavitReport *report)
{
    g_autofree char *since = local_time(probe);
    const int count = (int)json_integer_value(json_object_get(probe, "count"));

    davit_probe_report(file, probe, report);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_QUARANTINED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "policy",
            .subject = file->path,
            .expected = "a changed file, another davit or C library",
            .found = davit_report_text(report, "unchanged since %s, seen %d time%s", since,
                                       count, count == 1 ? "" : "s"),
            .message = "the file is left alone since it failed in the probe helper",
            .hint = davit_report_text(report,
                                      "`davit plugin retry %s` looks again; "
                                      "`davit plugin clear-quarantine` forgets all",
                                      file->bundle_id)});
}

/* The records that the helper sent, as they were. */
void davit_probe_records(const json_t *list, DavitReport *report)
{
    size_t i;
    json_t *r;

    json_array_foreach(list, i, r)
    {
        const char *severity = davit_probe_text(r, "severity");
        const bool is_error = strcmp(severity, "error") == 0;

#define FIELD(name) json_string_value(json_object_get(r, name))
        davit_report_add(report,
                         &(DavitFinding){.code = davit_code_number(FIELD("code")),
                                         .severity = strcmp(severity, "warning") == 0
                                                         ? DAVIT_WARNING
                                                         : DAVIT_NOTE,
                                         .status = is_error ? DAVIT_E_UNSUPPORTED
                                                            : DAVIT_OK,
                                         .stage = FIELD("stage"),
                                         .who = FIELD("who"),
                                         .subject = FIELD("subject"),
                                         .expected = FIELD("expected"),
                                         .found = FIELD("found"),
                                         .message = FIELD("message"),
                                         .hint = FIELD("hint")});
#undef FIELD
    }
}

/* ---- the next start ---- */

/* Codes that follow from the bytes of the file: nothing but another file changes them. */
static bool is_settled(const json_t *records)
{
    static const uint32_t codes[] = {
        DAVIT_R_NO_ENTRY,          DAVIT_R_BAD_MAGIC,    DAVIT_R_BAD_SIZE,
        DAVIT_R_MANIFEST_MISMATCH, DAVIT_R_KIND_VERSION, DAVIT_R_MISSING_FIELD,
        DAVIT_R_JSON_INVALID};
    size_t i;
    json_t *r;

    json_array_foreach(records, i, r)
    {
        const uint32_t code = davit_code_number(davit_probe_text(r, "code"));

        for (size_t k = 0; k < G_N_ELEMENTS(codes); k++) {
            if (code == codes[k] && strcmp(davit_probe_text(r, "severity"), "error") == 0)
                return true;
        }
    }
    return false;
}

static void set_state(DavitPluginFile *file, DavitState state)
{
    const GPtrArray *all = file->load->components;

    file->state = state;
    for (size_t i = 0; i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (davit_component_usable(c))
            c->state = state;
    }
}

/* What the machine lacked last time may be there now: shown as a warning, asked again. */
static void warn_of_last(DavitPluginFile *file)
{
    g_autoptr(DavitReport) last = davit_report_new();
    const DavitRecord *r;

    davit_probe_records(json_object_get(file->probe, "records"), last);
    r = davit_report_first_error(last, 0);
    if (r)
        davit_report_add(
            file->records,
            &(DavitFinding){.code = r->code,
                            .severity = DAVIT_WARNING,
                            .stage = r->stage,
                            .who = r->who,
                            .subject = r->subject,
                            .expected = r->expected,
                            .found = r->found,
                            .message = davit_report_text(file->records,
                                                         "at the last try: %s", r->message),
                            .hint = r->hint});
}

/* A component that its file alone decides to be refused. */
static void recall_component(const DavitPluginFile *file, const char *id, const json_t *records)
{
    const GPtrArray *all = file->load->components;

    for (size_t i = 0; is_settled(records) && i < all->len; i++) {
        DavitComponent *c = g_ptr_array_index(all, i);

        if (strcmp(c->id, id) != 0 || !davit_component_usable(c))
            continue;
        davit_probe_records(records, c->records);
        c->state = DAVIT_STATE_REFUSED;
    }
}

static void recall_components(const DavitPluginFile *file)
{
    size_t i;
    json_t *c;

    json_array_foreach(json_object_get(file->probe, "components"), i, c)
        recall_component(file, davit_probe_text(c, "id"), json_object_get(c, "records"));
}

void davit_helper_recall(DavitPluginFile *file)
{
    DavitFileLoad *load = file->load;
    const char *outcome;

    file->probe = json_incref(
        davit_cache_get(load->registry->cache, load->real, &load->seen, "probe"));
    if (file->state != DAVIT_STATE_OK || !file->probe)
        return;
    outcome = davit_probe_text(file->probe, "outcome");
    if (davit_probe_is_quarantine(file->probe)) {
        report_quarantine(file, file->probe, file->records);
        set_state(file, DAVIT_STATE_QUARANTINED);
    } else if (strcmp(outcome, "ok") == 0) {
        recall_components(file);
    } else if (strcmp(outcome, "refused") == 0 &&
               is_settled(json_object_get(file->probe, "records"))) {
        davit_probe_records(json_object_get(file->probe, "records"), file->records);
        set_state(file, DAVIT_STATE_REFUSED);
    } else if (strcmp(outcome, "refused") == 0) {
        warn_of_last(file);
    }
}
