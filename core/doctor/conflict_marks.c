/* SPDX-License-Identifier: Apache-2.0
 * JSON files that git left with both sides of a conflict: no reader takes them, and the reader's
 * own words ("a key in quotes is expected") do not say why. */
#include <string.h>

#include "doctor/doctor_private.h"

/* Line of the first mark, 1 = the first; 0 = there is none with its end. */
static size_t line_of_mark(const char *text, size_t n)
{
    size_t line = 1, first = 0;

    for (const char *p = text, *end = text + n; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const size_t len = (size_t)((stop ? stop : end) - p);

        if (!first && len >= 8 && memcmp(p, "<<<<<<< ", 8) == 0)
            first = line;
        else if (first && len >= 7 && memcmp(p, ">>>>>>>", 7) == 0)
            return first;
        if (!stop)
            break;
        p = stop + 1;
    }
    return 0;
}

static bool is_of_file(const DavitRecord *r, const void *name)
{
    return r->code == DAVIT_R_JSON_INVALID && r->subject &&
           g_str_has_prefix(r->subject, (const char *)name);
}

static void check_file(DavitDoctor *d, const DavitCheck *check, const char *name)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GBytes) bytes = davit_patient_read(&d->patient, name, aside);
    gsize n = 0;
    const char *text = bytes ? g_bytes_get_data(bytes, &n) : NULL;
    const size_t line = text ? line_of_mark(text, n) : 0;

    if (!line)
        return;
    davit_doctor_drop(d, check->info->id, is_of_file, name);
    davit_doctor_say(d, check->info->id,
                     &(DavitFinding){.code = DAVIT_R_JSON_INVALID,
                                     .status = DAVIT_E_CORRUPT,
                                     .subject = name,
                                     .expected = "JSON",
                                     .found = davit_doctor_text(d, "<<<<<<< in line %zu", line),
                                     .message = "git left a conflict in the file: both sides stand in "
                                                "it, and no program can read it",
                                     .hint = "keep one side and remove the marks, or take the file "
                                             "from the model's origin"});
}

void davit_check_conflict_marks(DavitDoctor *d)
{
    const GPtrArray *names = d->patient.path.names;

    for (size_t i = 0; d->patient.path.dir && i < d->n_checks; i++) {
        const DavitCheck *check = &d->checks[i];

        for (guint k = 0; k < names->len; k++) {
            const char *name = g_ptr_array_index(names, k);

            for (size_t r = 0; g_str_has_suffix(name, ".json") &&
                               r < davit_report_count(check->findings); r++)
                if (is_of_file(davit_report_get(check->findings, r), name)) {
                    check_file(d, check, name);
                    break;
                }
        }
    }
}
