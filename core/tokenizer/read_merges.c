/* SPDX-License-Identifier: Apache-2.0
 * The pair vocab.json with merges.txt, which leaves out the regex, known by the hash of its tokens, and the
 * added tokens: those are in tokenizer_config.json, or if that says none, in the plugin's claim.
 */
#include <string.h>

#include "base/json.h"
#include "config/tree.h"
#include "tokenizer/tokenizer_private.h"

#define CONFIG "tokenizer_config.json"

static int32_t read_vocab(DavitTokParts *parts, const char *text, size_t len,
                          DavitReport *report)
{
    g_autoptr(DavitJsonReader) reader =
        davit_json_open(text, len, 0, parts->subject, report);
    g_autoptr(GString) key = g_string_new(NULL);
    davit_json_event event = {.struct_size = sizeof event};
    int32_t status = reader ? davit_json_next(reader, &event) : DAVIT_E_CORRUPT;

    if (status == DAVIT_OK && event.type != DAVIT_JSON_OBJECT)
        return davit_tok_invalid(parts, report, "top level", "an object", NULL,
                                 "this is not a vocab.json");
    while (status == DAVIT_OK) {
        event = (davit_json_event){.struct_size = sizeof event};
        status = davit_json_next(reader, &event);
        if (status != DAVIT_OK || event.type != DAVIT_JSON_KEY)
            break;
        g_string_truncate(key, 0);
        g_string_append_len(key, event.text.ptr, (gssize)event.text.len);
        event = (davit_json_event){.struct_size = sizeof event};
        status = davit_json_next(reader, &event);
        if (status == DAVIT_OK &&
            (event.type != DAVIT_JSON_INT ||
             davit_vocab_add(parts->vocab, event.i64, key->str, key->len) !=
                 DAVIT_VOCAB_ADDED))
            return davit_tok_invalid(parts, report, key->str, "an id of its own", NULL,
                                     "a token has no id, or another's");
    }
    if (status == DAVIT_OK && davit_vocab_seal(parts->vocab) != -1)
        return davit_tok_invalid(parts, report, "vocabulary", NULL, NULL, "no memory");
    return status;
}

static int32_t read_lines(DavitTokParts *parts, const char *text, size_t len,
                          DavitReport *report)
{
    int32_t status = DAVIT_OK;

    for (size_t at = 0; status == DAVIT_OK && at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        const size_t n = end ? (size_t)(end - text) - at : len - at;
        const size_t line = n > 0 && text[at + n - 1] == '\r' ? n - 1 : n;

        if (line > 0)
            status = davit_tok_add_merge_line(parts, text + at, line, report);
        at += n + 1;
    }
    return status == DAVIT_OK ? davit_tok_settle_merges(parts, report) : status;
}

/* ---- tokenizer_config.json ---- */

static int32_t refuse_config(const char *key, const char *expected, const char *found,
                             DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "open",
                                .subject = davit_report_text(report, CONFIG ": %s", key),
                                .expected = expected,
                                .found = found,
                                .message = "this is not read beside vocab.json and merges.txt",
                                .hint = "build tokenizer.json with Transformers (AutoTokenizer, "
                                        "save_pretrained) and put it beside the weights"});
}

/* What would change ids and is nowhere in the pair. */
static int32_t check_flags(const json_t *config, DavitReport *report)
{
    static const char *const flags[] = {"add_prefix_space", "add_bos_token", "add_eos_token"};

    for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
        if (json_is_true(json_object_get(config, flags[i])))
            return refuse_config(flags[i], "false", "true", report);
    }
    return DAVIT_OK;
}

static uint32_t flags_of(const json_t *entry)
{
    static const struct {
        const char *key;
        uint32_t flag;
    } keys[] = {{"special", DAVIT_ADDED_SPECIAL},
                {"lstrip", DAVIT_ADDED_LSTRIP},
                {"rstrip", DAVIT_ADDED_RSTRIP},
                {"normalized", DAVIT_ADDED_NORMALIZED},
                {"single_word", DAVIT_ADDED_SINGLE_WORD}};
    uint32_t flags = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        flags |= json_is_true(json_object_get(entry, keys[i].key)) ? keys[i].flag : 0;
    return flags;
}

static int by_id(const void *a, const void *b)
{
    const DavitAdded *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

/* Its added tokens in place of the claim's, by id as Transformers adds them. */
static int32_t read_added(DavitTokParts *parts, const json_t *decoder, DavitReport *report)
{
    const char *key;
    json_t *entry;

    g_array_set_size(parts->added, 0);
    json_object_foreach((json_t *)(uintptr_t)decoder, key, entry)
    {
        char *end = NULL;
        const guint64 id = g_ascii_strtoull(key, &end, 10);
        const json_t *content = json_object_get(entry, "content");

        if (!g_ascii_isdigit(*key) || *end || id > DAVIT_TOK_MAX_ID || !json_is_string(content) ||
            json_string_length(content) == 0)
            return refuse_config("added_tokens_decoder", "texts by their ids", key, report);
        g_array_append_val(parts->added,
                           ((DavitAdded){.text = davit_tok_copy(json_string_value(content),
                                                                json_string_length(content)),
                                         .len = json_string_length(content),
                                         .id = (int32_t)id,
                                         .flags = flags_of(entry)}));
    }
    g_array_sort(parts->added, by_id);
    return DAVIT_OK;
}

static int32_t read_config(DavitTokParts *parts, const DavitMergesFiles *files, DavitReport *report)
{
    json_t *config = files->config
                         ? davit_tree_parse(files->config, files->n_config, CONFIG, report)
                         : NULL;
    const json_t *decoder = json_object_get(config, "added_tokens_decoder");
    int32_t status = files->config && !config ? DAVIT_E_CORRUPT : check_flags(config, report);

    if (status == DAVIT_OK && decoder && !json_is_object(decoder))
        status = refuse_config("added_tokens_decoder", "an object", NULL, report);
    if (status == DAVIT_OK && json_object_size(decoder) > 0)
        status = read_added(parts, decoder, report);
    else if (status == DAVIT_OK)
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                         .severity = DAVIT_NOTE,
                                         .stage = "open",
                                         .subject = parts->subject,
                                         .expected = CONFIG ": added_tokens_decoder",
                                         .found = "none",
                                         .who = parts->claim.plugin,
                                         .message = "the added tokens are those that the plugin "
                                                    "knows for this vocabulary"});
    json_decref(config);
    return status;
}

DavitTokenizer *davit_tokenizer_from_merges(const DavitMergesFiles *files, DavitRegistry *registry,
                                            DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;
    int32_t status;

    davit_tok_parts_init(&parts, "vocab.json", "vocab.json");
    status = read_vocab(&parts, files->vocab, files->n_vocab, report);
    if (status == DAVIT_OK)
        status = read_lines(&parts, files->merges, files->n_merges, report);
    /* The bytes and one token per merge are the rank list; what follows is special. */
    if (status == DAVIT_OK)
        status = davit_tok_claim_ranks(&parts, 256 + (size_t)parts.merges->len, registry,
                                       report);
    if (status == DAVIT_OK)
        status = read_config(&parts, files, report);
    parts.ids_declared = false;
    parts.ignore_merges = false;
    if (status == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
