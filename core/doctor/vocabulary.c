/* SPDX-License-Identifier: Apache-2.0
 * D14: ids of the tokenizer itself. tokenizer.json against the vocab.json beside it, and a
 * vocabulary whose ids are in alphabetical order, which no training gives: both mean that texts
 * become other tokens than those the weights were trained with, without any error. */
#include <string.h>

#include "config/tree.h"
#include "doctor/doctor_private.h"

#define MAX_VOCAB (16ull << 20) /* bytes of vocab.json that are read */
#define LONG_ONES 64u           /* tokens of several letters that a verdict needs */

/* Are all plain tokens of several letters and of one in one alphabetical order? Bytes alone lie so
 * by nature, and so do the first tokens of many files. */
static bool is_alphabetical(const DavitTokenizer *t)
{
    const size_t n = davit_tokenizer_n_ids(t);
    const char *last = NULL;
    size_t n_last = 0, n_long = 0;
    bool long_first = false;

    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *text = davit_tokenizer_is_added(t, (int32_t)i)
                               ? NULL
                               : davit_tokenizer_text(t, (int32_t)i, &len);
        int order;

        if (!text)
            continue;
        order = last ? memcmp(last, text, MIN(n_last, len)) : -1;
        if (order > 0 || (order == 0 && n_last >= len))
            return false;
        if (g_utf8_strlen(text, (gssize)len) > 1)
            n_long++;
        else
            long_first = long_first || n_long > 0; /* one of a letter behind a longer one */
        last = text;
        n_last = len;
    }
    return n_long >= LONG_ONES && long_first;
}

static json_t *read_vocab(const DavitPatient *p)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GBytes) bytes = NULL;

    if (!davit_model_path_has(&p->path, "vocab.json") ||
        !davit_model_path_has(&p->path, "tokenizer.json"))
        return NULL;
    bytes = davit_patient_read(p, "vocab.json", aside);
    if (!bytes || g_bytes_get_size(bytes) > MAX_VOCAB)
        return NULL;
    return json_loadb(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), 0, NULL);
}

/* Tokens of both whose ids differ. */
typedef struct Differences {
    size_t n_both, n;
    const char *first; /* (borrowed) */
    int64_t id_first;
} Differences;

static Differences compare(const DavitTokenizer *t, json_t *vocab)
{
    Differences out = {0};
    const char *text;
    json_t *value;

    json_object_foreach(vocab, text, value)
    {
        const int32_t id = davit_tokenizer_id(t, text, strlen(text));

        if (id < 0 || !json_is_integer(value))
            continue;
        out.n_both++;
        if (id == json_integer_value(value))
            continue;
        if (!out.n++) {
            out.first = text;
            out.id_first = json_integer_value(value);
        }
    }
    return out;
}

static void say_differences(DavitDoctor *d, const Differences *diff, bool sorted)
{
    davit_doctor_say(
        d, "D14",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = "tokenizer.json",
            .expected = davit_doctor_text(d, "the ids of vocab.json: %.60s is %" PRId64,
                                          diff->first, diff->id_first),
            .found = davit_doctor_text(
                d, "%zu of %zu tokens have other ids%s: %.60s is %d", diff->n, diff->n_both,
                sorted ? ", in alphabetical order" : "", diff->first,
                davit_tokenizer_id(d->patient.tokenizer, diff->first, strlen(diff->first))),
            .message = sorted ? "the ids of tokenizer.json were sorted: they are not those that "
                                "the weights were trained with, and texts come out as noise"
                              : "tokenizer.json and vocab.json give tokens different ids, and the "
                                "weights can be of one of them only",
            .hint = sorted ? "build tokenizer.json again from vocab.json and merges.txt, or take "
                             "it from the model's origin; the weights are not to blame"
                           : "take both files from where the weights came from"});
}

void davit_check_vocabulary(DavitDoctor *d)
{
    const DavitTokenizer *t = d->patient.tokenizer;
    json_t *vocab = t ? read_vocab(&d->patient) : NULL;
    const bool sorted = t && is_alphabetical(t);
    Differences diff = {0};

    if (vocab)
        diff = compare(t, vocab);
    if (diff.n)
        say_differences(d, &diff, sorted);
    else if (sorted && !vocab)
        davit_doctor_say(
            d, "D14",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = "ids of the tokenizer",
                .expected = "letters first, then longer tokens in the order of their merges",
                .found = "all tokens in alphabetical order",
                .message = "the vocabulary looks sorted, which no training gives: its ids are "
                           "hardly those of the weights",
                .hint = "take the tokenizer from the model's origin; the weights are not to "
                        "blame"});
    json_decref(vocab);
}
