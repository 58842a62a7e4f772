/* SPDX-License-Identifier: Apache-2.0
 * The member `model` of a tokenizer.json: its kind and flags.
 */
#include <string.h>

#include "tokenizer/read_json.h"

static int32_t read_flag(DavitTokReading *r, const char *member, bool *out)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_TRUE && event.type != DAVIT_JSON_FALSE &&
        event.type != DAVIT_JSON_NULL)
        return davit_tok_json_invalid(r, member, "true or false", NULL,
                                      "a flag is neither");
    *out = event.type == DAVIT_JSON_TRUE;
    return DAVIT_OK;
}

static int32_t read_type(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return davit_tok_json_invalid(r, "model.type", "a string", NULL,
                                      "the model has no type");
    if (!davit_json_is(&event, "BPE") && !davit_json_is(&event, "Unigram") &&
        !davit_json_is(&event, "WordPiece"))
        return davit_tok_json_unsupported(r, "model.type", "BPE, Unigram or WordPiece",
                                          davit_report_text(r->report, "%.*s",
                                                            (int)MIN(event.text.len, 80),
                                                            event.text.ptr));
    memcpy(r->type, event.text.ptr, event.text.len);
    r->type[event.text.len] = '\0';
    return DAVIT_OK;
}

static int32_t read_unk(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return davit_tok_json_invalid(r, "model.unk_token", "a string or null", NULL,
                                      "unk_token is neither");
    g_free(r->parts->unk);
    r->parts->unk = davit_tok_copy(event.text.ptr, event.text.len);
    r->parts->unk_len = event.text.len;
    return DAVIT_OK;
}

/* Members that may only be null, zero or empty. */
static int32_t read_nothing(DavitTokReading *r, const char *member)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);
    bool nothing;

    if (status != DAVIT_OK)
        return status;
    nothing = event.type == DAVIT_JSON_NULL ||
              (event.type == DAVIT_JSON_STRING && event.text.len == 0) ||
              ((event.type == DAVIT_JSON_INT || event.type == DAVIT_JSON_REAL) &&
               event.f64 == 0);
    if (!nothing)
        return davit_tok_json_unsupported(r, member, "null", "a value");
    return davit_tok_json_skip(r, &event);
}

/* "##" of WordPiece; BPE must have none, which is known at the end. */
static int32_t read_prefix(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_STRING)
        return davit_tok_json_invalid(r, "model.continuing_subword_prefix",
                                      "a string or null", NULL, "the prefix is neither");
    g_free(r->parts->inside);
    r->parts->inside = davit_tok_copy(event.text.ptr, event.text.len);
    r->parts->inside_len = event.text.len;
    return DAVIT_OK;
}

static int32_t read_unk_id(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK || event.type == DAVIT_JSON_NULL)
        return status;
    if (event.type != DAVIT_JSON_INT || event.i64 < 0 || event.i64 > DAVIT_TOK_MAX_ID)
        return davit_tok_json_invalid(r, "model.unk_id", "an id or null", NULL,
                                      "unk_id is neither");
    r->parts->unk_id = event.i64;
    return DAVIT_OK;
}

static int32_t read_max_chars(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status != DAVIT_OK)
        return status;
    if (event.type != DAVIT_JSON_INT || event.i64 < 0)
        return davit_tok_json_invalid(r, "model.max_input_chars_per_word",
                                      "a whole number", NULL, "the limit is none");
    r->has_max = true;
    r->parts->max_chars = (uint64_t)event.i64;
    return DAVIT_OK;
}

/* What kind of model it is; a file of the first years has no type. */
static int32_t settle_kind(DavitTokReading *r)
{
    DavitTokParts *parts = r->parts;
    const bool untyped = r->type[0] == '\0';

    if (r->has_vocab &&
        (strcmp(r->type, "Unigram") == 0 ? !r->has_list : r->has_list && !untyped))
        return davit_tok_json_invalid(r, "model.vocab",
                                      "a list for Unigram, else an object", NULL,
                                      "the vocabulary is of another kind than the model");
    if (r->has_list) {
        parts->model = DAVIT_MODEL_UNIGRAM;
        return DAVIT_OK;
    }
    if (strcmp(r->type, "WordPiece") == 0 || (untyped && !r->has_merges && r->has_max)) {
        if (!r->has_max || !parts->inside || !parts->unk)
            return davit_tok_json_invalid(r, "model",
                                          "unk_token, continuing_subword_prefix, "
                                          "max_input_chars_per_word",
                                          NULL, "WordPiece lacks a member");
        parts->model = DAVIT_MODEL_WORDPIECE;
        return DAVIT_OK;
    }
    if (parts->inside && *parts->inside)
        return davit_tok_json_unsupported(r, "model.continuing_subword_prefix", "null",
                                          "a value");
    return DAVIT_OK;
}

static int32_t read_model_member(DavitTokReading *r, const davit_json_event *key)
{
    davit_json_event event;
    int32_t status;

    if (davit_json_is(key, "vocab"))
        return davit_tok_json_vocab(r);
    if (davit_json_is(key, "merges"))
        return davit_tok_json_merges(r);
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
    status = davit_tok_json_next(r, &event);
    return status == DAVIT_OK ? davit_tok_json_skip(r, &event) : status;
}

int32_t davit_tok_json_model(DavitTokReading *r)
{
    davit_json_event event;
    int32_t status = davit_tok_json_next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_OBJECT)
        return davit_tok_json_invalid(r, "model", "an object", NULL,
                                      "the file has no model");
    while (status == DAVIT_OK) {
        status = davit_tok_json_next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_KEY)
            break;
        status = read_model_member(r, &event);
    }
    if (status == DAVIT_OK && r->merges_off > 0 && r->has_vocab) {
        DavitJsonReader *outer = r->reader;

        r->reader = davit_json_open(r->text + r->merges_off, r->len - r->merges_off, 0,
                                    r->parts->subject, r->report);
        status = r->reader ? davit_tok_json_merges(r) : DAVIT_E_CORRUPT;
        davit_json_close(r->reader);
        r->reader = outer;
    }
    return status == DAVIT_OK ? settle_kind(r) : status;
}
