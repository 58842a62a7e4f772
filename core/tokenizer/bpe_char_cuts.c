/* SPDX-License-Identifier: Apache-2.0
 * Where a piece of a table of characters (SentencePiece's) may be cut without changing an id. Of
 * such files a line of text is one piece; between cuts it is words, which the cache knows, and a
 * word behind its comma is one that it knows, too. Byte-level tables: bpe_cuts.c.
 */
#include "tokenizer/bpe.h"

#include <string.h>

#include "tokenizer/bpe_table.h"

/* U+2581, the SentencePiece mark for a space. */
static const char mark[3] = {'\xe2', '\x96', '\x81'};

static inline bool is_mark(const char *text, size_t n, size_t at)
{
    return text[at] == mark[0] && n - at >= sizeof mark && memcmp(text + at, mark, sizeof mark) == 0;
}

/* Is the mark at @at the first of several? */
static inline bool is_first_mark(const char *text, size_t at, size_t from)
{
    return at - from < sizeof mark || memcmp(text + at - sizeof mark, mark, sizeof mark) != 0;
}

static inline void keep_beside(DavitBpe *bpe, uint8_t byte, uint8_t ascii)
{
    bpe->beside[byte][ascii / 64] |= 1ull << ascii % 64;
}

static inline bool is_beside(const DavitBpe *bpe, uint8_t byte, uint8_t ascii)
{
    return bpe->beside[byte][ascii / 64] >> ascii % 64 & 1;
}

/* Remember the last byte of every character that stands before a mark or ASCII inside @text. */
static void note_neighbours(DavitBpe *bpe, const char *text, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        const uint8_t byte = (uint8_t)text[i], before = (uint8_t)text[i - 1];

        if (byte < 0x80)
            keep_beside(bpe, before, byte);
        else if (is_mark(text, len, i) && is_first_mark(text, i, 0))
            bpe->keep[before] = 1;
    }
}

/* Before what has no token nothing is cut: unknowns that are neighbours may become one. */
static void keep_unknown(DavitBpe *bpe)
{
    for (uint8_t ascii = 0; ascii < 0x80; ascii++) {
        for (unsigned byte = 0; byte < 256 && (ascii >= bpe->n_bmp || bpe->bmp[ascii] < 0); byte++)
            keep_beside(bpe, (uint8_t)byte, ascii);
    }
}

/* What find_cuts notes of an id. */
#define JOINED   1u /* the result of a merge */
#define NOT_TEXT 2u /* a <0xNN> token or the unknown */

static void note_not_text(const DavitBpe *bpe, uint8_t *notes)
{
    if (bpe->unk >= 0)
        notes[bpe->unk] |= NOT_TEXT;
    for (size_t id = 0; bpe->byte_fallback && id < davit_vocab_n_ids(bpe->vocab); id++) {
        size_t len;
        const char *text = davit_vocab_text(bpe->vocab, (int64_t)id, &len);

        if (text && len == 6 && memcmp(text, "<0x", 3) == 0)
            notes[id] |= NOT_TEXT;
    }
}

/* Characters for which there is nothing leave the text, and their neighbours meet. */
static bool may_vanish(const DavitBpe *bpe)
{
    for (int b = 0; bpe->byte_fallback && b < 256; b++) {
        if (bpe->bytes[b] < 0)
            return !bpe->has_unk_name;
    }
    return !bpe->byte_fallback && !bpe->has_unk_name;
}

/* A piece may be cut between two characters when no merge can reach over the cut: a merged token
 * then has the two next to each other inside, and those are kept. That needs merged texts to be
 * real text, so no merge may touch <0xNN> or the unknown. */
bool davit_bpe_find_cuts(DavitBpe *bpe, const DavitMerge *merges, size_t n)
{
    const size_t n_ids = davit_vocab_n_ids(bpe->vocab);
    const char *block;
    const DavitVocabEntry *entries = davit_vocab_entries(bpe->vocab, &block);
    g_autofree uint8_t *notes = NULL;

    bpe->cuts = !bpe->byte_level && !bpe->ignore_merges && !may_vanish(bpe) &&
                davit_vocab_find(bpe->vocab, mark, sizeof mark) >= 0;
    if (!bpe->cuts)
        return true;
    notes = g_try_malloc0(n_ids + 1);
    if (!notes)
        return false;
    note_not_text(bpe, notes);
    keep_unknown(bpe);
    for (size_t i = 0; i < n; i++) {
        bpe->cuts &= !((notes[merges[i].left] | notes[merges[i].right]) & NOT_TEXT);
        notes[merges[i].joined] |= JOINED;
    }
    for (size_t id = 0; bpe->cuts && id < n_ids; id++) {
        if (notes[id] & JOINED)
            note_neighbours(bpe, block + entries[id].off, entries[id].len);
    }
    return true;
}

size_t davit_bpe_cut(const DavitBpe *bpe, const char *text, size_t n, size_t from)
{
    if (!bpe->cuts)
        return n;
    for (size_t at = from + 1; at < n; at++) {
        const uint8_t byte = (uint8_t)text[at], before = (uint8_t)text[at - 1];

        if (byte < 0x80 ? !is_beside(bpe, before, byte)
                        : is_mark(text, n, at) && !bpe->keep[before] && is_first_mark(text, at, from))
            return at;
    }
    return n;
}
