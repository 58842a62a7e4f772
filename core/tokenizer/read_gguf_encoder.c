/* SPDX-License-Identifier: Apache-2.0
 * GGUF vocabularies of encoders: Unigram (model t5) and WordPiece (model bert). Facts:
 * llama.cpp, conversion scripts and llama-vocab.cpp; the ids aimed at are those of the
 * model's own tokenizer.json.
 */
#include <string.h>

#include "tokenizer/tokenizer_private.h"

#define MARK "\xe2\x96\x81" /* U+2581 */

/* tokenizer.ggml.token_type */
#define TYPE_NORMAL 1
#define TYPE_BYTE   6

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static int32_t note(const DavitTokParts *parts, DavitReport *report, const char *message)
{
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                             .severity = DAVIT_NOTE,
                                             .stage = "open",
                                             .subject = parts->subject,
                                             .message = message});
    return DAVIT_OK;
}

/* ---- Unigram ---- */

static int32_t read_scores(DavitTokParts *parts, const DavitGgufVocab *v,
                           DavitReport *report)
{
    if (!v->scores)
        return davit_tok_invalid(parts, report, "tokenizer.ggml.scores",
                                 "a score for every token", "absent",
                                 "a Unigram vocabulary needs scores");
    for (uint64_t i = 0; i < v->tokens.count; i++) {
        const uint32_t bits = read_u32(v->scores + 4 * i);
        const uint32_t type = v->types ? read_u32(v->types + 4 * i) : TYPE_NORMAL;
        uint8_t apart = type == TYPE_NORMAL ? 0 : DAVIT_SCORE_APART;
        float score;
        double wide;

        memcpy(&score, &bits, sizeof score);
        if (score - score != 0)
            return davit_tok_invalid(parts, report, "tokenizer.ggml.scores",
                                     "finite numbers", NULL, "a score is not finite");
        wide = (double)score;
        if (type == TYPE_BYTE)
            parts->byte_fallback = true;
        else if (type != TYPE_NORMAL)
            apart |= DAVIT_SCORE_SKIP; /* special ones are found before */
        g_array_append_val(parts->scores, wide);
        g_array_append_val(parts->types, apart);
    }
    return DAVIT_OK;
}

/* The normaliser is the charsmap alone; what white space it leaves the words drop. */
static int32_t make_normalizer(DavitTokParts *parts, const DavitGgufVocab *v,
                               DavitReport *report)
{
    g_autofree char *text = NULL;

    if (v->remove_spaces == 0)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .stage = "open",
                                    .subject = davit_report_text(
                                        report, "%s: tokenizer.ggml.remove_extra_whitespaces",
                                        parts->subject),
                                    .expected = "true",
                                    .found = "false",
                                    .message = "Unigram vocabularies that keep runs of "
                                               "spaces are not known exactly",
                                    .hint = "put the model's tokenizer.json beside the "
                                            "GGUF"});
    if (v->charsmap.len == 0)
        return DAVIT_OK;
    if (v->charsmap.len > DAVIT_CHARSMAP_MAX)
        return davit_tok_invalid(parts, report, "tokenizer.ggml.precompiled_charsmap",
                                 "at most 16 MiB", "more", "the charsmap is too long");
    text = g_base64_encode((const guchar *)v->charsmap.ptr, v->charsmap.len);
    json_decref(parts->normalizer);
    parts->normalizer = json_pack("{s:s,s:s}", "type", "Precompiled",
                                  "precompiled_charsmap", text);
    return DAVIT_OK;
}

int32_t davit_tok_gguf_unigram(DavitTokParts *parts, const DavitGgufVocab *v,
                               DavitTokensFn read_tokens, DavitReport *report)
{
    int32_t status = davit_tok_gguf_post(parts, v, report);

    parts->model = DAVIT_MODEL_UNIGRAM;
    if (status == DAVIT_OK)
        status = read_tokens(parts, v, false, report);
    if (status == DAVIT_OK)
        status = read_scores(parts, v, report);
    if (status == DAVIT_OK)
        status = make_normalizer(parts, v, report);
    if (status != DAVIT_OK)
        return status;
    parts->unk_id = v->unk >= 0 ? v->unk : davit_vocab_find(parts->vocab, "<unk>", 5);
    return note(parts, report,
                "GGUF does not say how words are cut; at white space, with the mark in front "
                "of each, as in the tokenizer.json of T5 and XLM-RoBERTa");
}

/* ---- WordPiece ---- */

static bool is_bracketed(davit_span text)
{
    return text.len >= 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']';
}

bool davit_tok_has_capitals(const DavitGgufStrings *tokens)
{
    uint64_t off = 0;
    davit_span text;

    for (uint64_t i = 0; i < tokens->count && davit_gguf_next(tokens, &off, &text); i++) {
        for (uint64_t k = 0; !is_bracketed(text) && k < text.len; k++) {
            if (g_ascii_isupper(text.ptr[k]))
                return true;
        }
    }
    return false;
}

void davit_tok_respell_word(GString *room, const char *inside, davit_span *text)
{
    const size_t n = strlen(MARK);

    if (is_bracketed(*text))
        return;
    if (text->len >= n && memcmp(text->ptr, MARK, n) == 0) {
        text->ptr += n;
        text->len -= n;
        return;
    }
    g_string_assign(room, inside);
    g_string_append_len(room, text->ptr, (gssize)text->len);
    *text = (davit_span){room->str, room->len};
}

/* The first that is there: @key, @other, the token @name. */
static int64_t pick(const DavitTokParts *parts, int64_t key, int64_t other, const char *name)
{
    if (key >= 0)
        return key;
    return other >= 0 ? other : davit_vocab_find(parts->vocab, name, strlen(name));
}

int32_t davit_tok_gguf_wordpiece(DavitTokParts *parts, const DavitGgufVocab *v,
                                 DavitTokensFn read_tokens, DavitReport *report)
{
    DavitGgufVocab ids = *v;
    int32_t status;

    parts->model = DAVIT_MODEL_WORDPIECE;
    if (!parts->inside || !parts->unk)
        return davit_tok_invalid(parts, report, "model", "a prefix and an unknown token",
                                 NULL, "the plugin's facts lack a member");
    status = read_tokens(parts, v, false, report);
    if (status != DAVIT_OK)
        return status;
    ids.bos = pick(parts, v->cls, v->bos, "[CLS]");
    ids.eos = pick(parts, v->sep, v->eos, "[SEP]");
    for (int i = 0; i < 2; i++) {
        const int64_t id = i == 0 ? ids.bos : ids.eos;

        if (id >= (int64_t)v->tokens.count)
            return davit_tok_invalid(parts, report, "tokenizer.ggml.cls_token_id",
                                     "an id of the vocabulary", NULL,
                                     "the id is not in the vocabulary");
        parts->specials[i == 0 ? DAVIT_SPECIAL_BOS : DAVIT_SPECIAL_EOS] = (int32_t)id;
    }
    status = davit_tok_gguf_post(parts, &ids, report);
    if (status != DAVIT_OK)
        return status;
    return note(parts, report,
                davit_tok_has_capitals(&v->tokens)
                    ? "GGUF does not say whether text is lower-cased; it is not, as tokens "
                      "have capital letters"
                    : "GGUF does not say whether text is lower-cased; it is, as no token has "
                      "a capital letter");
}
