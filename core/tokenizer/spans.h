/* SPDX-License-Identifier: Apache-2.0
 * Which bytes of the input an id stands for. For core/tokenizer/ only.
 *
 * The text that the model sees is walked beside the raw text: bytes are equal, a mark
 * stands for a space or was put in front, white space was dropped. Where the normaliser
 * changed a part, the model's text is walked beside the normalised text, whose bytes have an
 * origin in the raw one (origin.h). Where neither explains a part (sentencepiece's own
 * normaliser), all its ids get the whole part.
 */
#ifndef DAVIT_TOKENIZER_SPANS_H
#define DAVIT_TOKENIZER_SPANS_H

#include "tokenizer/tokenizer.h"

/* One part of the raw text and how far it is used up. */
typedef struct DavitAlign {
    const DavitTokenizer *tokenizer; /* (borrowed) */
    GArray *spans;                   /* (borrowed) DavitSpan, one per id */
    const char *raw;                 /* (borrowed) the part */
    size_t len, done;
    uint64_t base; /* offset of the part in the input */
    guint first;   /* first span of the part */
    bool lost;
    struct DavitAlign *normal; /* (borrowed) beside the normalised text; NULL = there is none */
    GArray *origin;            /* (borrowed) DavitOrigin of its bytes, in the part */
} DavitAlign;

/* A part begins: @len bytes at @raw, @base in the input. */
void davit_align_start(DavitAlign *align, const char *raw, size_t len, uint64_t base);
/* The part's normalised text is another one: walk beside it, too. @normal is scratch. */
void davit_align_normal(DavitAlign *align, DavitAlign *normal, const char *text, size_t len);
/* The model made @n ids of @text, the next piece of the part. */
void davit_align_piece(DavitAlign *align, const char *text, size_t len,
                       const int32_t *ids, size_t n);
/* One id that stands for @text as a whole (an added token in normalised text). */
void davit_align_token(DavitAlign *align, const char *text, size_t len);
/* The part is over: settle a lost one. */
void davit_align_end(DavitAlign *align);

#endif
