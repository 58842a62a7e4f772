/* SPDX-License-Identifier: Apache-2.0
 * DavitReport: the list of findings, their texts, and the sink through which plugins add
 * to it. Escaping is in escape.c. */
#include "base/report.h"

#include <pthread.h>
#include <string.h>

#include "base/codes.h"
#include "base/escape.h"

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

/* What its code says is to be done. A note asks for nothing. */
static const char *remedy_for(const DavitRecord *r)
{
    const DavitCodeRule *rule = r->severity == DAVIT_NOTE ? NULL : davit_code_rule(r->code);

    return rule ? rule->remedy : NULL;
}

/* Room for all texts of a record, each with what an escape may add. */
#define MAX_TEXTS (3 * MAX_FIELD + 2 * MAX_TEXT + 2 * MAX_NAME + 7 * DAVIT_ESCAPE_REST)

/* @text escaped at *at, which moves on. */
static char *keep(char **at, const char *text, size_t max)
{
    char *kept = *at;

    if (!text)
        return NULL;
    *at += davit_escape_into(kept, text, strlen(text), max) + 1;
    return kept;
}

/* Bytes of @text with its NUL; 0 without a text. */
static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* @text copied to *at, which moves on. */
static char *copy_text(char **at, const char *text)
{
    const size_t n = text_size(text);
    char *copy = *at;

    if (n == 0)
        return NULL;
    memcpy(copy, text, n);
    *at += n;
    return copy;
}

/* (owned, g_free) @from and behind it its texts: one piece of memory. */
static DavitRecord *record_copy(const DavitRecord *from)
{
    const size_t n = text_size(from->stage) + text_size(from->who) +
                     text_size(from->subject) + text_size(from->expected) +
                     text_size(from->found) + text_size(from->message) +
                     text_size(from->hint);
    DavitRecord *r = g_malloc(sizeof *r + n);
    char *at = (char *)(r + 1);

    *r = *from;
    r->stage = copy_text(&at, from->stage);
    r->who = copy_text(&at, from->who);
    r->subject = copy_text(&at, from->subject);
    r->expected = copy_text(&at, from->expected);
    r->found = copy_text(&at, from->found);
    r->message = copy_text(&at, from->message);
    r->hint = copy_text(&at, from->hint);
    return r;
}

DavitReport *davit_report_new(void)
{
    DavitReport *report = g_new0(DavitReport, 1);

    pthread_mutex_init(&report->lock, NULL);
    report->records = g_ptr_array_new_with_free_func(g_free);
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
    char texts[MAX_TEXTS], *at = texts;
    DavitRecord r = {.code = finding->code,
                     .severity = finding->status < 0 ? DAVIT_ERROR : finding->severity,
                     .status = finding->status,
                     .purposes = finding->purposes,
                     .final = finding->final};

    if (r.severity == DAVIT_ERROR && r.status >= 0)
        r.status = DAVIT_E_UNSUPPORTED;
    r.stage = keep(&at, finding->stage, MAX_NAME);
    r.who = keep(&at, finding->who ? finding->who : "core", MAX_NAME);
    r.subject = keep(&at, finding->subject, MAX_FIELD);
    r.expected = keep(&at, finding->expected, MAX_FIELD);
    r.found = keep(&at, finding->found, MAX_FIELD);
    r.message =
        keep(&at, finding->message ? finding->message : code_sentence(r.code), MAX_TEXT);
    r.hint = keep(&at, finding->hint ? finding->hint : remedy_for(&r), MAX_TEXT);

    pthread_mutex_lock(&report->lock);
    g_ptr_array_add(report->records, record_copy(&r));
    pthread_mutex_unlock(&report->lock);
    return r.status;
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
    /* what stands in front is not said twice */
    const char *found = g_strcmp0(record->found, record->subject) ? record->found : NULL;

    if (record->subject)
        g_string_append_printf(s, "%s: ", record->subject);
    g_string_append(s, record->message);
    if (found && record->expected)
        g_string_append_printf(s, ": found %s, expected %s", found, record->expected);
    else if (found)
        g_string_append_printf(s, ": found %s", found);
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
