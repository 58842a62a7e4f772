/* SPDX-License-Identifier: Apache-2.0
 * Ids that a tokenizer gives and a model has no row for, or has other tokens for.
 */
#ifndef DAVIT_TOKENIZER_BEYOND_H
#define DAVIT_TOKENIZER_BEYOND_H

#include "base/report.h"
#include "tokenizer/tokenizer.h"

typedef struct DavitBeyond {
    size_t n_ids;      /* of the tokenizer: one more than the highest */
    const char *first; /* (borrowed, tokenizer) text of the first id without a row, not
                        * terminated; NULL = that id has no text */
    size_t n_first;
    bool idle; /* all of them stand for pictures or sound: text never gives them */
} DavitBeyond;

/* Returns: true if @tokenizer has ids of @rows and above; then *out is filled. */
bool davit_tokenizer_beyond(const DavitTokenizer *tokenizer, uint64_t rows, DavitBeyond *out);

/* The same as one record: a warning, because only a prompt with such an id must be refused, or a
 * note where text never gives one. @subject: whose rows they are. Nothing where all ids fit. */
void davit_tokenizer_tell_beyond(const DavitTokenizer *tokenizer, uint64_t rows,
                                 const char *subject, DavitReport *report);

/* A warning where more than half of the ids that both have stand for other tokens in a GGUF's
 * list: some thousand of them are compared. Converters rewrite few; not for WordPiece, where they
 * rewrite all. */
void davit_tokenizer_tell_other(const DavitTokenizer *tokenizer, const DavitGgufStrings *tokens,
                                const char *subject, DavitReport *report);

#endif
