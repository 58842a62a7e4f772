/* SPDX-License-Identifier: Apache-2.0
 * Stop tokens, chat template and tokenizer: three files that must speak of the same
 * tokens. */
#include <string.h>

#include "doctor/doctor_private.h"
#include "template/template.h"

#define MAX_SAID 8 /* findings of one kind */
#define FEW 3u /* files of one model may differ in fewer */

static int32_t id_of(const DavitDoctor *d, const char *text)
{
    return d->patient.tokenizer
               ? davit_tokenizer_id(d->patient.tokenizer, text, strlen(text))
               : -1;
}

static bool stops(const DavitDoctor *d, int32_t id)
{
    size_t n;
    const int32_t *ids = davit_settings_eos_ids(d->patient.settings, &n);

    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* ---- stop tokens ---- */

/* "3000 (<|eot|>), 3005", the ids that stop; "none". */
static const char *stop_text(DavitDoctor *d)
{
    size_t n;
    const int32_t *ids = davit_settings_eos_ids(d->patient.settings, &n);
    g_autoptr(GString) out = g_string_new(n ? NULL : "none");

    for (size_t i = 0; i < MIN(n, (size_t)MAX_SAID); i++) {
        size_t len = 0;
        const char *text =
            d->patient.tokenizer ? davit_tokenizer_text(d->patient.tokenizer, ids[i], &len) : NULL;

        g_string_append_printf(out, "%s%d", i ? ", " : "", ids[i]);
        if (text)
            g_string_append_printf(out, " (%.*s)", (int)MIN(len, 40u), text);
    }
    return davit_doctor_text(d, "%s", out->str);
}

static void check_ids(DavitDoctor *d)
{
    size_t n;
    const int32_t *ids = davit_settings_eos_ids(d->patient.settings, &n);
    g_autoptr(GString) fact = g_string_new("stop tokens:");

    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *text = d->patient.tokenizer
                               ? davit_tokenizer_text(d->patient.tokenizer, ids[i], &len)
                               : NULL;

        g_string_append_printf(fact, " %d", ids[i]);
        if (text)
            g_string_append_printf(fact, " (%.*s)", (int)MIN(len, 40u), text);
        else if (d->patient.tokenizer)
            davit_doctor_say(
                d, "D21",
                &(DavitFinding){.severity = DAVIT_WARNING,
                                .subject = "eos_token_id",
                                .expected = davit_doctor_text(
                                    d, "an id below %zu that has a token",
                                    davit_tokenizer_n_ids(d->patient.tokenizer)),
                                .found = davit_doctor_text(d, "%d", ids[i]),
                                .message = "a stop token is not in the vocabulary and "
                                           "can never be seen",
                                .hint = "take the tokenizer and the file that states the id "
                                        "from one place"});
    }
    davit_doctor_fact(d, "D21", "%s%s", fact->str, n ? "" : " none");
    if (n == 0)
        davit_doctor_say(d, "D21",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = "eos_token_id",
                                         .expected = "an id in generation_config.json or "
                                                     "config.json",
                                         .found = "none",
                                         .message = "no stop token is stated: only the "
                                                    "token limit ends an answer"});
}

/* A special id that no row of the embedding and of the head belongs to. */
static void say_beyond(DavitDoctor *d, const char *key, int64_t id, uint64_t rows,
                       const char *message)
{
    davit_doctor_say(d, "D21",
                     &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                     .subject = key,
                                     .expected = davit_doctor_text(
                                         d, "an id below %" PRIu64 ", rows of the embedding",
                                         rows),
                                     .found = davit_doctor_text(d, "%" PRId64, id),
                                     .message = message,
                                     .hint = "take weights that were saved after the "
                                             "vocabulary was resized, or the tokenizer and "
                                             "the ids of these weights"});
}

static void check_beyond(DavitDoctor *d)
{
    static const char *const keys[] = {"bos_token_id", "pad_token_id"};
    const uint64_t rows = davit_patient_rows(&d->patient);
    size_t n;
    const int32_t *ids = davit_settings_eos_ids(d->patient.settings, &n);

    for (size_t i = 0; rows && i < n; i++)
        if (ids[i] >= 0 && (uint64_t)ids[i] >= rows)
            say_beyond(d, "eos_token_id", ids[i], rows,
                       "a stop token has no output row: it can never be produced, so an "
                       "answer never stops at it");
    for (size_t i = 0; rows && i < G_N_ELEMENTS(keys); i++) {
        int64_t id;

        if (davit_patient_int(&d->patient, keys[i], &id) && id >= 0 && (uint64_t)id >= rows)
            say_beyond(d, keys[i], id, rows, "a special token has no row in the embedding");
    }
}

/* "</s>" or {"content": "</s>"}. */
static const char *token_text(const json_t *value)
{
    return json_is_string(value) ? json_string_value(value)
                                 : json_string_value(json_object_get(value, "content"));
}

static void check_own_eos(DavitDoctor *d)
{
    const char *text =
        token_text(json_object_get(d->patient.tokenizer_config, "eos_token"));
    const int32_t id = text ? id_of(d, text) : -1;
    size_t n;

    davit_settings_eos_ids(d->patient.settings, &n);
    if (text && d->patient.tokenizer && id < 0)
        davit_doctor_say(d, "D21",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = "tokenizer_config.json: eos_token",
                                         .expected = "a token of tokenizer.json",
                                         .found = text,
                                         .message = "the tokenizer's own stop token is "
                                                    "not in its vocabulary",
                                         .hint = "take tokenizer.json and "
                                                 "tokenizer_config.json from one place"});
    else if (id >= 0 && n > 0 && !stops(d, id))
        davit_doctor_say(
            d, "D21",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = "eos_token_id",
                            .expected = davit_doctor_text(
                                d, "%d (%s), as tokenizer_config.json says", id, text),
                            .found = stop_text(d),
                            .message = "the tokenizer's stop token is none of the "
                                       "model's: answers may run on after it"});
}

/* ---- template ---- */

/* What ends a turn in the templates that are in use; a template that writes one and does
 * not stop at it runs on. */
static const char *const turn_ends[] = {
    "<|im_end|>",      "<|eot_id|>",        "<end_of_turn>", "<|end|>",
    "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<turn|>",   "<|eot|>"};

static void check_turn_end(DavitDoctor *d)
{
    const char *text = d->patient.template;

    for (size_t i = 0; i < G_N_ELEMENTS(turn_ends); i++) {
        const int32_t id = id_of(d, turn_ends[i]);

        /* where an answer ends in <|return|>, <|end|> only ends a message */
        if (strcmp(turn_ends[i], "<|end|>") == 0 && strstr(text, "<|return|>"))
            continue;
        if (!strstr(text, turn_ends[i]) || id < 0 || stops(d, id))
            continue;
        davit_doctor_say(
            d, "D21",
            &(DavitFinding){.severity = DAVIT_WARNING,
                            .subject = "eos_token_id",
                            .expected = davit_doctor_text(d, "%d (%s) among the ids", id,
                                                          turn_ends[i]),
                            .found = stop_text(d),
                            .message = "the chat template ends a turn with a token that "
                                       "does not stop the answer",
                            .hint = davit_doctor_text(
                                d, "add %d to eos_token_id in generation_config.json, or "
                                   "--stop '%s'",
                                id, turn_ends[i])});
    }
}

/* "<|word|>" at @p: its length, 0 if it is something else. */
static size_t marker_length(const char *p)
{
    size_t n = 2;

    if (p[0] != '<' || p[1] != '|')
        return 0;
    while (g_ascii_isalnum(p[n]) || p[n] == '_')
        n++;
    return n > 2 && n < 48 && p[n] == '|' && p[n + 1] == '>' ? n + 2 : 0;
}

static void check_markers(DavitDoctor *d)
{
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (const char *p = strchr(d->patient.template, '<'); p; p = strchr(p + 1, '<')) {
        const size_t n = marker_length(p);
        char *marker = n ? g_strndup(p, n) : NULL;

        if (!marker || !g_hash_table_add(seen, marker))
            continue;
        if (id_of(d, marker) >= 0 || g_hash_table_size(seen) > 64)
            continue;
        davit_doctor_say(d, "D21",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = "chat template",
                                         .expected = davit_doctor_text(
                                             d, "%s as one token", marker),
                                         .found = "ordinary text for this tokenizer",
                                         .message = "the template writes a marker that "
                                                    "the tokenizer does not know, so the "
                                                    "model reads its letters",
                                         .hint = "take template and tokenizer from one "
                                                 "place"});
    }
}

/* The model answers all the same, but not to a conversation. */
static void check_syntax(DavitDoctor *d)
{
    const bool file = davit_model_path_has(&d->patient.path, "chat_template.jinja");
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitTemplate) parsed =
        davit_template_parse(d->patient.template, strlen(d->patient.template),
                             file ? "chat_template.jinja" : "chat_template", said);
    const DavitRecord *r = parsed ? NULL : davit_report_first_error(said, 0);

    if (r)
        davit_doctor_say(d, "D21",
                         &(DavitFinding){.code = r->code,
                                         .severity = DAVIT_WARNING,
                                         .subject = r->subject,
                                         .expected = r->expected,
                                         .found = r->found,
                                         .message = davit_doctor_text(
                                             d, "%s; conversations cannot be had", r->message),
                                         .hint = "take the template from the model's origin, or "
                                                 "give another with --chat-template"});
}

/* Two files may carry the template; the .jinja counts. */
static void check_two_templates(DavitDoctor *d)
{
    const json_t *value = json_object_get(d->patient.tokenizer_config, "chat_template");

    if (json_is_string(value) &&
        davit_model_path_has(&d->patient.path, "chat_template.jinja") &&
        strcmp(json_string_value(value), d->patient.template) != 0)
        davit_doctor_say(d, "D21",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "chat_template.jinja",
                                         .expected = "the text in tokenizer_config.json",
                                         .found = "another text",
                                         .message = "two files carry a chat template and "
                                                    "they differ; the .jinja counts",
                                         .hint = "remove the one that is not meant"});
}

/* Not a finding: many healthy models do so, and davit encodes a rendered text without BOS. */
static void tell_bos_pair(DavitDoctor *d)
{
    g_autofree char *before = g_strdup(davit_doctor_of(d, "D21")->fact);
    size_t n;

    davit_tokenizer_prefix(d->patient.tokenizer, &n);
    if (n > 0 && strstr(d->patient.template, "bos_token"))
        davit_doctor_fact(d, "D21", "%s; BOS by template and by tokenizer: other programs need "
                                    "--no-special or the like for rendered text",
                          before ? before : "");
}

/* ---- D14: two files about the same tokens ---- */

/* A row of added_tokens_decoder that tokenizer.json does not bear out; a few are told one by one, many
 * mean that one of the files is another model's. */
typedef struct Stray {
    const char *key, *wanted; /* (borrowed) */
} Stray;

static const char *text_of_key(const DavitDoctor *d, const char *key, size_t *len)
{
    const guint64 id = g_ascii_strtoull(key, NULL, 10);

    *len = 0;
    return id <= INT32_MAX ? davit_tokenizer_text(d->patient.tokenizer, (int32_t)id, len) : NULL;
}

static void say_stray(DavitDoctor *d, const Stray *s)
{
    size_t len;
    const char *text = text_of_key(d, s->key, &len);

    davit_doctor_say(
        d, "D14",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = davit_doctor_text(d, "tokenizer_config.json: added_tokens_decoder.%s", s->key),
            .expected = text ? davit_doctor_text(d, "%.*s, as in tokenizer.json", (int)MIN(len, 60u), text)
                             : "an id of tokenizer.json",
            .found = s->wanted,
            .message = "the tokenizer's two files differ; tokenizer.json counts"});
}

static void say_strays(DavitDoctor *d, const Stray *s, size_t n, size_t n_all)
{
    size_t len;
    const char *text = text_of_key(d, s->key, &len);

    davit_doctor_say(
        d, "D14",
        &(DavitFinding){
            .severity = DAVIT_WARNING,
            .subject = "tokenizer.json",
            .expected = davit_doctor_text(d, "the added tokens of tokenizer_config.json: %s is %.60s",
                                          s->key, s->wanted),
            .found = davit_doctor_text(d, "%zu of %zu are not so: %s is %.*s", n, n_all, s->key,
                                       text ? (int)MIN(len, 60u) : 7, text ? text : "nothing"),
            .message = "tokenizer.json is of another model than tokenizer_config.json: texts become "
                       "other tokens than those the weights know, and stop tokens are not seen",
            .hint = "take both files from where the weights came from"});
}

static void check_added(DavitDoctor *d)
{
    json_t *table = json_object_get(d->patient.tokenizer_config, "added_tokens_decoder");
    Stray strays[MAX_SAID];
    const char *key;
    json_t *row;
    size_t n = 0, n_all = 0;

    json_object_foreach(table, key, row)
    {
        const char *wanted = json_string_value(json_object_get(row, "content"));
        size_t len;
        const char *text = text_of_key(d, key, &len);

        n_all += wanted != NULL;
        if (!wanted || (text && strlen(wanted) == len && memcmp(wanted, text, len) == 0))
            continue;
        if (n < MAX_SAID)
            strays[n] = (Stray){key, wanted};
        n++;
    }
    if (n >= FEW && 2 * n >= n_all)
        say_strays(d, &strays[0], n, n_all);
    else
        for (size_t i = 0; i < MIN(n, (size_t)MAX_SAID); i++)
            say_stray(d, &strays[i]);
}

/* Special tokens that the tokenizer gives for no text: templates that write them write
 * letters. */
static void check_reach(DavitDoctor *d)
{
    int32_t ids[MAX_SAID];
    const size_t n = davit_tokenizer_unreachable(d->patient.tokenizer, ids, MAX_SAID);

    for (size_t i = 0; i < MIN(n, (size_t)MAX_SAID); i++) {
        const bool special = davit_tokenizer_is_special(d->patient.tokenizer, ids[i]);
        size_t len = 0;
        const char *text = davit_tokenizer_text(d->patient.tokenizer, ids[i], &len);

        davit_doctor_say(
            d, "D14",
            &(DavitFinding){.severity = special ? DAVIT_WARNING : DAVIT_NOTE,
                            .subject = davit_doctor_text(d, "added token %d", ids[i]),
                            .expected = davit_doctor_text(
                                d, "%d for the text %.*s", ids[i],
                                (int)MIN(len, 60u), text ? text : ""),
                            .found = "other ids",
                            .message = "no text gives this added token: another one is "
                                       "cut out of it first, or the normalizer makes them "
                                       "alike"});
    }
}

void davit_check_words(DavitDoctor *doctor)
{
    if (!doctor->patient.settings) {
        davit_doctor_skip(doctor, "D21", "a config that can be read");
        return;
    }
    check_ids(doctor);
    check_beyond(doctor);
    if (doctor->patient.template)
        check_syntax(doctor);
    if (!doctor->patient.tokenizer)
        return;
    check_own_eos(doctor);
    check_added(doctor);
    check_reach(doctor);
    if (doctor->patient.template) {
        check_turn_end(doctor);
        check_markers(doctor);
        check_two_templates(doctor);
        tell_bos_pair(doctor);
    }
}
