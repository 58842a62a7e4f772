/* SPDX-License-Identifier: Apache-2.0
 * vocab.txt of BERT: one WordPiece token a line, the line's number is its id. The file says
 * nothing else; the pipeline is BERT's, and whether text is lower-cased follows from the
 * tokens, with a note.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/tokenizer_private.h"

/* The line at *at without its end, which *at is moved behind. False at the end. */
static bool next_line(const char *text, size_t len, size_t *at, davit_span *out)
{
    const char *end;
    size_t n;

    if (*at >= len)
        return false;
    end = memchr(text + *at, '\n', len - *at);
    n = end ? (size_t)(end - text) - *at : len - *at;
    *out = (davit_span){text + *at, n};
    *at += n + 1;
    if (n > 0 && out->ptr[n - 1] == '\r')
        out->len--;
    return true;
}

static bool is(davit_span line, const char *name)
{
    return line.len == strlen(name) && memcmp(line.ptr, name, line.len) == 0;
}

/* A line that every WordPiece vocabulary has. A SentencePiece .model never has it: its
 * pieces stand behind their lengths. */
bool davit_tok_is_vocab_txt(const char *text, size_t len)
{
    davit_span line;
    size_t at = 0;

    while (next_line(text, len, &at, &line)) {
        if (is(line, "[UNK]"))
            return true;
        if (memchr(line.ptr, '\0', line.len))
            return false;
    }
    return false;
}

static bool has_capitals(davit_span line)
{
    if (line.len > 1 && line.ptr[0] == '[' && line.ptr[line.len - 1] == ']')
        return false;
    for (uint64_t i = 0; i < line.len; i++) {
        if (g_ascii_isupper(line.ptr[i]))
            return true;
    }
    return false;
}

static int32_t read_lines(DavitTokParts *parts, const char *text, size_t len, bool *cased,
                          DavitReport *report)
{
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    davit_span line;
    size_t at = 0;
    int32_t id = 0, twin;

    for (; next_line(text, len, &at, &line); id++) {
        if (davit_ucd_check(line.ptr, line.len) != line.len)
            return davit_tok_invalid(parts, report, "line", "UTF-8",
                                     davit_report_text(report, "line %d", id + 1),
                                     "a token is not valid UTF-8");
        if (davit_vocab_add(parts->vocab, id, line.ptr, line.len) != DAVIT_VOCAB_ADDED)
            return davit_tok_invalid(parts, report, "file", "at most 16777217 lines", NULL,
                                     "the vocabulary is too large");
        *cased |= has_capitals(line);
        for (size_t i = 0; i < G_N_ELEMENTS(specials); i++) {
            const DavitAdded added = {.len = line.len, .id = id, .flags = DAVIT_ADDED_SPECIAL};

            if (!is(line, specials[i]))
                continue;
            g_array_append_val(parts->added, added);
            g_array_index(parts->added, DavitAdded, parts->added->len - 1).text =
                g_strdup(specials[i]);
        }
    }
    twin = davit_vocab_seal(parts->vocab);
    if (twin == -1)
        return DAVIT_OK;
    return davit_tok_invalid(parts, report, "file", "a line for every token",
                             davit_report_text(report, "line %d", twin + 1),
                             twin == -2 ? "no memory for the vocabulary"
                                        : "two lines have one text");
}

static int32_t read_all(DavitTokParts *parts, const char *text, size_t len,
                        DavitRegistry *registry, DavitReport *report)
{
    bool cased = false;
    int32_t status = read_lines(parts, text, len, &cased, report);
    const char *name = cased ? "@bert-cased" : "@bert";

    if (status == DAVIT_OK)
        status = davit_shape_find_pre(registry, name, strlen(name), parts->subject,
                                      &parts->claim, report);
    if (status != DAVIT_OK)
        return status;
    parts->has_claim = true;
    parts->why = cased ? "a vocab.txt with capital letters is BERT's, cased"
                       : "a vocab.txt without capital letters is BERT's, lower-cased";
    parts->model = DAVIT_MODEL_WORDPIECE;
    status = davit_tok_read_facts(parts, parts->claim.shape.gguf_facts, report);
    if (status != DAVIT_OK)
        return status;
    if (!parts->inside || !parts->unk)
        return davit_tok_invalid(parts, report, "model", "a prefix and an unknown token",
                                 NULL, "the plugin's facts lack a member");
    parts->specials[DAVIT_SPECIAL_BOS] = davit_vocab_find(parts->vocab, "[CLS]", 5);
    parts->specials[DAVIT_SPECIAL_EOS] = davit_vocab_find(parts->vocab, "[SEP]", 5);
    parts->specials[DAVIT_SPECIAL_PAD] = davit_vocab_find(parts->vocab, "[PAD]", 5);
    if (parts->specials[DAVIT_SPECIAL_BOS] < 0 || parts->specials[DAVIT_SPECIAL_EOS] < 0)
        return davit_tok_invalid(parts, report, "file", "[CLS] and [SEP]", "absent",
                                 "a BERT vocabulary has both");
    davit_tok_make_post(parts, parts->specials[DAVIT_SPECIAL_BOS],
                        parts->specials[DAVIT_SPECIAL_EOS]);
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                     .severity = DAVIT_NOTE,
                                     .stage = "open",
                                     .subject = parts->subject,
                                     .message = cased ? "the file does not say whether text "
                                                        "is lower-cased; it is not, as tokens "
                                                        "have capital letters"
                                                      : "the file does not say whether text "
                                                        "is lower-cased; it is, as no token "
                                                        "has a capital letter"});
    return DAVIT_OK;
}

DavitTokenizer *davit_tokenizer_from_vocab_txt(const char *text, size_t len,
                                               const char *subject,
                                               DavitRegistry *registry,
                                               DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;

    davit_tok_parts_init(&parts, subject, "vocab.txt");
    if (read_all(&parts, text, len, registry, report) == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
