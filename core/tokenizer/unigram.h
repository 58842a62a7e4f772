/* SPDX-License-Identifier: Apache-2.0
 * Unigram: of all ways to cut a piece into tokens, the one with the best sum of scores.
 *
 * Two contracts. Hugging Face's Unigram adds in double precision and looks a run of
 * unknowns up as one text; sentencepiece adds in single precision, gives user-defined
 * pieces a score of their own, and joins a run of unknowns.
 */
#ifndef DAVIT_TOKENIZER_UNIGRAM_H
#define DAVIT_TOKENIZER_UNIGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/pieces.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

typedef struct DavitUnigram {
    const DavitVocab *vocab; /* (borrowed) */
    DavitPieces pieces;
    double *scores;     /* owned, by id */
    double unk_score;   /* of one unknown character: least score - 10 */
    int32_t unk;        /* -1 = none */
    int32_t bytes[256]; /* <0xNN> tokens, -1 = none */
    bool byte_fallback;
    bool sentencepiece; /* the second contract */
} DavitUnigram;

/* One thread's buffers. Zero-initialised = empty. */
typedef struct DavitUnigramScratch {
    int32_t *ids; /* by byte of the piece: the token that ends there on the best way */
    size_t cap;
    double *sums; /* ring over the bytes ahead, by byte modulo n_sums */
    size_t n_sums;
    uint64_t steps;
} DavitUnigramScratch;
void davit_unigram_scratch_clear(DavitUnigramScratch *scratch);

/* After vocab, scores (finite), unk, flags: the trie, unk_score over ids where @counts (by
 * id, NULL = all) is 1, bytes. @skip as davit_pieces_of_vocab. */
DavitPiecesMade davit_unigram_finish(DavitUnigram *unigram, const uint8_t *skip,
                                     const uint8_t *counts);
void davit_unigram_clear(DavitUnigram *unigram);

/* Append the ids of one piece. @id_flags: NULL, or by id, and tokens with DAVIT_ID_SPECIAL are
 * passed over (text stays text). DAVIT_OK, DAVIT_E_LIMIT (memory), or DAVIT_E_CORRUPT when a
 * character is unknown and the model has no unknown token. Linear in @len (times the
 * longest token), no recursion. */
int32_t davit_unigram_encode(const DavitUnigram *unigram, DavitUnigramScratch *scratch,
                             const char *piece, size_t len, const uint8_t *id_flags,
                             DavitIds *out);

#endif
