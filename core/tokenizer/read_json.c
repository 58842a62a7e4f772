/* SPDX-License-Identifier: Apache-2.0
 * tokenizer.json in one pass: added tokens by the pull reader, the small members as
 * Jansson trees; the model is in read_json_model.c. Format: Hugging Face tokenizers,
 * version "1.0".
 */
#include <string.h>

#include "tokenizer/read_json.h"

int32_t davit_tok_json_invalid(const DavitTokReading *r, const char *member,
                               const char *expected, const char *found,
                               const char *message)
{
    return davit_tok_invalid(r->parts, r->report, member, expected, found, message);
}

int32_t davit_tok_json_unsupported(DavitTokReading *r, const char *member,
                                   const char *expected, const char *found)
{
    return davit_report_add(
        r->report,
        &(DavitFinding){
            .code = DAVIT_R_TOKENIZER_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "open",
            .subject = davit_report_text(r->report, "%s: %s", r->parts->subject, member),
            .expected = expected,
            .found = found,
            .message = "this build does not know the tokenizer exactly, and a "
                       "guess would give other ids"});
}

int32_t davit_tok_json_next(DavitTokReading *r, davit_json_event *out)
{
    *out = (davit_json_event){.struct_size = sizeof *out};
    return davit_json_next(r->reader, out);
}

int32_t davit_tok_json_skip(DavitTokReading *r, const davit_json_event *event)
{
    if (event->type == DAVIT_JSON_OBJECT || event->type == DAVIT_JSON_ARRAY)
        return davit_json_skip(r->reader);
    return DAVIT_OK;
}

/* The value as a tree. Jansson reads one value and stops. */
static int32_t read_tree(DavitTokReading *r, const char *member, json_t **out)
{
    davit_json_event event;
    json_error_t error;
    int32_t status = davit_tok_json_next(r, &event);

    if (status == DAVIT_OK)
        status = davit_tok_json_skip(r, &event);
    if (status != DAVIT_OK)
        return status;
    json_decref(*out);
    *out = json_loadb(r->text + event.off, r->len - event.off,
                      JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!*out)
        return davit_tok_json_invalid(r, member, NULL, error.text,
                                      "the member does not parse");
    return DAVIT_OK;
}

/* ---- added tokens ---- */

/* Bits of what an entry must give. */
#define SEEN_ID      (1u << 8)
#define SEEN_CONTENT (1u << 9)
#define SEEN_ALL     (SEEN_ID | SEEN_CONTENT | 31u)

static const struct {
    const char *key;
    uint32_t flag;
} added_flags[] = {
    {"single_word", DAVIT_ADDED_SINGLE_WORD}, {"lstrip", DAVIT_ADDED_LSTRIP},
    {"rstrip", DAVIT_ADDED_RSTRIP},           {"normalized", DAVIT_ADDED_NORMALIZED},
    {"special", DAVIT_ADDED_SPECIAL},
};

static int32_t read_added_member(DavitTokReading *r, const davit_json_event *key,
                                 DavitAdded *added, uint32_t *seen)
{
    const bool is_id = davit_json_is(key, "id"),
               is_content = davit_json_is(key, "content");
    davit_json_event event;
    uint32_t flag = 0;
    int32_t status;

    for (size_t i = 0; i < G_N_ELEMENTS(added_flags); i++)
        flag |= davit_json_is(key, added_flags[i].key) ? added_flags[i].flag : 0;
    status = davit_tok_json_next(r, &event);
    if (status != DAVIT_OK)
        return status;
    if (is_id && event.type == DAVIT_JSON_INT &&
        (event.i64 < 0 || event.i64 > DAVIT_TOK_MAX_ID))
        return davit_tok_json_invalid(
            r, "added_tokens", "an id from 0 to 16777216",
            davit_report_text(r->report, "%" G_GINT64_FORMAT, event.i64),
            "the id is out of range");
    if (is_id && event.type == DAVIT_JSON_INT) {
        added->id = (int32_t)event.i64;
        *seen |= SEEN_ID;
    } else if (is_content && event.type == DAVIT_JSON_STRING) {
        g_free(added->text);
        added->text = davit_tok_copy(event.text.ptr, event.text.len);
        added->len = event.text.len;
        *seen |= SEEN_CONTENT;
    } else if (flag &&
               (event.type == DAVIT_JSON_TRUE || event.type == DAVIT_JSON_FALSE)) {
        added->flags |= event.type == DAVIT_JSON_TRUE ? flag : 0;
        *seen |= flag;
    }
    return davit_tok_json_skip(r, &event);
}

static int32_t read_added(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY)
        return davit_tok_json_invalid(r, "added_tokens", "a list", NULL,
                                      "added_tokens is not a list");
    while (status == DAVIT_OK) {
        DavitAdded added = {0};
        uint32_t seen = 0;

        status = davit_tok_json_next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_OBJECT)
            break;
        while ((status = davit_tok_json_next(r, &event)) == DAVIT_OK &&
               event.type == DAVIT_JSON_KEY) {
            status = read_added_member(r, &event, &added, &seen);
            if (status != DAVIT_OK)
                break;
        }
        if (status == DAVIT_OK && seen != SEEN_ALL)
            status = davit_tok_json_invalid(
                r, "added_tokens",
                "id, content, single_word, lstrip, rstrip, normalized, special",
                added.text, "an added token lacks a member");
        g_array_append_val(r->parts->added, added);
    }
    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY_END)
        return davit_tok_json_invalid(r, "added_tokens", "objects", NULL,
                                      "an added token is not an object");
    return status;
}

/* ---- the file ---- */

/* There is one version; another may mean anything. */
static int32_t read_version(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return davit_tok_json_invalid(r, "version", "\"1.0\"", NULL,
                                      "the version is not a string");
    if (!davit_json_is(&event, "1.0"))
        return davit_tok_json_unsupported(r, "version", "1.0",
                                          davit_report_text(r->report, "%.*s",
                                                            (int)MIN(event.text.len, 80),
                                                            event.text.ptr));
    return DAVIT_OK;
}

static int32_t read_member(DavitTokReading *r, const davit_json_event *key)
{
    davit_json_event event;
    int32_t status;

    if (davit_json_is(key, "model"))
        return davit_tok_json_model(r);
    if (davit_json_is(key, "added_tokens"))
        return read_added(r);
    if (davit_json_is(key, "normalizer"))
        return read_tree(r, "normalizer", &r->parts->normalizer);
    if (davit_json_is(key, "pre_tokenizer"))
        return read_tree(r, "pre_tokenizer", &r->parts->pre_tokenizer);
    if (davit_json_is(key, "post_processor"))
        return read_tree(r, "post_processor", &r->parts->post_processor);
    if (davit_json_is(key, "decoder"))
        return read_tree(r, "decoder", &r->parts->decoder);
    if (davit_json_is(key, "truncation"))
        return read_tree(r, "truncation", &r->parts->truncation);
    if (davit_json_is(key, "padding"))
        return read_tree(r, "padding", &r->parts->padding);
    if (davit_json_is(key, "version"))
        return read_version(r);
    status = davit_tok_json_next(r, &event);
    return status == DAVIT_OK ? davit_tok_json_skip(r, &event) : status;
}

static int32_t read_file(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_OBJECT)
        return davit_tok_json_invalid(r, "top level", "an object", NULL,
                                      "this is not a tokenizer.json");
    while (status == DAVIT_OK) {
        status = davit_tok_json_next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_KEY)
            break;
        status = read_member(r, &event);
    }
    if (status == DAVIT_OK)
        status =
            davit_tok_json_next(r, &event); /* DONE, or an error about what follows */
    if (status == DAVIT_OK && !r->has_vocab)
        status = davit_tok_json_invalid(r, "model.vocab", "an object of tokens and ids",
                                        "absent", "the file has no vocabulary");
    return status;
}

/* Encoders have `truncation` and `padding`. A file of a model that generates may have
 * them as leftovers of its training; a prompt cut in silence is worse than a refusal. */
static int32_t check_fit(DavitTokReading *r)
{
    const DavitTokParts *parts = r->parts;
    const bool cuts = parts->truncation && !json_is_null(parts->truncation);
    const bool pads = parts->padding && !json_is_null(parts->padding);

    if (!cuts && !pads)
        return DAVIT_OK;
    if (parts->model == DAVIT_MODEL_BPE)
        return davit_tok_json_unsupported(r, cuts ? "truncation" : "padding", "null",
                                          "a value");
    davit_report_add(
        r->report,
        &(DavitFinding){.code = DAVIT_R_ASSUMED,
                        .severity = DAVIT_WARNING,
                        .stage = "open",
                        .subject = davit_report_text(r->report, "%s: %s", parts->subject,
                                                     cuts ? "truncation" : "padding"),
                        .found = "a value",
                        .message = "texts are cut and filled up as the file says "
                                   "and Hugging Face's encode does"});
    return DAVIT_OK;
}

DavitTokenizer *davit_tokenizer_from_json(const char *text, size_t len,
                                          const char *subject, DavitRegistry *registry,
                                          DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;
    DavitTokReading r = {.parts = &parts, .text = text, .len = len, .report = report};

    davit_tok_parts_init(&parts, subject, "tokenizer.json");
    r.reader = davit_json_open(text, len, 0, subject, report);
    if (r.reader && read_file(&r) == DAVIT_OK && check_fit(&r) == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_json_close(r.reader);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
