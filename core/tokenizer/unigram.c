/* SPDX-License-Identifier: Apache-2.0
 * Viterbi over the bytes of a piece. Facts: tokenizers, models/unigram/model.rs
 * (encode_optimized, tokenize); sentencepiece, unigram_model.cc (EncodeOptimized).
 */
#include "tokenizer/unigram.h"

#include <stdio.h>
#include <string.h>

#include <glib.h>

#include <davit/help/ucd.h>

#define UNSET    (-1) /* no way leads here yet */
#define UNKNOWN  (-2) /* the best way ends with one unknown character */
#define UNK_COST 10.0 /* both references */

void davit_unigram_scratch_clear(DavitUnigramScratch *scratch)
{
    g_free(scratch->ids);
    g_free(scratch->sums);
    *scratch = (DavitUnigramScratch){0};
}

DavitPiecesMade davit_unigram_finish(DavitUnigram *u, const uint8_t *skip,
                                     const uint8_t *counts)
{
    double least = G_MAXDOUBLE;

    for (size_t id = 0; id < davit_vocab_n_tokens(u->vocab); id++) {
        if ((!counts || counts[id]) && u->scores[id] < least)
            least = u->scores[id];
    }
    u->unk_score = u->sentencepiece ? (double)((float)least - (float)UNK_COST)
                                    : least - UNK_COST;
    for (unsigned i = 0; i < 256; i++) {
        char text[8];

        snprintf(text, sizeof text, "<0x%02X>", i);
        u->bytes[i] = u->byte_fallback ? davit_vocab_find(u->vocab, text, 6) : -1;
    }
    return davit_pieces_of_vocab(&u->pieces, u->vocab, skip);
}

void davit_unigram_clear(DavitUnigram *u)
{
    davit_pieces_clear(&u->pieces);
    g_free(u->scores);
}

static bool reserve(const DavitUnigram *u, DavitUnigramScratch *s, size_t len)
{
    size_t n_sums = 64;

    while (n_sums < u->pieces.max_len + 4) /* an unknown character has up to 4 bytes */
        n_sums *= 2;
    if (s->n_sums < n_sums) {
        double *sums = g_try_renew(double, s->sums, n_sums);

        if (!sums)
            return false;
        s->sums = sums;
        s->n_sums = n_sums;
    }
    if (s->cap < len + 1) {
        const size_t cap = MAX(len + 1, MAX(s->cap * 2, 1024));
        int32_t *ids = g_try_renew(int32_t, s->ids, cap);

        if (!ids)
            return false;
        s->ids = ids;
        s->cap = cap;
    }
    return true;
}

/* A way to byte @end with @sum that ends with @id: kept if it is the first or better.
 * True if it was kept. sentencepiece adds and compares in single precision. */
static inline bool offer(const DavitUnigram *u, DavitUnigramScratch *s, size_t end,
                         double sum, int32_t id)
{
    double *best = &s->sums[end & (s->n_sums - 1)];

    if (u->sentencepiece)
        sum = (double)(float)sum;
    if (s->ids[end] != UNSET && !(sum > *best))
        return false;
    *best = sum;
    s->ids[end] = id;
    return true;
}

static int32_t forward(const DavitUnigram *u, DavitUnigramScratch *s, const char *text,
                       size_t len, const uint8_t *id_flags)
{
    uint32_t n_char;

    memset(s->ids, 0xff, (len + 1) * sizeof *s->ids); /* UNSET */
    s->sums[0] = 0;
    for (size_t at = 0; at < len; at += n_char) {
        const double here = s->sums[at & (s->n_sums - 1)];
        uint32_t base = u->pieces.root;
        bool single = false;
        size_t end = at;

        davit_ucd_decode(text, len, at, &n_char);
        while (end < len) {
            const int32_t id = davit_pieces_step(&u->pieces, &base, text[end]);

            if (id == DAVIT_PIECE_UNUSED)
                break;
            end++;
            if (id < 0 || (id_flags && (id_flags[id] & DAVIT_ID_SPECIAL)))
                continue;
            offer(u, s, end, u->scores[id] + here, id);
            single |= end - at == n_char;
        }
        s->steps += end - at + 1;
        if (!single) {
            if (offer(u, s, at + n_char, u->unk_score + here, UNKNOWN) && u->unk < 0)
                return DAVIT_E_CORRUPT;
        }
    }
    return DAVIT_OK;
}

static size_t token_len(const DavitUnigram *u, const char *text, size_t len, size_t at,
                        int32_t id)
{
    size_t n = 0;
    uint32_t n_char;

    if (id != UNKNOWN) {
        davit_vocab_text(u->vocab, id, &n);
        return n;
    }
    davit_ucd_decode(text, len, at, &n_char);
    return n_char;
}

/* The best way, gathered at the end of ids: each token has a byte at least, so the place
 * written to is never before the place read from. Returns: its first place. */
static size_t backward(const DavitUnigram *u, DavitUnigramScratch *s, const char *text,
                       size_t len)
{
    size_t at = len, place = len + 1;

    while (at > 0) {
        const int32_t id = s->ids[at];

        if (id == UNKNOWN)
            at = (size_t)davit_ucd_back(text, at);
        else
            at -= token_len(u, text, len, 0, id);
        s->ids[--place] = id;
    }
    return place;
}

static int32_t push(DavitIds *out, int32_t id)
{
    if (!davit_ids_reserve(out, 1))
        return DAVIT_E_LIMIT;
    out->ids[out->n++] = id;
    return DAVIT_OK;
}

/* Ids of a run of unknown text: the token it happens to be, its bytes, or the unknown. */
static int32_t push_unknown(const DavitUnigram *u, const char *text, size_t len,
                            const uint8_t *id_flags, DavitIds *out)
{
    const int32_t id =
        u->sentencepiece ? -1 : davit_vocab_find(u->vocab, text, len);
    bool bytes = u->byte_fallback;

    if (id >= 0 && !(id_flags && (id_flags[id] & DAVIT_ID_SPECIAL)))
        return push(out, id);
    for (size_t i = 0; bytes && i < len; i++)
        bytes = u->bytes[(uint8_t)text[i]] >= 0;
    if (!bytes)
        return push(out, u->unk);
    if (!davit_ids_reserve(out, len))
        return DAVIT_E_LIMIT;
    for (size_t i = 0; i < len; i++)
        out->ids[out->n++] = u->bytes[(uint8_t)text[i]];
    return DAVIT_OK;
}

int32_t davit_unigram_encode(const DavitUnigram *u, DavitUnigramScratch *s,
                             const char *piece, size_t len, const uint8_t *id_flags,
                             DavitIds *out)
{
    int32_t status;
    size_t at = 0, run = 0; /* bytes of unknowns before @at that wait */

    if (len == 0)
        return DAVIT_OK;
    if (!reserve(u, s, len))
        return DAVIT_E_LIMIT;
    status = forward(u, s, piece, len, id_flags);
    if (status != DAVIT_OK)
        return status;
    for (size_t place = backward(u, s, piece, len); place <= len; place++) {
        const int32_t id = s->ids[place];
        const size_t n = token_len(u, piece, len, at, id);
        const bool unknown = id == UNKNOWN || (id == u->unk && !u->sentencepiece);

        if (unknown) {
            run += n;
        } else if (run > 0) {
            status = push_unknown(u, piece + at - run, run, id_flags, out);
            run = 0;
        }
        if (status == DAVIT_OK && !unknown)
            status = push(out, id);
        if (status != DAVIT_OK)
            return status;
        at += n;
    }
    return run > 0 ? push_unknown(u, piece + at - run, run, id_flags, out) : status;
}
