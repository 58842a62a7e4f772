/* SPDX-License-Identifier: Apache-2.0
 * What a plugin says about files that leave things out: GGUF vocabularies, rank lists.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

static bool fact_flag(const json_t *facts, const char *key)
{
    return json_is_true(json_object_get(facts, key));
}

static int32_t refuse_facts(const DavitTokParts *parts, const char *member,
                            const char *found, DavitReport *report)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_MISSING_FIELD,
                                            .status = DAVIT_E_UNSUPPORTED,
                                            .stage = "open",
                                            .who = parts->claim.plugin,
                                            .subject = member,
                                            .expected = "what davit/tokenizer.h says",
                                            .found = found,
                                            .message = "the plugin's facts do not parse"});
}

static void note_special(DavitTokParts *parts, char *text, int64_t id, uint32_t flags)
{
    const DavitAdded added = {.text = text, .len = strlen(text), .id = (int32_t)id, .flags = flags};

    g_array_append_val(parts->added, added);
}

/* {"id", "content", flags...}; without flags it is special. */
static bool read_added(DavitTokParts *parts, const json_t *entry)
{
    const json_t *id = json_object_get(entry, "id");
    const char *text = json_string_value(json_object_get(entry, "content"));
    uint32_t flags = json_is_false(json_object_get(entry, "special"))
                         ? 0
                         : DAVIT_ADDED_SPECIAL;

    flags |= fact_flag(entry, "lstrip") ? DAVIT_ADDED_LSTRIP : 0;
    flags |= fact_flag(entry, "rstrip") ? DAVIT_ADDED_RSTRIP : 0;
    flags |= fact_flag(entry, "normalized") ? DAVIT_ADDED_NORMALIZED : 0;
    flags |= fact_flag(entry, "single_word") ? DAVIT_ADDED_SINGLE_WORD : 0;
    if (!json_is_integer(id) || !text || json_integer_value(id) < 0 ||
        json_integer_value(id) > DAVIT_TOK_MAX_ID)
        return false;
    note_special(parts, g_strdup(text), json_integer_value(id), flags);
    return true;
}

/* {"prefix", "suffix", "from", "to", "number"} */
static bool read_reserved(DavitTokParts *parts, const json_t *entry)
{
    const char *prefix = json_string_value(json_object_get(entry, "prefix"));
    const char *suffix = json_string_value(json_object_get(entry, "suffix"));
    const json_int_t from = json_integer_value(json_object_get(entry, "from"));
    const json_int_t to = json_integer_value(json_object_get(entry, "to"));
    const json_int_t number = json_integer_value(json_object_get(entry, "number"));

    if (!prefix || !suffix || from < 0 || to > DAVIT_TOK_MAX_ID || to - from > 65536)
        return false;
    for (json_int_t id = from; id <= to; id++)
        note_special(parts,
                     g_strdup_printf("%s%" JSON_INTEGER_FORMAT "%s", prefix,
                                     number + id - from, suffix),
                     id, DAVIT_ADDED_SPECIAL);
    return true;
}

static bool read_tokens(DavitTokParts *parts, const json_t *facts)
{
    const json_t *added = json_object_get(facts, "added_tokens");
    const json_t *reserved = json_object_get(facts, "reserved_tokens");

    for (size_t i = 0; i < json_array_size(added); i++) {
        if (!read_added(parts, json_array_get(added, i)))
            return false;
    }
    for (size_t i = 0; i < json_array_size(reserved); i++) {
        if (!read_reserved(parts, json_array_get(reserved, i)))
            return false;
    }
    return true;
}

int32_t davit_tok_read_facts(DavitTokParts *parts, const char *text, DavitReport *report)
{
    json_error_t error;
    json_t *facts = json_loads(text ? text : "", 0, &error);
    const json_t *model = json_object_get(facts, "model"), *unk;
    bool good;

    if (!facts)
        return refuse_facts(parts, "facts", error.text, report);
    parts->normalizer = json_incref(json_object_get(facts, "normalizer"));
    parts->decoder = json_incref(json_object_get(facts, "decoder"));
    parts->pre_tokenizer = json_incref(json_object_get(facts, "pre_tokenizer"));
    if (!parts->pre_tokenizer)
        parts->pre_tokenizer =
            json_loads(parts->claim.shape.pre_tokenizer, JSON_DECODE_ANY, NULL);
    parts->byte_fallback = fact_flag(model, "byte_fallback");
    parts->fuse_unk = fact_flag(model, "fuse_unk");
    parts->ignore_merges = fact_flag(model, "ignore_merges");
    parts->open = fact_flag(facts, "open");
    parts->merges_by_id = fact_flag(facts, "merges_by_id");
    if (json_is_string(json_object_get(model, "continuing_subword_prefix")))
        parts->inside =
            g_strdup(json_string_value(json_object_get(model, "continuing_subword_prefix")));
    parts->inside_len = parts->inside ? strlen(parts->inside) : 0;
    parts->max_chars =
        (uint64_t)json_integer_value(json_object_get(model, "max_input_chars_per_word"));
    unk = json_object_get(model, "unk_token");
    if (json_is_string(unk))
        parts->unk = davit_tok_copy(json_string_value(unk), json_string_length(unk));
    parts->unk_len = json_string_length(unk);
    good = read_tokens(parts, facts);
    json_decref(facts);
    return good ? DAVIT_OK : refuse_facts(parts, "added_tokens", NULL, report);
}

void davit_tok_make_post(DavitTokParts *parts, int64_t bos, int64_t eos)
{
    json_t *single = json_array(), *specials = json_object();

    if (bos >= 0) {
        json_array_append_new(single,
                              json_pack("{s:{s:s}}", "SpecialToken", "id", "bos"));
        json_object_set_new(specials, "bos", json_pack("{s:[I]}", "ids", (json_int_t)bos));
    }
    json_array_append_new(single, json_pack("{s:{s:s}}", "Sequence", "id", "A"));
    if (eos >= 0) {
        json_array_append_new(single,
                              json_pack("{s:{s:s}}", "SpecialToken", "id", "eos"));
        json_object_set_new(specials, "eos", json_pack("{s:[I]}", "ids", (json_int_t)eos));
    }
    parts->post_processor = json_pack("{s:s,s:o,s:o}", "type", "TemplateProcessing",
                                      "single", single, "special_tokens", specials);
}
