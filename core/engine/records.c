/* SPDX-License-Identifier: Apache-2.0
 * Findings in the shape that libdavit hands out. */
#include "engine/private.h"

#include <string.h>

void davit_records_give(DavitReport *report, davit_records **out)
{
    if (!out) {
        davit_report_free(report);
        return;
    }
    *out = g_new0(davit_records, 1);
    (*out)->report = report;
}

int davit_usage(const char *message, davit_records **out)
{
    DavitReport *report = davit_report_new();
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                             .status = DAVIT_E_USAGE,
                                             .stage = "call",
                                             .subject = "libdavit",
                                             .message = message});
    davit_records_give(report, out);
    return DAVIT_LIB_USAGE;
}

size_t davit_records_count(const davit_records *records)
{
    return records && records->report ? davit_report_count(records->report) : 0;
}

static const char *severity_name(DavitSeverity severity)
{
    return severity == DAVIT_ERROR ? "error" : severity == DAVIT_WARNING ? "warning" : "note";
}

int davit_records_get(const davit_records *records, size_t index, davit_record *out)
{
    if (index >= davit_records_count(records) || !out)
        return DAVIT_LIB_USAGE;
    const DavitRecord *r = davit_report_get(records->report, index);
    const davit_record full = {.struct_size = out->struct_size,
                               .code = davit_code_name(r->code),
                               .severity = severity_name(r->severity),
                               .status = r->severity == DAVIT_ERROR ? r->status : DAVIT_LIB_OK,
                               .stage = r->stage,
                               .who = r->who,
                               .subject = r->subject,
                               .expected = r->expected,
                               .found = r->found,
                               .message = r->message,
                               .hint = r->hint};
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    return DAVIT_LIB_OK;
}

void davit_records_free(davit_records *records)
{
    if (!records)
        return;
    davit_report_free(records->report);
    g_free(records);
}

void davit_free(void *p)
{
    g_free(p);
}
