/* SPDX-License-Identifier: Apache-2.0
 * Unigram and WordPiece from parts, and the scored list of a Unigram vocabulary.
 */
#include <math.h>
#include <string.h>

#include "tokenizer/tokenizer_private.h"

/* ---- scores ---- */

/* Powers of ten as the compiler reads them: the nearest double. */
static double power_of_ten(int n)
{
    char text[8];

    g_snprintf(text, sizeof text, "1e%d", n);
    return g_ascii_strtod(text, NULL);
}

/* The number as serde_json 1 reads it without its feature float_roundtrip: as many digits as
 * 64 bits take, as a double, then one multiplication or division. That is not always the
 * nearest double, and Hugging Face adds what it read. */
static double serde_double(davit_span text)
{
    uint64_t digits = 0;
    int exponent = 0, given = 0;
    bool minus = false, fraction = false, full = false, down = false;
    uint64_t i = 0;
    double f;

    if (i < text.len && text.ptr[i] == '-') {
        minus = true;
        i++;
    }
    for (; i < text.len && text.ptr[i] != 'e' && text.ptr[i] != 'E'; i++) {
        const unsigned digit = (unsigned)(text.ptr[i] - '0');

        if (text.ptr[i] == '.') {
            fraction = true;
            continue;
        }
        full |= digits > (G_MAXUINT64 - digit) / 10;
        if (!full)
            digits = digits * 10 + digit;
        exponent += full ? !fraction : -(int)fraction;
    }
    if (i < text.len)
        i++;
    for (; i < text.len; i++) {
        if (text.ptr[i] == '-')
            down = true;
        else if (text.ptr[i] != '+' && given < 100000)
            given = given * 10 + (text.ptr[i] - '0');
    }
    exponent += down ? -given : given;
    f = (double)digits;
    while (exponent < -308 && f != 0) {
        f /= 1e308;
        exponent += 308;
    }
    if (f != 0 && exponent > 308)
        f = HUGE_VAL;
    else if (f != 0)
        f = exponent >= 0 ? f * power_of_ten(exponent) : f / power_of_ten(-exponent);
    return minus ? -f : f;
}

static int32_t next(DavitJsonReader *reader, davit_json_event *out)
{
    *out = (davit_json_event){.struct_size = sizeof *out};
    return davit_json_next(reader, out);
}

/* ["text", score], behind the bracket. */
static int32_t read_scored_pair(DavitTokParts *parts, DavitJsonReader *reader,
                                DavitReport *report)
{
    static const char want[] = "lists of a text and a finite score";
    const int64_t id = parts->scores->len;
    davit_json_event event;
    DavitVocabAdd added;
    double score = 0;
    int32_t status = next(reader, &event);

    if (status == DAVIT_OK && event.type != DAVIT_JSON_STRING)
        return davit_tok_invalid(parts, report, "model.vocab", want, NULL,
                                 "an entry is malformed");
    added = status == DAVIT_OK
                ? davit_vocab_add(parts->vocab, id, event.text.ptr, event.text.len)
                : DAVIT_VOCAB_ADDED;
    if (added != DAVIT_VOCAB_ADDED)
        return davit_tok_invalid(parts, report, "model.vocab",
                                 "at most 16777217 entries, 2 GiB", NULL,
                                 "the vocabulary is too large");
    if (status == DAVIT_OK)
        status = next(reader, &event);
    if (status != DAVIT_OK)
        return status;
    if (event.type == DAVIT_JSON_INT || event.type == DAVIT_JSON_REAL)
        score = serde_double(event.text);
    else
        score = NAN;
    if (!isfinite(score))
        return davit_tok_invalid(parts, report, "model.vocab", want, NULL,
                                 "an entry is malformed");
    g_array_append_val(parts->scores, score);
    status = next(reader, &event);
    if (status == DAVIT_OK && event.type != DAVIT_JSON_ARRAY_END)
        return davit_tok_invalid(parts, report, "model.vocab", want, NULL,
                                 "an entry is malformed");
    return status;
}

int32_t davit_tok_read_scored(DavitTokParts *parts, DavitJsonReader *reader,
                              DavitReport *report)
{
    davit_json_event event;
    int32_t status, twin;

    while ((status = next(reader, &event)) == DAVIT_OK &&
           event.type != DAVIT_JSON_ARRAY_END) {
        if (event.type != DAVIT_JSON_ARRAY)
            return davit_tok_invalid(parts, report, "model.vocab",
                                     "lists of a text and a finite score", NULL,
                                     "an entry is malformed");
        status = read_scored_pair(parts, reader, report);
        if (status != DAVIT_OK)
            return status;
    }
    if (status != DAVIT_OK)
        return status;
    twin = davit_vocab_seal(parts->vocab);
    if (twin == -1)
        return DAVIT_OK;
    return davit_tok_invalid(
        parts, report, "model.vocab", "a text of its own", NULL,
        twin == -2 ? "no memory for the vocabulary" : "two tokens have one text");
}

/* ---- models ---- */

static int32_t check_made(DavitPiecesMade made, const DavitTokParts *parts,
                          DavitReport *report)
{
    if (made == DAVIT_PIECES_MADE)
        return DAVIT_OK;
    if (made == DAVIT_PIECES_MEMORY)
        return davit_report_add(report,
                                &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                .status = DAVIT_E_LIMIT,
                                                .stage = "open",
                                                .subject = parts->subject,
                                                .message = "no memory for the tokens, or "
                                                           "more than 16 million nodes"});
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_TOKENIZER_UNSUPPORTED,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "open",
                                .subject = davit_report_text(report, "%s: model.vocab",
                                                             parts->subject),
                                .expected = "tokens of at most 8192 bytes",
                                .message = "a token is longer than this build allows"});
}

int32_t davit_tok_build_unigram(DavitTokenizer *t, const DavitTokParts *parts,
                                DavitReport *report)
{
    DavitUnigram *u = &t->unigram;
    const size_t n = parts->scores->len;
    g_autofree uint8_t *skip = g_try_new0(uint8_t, n + 1);
    g_autofree uint8_t *counts = g_try_new0(uint8_t, n + 1);

    if (!skip || !counts)
        return check_made(DAVIT_PIECES_MEMORY, parts, report);
    if (parts->unk_id >= (int64_t)n)
        return davit_tok_invalid(parts, report, "model.unk_id", "an id of the vocabulary",
                                 davit_report_text(report, "%" G_GINT64_FORMAT,
                                                   parts->unk_id),
                                 "the unknown token is not in the vocabulary");
    u->vocab = t->vocab;
    u->scores = g_memdup2(parts->scores->data, n * sizeof(double));
    u->unk = (int32_t)parts->unk_id;
    u->byte_fallback = parts->byte_fallback;
    u->sentencepiece = parts->sentencepiece;
    for (size_t i = 0; i < n; i++) {
        const uint8_t type =
            i < parts->types->len ? g_array_index(parts->types, uint8_t, i) : 0;

        skip[i] = type & DAVIT_SCORE_SKIP;
        counts[i] = !(type & DAVIT_SCORE_APART);
    }
    t->unk = u->unk;
    return check_made(davit_unigram_finish(u, skip, counts), parts, report);
}

int32_t davit_tok_build_wordpiece(DavitTokenizer *t, const DavitTokParts *parts,
                                  DavitReport *report)
{
    DavitWordPiece *w = &t->wordpiece;

    w->unk = davit_vocab_find(t->vocab, parts->unk, parts->unk_len);
    w->max_chars = parts->max_chars;
    t->unk = w->unk;
    return check_made(davit_wordpiece_init(w, t->vocab, parts->inside, parts->inside_len),
                      parts, report);
}
