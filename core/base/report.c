/* SPDX-License-Identifier: Apache-2.0
 * DavitReport: the list of findings, their texts, and the sink through which plugins add
 * to it. Escaping is in escape.c. */
#include "base/report.h"

#include <pthread.h>
#include <string.h>

#define MAX_FIELD 200  /* bytes of subject, expected, found */
#define MAX_TEXT  1000 /* bytes of message and hint */
#define MAX_NAME  200  /* bytes of stage and who */

struct DavitReport {
    pthread_mutex_t lock; /* not GMutex: the thread sanitizer cannot see into GLib */
    GPtrArray *records;   /* DavitRecord, owned */
    GPtrArray *texts;     /* char *, owned: what davit_report_text made */
};

/* ---- code table ---- */

/* Findings that only the doctor makes have the name of its check (doctor.h). */
#define DOCTOR_FIRST 9001u

static const char *const doctor_names[] = {
    "D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09", "D10",
    "D11", "D12", "D13", "D14", "D15", "D16", "D17", "D18", "D19", "D20",
    "D21", "D22", "D23", "D24", "D25", "D26", "D27", "D28", "D29", "D30",
    "D31", "D32", "D33", "D34", "D35", "D36", "D37", "D38", "D39", "D40",
    "D41", "D42", "D43", "D44", "D45", "D46", "D47", "D48", "D49"};

static const char *doctor_name(uint32_t code)
{
    return code >= DOCTOR_FIRST && code - DOCTOR_FIRST < G_N_ELEMENTS(doctor_names)
               ? doctor_names[code - DOCTOR_FIRST]
               : "unknown";
}

const char *davit_code_name(uint32_t code)
{
    switch (code) {
#define CODE_NAME(num, name, text, when)                                                 \
    case num:                                                                            \
        return text;
        DAVIT_CODES(CODE_NAME)
#undef CODE_NAME
    default:
        return doctor_name(code);
    }
}

uint32_t davit_code_number(const char *name)
{
    static const struct {
        uint32_t code;
        const char *name;
    } table[] = {
#define CODE_ROW(num, name_, text, when) {num, text},
        DAVIT_CODES(CODE_ROW)
#undef CODE_ROW
    };

    for (size_t i = 0; name && i < G_N_ELEMENTS(table); i++) {
        if (strcmp(table[i].name, name) == 0)
            return table[i].code;
    }
    for (size_t i = 0; name && i < G_N_ELEMENTS(doctor_names); i++)
        if (strcmp(doctor_names[i], name) == 0)
            return DOCTOR_FIRST + (uint32_t)i;
    return 0;
}

/* What the code table says about @code: the sentence of a record that came without one.
 */
static const char *code_sentence(uint32_t code)
{
    switch (code) {
#define CODE_WHEN(num, name, text, when)                                                 \
    case num:                                                                            \
        return when;
        DAVIT_CODES(CODE_WHEN)
#undef CODE_WHEN
    default:
        return "no message given";
    }
}

/* ---- records ---- */

static char *keep(const char *text, size_t max)
{
    return text ? davit_escape(text, strlen(text), max) : NULL;
}

static void record_free(void *p)
{
    DavitRecord *r = p;

    g_free(r->stage);
    g_free(r->who);
    g_free(r->subject);
    g_free(r->expected);
    g_free(r->found);
    g_free(r->message);
    g_free(r->hint);
    g_free(r);
}

static DavitRecord *record_copy(const DavitRecord *from)
{
    DavitRecord *r = g_new(DavitRecord, 1);

    *r = *from;
    r->stage = g_strdup(from->stage);
    r->who = g_strdup(from->who);
    r->subject = g_strdup(from->subject);
    r->expected = g_strdup(from->expected);
    r->found = g_strdup(from->found);
    r->message = g_strdup(from->message);
    r->hint = g_strdup(from->hint);
    return r;
}

DavitReport *davit_report_new(void)
{
    DavitReport *report = g_new0(DavitReport, 1);

    pthread_mutex_init(&report->lock, NULL);
    report->records = g_ptr_array_new_with_free_func(record_free);
    report->texts = g_ptr_array_new_with_free_func(g_free);
    return report;
}

void davit_report_free(DavitReport *report)
{
    if (!report)
        return;
    g_ptr_array_unref(report->records);
    g_ptr_array_unref(report->texts);
    pthread_mutex_destroy(&report->lock);
    g_free(report);
}

int32_t davit_report_add(DavitReport *report, const DavitFinding *finding)
{
    DavitRecord *r = g_new0(DavitRecord, 1);
    int32_t status = finding->status;

    r->code = finding->code;
    r->severity = status < 0 ? DAVIT_ERROR : finding->severity;
    if (r->severity == DAVIT_ERROR && status >= 0)
        status = DAVIT_E_UNSUPPORTED;
    r->status = status;
    r->purposes = finding->purposes;
    r->final = finding->final;
    r->stage = keep(finding->stage, MAX_NAME);
    r->who = keep(finding->who ? finding->who : "core", MAX_NAME);
    r->subject = keep(finding->subject, MAX_FIELD);
    r->expected = keep(finding->expected, MAX_FIELD);
    r->found = keep(finding->found, MAX_FIELD);
    r->message =
        keep(finding->message ? finding->message : code_sentence(r->code), MAX_TEXT);
    r->hint = keep(finding->hint, MAX_TEXT);

    pthread_mutex_lock(&report->lock);
    g_ptr_array_add(report->records, r);
    pthread_mutex_unlock(&report->lock);
    return status;
}

const char *davit_report_text(DavitReport *report, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);

    pthread_mutex_lock(&report->lock);
    g_ptr_array_add(report->texts, text);
    pthread_mutex_unlock(&report->lock);
    return text;
}

size_t davit_report_count(const DavitReport *report)
{
    /* const for callers, not for us */
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&report->lock;
    size_t n;

    pthread_mutex_lock(lock);
    n = report->records->len;
    pthread_mutex_unlock(lock);
    return n;
}

const DavitRecord *davit_report_get(const DavitReport *report, size_t index)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&report->lock;
    const DavitRecord *r;

    pthread_mutex_lock(lock);
    g_assert(index < report->records->len);
    r = g_ptr_array_index(report->records, index);
    pthread_mutex_unlock(lock);
    return r;
}

const DavitRecord *davit_report_first_error(const DavitReport *report, uint64_t purposes)
{
    const size_t n = davit_report_count(report);

    for (size_t i = 0; i < n; i++) {
        const DavitRecord *r = davit_report_get(report, i);
        const bool blocks = !purposes || !r->purposes || (r->purposes & purposes);

        if (r->severity == DAVIT_ERROR && blocks)
            return r;
    }
    return NULL;
}

bool davit_report_failed(const DavitReport *report)
{
    return davit_report_first_error(report, 0) != NULL;
}

void davit_report_append(DavitReport *report, const DavitReport *from)
{
    const size_t n = davit_report_count(from);

    for (size_t i = 0; i < n; i++) {
        DavitRecord *copy = record_copy(davit_report_get(from, i));

        pthread_mutex_lock(&report->lock);
        g_ptr_array_add(report->records, copy);
        pthread_mutex_unlock(&report->lock);
    }
}

void davit_report_truncate(DavitReport *report, size_t count)
{
    pthread_mutex_lock(&report->lock);
    if (count < report->records->len)
        g_ptr_array_set_size(report->records, (int)count);
    pthread_mutex_unlock(&report->lock);
}

/* ---- output ---- */

static const char *severity_name(DavitSeverity severity)
{
    return severity == DAVIT_ERROR     ? "error"
           : severity == DAVIT_WARNING ? "warning"
                                       : "note";
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

json_t *davit_record_json(const DavitRecord *record)
{
    json_t *object = json_object();

    json_object_set_new(object, "code", json_string(davit_code_name(record->code)));
    json_object_set_new(object, "severity", json_string(severity_name(record->severity)));
    json_object_set_new(object, "stage", text_or_null(record->stage));
    json_object_set_new(object, "who", text_or_null(record->who));
    json_object_set_new(object, "subject", text_or_null(record->subject));
    json_object_set_new(object, "expected", text_or_null(record->expected));
    json_object_set_new(object, "found", text_or_null(record->found));
    json_object_set_new(object, "message", text_or_null(record->message));
    json_object_set_new(object, "hint", text_or_null(record->hint));
    return object;
}

char *davit_record_sentence(const DavitRecord *record)
{
    GString *s = g_string_new(NULL);

    if (record->subject)
        g_string_append_printf(s, "%s: ", record->subject);
    g_string_append(s, record->message);
    if (record->found && record->expected)
        g_string_append_printf(s, ": found %s, expected %s", record->found,
                               record->expected);
    else if (record->found)
        g_string_append_printf(s, ": found %s", record->found);
    else if (record->expected)
        g_string_append_printf(s, ": expected %s", record->expected);
    if (record->hint)
        g_string_append_printf(s, "; %s", record->hint);
    return g_string_free(s, FALSE);
}

/* ---- sink ---- */

static DavitSeverity severity_of(uint32_t flags)
{
    if (flags & DAVIT_REFUSAL_NOTE)
        return DAVIT_NOTE;
    return flags & DAVIT_REFUSAL_WARNING ? DAVIT_WARNING : DAVIT_ERROR;
}

static void sink_refuse(void *ctx, const davit_refusal *in)
{
    DavitSink *sink = ctx;
    davit_refusal r = {0}; /* fields that an older plugin lacks stay absent */
    DavitSeverity severity;

    if (!in)
        return;
    memcpy(&r, in, MIN(sizeof r, in->struct_size));
    severity = severity_of(r.flags);
    davit_report_add(sink->report,
                     &(DavitFinding){
                         .code = r.code,
                         .severity = severity,
                         .status = severity == DAVIT_ERROR ? sink->status : DAVIT_OK,
                         .purposes = r.purposes,
                         .final = (r.flags & DAVIT_REFUSAL_FINAL) != 0,
                         .stage = sink->stage,
                         .who = sink->who,
                         .subject = r.subject,
                         .expected = r.expected,
                         .found = r.found,
                         .message = r.message,
                         .hint = r.hint,
                     });
    if (severity == DAVIT_ERROR)
        sink->n_errors++;
}

void davit_sink_init(DavitSink *sink, DavitReport *report, const char *who,
                     const char *stage)
{
    *sink = (DavitSink){
        .abi = {.struct_size = DAVIT_END(davit_sink, refuse),
                .ctx = sink,
                .refuse = sink_refuse},
        .report = report,
        .who = who,
        .stage = stage,
        .status = DAVIT_E_UNSUPPORTED,
        .first = davit_report_count(report),
    };
}

/* Give the errors that came through @sink the status that the call ended with. */
static void stamp_status(DavitSink *sink, int32_t status)
{
    GPtrArray *records = sink->report->records;

    pthread_mutex_lock(&sink->report->lock);
    for (size_t i = sink->first; i < records->len; i++) {
        DavitRecord *r = g_ptr_array_index(records, i);

        if (r->severity == DAVIT_ERROR && g_strcmp0(r->who, sink->who) == 0 &&
            g_strcmp0(r->stage, sink->stage) == 0)
            r->status = status;
    }
    pthread_mutex_unlock(&sink->report->lock);
}

int32_t davit_sink_done(DavitSink *sink, int32_t status)
{
    if (status >= 0)
        return status;
    if (status < DAVIT_E_USAGE) /* a plugin's own number: no caller knows it */
        status = DAVIT_E_UNSUPPORTED;
    if (sink->n_errors) {
        stamp_status(sink, status);
        return status;
    }
    return davit_report_add(
        sink->report,
        &(DavitFinding){.code = DAVIT_R_NO_REASON,
                        .status = status,
                        .stage = sink->stage,
                        .who = sink->who,
                        .subject = sink->who,
                        .message = "the component failed without giving a reason",
                        .hint = "this is a fault of the component, tell its author"});
}
