/* SPDX-License-Identifier: Apache-2.0
 * tekken.json (Mistral): the regex, tokens as base64 with their ranks, and how many ids at
 * the front are special. Ids are rank plus that number; merging goes by rank; special
 * tokens are never found in a text. Format: mistral-common, tokens/tokenizers/tekken.py.
 */
#include <string.h>

#include "base/json.h"
#include "tokenizer/tokenizer_private.h"

/* Special tokens of files before version 8, which do not list them. */
static const char *const old_specials[] = {
    "<unk>",          "<s>",            "</s>",
    "[INST]",         "[/INST]",        "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",   "[IMG]",          "<pad>",
    "[IMG_BREAK]",    "[IMG_END]",      "[PREFIX]",
    "[MIDDLE]",       "[SUFFIX]",       "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};

typedef struct Reading {
    DavitTokParts *parts; /* (borrowed) */
    const char *text;
    size_t len;
    DavitJsonReader *reader;
    DavitReport *report;
    json_t *config, *specials; /* owned */
    size_t vocab_off;          /* start of a `vocab` that came before `config`, 0 = none */
    bool has_vocab;
} Reading;

static int32_t invalid(const Reading *r, const char *member, const char *expected,
                       const char *message)
{
    return davit_tok_invalid(r->parts, r->report, member, expected, NULL, message);
}

static int32_t next(Reading *r, davit_json_event *out)
{
    *out = (davit_json_event){.struct_size = sizeof *out};
    return davit_json_next(r->reader, out);
}

static int32_t skip_value(Reading *r, const davit_json_event *event)
{
    if (event->type == DAVIT_JSON_OBJECT || event->type == DAVIT_JSON_ARRAY)
        return davit_json_skip(r->reader);
    return DAVIT_OK;
}

static int32_t read_tree(Reading *r, json_t **out)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK)
        status = skip_value(r, &event);
    if (status != DAVIT_OK)
        return status;
    json_decref(*out);
    *out = json_loadb(r->text + event.off, r->len - event.off,
                      JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    return *out ? DAVIT_OK : invalid(r, "top level", NULL, "a member does not parse");
}

/* A number of config from 0 to the highest id; -1 with a record. */
static int64_t config_count(Reading *r, const char *key)
{
    const json_t *value = json_object_get(r->config, key);
    g_autofree char *member = g_strdup_printf("config.%s", key);

    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= DAVIT_TOK_MAX_ID)
        return json_integer_value(value);
    invalid(r, member, "a number from 0 to 16777216", "the vocabulary has no size");
    return -1;
}

/* ---- vocabulary ---- */

/* One entry, behind its bracket: rank and bytes. */
static int32_t read_entry(Reading *r, GString *coded, int64_t *rank)
{
    davit_json_event event;
    int32_t status;

    *rank = -1;
    g_string_truncate(coded, 0);
    while ((status = next(r, &event)) == DAVIT_OK && event.type == DAVIT_JSON_KEY) {
        const bool is_rank = davit_json_is(&event, "rank");
        const bool is_bytes = davit_json_is(&event, "token_bytes");

        status = next(r, &event);
        if (status != DAVIT_OK)
            return status;
        if (is_rank && event.type == DAVIT_JSON_INT)
            *rank = event.i64;
        else if (is_bytes && event.type == DAVIT_JSON_STRING)
            g_string_append_len(coded, event.text.ptr, (gssize)event.text.len);
        status = skip_value(r, &event);
        if (status != DAVIT_OK)
            return status;
    }
    return status;
}

static bool is_base64(const GString *coded)
{
    return coded->len > 0 && coded->len % 4 == 0 && davit_tok_is_base64(coded->str, coded->len);
}

static int32_t read_vocab(Reading *r)
{
    g_autoptr(GString) coded = g_string_new(NULL);
    g_autoptr(GString) room = g_string_new(NULL);
    davit_json_event event;
    int64_t n_specials, n_ids, rank;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY)
        return invalid(r, "vocab", "a list", "the vocabulary is not a list");
    if (status == DAVIT_OK && !r->config) {
        r->vocab_off = event.off;
        return davit_json_skip(r->reader);
    }
    n_specials = config_count(r, "default_num_special_tokens");
    n_ids = config_count(r, "default_vocab_size");
    if (status != DAVIT_OK || n_specials < 0 || n_ids < 0)
        return status != DAVIT_OK ? status : DAVIT_E_CORRUPT;
    r->has_vocab = true;
    while ((status = next(r, &event)) == DAVIT_OK && event.type == DAVIT_JSON_OBJECT) {
        gsize n_bytes = 0;

        status = read_entry(r, coded, &rank);
        if (status != DAVIT_OK)
            return status;
        if (rank < 0 || !is_base64(coded))
            return invalid(r, "vocab", "rank and token_bytes", "an entry is malformed");
        if (rank >= n_ids - n_specials)
            continue; /* the file holds more than the model uses */
        g_base64_decode_inplace(coded->str, &n_bytes);
        status = davit_tok_add_rank(r->parts, rank + n_specials, coded->str, n_bytes,
                                    room, r->report);
        if (status != DAVIT_OK)
            return status;
    }
    return status;
}

static int32_t check_vocab(Reading *r)
{
    const int64_t n_specials = config_count(r, "default_num_special_tokens");
    const int64_t n_ids = config_count(r, "default_vocab_size");

    if (!r->has_vocab)
        return invalid(r, "vocab", "a list", "the file has no vocabulary");
    if ((int64_t)davit_vocab_n_tokens(r->parts->vocab) != n_ids - n_specials)
        return invalid(r, "vocab", "every rank below default_vocab_size",
                       "ranks are missing");
    return DAVIT_OK;
}

/* ---- special tokens ---- */

static int32_t add_special(Reading *r, const char *text, int64_t id)
{
    const DavitAdded added = {.text = g_strdup(text),
                              .len = strlen(text),
                              .id = (int32_t)id,
                              .flags = DAVIT_ADDED_SPECIAL | DAVIT_ADDED_HIDDEN};

    if (strcmp(text, "<s>") == 0)
        r->parts->specials[DAVIT_SPECIAL_BOS] = (int32_t)id;
    if (strcmp(text, "</s>") == 0)
        r->parts->specials[DAVIT_SPECIAL_EOS] = (int32_t)id;
    g_array_append_val(r->parts->added, added);
    return DAVIT_OK;
}

/* The listed ones, and names for the rest of the special ids. */
static int32_t read_specials(Reading *r)
{
    const int64_t n = config_count(r, "default_num_special_tokens");
    const size_t listed = r->specials ? json_array_size(r->specials)
                                      : G_N_ELEMENTS(old_specials);

    if (n < 0 || listed > (uint64_t)n)
        return invalid(r, "special_tokens", "at most default_num_special_tokens",
                       "there are too many special tokens");
    for (size_t i = 0; i < (size_t)n; i++) {
        const json_t *entry = r->specials ? json_array_get(r->specials, i) : NULL;
        const json_t *rank = json_object_get(entry, "rank");
        const char *text = json_string_value(json_object_get(entry, "token_str"));
        g_autofree char *filler = g_strdup_printf("<SPECIAL_%zu>", i);

        if (i < listed && r->specials &&
            (!text || !json_is_integer(rank) || json_integer_value(rank) != (json_int_t)i))
            return invalid(r, "special_tokens", "rank in order, and token_str",
                           "a special token is malformed");
        if (i >= listed)
            text = filler;
        else if (!r->specials)
            text = old_specials[i];
        add_special(r, text, (int64_t)i);
    }
    return DAVIT_OK;
}

/* ---- the file ---- */

static int32_t read_members(Reading *r)
{
    davit_json_event event;
    int32_t status = next(r, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_OBJECT)
        return invalid(r, "top level", "an object", "this is not a tekken.json");
    while (status == DAVIT_OK) {
        status = next(r, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_KEY)
            break;
        if (davit_json_is(&event, "config"))
            status = read_tree(r, &r->config);
        else if (davit_json_is(&event, "special_tokens"))
            status = read_tree(r, &r->specials);
        else if (davit_json_is(&event, "vocab"))
            status = read_vocab(r);
        else {
            status = next(r, &event);
            status = status == DAVIT_OK ? skip_value(r, &event) : status;
        }
    }
    if (status == DAVIT_OK)
        status = next(r, &event); /* DONE, or an error about what follows */
    if (status == DAVIT_OK && r->vocab_off > 0 && r->config) {
        DavitJsonReader *outer = r->reader;

        r->reader = davit_json_open(r->text + r->vocab_off, r->len - r->vocab_off, 0,
                                    r->parts->subject, r->report);
        status = r->reader ? read_vocab(r) : DAVIT_E_CORRUPT;
        davit_json_close(r->reader);
        r->reader = outer;
    }
    return status;
}

static int32_t read_all(Reading *r)
{
    DavitTokParts *parts = r->parts;
    const char *pattern;
    int32_t status = read_members(r);

    if (status == DAVIT_OK && json_is_null(r->specials)) {
        json_decref(r->specials);
        r->specials = NULL;
    }
    if (status == DAVIT_OK && r->specials && !json_is_array(r->specials))
        status = invalid(r, "special_tokens", "a list", "they are not a list");
    if (status == DAVIT_OK)
        status = check_vocab(r);
    if (status == DAVIT_OK)
        status = davit_tok_finish_ranks(parts, r->report);
    if (status == DAVIT_OK)
        status = read_specials(r);
    pattern = json_string_value(json_object_get(r->config, "pattern"));
    if (status == DAVIT_OK && !pattern)
        status = invalid(r, "config.pattern", "a regex", "the file has no regex");
    if (status != DAVIT_OK)
        return status;
    parts->ids_declared = true;
    parts->ignore_merges = true; /* a whole piece that is a token is taken as it is */
    parts->pre_tokenizer = json_pack(
        "{s:s,s:[{s:s,s:{s:s},s:s,s:b},{s:s,s:b,s:b}]}", "type", "Sequence",
        "pretokenizers", "type", "Split", "pattern", "Regex", pattern, "behavior",
        "Removed", "invert", 1, "type", "ByteLevel", "add_prefix_space", 0, "use_regex",
        0);
    parts->decoder = json_pack("{s:s}", "type", "ByteLevel");
    davit_tok_make_post(parts, parts->specials[DAVIT_SPECIAL_BOS], -1);
    return DAVIT_OK;
}

DavitTokenizer *davit_tokenizer_from_tekken(const char *text, size_t len,
                                            const char *subject, DavitRegistry *registry,
                                            DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;
    Reading r = {.parts = &parts, .text = text, .len = len, .report = report};

    davit_tok_parts_init(&parts, subject, "tekken.json");
    r.reader = davit_json_open(text, len, 0, subject, report);
    if (r.reader && read_all(&r) == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_json_close(r.reader);
    json_decref(r.config);
    json_decref(r.specials);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
