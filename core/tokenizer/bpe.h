/* SPDX-License-Identifier: Apache-2.0
 * Byte-pair merging as Hugging Face's BPE model does it: lowest rank first, leftmost
 * first.
 */
#ifndef DAVIT_TOKENIZER_BPE_H
#define DAVIT_TOKENIZER_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

/* One line of the merge list. */
typedef struct DavitMerge {
    uint32_t left, right; /* ids */
    uint32_t rank;        /* order; equal for merges of which the leftmost goes first */
    uint32_t joined;      /* id of the two together */
} DavitMerge;

/* Of a pair that is no merge. */
#define DAVIT_BPE_NONE UINT32_MAX

typedef struct DavitBpe {
    const DavitVocab *vocab; /* (borrowed) */
    /* Hash table by pair, at most three fifths full: pair << at_bits | place in joined + 1, and
     * 0 = empty. Half a million merges are 7 MB, of which a lookup touches one line. */
    uint64_t *slots;
    uint32_t n_slots;
    uint32_t id_bits; /* a pair is left << id_bits | right */
    uint32_t at_bits; /* 0 = too wide for one word: a slot has two, the place + 1 and the pair */
    uint32_t *joined; /* by place: the order in which merges were added */
    uint32_t *ranks;  /* by place; NULL = the places themselves */
    uint32_t n_merges, most_merges; /* places taken, and there are */
    /* 2^filter_bits bits, 8 to 16 for a merge: 0 = the pair is not in the table. Half a megabyte
     * that answers four of five questions, where the table has 16 */
    uint64_t *filter;
    uint32_t filter_bits;
    uint64_t seed;
    bool byte_level;    /* symbols are bytes, spelled in the 256 letter alphabet */
    bool byte_fallback; /* unknown characters become <0xNN> tokens */
    bool fuse_unk;      /* neighbouring unknowns become one */
    bool ignore_merges; /* a whole piece that is a token is taken as such */
    bool has_unk_name;  /* the file names an unknown token */
    bool open;          /* ignore_merges is not known: both ways must give the same */
    bool cuts;          /* pieces may be cut between characters, see davit_bpe_cut */
    int32_t unk;        /* id of the unknown token; -1 = not in the vocabulary */
    int32_t bytes[256]; /* id of the byte's symbol or <0xNN> token, -1 = none */
    /* n_bmp: id of the token of one character, -1 = none; byte_level: of those only that merging
     * completes before it joins them with a neighbour, with a condition; NULL = none */
    int32_t *bmp;
    uint32_t n_bmp; /* code points below it are in bmp: 65536, or 1 + the highest of a token */
    struct DavitCharCondition *conditions; /* byte_level: of bmp, see bpe_table.h */
    uint64_t *joins;   /* byte_level: which characters tokens have beside each other, */
    uint64_t *triples; /* and which three; bits, see bpe_cuts.c. NULL = not known */
    _Atomic bool has_chars; /* byte_level: bmp to triples are made */
    _Atomic uint32_t n_beyond; /* bytes beyond ASCII so far, until then */
    /* With cuts: where not to cut behind a character that ends with a byte. */
    uint8_t keep[256];        /* 1: before U+2581 */
    uint64_t beside[256][2];  /* bit c: before ASCII character c */
} DavitBpe;

/* One thread's buffers. Zero-initialised = empty. */
typedef struct DavitBpeScratch {
    uint32_t *ids, *prev, *next; /* cap each: linked list of symbols */
    size_t cap;
    struct DavitBpeStep *heap;
    size_t heap_cap;
    uint64_t steps;
    bool chars; /* of the caller: a byte_level table's bmp to triples may be looked at */
} DavitBpeScratch;
void davit_bpe_scratch_clear(DavitBpeScratch *scratch);

/* Make room for @n_merges of tokens of @vocab, which is complete. Returns: false when memory is
 * gone. */
bool davit_bpe_init(DavitBpe *bpe, const DavitVocab *vocab, uint64_t n_merges);
void davit_bpe_clear(DavitBpe *bpe);

/* Behind init and the flags, once: @n merges, for which there is room; a pair given twice keeps the
 * last. Fills what follows from them: bytes, bmp, cuts; not bmp and joins of a byte_level table.
 * False when memory is gone. */
bool davit_bpe_fill(DavitBpe *bpe, const DavitMerge *merges, size_t n);

/* Place of the merge of two neighbours, or DAVIT_BPE_NONE. */
uint32_t davit_bpe_find(const DavitBpe *bpe, uint32_t left, uint32_t right);

/* Bytes beyond ASCII behind which bmp to triples of a byte_level table are made. That takes as long
 * as encoding 170 kB of Chinese without them (gpt-oss), and short prompts and English do without. */
#define DAVIT_BPE_CHARS_AFTER 4096u

/* Before a text with @n bytes beyond ASCII is encoded with a byte_level table: behind enough of
 * them in all texts, make bmp to triples, if nobody has. When memory is gone they stay NULL, which
 * changes no id. Returns: are they made, so that scratch->chars may be set? [any thread] */
bool davit_bpe_need_chars(const DavitBpe *bpe, size_t n);

/* Encodes @n bytes; @whole: they are all of a piece, not a part. */
typedef int32_t (*DavitBpePartFn)(void *ctx, const char *text, size_t n, bool whole);

/* Append the ids of a piece of a table with joins, cut where no merge reaches over: parts of one or
 * two characters by themselves, the others by @fn, whose ids go to @out too. DAVIT_OK, what @fn
 * gives, or DAVIT_E_LIMIT. */
int32_t davit_bpe_parts(const DavitBpe *bpe, const char *piece, size_t n, DavitBpePartFn fn,
                        void *ctx, DavitIds *out);

/* Append the ids of one piece, or with @whole = false of a part of one, which is not looked up
 * whole. @id_flags, by id or NULL: the piece shall stay text, no token with DAVIT_ID_SPECIAL is
 * taken whole or as a symbol; @bpe is then one of davit_bpe_hide, where there is one, for merges
 * to give none either. DAVIT_OK, DAVIT_E_LIMIT (memory), DAVIT_E_CORRUPT when the unknown token is needed and its name is not in the
 * vocabulary, or DAVIT_E_UNSUPPORTED when the table is open and it matters. */
int32_t davit_bpe_encode(const DavitBpe *bpe, DavitBpeScratch *scratch, const char *piece,
                         size_t len, bool whole, const uint8_t *id_flags, DavitIds *out);

/* A table for text that shall stay text: like @bpe without the merges and symbols that give a token
 * with DAVIT_ID_SPECIAL in @id_flags (by id). *out, (owned), is NULL when @bpe gives none: that of
 * all files that were trained. False when memory is gone. */
bool davit_bpe_hide(const DavitBpe *bpe, const uint8_t *id_flags, DavitBpe **out);
void davit_bpe_free(DavitBpe *bpe); /* of davit_bpe_hide; NULL is fine */

/* Next place in (from, n] where @text may be cut without changing any id: before a character of
 * ASCII or U+2581 that no merge joins with the character in front of it. */
size_t davit_bpe_cut(const DavitBpe *bpe, const char *text, size_t n, size_t from);

/* The 256 letter alphabet of byte-level files: code point of a byte, and back (-1). */
uint32_t davit_byte_letter(uint8_t byte);
int32_t davit_letter_byte(uint32_t cp);

#endif
