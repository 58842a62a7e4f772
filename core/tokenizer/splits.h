/* SPDX-License-Identifier: Apache-2.0
 * All ways to split a token into two tokens, for vocabularies that come without a merge list.
 */
#ifndef DAVIT_TOKENIZER_SPLITS_H
#define DAVIT_TOKENIZER_SPLITS_H

#include "tokenizer/vocab.h"

/* The longest token that begins (or ends) a token and is not the token itself. */
typedef struct DavitPartLink {
    uint32_t next; /* its id + 1; 0 = none */
    uint32_t len;  /* bytes of its text */
} DavitPartLink;

/* All tokens that begin a token are those on the way along heads, the longest first; those that end
 * it on the way along tails. */
typedef struct DavitSplits {
    const DavitVocab *vocab;     /* (borrowed) */
    DavitPartLink *heads, *tails; /* by id; pages of ids without a token are never made */
} DavitSplits;

typedef struct DavitSplit {
    uint32_t left, right;         /* ids */
    uint32_t left_len, right_len; /* bytes */
} DavitSplit;

/* Of a sealed vocabulary whose texts are valid UTF-8, in one or two threads. False when memory is
 * gone; clear it then too. */
bool davit_splits_init(DavitSplits *splits, const DavitVocab *vocab);
void davit_splits_clear(DavitSplits *splits);

/* The splits of @id, a token of at most DAVIT_TOK_MAX_SPLIT characters and twice as many bytes (a
 * byte spelled as a letter has two), the longest left half first. @out: room for as many as it has
 * characters. Returns: how many. */
size_t davit_splits_of(const DavitSplits *splits, uint32_t id, DavitSplit *out);

/* The links of @id are wanted soon. */
static inline void davit_splits_fetch(const DavitSplits *splits, uint32_t id)
{
    const uint32_t head = splits->heads[id].next, tail = splits->tails[id].next;

    __builtin_prefetch(&splits->heads[head ? head - 1 : 0]);
    __builtin_prefetch(&splits->tails[tail ? tail - 1 : 0]);
}

#endif
