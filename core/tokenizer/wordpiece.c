/* SPDX-License-Identifier: Apache-2.0
 * WordPiece. Facts: tokenizers, models/wordpiece/mod.rs (tokenize).
 */
#include "tokenizer/wordpiece.h"

#include <glib.h>

#include "tokenizer/normalize_text.h"

DavitPiecesMade davit_wordpiece_init(DavitWordPiece *w, const DavitVocab *vocab,
                                     const char *prefix, size_t prefix_len)
{
    const DavitPiecesMade made = davit_pieces_of_vocab(&w->pieces, vocab, NULL);

    if (made != DAVIT_PIECES_MADE)
        return made;
    w->inside = w->pieces.root;
    w->inside_len = prefix_len;
    for (size_t i = 0; i < prefix_len && w->inside != 0; i++) {
        if (davit_pieces_step(&w->pieces, &w->inside, prefix[i]) == DAVIT_PIECE_UNUSED)
            w->inside = 0;
    }
    return DAVIT_PIECES_MADE;
}

void davit_wordpiece_clear(DavitWordPiece *w)
{
    davit_pieces_clear(&w->pieces);
}

static int32_t push(DavitIds *out, int32_t id)
{
    if (!davit_ids_reserve(out, 1))
        return DAVIT_E_LIMIT;
    out->ids[out->n++] = id;
    return DAVIT_OK;
}

/* The longest token at @at, *out_end where it ends; DAVIT_PIECE_NONE. */
static int32_t longest(const DavitWordPiece *w, const char *word, size_t len, size_t at,
                       const uint8_t *id_flags, size_t *out_end, uint64_t *steps)
{
    uint32_t base = at == 0 ? w->pieces.root : w->inside;
    int32_t best = DAVIT_PIECE_NONE;

    for (size_t i = at; i < len; i++) {
        const int32_t id = davit_pieces_step(&w->pieces, &base, word[i]);

        (*steps)++;
        if (id == DAVIT_PIECE_UNUSED)
            break;
        if (id >= 0 && !(id_flags && (id_flags[id] & DAVIT_ID_SPECIAL))) {
            best = id;
            *out_end = i + 1;
        }
    }
    return best;
}

int32_t davit_wordpiece_encode(const DavitWordPiece *w, const char *word, size_t len,
                               const uint8_t *id_flags, DavitIds *out, uint64_t *steps)
{
    const size_t before = out->n;
    bool unknown = len > w->max_chars &&
                   davit_count_chars(word, len) > w->max_chars;

    for (size_t at = 0; at < len && !unknown;) {
        size_t end = at;
        const int32_t id = longest(w, word, len, at, id_flags, &end, steps);

        unknown = id < 0;
        if (!unknown && push(out, id) != DAVIT_OK)
            return DAVIT_E_LIMIT;
        at = end;
    }
    if (!unknown)
        return DAVIT_OK;
    out->n = before;
    return w->unk < 0 ? DAVIT_E_CORRUPT : push(out, w->unk);
}
