/* SPDX-License-Identifier: Apache-2.0
 * *.tiktoken and tiktoken.model: a line per token, base64 of its bytes, a space, its rank.
 * Regex and special tokens are not in the file; the plugin that claims the list's hash
 * knows them. Format: tiktoken/load.py, load_tiktoken_bpe.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

static int32_t refuse_line(DavitTokParts *parts, size_t line, const char *message,
                           DavitReport *report)
{
    g_autofree char *member = g_strdup_printf("line %zu", line);

    return davit_tok_invalid(parts, report, member, "base64, a space, a rank", NULL,
                             message);
}

/* The rank at @text, digits to the end; -1 if it is none. */
static int64_t parse_rank(const char *text, size_t len)
{
    int64_t rank = 0;

    if (len == 0 || len > 9)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (!g_ascii_isdigit(text[i]))
            return -1;
        rank = 10 * rank + (text[i] - '0');
    }
    return rank;
}

static int32_t read_line(DavitTokParts *parts, const char *text, size_t len, size_t line,
                         GString *room, DavitReport *report)
{
    const char *space = memchr(text, ' ', len);
    const size_t n = space ? (size_t)(space - text) : 0;
    const int64_t rank = space ? parse_rank(space + 1, len - n - 1) : -1;
    g_autofree char *coded = g_strndup(text, n);
    gsize n_bytes = 0;

    if (rank < 0 || n == 0 || n % 4 != 0)
        return refuse_line(parts, line, "the line is not a token and its rank", report);
    if (!davit_tok_is_base64(text, n))
        return refuse_line(parts, line, "the token is not base64", report);
    g_base64_decode_inplace(coded, &n_bytes);
    if (n_bytes == 0)
        return refuse_line(parts, line, "the token has no bytes", report);
    return davit_tok_add_rank(parts, rank, coded, n_bytes, room, report);
}

/* Ids of the names that rank_facts gives as bos_token and eos_token, where add_ says so. */
static int64_t find_named(const DavitTokParts *parts, const json_t *facts,
                          const char *flag, const char *key)
{
    const char *name = json_string_value(json_object_get(facts, key));

    for (guint i = 0; name && i < parts->added->len; i++) {
        const DavitAdded *added = &g_array_index(parts->added, DavitAdded, i);

        if (strcmp(added->text, name) == 0 && json_is_true(json_object_get(facts, flag)))
            return added->id;
    }
    return -1;
}

int32_t davit_tok_claim_ranks(DavitTokParts *parts, size_t end, DavitRegistry *registry,
                              DavitReport *report)
{
    g_autofree char *hash = davit_tok_hash_ranks(parts, end);
    json_t *facts;
    int32_t status = davit_shape_find_ranks(registry, hash, parts->subject, &parts->claim,
                                            report);

    if (status != DAVIT_OK)
        return status;
    parts->has_claim = true;
    parts->ids_declared = true;
    parts->why = "the plugin claims the hash of this list of tokens";
    status = davit_tok_read_facts(parts, parts->claim.shape.rank_facts, report);
    facts = json_loads(parts->claim.shape.rank_facts, 0, NULL);
    davit_tok_make_post(parts, find_named(parts, facts, "add_bos", "bos_token"),
                        find_named(parts, facts, "add_eos", "eos_token"));
    json_decref(facts);
    return status;
}

static int32_t read_all(DavitTokParts *parts, const char *text, size_t len,
                        DavitRegistry *registry, DavitReport *report)
{
    g_autoptr(GString) room = g_string_new(NULL);
    int32_t status = DAVIT_OK;
    size_t line = 1;

    for (size_t at = 0; status == DAVIT_OK && at < len; line++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        const size_t step = n + 1;

        if (n > 0 && text[at + n - 1] == '\r')
            n--;
        if (n > 0)
            status = read_line(parts, text + at, n, line, room, report);
        at += step;
    }
    if (status == DAVIT_OK && davit_vocab_n_tokens(parts->vocab) == 0)
        status = refuse_line(parts, 1, "the file has no tokens", report);
    if (status == DAVIT_OK)
        status = davit_tok_finish_ranks(parts, report);
    if (status == DAVIT_OK)
        status = davit_tok_claim_ranks(parts, SIZE_MAX, registry, report);
    return status;
}

DavitTokenizer *davit_tokenizer_from_tiktoken(const char *text, size_t len,
                                              const char *subject,
                                              DavitRegistry *registry,
                                              DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;

    davit_tok_parts_init(&parts, subject, "tiktoken");
    if (read_all(&parts, text, len, registry, report) == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
