/* SPDX-License-Identifier: Apache-2.0
 * WordPiece: the longest token first, then the longest that continues a word, and so on; a
 * word that cannot be covered is unknown as a whole.
 */
#ifndef DAVIT_TOKENIZER_WORDPIECE_H
#define DAVIT_TOKENIZER_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>

#include "tokenizer/pieces.h"
#include "tokenizer/tokenizer.h"

typedef struct DavitWordPiece {
    DavitPieces pieces;
    uint32_t inside;    /* base behind the prefix of tokens inside a word; 0 = there are none */
    size_t inside_len;  /* bytes of that prefix */
    int32_t unk;        /* -1 = not in the vocabulary */
    uint64_t max_chars; /* of one word; longer ones are unknown */
} DavitWordPiece;

/* Trie over @vocab; @prefix marks tokens inside a word ("##"). */
DavitPiecesMade davit_wordpiece_init(DavitWordPiece *wordpiece, const DavitVocab *vocab,
                                     const char *prefix, size_t prefix_len);
void davit_wordpiece_clear(DavitWordPiece *wordpiece);

/* Append the ids of one word; @id_flags as davit_unigram_encode. DAVIT_E_CORRUPT when it is
 * unknown and the vocabulary has no unknown token. @steps counts bytes looked at. */
int32_t davit_wordpiece_encode(const DavitWordPiece *wordpiece, const char *word,
                               size_t len, const uint8_t *id_flags, DavitIds *out,
                               uint64_t *steps);

#endif
