/* SPDX-License-Identifier: Apache-2.0
 * DavitReport: an ordered list of findings, and the bridge from a plugin's sink to it.
 *
 * Rule for the whole core: a fallible function takes `DavitReport *report` (never NULL)
 * last, returns DAVIT_OK or a negative DAVIT_E_ status (or NULL / false), and has added
 * at least one error record when it fails. Nothing below core/cli prints.
 */
#ifndef DAVIT_BASE_REPORT_H
#define DAVIT_BASE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>
#include <jansson.h>

#include <davit/plugin.h>

typedef enum DavitSeverity {
    DAVIT_NOTE,
    DAVIT_WARNING,
    DAVIT_ERROR,
} DavitSeverity;

/* One finding. All strings owned by the report; NULL = not stated. All of them are stored
 * escaped (davit_escape); subject, expected and found are cut to 200 bytes, message and
 * hint to 1000. Which fields a code has is said in codes.h. */
typedef struct DavitRecord {
    uint32_t code; /* DAVIT_R_ number */
    DavitSeverity severity;
    int32_t status;    /* DAVIT_E_ of an error, DAVIT_OK otherwise */
    bool final;        /* DAVIT_REFUSAL_FINAL was set */
    uint64_t purposes; /* what it blocks; 0 = everything (errors) */
    char *stage;       /* "open" "probe" "plan" "run" ... */
    char *who;         /* component id, or "core" */
    char *subject;
    char *expected;
    char *found;
    char *message;
    char *hint;
} DavitRecord;

typedef struct DavitReport DavitReport;

/* Returns: (owned) an empty report. */
DavitReport *davit_report_new(void);
void davit_report_free(DavitReport *report); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitReport, davit_report_free)

/* What davit_report_add takes; strings are copied. Designated initialisers keep calls
 * short: return davit_report_add(report, &(DavitFinding){ .code = DAVIT_R_SHAPE_MISMATCH,
 * .status = DAVIT_E_MISMATCH, .stage = "plan", .subject = name, .expected = "[64, 64]",
 * .found = "[64, 32]", .message = "tensor shape differs from what the architecture
 * declares"});
 */
typedef struct DavitFinding {
    uint32_t code;
    DavitSeverity severity; /* 0 = NOTE; a negative status makes it an ERROR; an ERROR
                             * without a status gets DAVIT_E_UNSUPPORTED */
    int32_t status;         /* negative: the record is an error */
    uint64_t purposes;
    bool final;
    const char *stage;
    const char *who; /* NULL = "core" */
    const char *subject;
    const char *expected;
    const char *found;
    const char *message; /* required */
    const char *hint; /* NULL = that of the code (codes.h), for errors and warnings */
} DavitFinding;

/* Returns: the record's status, so that a failing function can `return
 * davit_report_add(...)`. [any thread] */
int32_t davit_report_add(DavitReport *report, const DavitFinding *finding);
/* The graver of two statuses. A function: MIN would make the call that is its argument twice. */
static inline int32_t davit_worse(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Formatted fields without a temporary: returns a string owned by the report. */
const char *davit_report_text(DavitReport *report, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

size_t davit_report_count(const DavitReport *report);
/* (borrowed) @index < count; valid until the report is freed. */
const DavitRecord *davit_report_get(const DavitReport *report, size_t index);
/* First error that blocks any of @purposes (0 = any error), or NULL. */
const DavitRecord *davit_report_first_error(const DavitReport *report, uint64_t purposes);
bool davit_report_failed(const DavitReport *report);
/* Append copies of all records of @from. */
void davit_report_append(DavitReport *report, const DavitReport *from);
/* Drop records from index @count on (undo of an attempt that is not the final word). */
void davit_report_truncate(DavitReport *report, size_t count);

/* String form of a code, "shape-mismatch"; "unknown" for numbers not in the table. */
const char *davit_code_name(uint32_t code);
/* Number of a string form, 0 if there is none. */
uint32_t davit_code_number(const char *name);

/* (owned)
 * {"code","severity","stage","who","subject","expected","found","message","hint"}; absent
 * fields are null. */
json_t *davit_record_json(const DavitRecord *record);
/* (owned, g_free) "subject: message: found X, expected Y; hint" in one line. */
char *davit_record_sentence(const DavitRecord *record);

/* (owned, g_free) @text with controls, invalid UTF-8 and direction marks escaped (\n \x1b
 * \u202e; quotes and backslashes stay), cut to @max bytes of output at a character border
 * with "..." appended when cut. (escape.c) */
char *davit_escape(const char *text, size_t len, size_t max);

/* What stands behind a davit_sink during a call. Lives on the caller's stack. */
typedef struct DavitSink {
    davit_sink abi;      /* hand &sink.abi to the plugin */
    DavitReport *report; /* (borrowed) */
    const char *who;     /* (borrowed) component id */
    const char *stage;   /* (borrowed) */
    int32_t status;  /* status given to error records; DAVIT_E_UNSUPPORTED by default */
    size_t n_errors; /* errors that came through */
    size_t first;    /* index of the first record that can be this sink's; private */
} DavitSink;

void davit_sink_init(DavitSink *sink, DavitReport *report, const char *who,
                     const char *stage);
/* After the call: sets the status of the records that came through to @status, and adds
 * DAVIT_R_NO_REASON if @status is negative and none came. Returns @status. */
int32_t davit_sink_done(DavitSink *sink, int32_t status);

#endif
