/* SPDX-License-Identifier: Apache-2.0
 * tokenizer.json in one pass: vocabulary, merges and added tokens by the pull reader, the
 * small members as Jansson trees. Format: Hugging Face tokenizers, version "1.0".
 */
#include <string.h>

#include "base/json.h"
#include "tokenizer/tokenizer_private.h"

/* One reading. */
typedef struct Reading {
    DavitTokParts *parts; /* (borrowed) */
    const char *text;
    size_t len;
    DavitJsonReader *reader;
    DavitReport *report;
    bool has_vocab, has_list; /* `vocab` is an object, or a list as Unigram's */
    bool has_merges;
    char type[16];     /* model.type; "" = absent */
    bool has_max;      /* max_input_chars_per_word of WordPiece */
    size_t merges_off; /* start of a `merges` that came before `vocab`, 0 = none */
} Reading;

static int32_t invalid(const Reading *r, const char *member, const char *expected,
                       const char *found, const char *message)
{
    return davit_tok_invalid(r->parts, r->report, member, expected, found, message);
}

/* Next event; errors are in the report already. */
static int32_t next(Reading *r, davit_json_event *out)
{
    *out = (davit_json_event){.struct_size = sizeof *out};
    return davit_json_next(r->reader, out);
}

/* Pass over the value that @event begins. */
static int32_t skip_value(Reading *r, const davit_json_event *event)
{
    if (event->type == DAVIT_JSON_OBJECT || event->type == DAVIT_JSON_ARRAY)
        return davit_json_skip(r->reader);
    return DAVIT_OK;
}

/* The value as a tree. Jansson reads one value and stops. */
static int32_t read_tree(Reading *r, const char *member, json_t **out)
{
    davit_json_event event;
    json_error_t error;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK)
        status = skip_value(r, &event);
    if (status != DAVIT_OK)
        return status;
    json_decref(*out);
    *out = json_loadb(r->text + event.off, r->len - event.off,
                      JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!*out)
        return invalid(r, member, NULL, error.text, "the member does not parse");
    return DAVIT_OK;
}

/* ---- vocabulary ---- */

static int32_t refuse_token(Reading *r, const char *text, size_t len, DavitVocabAdd why)
{
    g_autofree char *found = davit_escape(text, len, 80);
    g_autofree char *member = g_strdup_printf("model.vocab: %s", found);

    if (why == DAVIT_VOCAB_TOO_LARGE)
        return davit_report_add(
            r->report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                       .status = DAVIT_E_LIMIT,
                                       .stage = "open",
                                       .subject = member,
                                       .message = "no memory for the vocabulary"});
    if (why == DAVIT_VOCAB_ID_TAKEN)
        return invalid(r, member, "an id of its own", NULL, "two tokens have one id");
    return invalid(r, member, "an id from 0 to 16777216", NULL, "the id is out of range");
}

/* @twin: its text is that of an earlier id. */
static int32_t refuse_twin(Reading *r, int32_t twin)
{
    size_t len;
    const char *text = davit_vocab_text(r->parts->vocab, twin, &len);
    g_autofree char *found = davit_escape(text ? text : "", text ? len : 0, 80);

    return davit_report_add(
        r->report,
        &(DavitFinding){.code = DAVIT_R_DUPLICATE_KEY,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "open",
                        .subject = davit_report_text(r->report, "%s: model.vocab",
                                                     r->parts->subject),
                        .found = found,
                        .message = "a key is given twice in one object"});
}

static int32_t seal(Reading *r)
{
    const int32_t twin = davit_vocab_seal(r->parts->vocab);

    if (twin == -1)
        return DAVIT_OK;
    return twin >= 0 ? refuse_twin(r, twin)
                     : refuse_token(r, "", 0, DAVIT_VOCAB_TOO_LARGE);
}

static int32_t read_vocab(Reading *r)
{
    DavitVocab *vocab = r->parts->vocab;
    g_autoptr(GString) key = g_string_new(NULL);
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type == DAVIT_JSON_ARRAY) {
        r->has_list = r->has_vocab = true;
        return davit_tok_read_scored(r->parts, r->reader, r->report);
    }
    if (event.type != DAVIT_JSON_OBJECT)
        return skip_value(r, &event);
    davit_json_own_keys(r->reader); /* davit_vocab_seal finds double ones */
    while ((status = next(r, &event)) == DAVIT_OK && event.type == DAVIT_JSON_KEY) {
        DavitVocabAdd added;

        g_string_truncate(key, 0);
        g_string_append_len(key, event.text.ptr, (gssize)event.text.len);
        status = next(r, &event);
        if (status != DAVIT_OK)
            return status;
        if (event.type != DAVIT_JSON_INT)
            return invalid(r, "model.vocab", "a whole number for every token", key->str,
                           "a token has no id");
        added = davit_vocab_add(vocab, event.i64, key->str, key->len);
        if (added != DAVIT_VOCAB_ADDED)
            return refuse_token(r, key->str, key->len, added);
    }
    if (status != DAVIT_OK)
        return status;
    r->has_vocab = true;
    return seal(r);
}

/* ---- merges ---- */

/* ["a", "b"], behind the bracket. */
static int32_t read_pair(Reading *r, GString *left)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type == DAVIT_JSON_STRING) {
        g_string_truncate(left, 0);
        g_string_append_len(left, event.text.ptr, (gssize)event.text.len);
        status = next(r, &event);
        if (status != DAVIT_OK)
            return status;
        if (event.type == DAVIT_JSON_STRING) {
            status = davit_tok_add_merge(r->parts, left->str, left->len, event.text.ptr,
                                         event.text.len, r->report);
            if (status == DAVIT_OK)
                status = next(r, &event);
            if (status != DAVIT_OK || event.type == DAVIT_JSON_ARRAY_END)
                return status;
        }
    }
    return invalid(r, "model.merges", "lists of two strings", NULL,
                   "a merge is malformed");
}

static int32_t read_merges(Reading *r)
{
    g_autoptr(GString) left = g_string_new(NULL);
    davit_json_event event;
    int32_t status = next(r, &event);

    r->has_merges = true;
    if (status == DAVIT_OK && event.type == DAVIT_JSON_ARRAY && !r->has_vocab) {
        r->merges_off = event.off;
        return davit_json_skip(r->reader);
    }
    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY)
        return invalid(r, "model.merges", "a list", NULL, "merges are not a list");
    while (status == DAVIT_OK) {
        status = next(r, &event);
        if (status != DAVIT_OK || event.type == DAVIT_JSON_ARRAY_END)
            break;
        if (event.type == DAVIT_JSON_STRING)
            status = davit_tok_add_merge_line(r->parts, event.text.ptr, event.text.len,
                                              r->report);
        else if (event.type == DAVIT_JSON_ARRAY)
            status = read_pair(r, left);
        else
            status = invalid(r, "model.merges", "strings or lists of two strings", NULL,
                             "a merge is malformed");
    }
    return status == DAVIT_OK ? davit_tok_settle_merges(r->parts, r->report) : status;
}

/* ---- model ---- */

static int32_t read_flag(Reading *r, const char *member, bool *out)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_TRUE && event.type != DAVIT_JSON_FALSE &&
        event.type != DAVIT_JSON_NULL)
        return invalid(r, member, "true or false", NULL, "a flag is neither");
    *out = event.type == DAVIT_JSON_TRUE;
    return DAVIT_OK;
}

static int32_t unsupported(Reading *r, const char *member, const char *expected,
                           const char *found)
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

static int32_t read_type(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return invalid(r, "model.type", "a string", NULL, "the model has no type");
    if (!davit_json_is(&event, "BPE") && !davit_json_is(&event, "Unigram") &&
        !davit_json_is(&event, "WordPiece"))
        return unsupported(r, "model.type", "BPE, Unigram or WordPiece",
                           davit_report_text(r->report, "%.*s",
                                             (int)MIN(event.text.len, 80),
                                             event.text.ptr));
    memcpy(r->type, event.text.ptr, event.text.len);
    r->type[event.text.len] = '\0';
    return DAVIT_OK;
}

static int32_t read_unk(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return invalid(r, "model.unk_token", "a string or null", NULL,
                       "unk_token is neither");
    g_free(r->parts->unk);
    r->parts->unk = g_strndup(event.text.ptr, event.text.len);
    return DAVIT_OK;
}

/* Members that may only be null, zero or empty. */
static int32_t read_nothing(Reading *r, const char *member)
{
    davit_json_event event;
    int32_t status = next(r, &event);
    bool nothing;

    if (status != DAVIT_OK)
        return status;
    nothing = event.type == DAVIT_JSON_NULL ||
              (event.type == DAVIT_JSON_STRING && event.text.len == 0) ||
              ((event.type == DAVIT_JSON_INT || event.type == DAVIT_JSON_REAL) &&
               event.f64 == 0);
    if (!nothing)
        return unsupported(r, member, "null", "a value");
    return skip_value(r, &event);
}

/* "##" of WordPiece; BPE must have none, which is known at the end. */
static int32_t read_prefix(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return invalid(r, "model.continuing_subword_prefix", "a string or null", NULL,
                       "the prefix is neither");
    g_free(r->parts->inside);
    r->parts->inside = g_strndup(event.text.ptr, event.text.len);
    return DAVIT_OK;
}

static int32_t read_unk_id(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_INT || event.i64 < 0 || event.i64 > DAVIT_TOK_MAX_ID)
        return invalid(r, "model.unk_id", "an id or null", NULL, "unk_id is neither");
    r->parts->unk_id = event.i64;
    return DAVIT_OK;
}

static int32_t read_max_chars(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_INT || event.i64 < 0)
        return invalid(r, "model.max_input_chars_per_word", "a whole number", NULL,
                       "the limit is none");
    r->has_max = true;
    r->parts->max_chars = (uint64_t)event.i64;
    return DAVIT_OK;
}

/* What kind of model it is; a file of the first years has no type. */
static int32_t settle_kind(Reading *r)
{
    DavitTokParts *parts = r->parts;
    const bool untyped = r->type[0] == '\0';

    if (r->has_vocab && (strcmp(r->type, "Unigram") == 0 ? !r->has_list
                                                         : r->has_list && !untyped))
        return invalid(r, "model.vocab", "a list for Unigram, else an object", NULL,
                       "the vocabulary is of another kind than the model");
    if (r->has_list) {
        parts->model = DAVIT_MODEL_UNIGRAM;
        return DAVIT_OK;
    }
    if (strcmp(r->type, "WordPiece") == 0 || (untyped && !r->has_merges && r->has_max)) {
        if (!r->has_max || !parts->inside || !parts->unk)
            return invalid(r, "model",
                           "unk_token, continuing_subword_prefix, "
                           "max_input_chars_per_word",
                           NULL, "WordPiece lacks a member");
        parts->model = DAVIT_MODEL_WORDPIECE;
        return DAVIT_OK;
    }
    if (parts->inside && *parts->inside)
        return unsupported(r, "model.continuing_subword_prefix", "null", "a value");
    return DAVIT_OK;
}

static int32_t read_model_member(Reading *r, const davit_json_event *key)
{
    davit_json_event event;
    int32_t status;

    if (davit_json_is(key, "vocab"))
        return read_vocab(r);
    if (davit_json_is(key, "merges"))
        return read_merges(r);
    if (davit_json_is(key, "type"))
        return read_type(r);
    if (davit_json_is(key, "unk_token"))
        return read_unk(r);
    if (davit_json_is(key, "byte_fallback"))
        return read_flag(r, "model.byte_fallback", &r->parts->byte_fallback);
    if (davit_json_is(key, "fuse_unk"))
        return read_flag(r, "model.fuse_unk", &r->parts->fuse_unk);
    if (davit_json_is(key, "ignore_merges"))
        return read_flag(r, "model.ignore_merges", &r->parts->ignore_merges);
    if (davit_json_is(key, "dropout"))
        return read_nothing(r, "model.dropout");
    if (davit_json_is(key, "continuing_subword_prefix"))
        return read_prefix(r);
    if (davit_json_is(key, "unk_id"))
        return read_unk_id(r);
    if (davit_json_is(key, "max_input_chars_per_word"))
        return read_max_chars(r);
    if (davit_json_is(key, "end_of_word_suffix"))
        return read_nothing(r, "model.end_of_word_suffix");
    status = next(r, &event);
    return status == DAVIT_OK ? skip_value(r, &event) : status;
}

static int32_t read_model(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_OBJECT)
        return invalid(r, "model", "an object", NULL, "the file has no model");
    while (status == DAVIT_OK) {
        status = next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_KEY)
            break;
        status = read_model_member(r, &event);
    }
    if (status == DAVIT_OK && r->merges_off > 0 && r->has_vocab) {
        DavitJsonReader *outer = r->reader;

        r->reader = davit_json_open(r->text + r->merges_off, r->len - r->merges_off, 0,
                                    r->parts->subject, r->report);
        status = r->reader ? read_merges(r) : DAVIT_E_CORRUPT;
        davit_json_close(r->reader);
        r->reader = outer;
    }
    return status == DAVIT_OK ? settle_kind(r) : status;
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

static int32_t read_added_member(Reading *r, const davit_json_event *key,
                                 DavitAdded *added, uint32_t *seen)
{
    const bool is_id = davit_json_is(key, "id"),
               is_content = davit_json_is(key, "content");
    davit_json_event event;
    uint32_t flag = 0;
    int32_t status;

    for (size_t i = 0; i < G_N_ELEMENTS(added_flags); i++)
        flag |= davit_json_is(key, added_flags[i].key) ? added_flags[i].flag : 0;
    status = next(r, &event);
    if (status != DAVIT_OK)
        return status;
    if (is_id && event.type == DAVIT_JSON_INT && event.i64 >= 0 &&
        event.i64 <= DAVIT_TOK_MAX_ID) {
        added->id = (int32_t)event.i64;
        *seen |= SEEN_ID;
    } else if (is_content && event.type == DAVIT_JSON_STRING) {
        g_free(added->text);
        added->text = g_strndup(event.text.ptr, event.text.len);
        added->len = event.text.len;
        *seen |= SEEN_CONTENT;
    } else if (flag &&
               (event.type == DAVIT_JSON_TRUE || event.type == DAVIT_JSON_FALSE)) {
        added->flags |= event.type == DAVIT_JSON_TRUE ? flag : 0;
        *seen |= flag;
    }
    return skip_value(r, &event);
}

static int32_t read_added(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY)
        return invalid(r, "added_tokens", "a list", NULL, "added_tokens is not a list");
    while (status == DAVIT_OK) {
        DavitAdded added = {0};
        uint32_t seen = 0;

        status = next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_OBJECT)
            break;
        while ((status = next(r, &event)) == DAVIT_OK && event.type == DAVIT_JSON_KEY) {
            status = read_added_member(r, &event, &added, &seen);
            if (status != DAVIT_OK)
                break;
        }
        if (status == DAVIT_OK && seen != SEEN_ALL)
            status =
                invalid(r, "added_tokens",
                        "id, content, single_word, lstrip, rstrip, normalized, special",
                        added.text, "an added token lacks a member");
        g_array_append_val(r->parts->added, added);
    }
    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY_END)
        return invalid(r, "added_tokens", "objects", NULL,
                       "an added token is not an object");
    return status;
}

/* ---- the file ---- */

static int32_t read_member(Reading *r, const davit_json_event *key)
{
    davit_json_event event;
    int32_t status;

    if (davit_json_is(key, "model"))
        return read_model(r);
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
    status = next(r, &event);
    return status == DAVIT_OK ? skip_value(r, &event) : status;
}

static int32_t read_file(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_OBJECT)
        return invalid(r, "top level", "an object", NULL, "this is not a tokenizer.json");
    while (status == DAVIT_OK) {
        status = next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_KEY)
            break;
        status = read_member(r, &event);
    }
    if (status == DAVIT_OK)
        status = next(r, &event); /* DONE, or an error about what follows */
    if (status == DAVIT_OK && !r->has_vocab)
        status = invalid(r, "model.vocab", "an object of tokens and ids", "absent",
                         "the file has no vocabulary");
    return status;
}

/* Encoders have `truncation` and `padding`. A file of a model that generates may have them as
 * leftovers of its training; a prompt cut in silence is worse than a refusal. */
static int32_t check_fit(Reading *r)
{
    const DavitTokParts *parts = r->parts;
    const bool cuts = parts->truncation && !json_is_null(parts->truncation);
    const bool pads = parts->padding && !json_is_null(parts->padding);

    if (!cuts && !pads)
        return DAVIT_OK;
    if (parts->model == DAVIT_MODEL_BPE)
        return unsupported(r, cuts ? "truncation" : "padding", "null", "a value");
    davit_report_add(r->report,
                     &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                     .severity = DAVIT_WARNING,
                                     .stage = "open",
                                     .subject = davit_report_text(
                                         r->report, "%s: %s", parts->subject,
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
    Reading r = {.parts = &parts, .text = text, .len = len, .report = report};

    davit_tok_parts_init(&parts, subject, "tokenizer.json");
    r.reader = davit_json_open(text, len, 0, subject, report);
    if (r.reader && read_file(&r) == DAVIT_OK && check_fit(&r) == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_json_close(r.reader);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
