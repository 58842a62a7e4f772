/* SPDX-License-Identifier: Apache-2.0
 * D14: a model with two tokenizer files. davit takes the first by davit_tokenizer_file_name, other
 * programs that of the model's own library: where they give other ids, one model answers differently in the two. */
#include <string.h>

#include "doctor/doctor_private.h"
#include "engine/private.h"
#include "tokenizer/differ.h"

#define SHOWN 40u /* bytes of a text */

/* The first @n ids with their texts. (owned by the doctor) */
static const char *ids_text(DavitDoctor *d, const DavitTokenizer *t, const DavitIds *ids, size_t n)
{
    g_autoptr(GString) out = g_string_new(NULL);

    for (size_t i = 0; i < ids->n && i < n; i++) {
        size_t len = 0;
        const char *text = davit_tokenizer_text(t, ids->ids[i], &len);
        g_autofree char *shown = davit_escape(text ? text : "", len, SHOWN);

        g_string_append_printf(out, "%s%d (%s)", i ? ", " : "", ids->ids[i], shown);
    }
    if (ids->n > n)
        g_string_append(out, ", ...");
    return ids->n > 0 ? davit_doctor_text(d, "%s", out->str) : "no more ids";
}

static const char *token_text(DavitDoctor *d, const DavitTokenizer *t, int32_t id)
{
    size_t len = 0;
    const char *text = davit_tokenizer_text(t, id, &len);
    g_autofree char *shown = davit_escape(text ? text : "", len, SHOWN);

    return davit_doctor_text(d, "%s", shown);
}

/* Few tokens that differ are names of reserved ones; many mean another vocabulary. */
static void say_tokens(DavitDoctor *d, const char *used, const char *name,
                       const DavitTokenizer *second, const DavitDiffer *differ)
{
    const bool other = differ->n_other > differ->n_both / 2;
    const DavitTokenizer *first = d->patient.tokenizer;

    davit_doctor_say(
        d, "D14",
        &(DavitFinding){
            .severity = other ? DAVIT_WARNING : DAVIT_NOTE,
            .subject = davit_doctor_text(d, "%s, %s", used, name),
            .expected = davit_doctor_text(d, "one vocabulary; id %d is %s in %s", differ->first_other,
                                          token_text(d, second, differ->first_other), name),
            .found = davit_doctor_text(d, "%zu of %zu ids with other texts; there %s",
                                       differ->n_other, differ->n_both,
                                       token_text(d, first, differ->first_other)),
            .message = other ? "the two tokenizer files are of different models; the first is used"
                             : "the two tokenizer files name some ids otherwise; the first is used",
            .hint = other ? "take both from where the weights came from"
                          : "nothing, if the ids are reserved ones; else compare with the model's "
                            "origin"});
}

/* Nearly all texts: hardly readers that part over blanks. */
static bool are_most(const DavitDiffer *differ)
{
    return 4 * differ->n_cut > 3 * differ->n_texts;
}

static void say_cuts(DavitDoctor *d, const char *used, const char *name,
                     const DavitTokenizer *second, const DavitDiffer *differ)
{
    g_autofree char *text = davit_escape(differ->first_cut, strlen(differ->first_cut), SHOWN);

    davit_doctor_say(
        d, "D14",
        &(DavitFinding){
            .severity = are_most(differ) ? DAVIT_WARNING : DAVIT_NOTE,
            .subject = davit_doctor_text(d, "%s, %s", used, name),
            .expected = davit_doctor_text(d, "the ids of %s; in \"%s\": %s", name, text,
                                          ids_text(d, second, &differ->right, 3)),
            .found = davit_doctor_text(d, "other ids for %zu of %zu sample texts; there %s",
                                       differ->n_cut, differ->n_texts,
                                       ids_text(d, d->patient.tokenizer, &differ->left, 3)),
            .message = "the two tokenizer files give texts different ids; the first is used",
            .hint = davit_doctor_text(d, "to use %s, move %s away", name, used)});
}

static void say_unreadable(DavitDoctor *d, const char *used, const char *name, const DavitReport *said)
{
    const DavitRecord *r = davit_report_first_error(said, 0);

    davit_doctor_say(d, "D14",
                     &(DavitFinding){.severity = DAVIT_NOTE,
                                     .subject = name,
                                     .expected = davit_doctor_text(d, "a file to compare %s with", used),
                                     .found = r ? davit_doctor_text(d, "%s", r->message) : NULL,
                                     .message = "the second tokenizer file is not used, and could "
                                                "not be compared",
                                     .hint = "nothing for davit; other programs may read it"});
}

static void compare_with(DavitDoctor *d, const char *used, const char *name)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GBytes) bytes = davit_patient_read(&d->patient, name, aside);
    g_autoptr(DavitTokenizer) second = NULL;
    DavitDiffer differ;

    if (!bytes)
        return;
    second = davit_tokenizer_from_bytes(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), name,
                                        d->patient.registry, aside);
    if (!second) {
        say_unreadable(d, used, name, aside);
        return;
    }
    davit_tokenizer_differ(d->patient.tokenizer, second, &differ);
    if (differ.n_other > 0)
        say_tokens(d, used, name, second, &differ);
    if (differ.n_cut > 0 && differ.n_other <= differ.n_both / 2)
        say_cuts(d, used, name, second, &differ);
    davit_differ_clear(&differ);
}

void davit_check_second_tokenizer(DavitDoctor *d)
{
    const DavitPatient *p = &d->patient;
    const char *used = NULL, *name;

    for (size_t i = 0; p->tokenizer && (name = davit_tokenizer_file_name(i)); i++) {
        if (!davit_model_path_has(&p->path, name))
            continue;
        if (used)
            compare_with(d, used, name);
        else
            used = name;
    }
}
