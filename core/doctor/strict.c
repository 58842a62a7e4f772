/* SPDX-License-Identifier: Apache-2.0
 * D10: NaN and Infinity in config.json. Python writes and reads them, davit reads them where they
 * mean nothing; they are no JSON (RFC 8259, 6) and readers in C, Rust and JavaScript refuse the
 * whole file. */
#include <string.h>

#include "doctor/doctor_private.h"

/* One that stands outside of strings. */
typedef struct Odd {
    const char *word; /* (static) */
    size_t line;
    const char *key; /* (borrowed) behind the quote of the last string before it */
    size_t n_key;
} Odd;

/* Behind the string that starts at @p (its quote); NULL = it has no end. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p + 1 : NULL;
}

static bool find_odd(const char *text, size_t n, Odd *out)
{
    static const char *const words[] = {"NaN", "Infinity"};
    const char *end = text + n;

    out->line = 1;
    for (const char *p = text; p && p < end;) {
        if (*p == '"') {
            const char *after = skip_string(p, end);

            out->key = p + 1;
            out->n_key = after ? (size_t)(after - p) - 2 : 0;
            p = after;
            continue;
        }
        for (size_t w = 0; w < G_N_ELEMENTS(words); w++)
            if ((size_t)(end - p) >= strlen(words[w]) &&
                memcmp(p, words[w], strlen(words[w])) == 0) {
                out->word = words[w];
                return true;
            }
        out->line += *p++ == '\n';
    }
    return false;
}

void davit_check_strict(DavitDoctor *d)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GBytes) bytes =
        d->patient.config ? davit_patient_read(&d->patient, "config.json", aside) : NULL;
    Odd odd = {0};

    if (!bytes || !find_odd(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), &odd))
        return;
    davit_doctor_say(
        d, "D10",
        &(DavitFinding){
            .severity = DAVIT_NOTE,
            .subject = davit_doctor_text(d, "config.json: line %zu, %.*s", odd.line,
                                         (int)MIN(odd.n_key, 60u), odd.key ? odd.key : ""),
            .expected = "a number, or null",
            .found = odd.word,
            .message = "this is no JSON: davit reads over it, programs whose JSON reader is strict "
                       "refuse the whole file",
            .hint = "delete the key or make it null; a training program left it"});
}
