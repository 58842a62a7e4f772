/* SPDX-License-Identifier: Apache-2.0
 * D14: what tokenizer_config.json says of tokens against tokenizer.json: flags of added tokens,
 * names of special ones, whether BOS and EOS go round a text. Other programs build their tokenizer
 * from both files; davit does as tokenizer.json says, so that a difference is told. */
#include <string.h>

#include "doctor/doctor_private.h"
#include "tokenizer/added.h"

static const char *text_of(DavitDoctor *d, int32_t id)
{
    size_t len = 0;
    const char *text = davit_tokenizer_text(d->patient.tokenizer, id, &len);

    return text ? davit_doctor_text(d, "%d (%.*s)", id, (int)MIN(len, 60u), text)
                : davit_doctor_text(d, "%d, which has no token", id);
}

static const char *name_of(const DavitDoctor *d, const char *key)
{
    const json_t *value = json_object_get(d->patient.tokenizer_config, key);

    return json_is_string(value) ? json_string_value(value)
                                 : json_string_value(json_object_get(value, "content"));
}

static void say(DavitDoctor *d, const char *key, const char *expected, const char *found,
                const char *message)
{
    davit_doctor_say(d, "D14",
                     &(DavitFinding){.severity = DAVIT_WARNING,
                                     .subject = davit_doctor_text(
                                         d, "tokenizer_config.json: %s", key),
                                     .expected = expected,
                                     .found = found,
                                     .message = message,
                                     .hint = "take both files from where the weights came from"});
}

/* ---- names ---- */

/* eos_token is D21's. */
static void check_names(DavitDoctor *d)
{
    static const char *const keys[] = {"bos_token", "unk_token", "pad_token"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *name = name_of(d, keys[i]);

        if (name && davit_tokenizer_id(d->patient.tokenizer, name, strlen(name)) < 0)
            say(d, keys[i], "a token of the tokenizer", davit_doctor_text(d, "%.60s", name),
                "the token is not in the vocabulary: other programs give it a new id, for which "
                "the weights may have no row");
    }
}

/* ---- flags ---- */

static const struct {
    const char *key;
    uint32_t flag;
} flags[] = {{"single_word", DAVIT_ADDED_SINGLE_WORD}, {"lstrip", DAVIT_ADDED_LSTRIP},
             {"rstrip", DAVIT_ADDED_RSTRIP},           {"normalized", DAVIT_ADDED_NORMALIZED},
             {"special", DAVIT_ADDED_SPECIAL}};

/* The first flag of @row that is not the tokenizer's, or NULL. */
static const char *other_flag(const json_t *row, uint32_t mine)
{
    for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
        const json_t *value = json_object_get(row, flags[i].key);

        if (json_is_boolean(value) && json_is_true(value) != !!(mine & flags[i].flag))
            return flags[i].key;
    }
    return NULL;
}

static void check_flags(DavitDoctor *d)
{
    const DavitTokenizer *t = d->patient.tokenizer;
    const char *key, *first = NULL, *flag = NULL;
    json_t *row;
    size_t n = 0;

    json_object_foreach (json_object_get(d->patient.tokenizer_config, "added_tokens_decoder"), key,
                         row) {
        const char *text = json_string_value(json_object_get(row, "content"));
        const int32_t id = text ? davit_tokenizer_id(t, text, strlen(text)) : -1;
        const char *other = id >= 0 && davit_tokenizer_is_added(t, id)
                                ? other_flag(row, davit_tokenizer_added_flags(t, id))
                                : NULL;

        if (!other)
            continue;
        flag = n == 0 ? other : flag;
        first = n++ == 0 ? key : first;
    }
    if (n > 0)
        say(d, davit_doctor_text(d, "added_tokens_decoder.%.20s.%s", first, flag),
            "the flag that tokenizer.json has",
            davit_doctor_text(d, "another, of %zu added token%s", n, n == 1 ? "" : "s"),
            "the files differ in how added tokens are found in a text or left out of one: "
            "tokenizer.json counts here, other programs take these");
}

/* ---- round the text ---- */

static void check_round(DavitDoctor *d, const char *key, const char *what, const int32_t *ids,
                        size_t n)
{
    const json_t *value = json_object_get(d->patient.tokenizer_config, key);

    for (size_t i = 0; i < n; i++) {
        size_t len;

        if (!davit_tokenizer_text(d->patient.tokenizer, ids[i], &len))
            davit_doctor_say(
                d, "D14",
                &(DavitFinding){.severity = DAVIT_WARNING,
                                .subject = "tokenizer.json: post_processor",
                                .expected = "ids of the vocabulary",
                                .found = text_of(d, ids[i]),
                                .message = "every text gets an id round it that has no token",
                                .hint = "take tokenizer.json from where the weights came from"});
    }
    if (json_is_boolean(value) && json_is_true(value) != (n > 0))
        say(d, key,
            n > 0 ? davit_doctor_text(d, "true: tokenizer.json adds %s", text_of(d, ids[0]))
                  : davit_doctor_text(d, "false: tokenizer.json adds no %s", what),
            json_is_true(value) ? "true" : "false",
            "the files differ in what goes round a text: tokenizer.json counts here, other programs "
            "do as this says");
}

/* The id in front is not the one that the name has. */
static void check_bos(DavitDoctor *d, const int32_t *ids, size_t n)
{
    const char *name = name_of(d, "bos_token");
    const int32_t id =
        name ? davit_tokenizer_id(d->patient.tokenizer, name, strlen(name)) : -1;

    if (id >= 0 && n == 1 && ids[0] != id && !name_of(d, "cls_token"))
        say(d, "bos_token", davit_doctor_text(d, "%s, which tokenizer.json puts in front",
                                              text_of(d, ids[0])),
            text_of(d, id), "the files differ in the token that begins a text");
}

void davit_check_token_settings(DavitDoctor *doctor)
{
    const int32_t *front, *back;
    size_t n_front, n_back;
    DavitTokenizerFacts facts;

    if (!doctor->patient.tokenizer)
        return;
    davit_tokenizer_facts(doctor->patient.tokenizer, &facts);
    if (strcmp(facts.source, "tokenizer.json") != 0)
        return;
    front = davit_tokenizer_prefix(doctor->patient.tokenizer, &n_front);
    back = davit_tokenizer_suffix(doctor->patient.tokenizer, &n_back);
    check_names(doctor);
    check_flags(doctor);
    check_round(doctor, "add_bos_token", "BOS", front, n_front);
    check_round(doctor, "add_eos_token", "EOS", back, n_back);
    check_bos(doctor, front, n_front);
}
