/* SPDX-License-Identifier: Apache-2.0
 * One piece: the model, behind a cache of words. Nothing is allocated per piece or id.
 */
#include "tokenizer/encode.h"

#include <string.h>

/* Two caches, direct-mapped: words of at most 15 bytes that gave at most 3 ids, and longer ones or
 * with more ids, of which a text has few different ones (names in code, runs of blanks). */
#define CACHE_BITS 16
#define CACHE_TEXT 15u
#define CACHE_IDS  3u
#define LONG_BITS  12
#define LONG_TEXT  31u
#define LONG_IDS   7u
/* Two megabytes of them are made behind this many words: most texts are shorter. */
#define CACHE_AFTER 256

/* A key is the bytes, and their count and kind in the last byte; 0 = empty. */
typedef struct DavitWord {
    uint64_t key[2];
    int32_t ids[CACHE_IDS];
    uint32_t n;
} DavitWord;

typedef struct DavitLongWord {
    uint64_t key[4];
    int32_t ids[LONG_IDS];
    uint32_t n;
} DavitLongWord;

struct DavitWords {
    DavitWord words[1u << CACHE_BITS];
    DavitLongWord long_words[1u << LONG_BITS];
};

/* Up to 8 bytes as a number, zeros behind. Loads overlap: no loop, nothing beyond the
 * text. */
static uint64_t load_bytes(const char *p, size_t n)
{
    uint64_t v = 0;
    uint32_t low, high;

    if (n == 8) {
        memcpy(&v, p, 8);
    } else if (n >= 4) {
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        v = GUINT32_FROM_LE(low) | (uint64_t)GUINT32_FROM_LE(high) << 8 * (n - 4);
    } else {
        for (size_t i = 0; i < n; i++)
            v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    }
    return v;
}

/* What else than its bytes a word's ids depend on: see @whole of encode_word, and whether special
 * tokens are hidden. In the upper bits of its length's byte. */
static uint64_t kind_of(bool whole, bool hidden)
{
    return (whole ? 0 : 0x80) | (hidden ? 0x40 : 0);
}

static DavitWord *find_word(struct DavitWords *words, const char *piece, size_t len,
                            uint64_t kind, uint64_t key[2])
{
    uint64_t h;

    key[0] = load_bytes(piece, MIN(len, 8));
    key[1] = (len > 8 ? load_bytes(piece + 8, len - 8) : 0) | (len | kind) << 56;
    h = (key[0] ^ key[1] * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    return &words->words[h >> (64 - CACHE_BITS)];
}

static DavitLongWord *find_long_word(struct DavitWords *words, const char *piece, size_t len,
                                     uint64_t kind, uint64_t key[4])
{
    uint64_t h = 0;

    for (size_t i = 0; i < 4; i++) {
        key[i] = len > 8 * i ? load_bytes(piece + 8 * i, MIN(len - 8 * i, 8)) : 0;
        key[i] |= i == 3 ? (len | kind) << 56 : 0;
        h = (h ^ key[i]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return &words->long_words[h * 0xd6e8feb86659fd93ull >> (64 - LONG_BITS)];
}

/* Where special tokens stay text, the models must not give them. NULL = they may. */
static const uint8_t *hidden_ids(const DavitEncodeJob *job)
{
    return job->safe || job->locked ? job->encoder->tokenizer->id_flags : NULL;
}

const DavitBpe *davit_encode_bpe(const DavitEncodeJob *job)
{
    const DavitTokenizer *t = job->encoder->tokenizer;

    return t->text_bpe && hidden_ids(job) ? t->text_bpe : &t->bpe;
}

static int32_t run_model(DavitEncodeJob *job, const char *piece, size_t len, bool whole)
{
    DavitEncoder *encoder = job->encoder;
    const DavitTokenizer *t = encoder->tokenizer;

    switch (t->model) {
    case DAVIT_MODEL_UNIGRAM:
        return davit_unigram_encode(&t->unigram, &encoder->unigram, piece, len,
                                    hidden_ids(job), job->out);
    case DAVIT_MODEL_WORDPIECE:
        return davit_wordpiece_encode(&t->wordpiece, piece, len, hidden_ids(job),
                                      job->out, &encoder->steps);
    case DAVIT_MODEL_BPE:
        encoder->bpe.chars = job->wide;
        return davit_bpe_encode(davit_encode_bpe(job), &encoder->bpe, piece, len, whole,
                                hidden_ids(job), job->out);
    }
    g_assert_not_reached();
}

static int32_t append(DavitIds *out, const int32_t *ids, size_t n)
{
    if (!davit_ids_reserve(out, LONG_IDS))
        return DAVIT_E_LIMIT;
    memcpy(out->ids + out->n, ids, n * sizeof *ids);
    out->n += n;
    return DAVIT_OK;
}

/* @len <= LONG_TEXT, and the other cache does not have it. */
static int32_t encode_long_word(DavitEncodeJob *job, const char *piece, size_t len, bool whole,
                                uint64_t kind)
{
    DavitIds *out = job->out;
    const size_t before = out->n;
    uint64_t key[4];
    DavitLongWord *word = find_long_word(job->encoder->words, piece, len, kind, key);
    int32_t status;

    if (memcmp(word->key, key, sizeof key) == 0)
        return append(out, word->ids, word->n);
    status = run_model(job, piece, len, whole);
    if (status == DAVIT_OK && out->n - before <= LONG_IDS &&
        (len > CACHE_TEXT || out->n - before > CACHE_IDS)) {
        memcpy(word->key, key, sizeof key);
        word->n = (uint32_t)(out->n - before);
        memcpy(word->ids, out->ids + before, word->n * sizeof *word->ids);
    }
    return status;
}

/* Ids of a piece that no cut divides, or with @whole = false of a part of one. */
static int32_t encode_word(DavitEncodeJob *job, const char *piece, size_t len, bool whole)
{
    DavitEncoder *encoder = job->encoder;
    DavitIds *out = job->out;
    const uint64_t kind = kind_of(whole, hidden_ids(job) != NULL);
    const size_t before = out->n;
    uint64_t key[2];
    DavitWord *word;
    int32_t status;

    if (!encoder->words && ++encoder->n_words >= CACHE_AFTER)
        encoder->words = g_new0(struct DavitWords, 1);
    if (len > LONG_TEXT || !encoder->words)
        return run_model(job, piece, len, whole);
    if (len > CACHE_TEXT)
        return encode_long_word(job, piece, len, whole, kind);
    word = find_word(encoder->words, piece, len, kind, key);
    if (word->key[0] == key[0] && word->key[1] == key[1]) {
        if (!davit_ids_reserve(out, CACHE_IDS))
            return DAVIT_E_LIMIT;
        memcpy(out->ids + out->n, word->ids, sizeof word->ids);
        out->n += word->n;
        return DAVIT_OK;
    }
    status = encode_long_word(job, piece, len, whole, kind);
    if (status == DAVIT_OK && out->n - before <= CACHE_IDS) {
        memcpy(word->key, key, sizeof key);
        word->n = (uint32_t)(out->n - before);
        memcpy(word->ids, out->ids + before, word->n * sizeof *word->ids);
    }
    return status;
}

void davit_encode_tell(const DavitEncodeJob *job, const char *text, size_t len,
                       size_t before, bool added)
{
    const DavitPiece piece = {text, len, job->out->ids + before, job->out->n - before,
                              added};

    if (job->fn)
        job->fn(job->ctx, &piece);
}

static int32_t encode_part_word(void *job, const char *text, size_t len, bool whole)
{
    return encode_word(job, text, len, whole);
}

/* May the piece have wide characters to cut between? Short ones only if they begin with one, or
 * behind one byte; cuts change no id. */
static bool is_wide(const char *piece, size_t len)
{
    return len >= 3 && (len > CACHE_TEXT || (uint8_t)piece[0] >= 0xe2 || (uint8_t)piece[1] >= 0xe2);
}

int32_t davit_encode_piece(DavitEncodeJob *job, const char *piece, size_t len)
{
    const DavitBpe *bpe = davit_encode_bpe(job);
    const size_t before = job->out->n;
    size_t from = 0;
    int32_t status = DAVIT_OK;

    if (job->wide && bpe->joins && !bpe->open && is_wide(piece, len))
        status = davit_bpe_parts(bpe, piece, len, encode_part_word, job, job->out);
    else if (!bpe->cuts || bpe->open)
        status = encode_word(job, piece, len, true);
    while (bpe->cuts && !bpe->open && from < len && status == DAVIT_OK) {
        const size_t end = davit_bpe_cut(bpe, piece, len, from);

        status = encode_word(job, piece + from, end - from, true);
        from = end;
    }
    if (status == DAVIT_OK && job->align)
        davit_align_piece(job->align, piece, len, job->out->ids + before,
                          job->out->n - before);
    if (status == DAVIT_OK)
        davit_encode_tell(job, piece, len, before, false);
    return status;
}
