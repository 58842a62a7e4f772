/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer from GGUF keys. GGUF has tokens, types, scores and merges, but no
 * normaliser, no flags of the model, no decoder: those facts come from the plugin that
 * claims the `pre` name. Keys: ggml docs/gguf.md, section "Tokenizer".
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/tokenizer_private.h"

/* tokenizer.ggml.token_type */
#define TYPE_NORMAL  1
#define TYPE_UNKNOWN 2
#define TYPE_CONTROL 3
#define TYPE_USER    4
#define TYPE_LAST    6 /* a byte */

#define MAX_TOKENS (DAVIT_TOK_MAX_ID + 1u)
/* What the vocabulary takes for sure: its limit is 2 GiB, and respelled runs of spaces
 * are three times as long there. */
#define MAX_TOKEN_BYTES (512u << 20)

static bool span_is(davit_span span, const char *text)
{
    return span.ptr && span.len == strlen(text) && memcmp(span.ptr, text, span.len) == 0;
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

bool davit_gguf_next(const DavitGgufStrings *strings, uint64_t *off, davit_span *out)
{
    const char *p = strings->bytes.ptr + *off;
    uint64_t len;

    if (strings->bytes.len - *off < 8)
        return false;
    len = (uint64_t)read_u32((const uint8_t *)p + 4) << 32 | read_u32((const uint8_t *)p);
    if (len > strings->bytes.len - *off - 8)
        return false;
    *out = (davit_span){p + 8, len};
    *off += 8 + len;
    return true;
}

static int32_t invalid(const DavitTokParts *parts, DavitReport *report, const char *key,
                       const char *expected, const char *found, const char *message)
{
    return davit_tok_invalid(parts, report, key, expected, found, message);
}

/* ---- tokens ---- */

/* SentencePiece vocabularies spell runs of spaces with real spaces in user-defined
 * tokens. */
static void respell(GString *room, davit_span *text)
{
    for (uint64_t i = 0; i < text->len; i++) {
        if (text->ptr[i] != ' ')
            return;
    }
    g_string_truncate(room, 0);
    for (uint64_t i = 0; i < text->len; i++)
        g_string_append(room, "\xe2\x96\x81");
    *text = (davit_span){room->str, room->len};
}

static void note_added(DavitTokParts *parts, davit_span text, uint64_t id, uint32_t type)
{
    const DavitAdded added = {.text = davit_tok_copy(text.ptr, text.len),
                              .len = text.len,
                              .id = (int32_t)id,
                              .flags = type == TYPE_USER ? 0 : DAVIT_ADDED_SPECIAL};

    g_array_append_val(parts->added, added);
}

static int32_t refuse_token(DavitTokParts *parts, DavitReport *report, uint64_t id,
                            const char *message)
{
    g_autofree char *key =
        g_strdup_printf("tokenizer.ggml.tokens[%" G_GUINT64_FORMAT "]", id);

    return invalid(parts, report, key, NULL, NULL, message);
}

static int32_t no_memory(const DavitTokParts *parts, DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                .status = DAVIT_E_LIMIT,
                                .stage = "open",
                                .subject = davit_report_text(
                                    report, "%s: tokenizer.ggml.tokens", parts->subject),
                                .message = "no memory for the tokens"});
}

static int32_t read_tokens(DavitTokParts *parts, const DavitGgufVocab *v, bool pieces,
                           DavitReport *report)
{
    const bool words = parts->model == DAVIT_MODEL_WORDPIECE;
    g_autoptr(GString) room = g_string_new(NULL);
    uint64_t off = 0;
    int32_t twin;

    for (uint64_t id = 0; id < v->tokens.count; id++) {
        const uint32_t type = v->types ? read_u32(v->types + 4 * id) : 1;
        davit_span text;

        if (!davit_gguf_next(&v->tokens, &off, &text))
            return refuse_token(parts, report, id,
                                "the string runs past the array's end");
        if (davit_ucd_check(text.ptr, text.len) != text.len)
            return refuse_token(parts, report, id, "the token is not valid UTF-8");
        if (type > TYPE_LAST)
            return refuse_token(parts, report, id, "tokenizer.ggml.token_type has no such type");
        if (pieces && type == TYPE_USER)
            respell(room, &text);
        if (words)
            davit_tok_respell_word(room, parts->inside, &text);
        /* check_counts has bounded the ids and their text */
        if (davit_vocab_add(parts->vocab, (int64_t)id, text.ptr, text.len) !=
            DAVIT_VOCAB_ADDED)
            return no_memory(parts, report);
        if (type == TYPE_CONTROL || type == TYPE_USER || type == TYPE_UNKNOWN)
            note_added(parts, text, id, type);
    }
    twin = davit_vocab_seal(parts->vocab);
    if (twin >= 0)
        return refuse_token(parts, report, (uint64_t)twin,
                            "another token has the same text");
    return twin == -1 ? DAVIT_OK : no_memory(parts, report);
}

static int32_t check_counts(const DavitTokParts *parts, const DavitGgufVocab *v,
                            DavitReport *report)
{
    const char *want = davit_report_text(report, "%" G_GUINT64_FORMAT, v->tokens.count);

    if (v->tokens.count == 0)
        return invalid(parts, report, "tokenizer.ggml.tokens", "a list of tokens",
                       "absent", "the file has no vocabulary");
    if (v->tokens.count > MAX_TOKENS)
        return invalid(parts, report, "tokenizer.ggml.tokens",
                       davit_report_text(report, "at most %u tokens", MAX_TOKENS), want,
                       "there are too many tokens");
    if (v->tokens.bytes.len > MAX_TOKEN_BYTES)
        return invalid(
            parts, report, "tokenizer.ggml.tokens",
            davit_report_text(report, "at most %u bytes", MAX_TOKEN_BYTES),
            davit_report_text(report, "%" G_GUINT64_FORMAT, v->tokens.bytes.len),
            "the tokens' texts are too long");
    if (v->types && v->n_types != v->tokens.count)
        return invalid(parts, report, "tokenizer.ggml.token_type", want,
                       davit_report_text(report, "%" G_GUINT64_FORMAT, v->n_types),
                       "as many types as tokens are needed");
    if (v->scores && v->n_scores != v->tokens.count)
        return invalid(parts, report, "tokenizer.ggml.scores", want,
                       davit_report_text(report, "%" G_GUINT64_FORMAT, v->n_scores),
                       "as many scores as tokens are needed");
    return DAVIT_OK;
}

/* ---- merges ---- */

/* Without merges a text would be cut into single letters, silently. Only a vocabulary of single
 * letters needs none. */
static int32_t check_merges(const DavitTokParts *parts, const DavitGgufVocab *v,
                            DavitReport *report)
{
    uint64_t off = 0;
    davit_span text;

    for (uint64_t id = 0; v->merges.count == 0 && id < v->tokens.count; id++) {
        const uint32_t type = v->types ? read_u32(v->types + 4 * id) : 1;

        if (!davit_gguf_next(&v->tokens, &off, &text))
            break; /* read_tokens has said it */
        if (type == TYPE_NORMAL && g_utf8_strlen(text.ptr, (gssize)text.len) > 1)
            return invalid(parts, report, "tokenizer.ggml.merges",
                           "the pairs that tokens are made of", "none",
                           "the vocabulary has tokens of several letters and no merges, so that "
                           "no text would ever give one");
    }
    return DAVIT_OK;
}

static int32_t read_merges(DavitTokParts *parts, const DavitGgufVocab *v,
                           DavitReport *report)
{
    uint64_t off = 0;
    davit_span line;

    for (uint64_t i = 0; i < v->merges.count; i++) {
        int32_t status;

        if (!davit_gguf_next(&v->merges, &off, &line))
            return invalid(parts, report, "tokenizer.ggml.merges", NULL, NULL,
                           "a string runs past the array's end");
        status = davit_tok_add_merge_line(parts, line.ptr, line.len, report);
        if (status != DAVIT_OK)
            return status;
    }
    return davit_tok_settle_merges(parts, report);
}

static int32_t derive_merges(DavitTokParts *parts, const DavitGgufVocab *v,
                             DavitReport *report)
{
    g_autofree float *scores = g_try_new(float, v->tokens.count);
    int32_t status = DAVIT_OK;

    if (!scores)
        return invalid(parts, report, "tokenizer.ggml.scores", NULL, NULL, "no memory");
    if (!v->scores && !parts->merges_by_id)
        return invalid(parts, report, "tokenizer.ggml.scores", "scores or merges",
                       "absent", "the vocabulary says nothing about the order of merges");
    for (uint64_t i = 0; i < v->tokens.count; i++) {
        const uint32_t bits = v->scores ? read_u32(v->scores + 4 * i) : 0;

        if (parts->merges_by_id) {
            scores[i] = -(float)i; /* exact up to 2^24, the limit of ids */
            continue;
        }
        memcpy(&scores[i], &bits, sizeof bits);
        if (scores[i] != scores[i])
            return invalid(parts, report, "tokenizer.ggml.scores", "numbers", "nan",
                           "a score is not a number");
    }
    for (int64_t id = 0; id < (int64_t)davit_vocab_n_ids(parts->vocab) && !status; id++) {
        size_t len = 0;

        if (davit_vocab_text(parts->vocab, id, &len))
            status = davit_tok_check_split(parts, "tokenizer.ggml.tokens", len, report);
    }
    if (status)
        return status;
    if (!davit_tok_merges_from_scores(parts, scores))
        return invalid(parts, report, "tokenizer.ggml.scores", NULL, NULL, "no memory");
    return DAVIT_OK;
}

/* ---- facts ---- */

int32_t davit_tok_gguf_post(DavitTokParts *parts, const DavitGgufVocab *v,
                            DavitReport *report)
{
    json_t *facts = json_loads(parts->claim.shape.gguf_facts, 0, NULL);
    const bool bos = v->add_bos < 0 ? json_is_true(json_object_get(facts, "add_bos"))
                                    : v->add_bos > 0;
    const bool eos = v->add_eos < 0 ? json_is_true(json_object_get(facts, "add_eos"))
                                    : v->add_eos > 0;

    json_decref(facts);
    davit_tok_make_post(parts, bos ? v->bos : -1, eos ? v->eos : -1);
    if ((bos && v->bos < 0) || (eos && v->eos < 0))
        return invalid(parts, report,
                       bos && v->bos < 0 ? "tokenizer.ggml.bos_token_id"
                                         : "tokenizer.ggml.eos_token_id",
                       "an id", "absent",
                       "the file says to add a token that it does not name");
    return DAVIT_OK;
}

static int32_t read_specials(DavitTokParts *parts, const DavitGgufVocab *v,
                             DavitReport *report)
{
    const int64_t ids[DAVIT_N_SPECIALS] = {v->bos, v->eos, v->unk, v->pad};
    static const char *const keys[DAVIT_N_SPECIALS] = {
        "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id"};

    for (int i = 0; i < DAVIT_N_SPECIALS; i++) {
        if (ids[i] >= 0 && (uint64_t)ids[i] >= v->tokens.count)
            return invalid(
                parts, report, keys[i],
                davit_report_text(report, "below %" G_GUINT64_FORMAT, v->tokens.count),
                davit_report_text(report, "%" G_GINT64_FORMAT, ids[i]),
                "the id is not in the vocabulary");
        parts->specials[i] = ids[i] < 0 ? -1 : (int32_t)ids[i];
    }
    return DAVIT_OK;
}

/* Does the model's WordPiece lower its text? Newer files say so. */
static bool is_lowered(const DavitGgufVocab *v)
{
    return v->lowercase >= 0 ? v->lowercase == 1 : !davit_tok_has_capitals(&v->tokens);
}

/* A normaliser that the file states and the model's claim does not have. BERT's takes accents away
 * where it lowers. */
static int32_t check_normalizer(const DavitTokParts *parts, const DavitGgufVocab *v,
                                DavitReport *report)
{
    const bool bert = span_is(v->model, "bert");
    const bool lower = v->lowercase == 1 && !bert;
    const bool strip = v->strip_accents >= 0 && v->strip_accents != (bert && is_lowered(v));

    if (!lower && !strip)
        return DAVIT_OK;
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "open",
                        .subject = davit_report_text(
                            report, "%s: tokenizer.ggml.normalizer.%s", parts->subject,
                            lower ? "lowercase" : "strip_accents"),
                        .expected = bert ? "what lowercase says" : "false",
                        .found = (lower ? v->lowercase : v->strip_accents) ? "true" : "false",
                        .message = "the file states a normaliser that this build does not have for "
                                   "its tokenizer",
                        .hint = "put the model's tokenizer.json beside the GGUF"});
}

/* The name under which plugins claim the vocabulary: its pre name, or one of the core's
 * own for SentencePiece vocabularies, which have no pre-tokenizer. */
static const char *claim_name(const DavitGgufVocab *v, size_t *out_len)
{
    const char *name;

    if (span_is(v->model, "gemma4")) { /* writes no pre name */
        *out_len = strlen("gemma4");
        return "gemma4";
    }
    if (span_is(v->model, "t5") || span_is(v->model, "bert")) {
        if (span_is(v->model, "bert"))
            name = is_lowered(v) ? "@bert" : "@bert-cased";
        else
            name = v->add_space_prefix == 0 ? "@unigram-nospace" : "@unigram";
        *out_len = strlen(name);
        return name;
    }
    if (!span_is(v->model, "llama")) {
        *out_len = v->pre.ptr ? v->pre.len : 0;
        return v->pre.ptr ? v->pre.ptr : "";
    }
    if (span_is(v->arch, "gemma") || span_is(v->arch, "gemma2") ||
        span_is(v->arch, "gemma3") || span_is(v->arch, "gemma3n"))
        name = "@gemma";
    else
        name = v->add_space_prefix == 0 ? "@llama-nospace" : "@llama";
    *out_len = strlen(name);
    return name;
}

/* Names with an '@' are the core's, for vocabularies that have no pre name; no file may use one. */
static int32_t refuse_own_name(const DavitTokParts *parts, const DavitGgufVocab *v,
                               DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_PRETOKENIZER_UNKNOWN,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "open",
                                .subject = davit_report_text(report, "%s: tokenizer.ggml.pre",
                                                             parts->subject),
                                .expected = "a name that a tokenizer plugin claims",
                                .found = davit_report_text(report, "%.*s",
                                                           (int)MIN(v->pre.len, 200), v->pre.ptr),
                                .message = "no GGUF pre-tokenizer has such a name"});
}

static void warn_no_types(const DavitTokParts *parts, DavitReport *report)
{
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                     .severity = DAVIT_WARNING,
                                     .stage = "tokenizer",
                                     .subject = davit_report_text(
                                         report, "%s: tokenizer.ggml.token_type", parts->subject),
                                     .expected = "a type for every token",
                                     .found = "absent",
                                     .message = "no token is known as special: none is found in a "
                                                "text as a whole, and decoding leaves none out"});
}

static void warn_open(const DavitTokParts *parts, const DavitGgufVocab *v, DavitReport *report)
{
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_ASSUMED,
            .severity = DAVIT_WARNING,
            .stage = "tokenizer",
            .subject = davit_report_text(report, "%s: tokenizer.ggml.pre", parts->subject),
            .expected = "a name that tells the normaliser, too",
            .found = davit_report_text(report, "%.*s", (int)MIN(v->pre.len, 80), v->pre.ptr),
            .message = "which normaliser this model has is not known (none, NFC or NFKC): a text that "
                       "it would change is refused, all others get their ids",
            .hint = "put the model's tokenizer.json beside the GGUF"});
}

static int32_t read_all(DavitTokParts *parts, const DavitGgufVocab *v,
                        DavitRegistry *registry, DavitReport *report)
{
    const bool pieces = span_is(v->model, "llama");
    size_t name_len;
    const char *name = claim_name(v, &name_len);
    int32_t status = check_counts(parts, v, report);

    if (!pieces && !span_is(v->model, "gpt2") && !span_is(v->model, "gemma4") &&
        !span_is(v->model, "t5") && !span_is(v->model, "bert"))
        return davit_report_add(
            report,
            &(DavitFinding){
                .code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                .status = DAVIT_E_UNSUPPORTED,
                .stage = "open",
                .subject =
                    davit_report_text(report, "%s: tokenizer.ggml.model", parts->subject),
                .expected = "gpt2, llama, gemma4, t5 or bert",
                .found = v->model.ptr ? davit_report_text(report, "%.*s",
                                                          (int)MIN(v->model.len, 80),
                                                          v->model.ptr)
                                      : "absent",
                .message = "this build does not know the tokenizer model"});
    if (status == DAVIT_OK)
        status = check_normalizer(parts, v, report);
    if (status == DAVIT_OK && name == v->pre.ptr && name_len > 0 && name[0] == '@')
        return refuse_own_name(parts, v, report);
    if (status == DAVIT_OK)
        status = davit_shape_find_pre(registry, name, name_len, parts->subject,
                                      &parts->claim, report);
    if (status != DAVIT_OK)
        return status;
    if (!v->types)
        warn_no_types(parts, report);
    parts->has_claim = true;
    status = davit_tok_read_facts(parts, parts->claim.shape.gguf_facts, report);
    if (parts->open)
        warn_open(parts, v, report);
    if (status == DAVIT_OK)
        status = read_specials(parts, v, report);
    if (status == DAVIT_OK && span_is(v->model, "t5"))
        return davit_tok_gguf_unigram(parts, v, read_tokens, report);
    if (status == DAVIT_OK && span_is(v->model, "bert"))
        return davit_tok_gguf_wordpiece(parts, v, read_tokens, report);
    if (status == DAVIT_OK)
        status = davit_tok_gguf_post(parts, v, report);
    if (status == DAVIT_OK)
        status = read_tokens(parts, v, pieces, report);
    if (status == DAVIT_OK && !pieces && parts->model == DAVIT_MODEL_BPE)
        status = check_merges(parts, v, report);
    if (status == DAVIT_OK)
        status = v->merges.count > 0 || !pieces ? read_merges(parts, v, report)
                                                : derive_merges(parts, v, report);
    if (status == DAVIT_OK && pieces && !parts->unk && v->unk >= 0) {
        size_t len;
        const char *unk = davit_vocab_text(parts->vocab, v->unk, &len);

        parts->unk_len = unk ? len : 0;
        parts->unk = davit_tok_copy(unk, parts->unk_len);
    }
    if (status == DAVIT_OK && strcmp(name, "@llama") == 0)
        davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                    .severity = DAVIT_NOTE,
                                    .stage = "tokenizer",
                                    .subject = parts->subject,
                                    .message = "GGUF does not say whether the space in "
                                               "front is repeated behind special tokens; "
                                               "it is, as in Llama 1 and 2"});
    return status;
}

DavitTokenizer *davit_tokenizer_from_gguf(const DavitGgufVocab *vocab,
                                          const char *subject, DavitRegistry *registry,
                                          DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;

    if (vocab->json.ptr)
        return davit_tokenizer_from_json(vocab->json.ptr, vocab->json.len, subject,
                                         registry, report);
    davit_tok_parts_init(&parts, subject, "gguf");
    if (read_all(&parts, vocab, registry, report) == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
