/* SPDX-License-Identifier: Apache-2.0
 * A byte trie over the tokens of a model, for walking a text: one memory access a byte.
 *
 * A double array: the child of a node by byte b is the unit at (base of the node) ^ b, if
 * that unit is labelled b. A base belongs to one node only, so the label is proof enough.
 * Bases lie in whole blocks of 256 units, so no byte leads out of the array; base 0 is a
 * block that nobody owns, where every walk ends.
 */
#ifndef DAVIT_TOKENIZER_PIECES_H
#define DAVIT_TOKENIZER_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/vocab.h"

/* A walk over a text costs (bytes of the text) x (bytes of the longest token); longer
 * tokens than this are refused. SentencePiece's trainer makes 16 characters at most. */
#define DAVIT_PIECE_MAX_LEN 8192

#define DAVIT_PIECE_NONE   (-1) /* a node, but no token ends there */
#define DAVIT_PIECE_UNUSED INT32_MIN

typedef struct DavitPieceUnit {
    uint32_t link; /* base of the children << 8 | label */
    int32_t id;    /* the token that ends here, or one of the two above */
} DavitPieceUnit;

typedef struct DavitPieces {
    DavitPieceUnit *units; /* owned */
    uint32_t n_units;      /* a multiple of 256, at most 2^24 */
    uint32_t root;         /* base of the root */
    size_t max_len;        /* bytes of the longest token */
} DavitPieces;

typedef enum DavitPiecesMade {
    DAVIT_PIECES_MADE,
    DAVIT_PIECES_MEMORY, /* memory is gone, or more than 2^24 units */
    DAVIT_PIECES_LONG,   /* a token is longer than DAVIT_PIECE_MAX_LEN */
} DavitPiecesMade;

/* One text of the trie. */
typedef struct DavitPieceKey {
    uint64_t head;    /* its first 8 bytes, big-endian: sorts most pairs */
    const char *text; /* (borrowed during the call) */
    uint32_t len;
    int32_t id; /* >= 0 */
} DavitPieceKey;
DavitPieceKey davit_piece_key(const char *text, size_t len, int32_t id);

/* Build @out (zeroed by the caller) over @n keys, which are sorted here; empty texts are
 * left out, of equal texts the highest id stays. */
DavitPiecesMade davit_pieces_build(DavitPieces *out, DavitPieceKey *keys, size_t n);
/* The same over all tokens of @vocab; @skip (by id, NULL = none) leaves those with 1 out. */
DavitPiecesMade davit_pieces_of_vocab(DavitPieces *out, const DavitVocab *vocab,
                                      const uint8_t *skip);
void davit_pieces_clear(DavitPieces *pieces);

/* One byte further from the node with base *base. Returns: DAVIT_PIECE_UNUSED if there is
 * no such child, else its id or DAVIT_PIECE_NONE. */
static inline int32_t davit_pieces_step(const DavitPieces *pieces, uint32_t *base,
                                        char byte)
{
    const DavitPieceUnit unit = pieces->units[*base ^ (uint8_t)byte];

    if ((uint8_t)unit.link != (uint8_t)byte)
        return DAVIT_PIECE_UNUSED;
    *base = unit.link >> 8;
    return unit.id;
}

/* Id of the longest token that begins @text, *out_len its bytes; DAVIT_PIECE_NONE. */
int32_t davit_pieces_longest(const DavitPieces *pieces, const char *text, size_t len,
                             size_t *out_len);

#endif
