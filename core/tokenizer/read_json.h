/* SPDX-License-Identifier: Apache-2.0
 * One reading of a tokenizer.json, between the files that do its parts: read_json.c (the
 * file), read_json_model.c (the model's members), read_json_lists.c (vocabulary, merges).
 */
#ifndef DAVIT_TOKENIZER_READ_JSON_H
#define DAVIT_TOKENIZER_READ_JSON_H

#include "tokenizer/tokenizer_private.h"

typedef struct DavitTokReading {
    DavitTokParts *parts; /* (borrowed) */
    const char *text;
    size_t len;
    DavitJsonReader *reader;
    DavitReport *report;
    bool has_vocab, has_list; /* `vocab` is an object, or a list as Unigram's */
    bool has_merges;
    char type[16];     /* model.type; "" = absent */
    bool has_max;      /* max_input_chars_per_word of WordPiece */
    size_t merges_off; /* start of a `merges` that came before `vocab`, 0 = none */
} DavitTokReading;

/* Next event; errors are in the report already. */
int32_t davit_tok_json_next(DavitTokReading *r, davit_json_event *out);

/* Pass over the value that @event begins. */
int32_t davit_tok_json_skip(DavitTokReading *r, const davit_json_event *event);

/* Records about a member; CORRUPT and UNSUPPORTED. */
int32_t davit_tok_json_invalid(const DavitTokReading *r, const char *member,
                               const char *expected, const char *found,
                               const char *message);
int32_t davit_tok_json_unsupported(DavitTokReading *r, const char *member,
                                   const char *expected, const char *found);

/* The values of `model`, `model.vocab` and `model.merges`. Merges in front of the
 * vocabulary are passed over, merges_off tells where they are. */
int32_t davit_tok_json_model(DavitTokReading *r);
int32_t davit_tok_json_vocab(DavitTokReading *r);
int32_t davit_tok_json_merges(DavitTokReading *r);

#endif
