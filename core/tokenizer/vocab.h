/* SPDX-License-Identifier: Apache-2.0
 * The token table of a model: id to text and text to id.
 */
#ifndef DAVIT_TOKENIZER_VOCAB_H
#define DAVIT_TOKENIZER_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

typedef struct DavitVocab DavitVocab;

/* What a table of flags says of an id. */
#define DAVIT_ID_ADDED   1u
#define DAVIT_ID_SPECIAL 2u
#define DAVIT_ID_SPOKEN  4u /* decodes as another text than its own */
#define DAVIT_ID_SILENT  8u /* that text is a special token's, which decoding can skip */

typedef enum DavitVocabAdd {
    DAVIT_VOCAB_ADDED,
    DAVIT_VOCAB_ID_TAKEN,
    DAVIT_VOCAB_ID_RANGE,  /* negative or above DAVIT_TOK_MAX_ID */
    DAVIT_VOCAB_TOO_LARGE, /* 2 GiB of text, or memory is gone */
} DavitVocabAdd;

DavitVocab *davit_vocab_new(void);
void davit_vocab_free(DavitVocab *vocab); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitVocab, davit_vocab_free)

/* Give @id the text @text (copied). Before seal: a token of the model. After: an id that
 * has text but is not found by davit_vocab_find (an added token). */
DavitVocabAdd davit_vocab_add(DavitVocab *vocab, int64_t id, const char *text,
                              size_t len);

/* Build the text to id table. Returns: -1, or an id whose text another id has too; -2
 * when memory is gone. */
int32_t davit_vocab_seal(DavitVocab *vocab);

size_t davit_vocab_n_ids(const DavitVocab *vocab);    /* one past the highest */
size_t davit_vocab_n_tokens(const DavitVocab *vocab); /* tokens of the model */

/* (borrowed) text of @id, NULL for holes and ids out of range. NUL-terminated too. */
const char *davit_vocab_text(const DavitVocab *vocab, int64_t id, size_t *out_len);

/* Where the texts lie, for passes over all of them. */
typedef struct DavitVocabEntry {
    uint32_t off;
    uint32_t len; /* DAVIT_VOCAB_HOLE = the id has no token */
} DavitVocabEntry;
#define DAVIT_VOCAB_HOLE UINT32_MAX

/* (borrowed) [davit_vocab_n_ids], until a token is added. *out_block is what off counts in. */
const DavitVocabEntry *davit_vocab_entries(const DavitVocab *vocab, const char **out_block);

/* Id of a token of the model, -1 = none. */
int32_t davit_vocab_find(const DavitVocab *vocab, const char *text, size_t len);

/* The same for up to DAVIT_VOCAB_MANY texts, which is faster than one after the other:
 * memory for all is asked for before the first is compared. */
#define DAVIT_VOCAB_MANY 64u
typedef struct DavitVocabText {
    const char *text;
    size_t len;
} DavitVocabText;
void davit_vocab_find_many(const DavitVocab *vocab, const DavitVocabText *texts, size_t n,
                           int32_t *out_ids);

/* Is the text of @id @left and @right, end to end? */
bool davit_vocab_is_joined(const DavitVocab *vocab, int64_t id, DavitVocabText left,
                           DavitVocabText right);

#endif
