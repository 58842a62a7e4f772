/* SPDX-License-Identifier: Apache-2.0
 * Added tokens: texts that are found as a whole, before the model sees anything.
 *
 * Two passes: tokens with normalized=false in the raw text, the others in the normalised
 * text by their own normalised form. Matching is leftmost, then longest.
 */
#ifndef DAVIT_TOKENIZER_ADDED_H
#define DAVIT_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#define DAVIT_ADDED_SINGLE_WORD 1u
#define DAVIT_ADDED_LSTRIP      2u
#define DAVIT_ADDED_RSTRIP      4u
#define DAVIT_ADDED_NORMALIZED  8u
#define DAVIT_ADDED_SPECIAL     16u
#define DAVIT_ADDED_HIDDEN      32u /* has an id and a text, is never found in a text */
#define DAVIT_ADDED_ONCE_NORMAL 64u /* this entry or an earlier one of its text was normalized */

typedef struct DavitAdded {
    char *text; /* owned by the table that holds it */
    size_t len;
    int32_t id;
    uint32_t flags; /* DAVIT_ADDED_ */
    char *spoken;   /* owned likewise: what it decodes as; NULL = text */
    size_t spoken_len;
} DavitAdded;

/* A byte trie over some added tokens. */
typedef struct DavitTrie DavitTrie;
DavitTrie *davit_trie_new(void);
void davit_trie_free(DavitTrie *trie); /* NULL is fine */
/* @len > 0; a text added twice keeps the first. Returns: false when memory is gone. */
bool davit_trie_add(DavitTrie *trie, const char *text, size_t len,
                    const DavitAdded *added);
/* The token whose text is exactly @text, @len > 0, or NULL. */
const DavitAdded *davit_trie_find(const DavitTrie *trie, const char *text, size_t len);
bool davit_trie_is_empty(const DavitTrie *trie);

/* Walk over a text: parts between added tokens and the tokens, in order. */
typedef struct DavitSplitter {
    const DavitTrie *trie; /* (borrowed) */
    const char *text;      /* (borrowed) */
    size_t n;
    bool safe;              /* pass over tokens flagged special */
    const uint8_t *locked;  /* n bytes that no special token may touch; NULL = none */
    size_t scan;            /* where matching goes on */
    size_t done;            /* end of the last match, with stripped blanks */
    const DavitAdded *held; /* a match whose gap was given first */
    size_t held_start, held_end;
} DavitSplitter;

/* One part: [start, end) of the text, @added NULL for a gap. */
typedef struct DavitPart {
    size_t start, end;
    const DavitAdded *added;
} DavitPart;

void davit_splitter_init(DavitSplitter *splitter, const DavitTrie *trie, const char *text,
                         size_t n, bool safe);
/* False at the end. Gaps are never empty. */
bool davit_splitter_next(DavitSplitter *splitter, DavitPart *out);

#endif
