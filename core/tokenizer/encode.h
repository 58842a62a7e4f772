/* SPDX-License-Identifier: Apache-2.0
 * One call of encode, between the files that do its steps: encode.c (added tokens, the
 * normaliser, the call), encode_part.c (pre-tokenizer), encode_word.c (model and word
 * cache), encode_threads.c.
 */
#ifndef DAVIT_TOKENIZER_ENCODE_H
#define DAVIT_TOKENIZER_ENCODE_H

#include "tokenizer/spans.h"
#include "tokenizer/tokenizer_private.h"

/* Ends asked from a scanner in one call; twice as many after every DAVIT_SCAN_CALLS calls over a
 * text. A call may look at all that is left (digits counted from their right end), so their number
 * must not grow with the text. */
#define DAVIT_SCAN_CAP     512u
#define DAVIT_SCAN_CALLS   4u
#define DAVIT_SCAN_MAX_CAP (1u << 20)

struct DavitEncoder {
    const DavitTokenizer *tokenizer; /* (borrowed) */
    struct DavitWords *words; /* the cache, owned; NULL before CACHE_AFTER words */
    size_t n_words;                  /* so far without it */
    DavitBpeScratch bpe;
    DavitUnigramScratch unigram;
    uint64_t steps; /* of WordPiece */
    DavitNormalScratch normal;
    GString *marked; /* after Metaspace or a prefix space */
    GString *front;  /* the text with SentencePiece's space in front */
    uint64_t *ends; /* owned, ends_cap */
    size_t ends_cap;
    DavitEncodeWatch *watch; /* (borrowed) or NULL */
    uint32_t open_cp; /* the character for which an open tokenizer refused; 0 = none */
};

/* A stretch that one thread encodes. */
typedef struct DavitStretch {
    const char *text; /* normalised, no added token in it; (borrowed) from the call */
    size_t len;
    int32_t added; /* >= 0: an added token instead */
    bool first;    /* it starts the whole text */
} DavitStretch;

/* One call of encode. */
typedef struct DavitEncodeJob {
    DavitEncoder *encoder;
    DavitIds *out;
    DavitPieceFn fn; /* NULL = nobody listens */
    void *ctx;
    bool safe;
    bool wide; /* some text so far is not ASCII, and tables of characters are there */
    DavitAlign *align;     /* NULL = no spans are wanted */
    DavitAlign *normal;    /* with align: its scratch */
    const char *start;     /* of the whole text, for spans */
    const uint8_t *locked; /* of the text's bytes: no special token may touch them */
    const char *text;      /* the text that locked belongs to */
    GArray *stretches;     /* DavitStretch: only list what is to do; NULL = do it */
    GPtrArray *kept;       /* with stretches: texts that the normaliser changed */
    DavitEncoder *const *encoders; /* with stretches: one for each thread */
    size_t n_encoders;
} DavitEncodeJob;

/* Each appends ids to job->out: DAVIT_OK, LIMIT (memory), CORRUPT (no unknown token), or
 * UNSUPPORTED (an open tokenizer). */

/* The merge table for the job's pieces. */
const DavitBpe *davit_encode_bpe(const DavitEncodeJob *job);

/* The model over a piece. */
int32_t davit_encode_piece(DavitEncodeJob *job, const char *piece, size_t len);

/* Pre-tokenizer and model over a normalised part. @first: it starts the whole text. */
int32_t davit_encode_part(DavitEncodeJob *job, const char *text, size_t len, bool first);

/* List the part in job->stretches, in several where it may be cut. */
void davit_encode_list(DavitEncodeJob *job, const char *text, size_t len, bool first);

/* Do what is listed, ids to job->out, on n_encoders threads. */
int32_t davit_encode_listed(const DavitEncodeJob *job);

/* Tell the listener about a piece whose ids are those behind @before. */
void davit_encode_tell(const DavitEncodeJob *job, const char *text, size_t len,
                       size_t before, bool added);

/* All of encode after the flags are known; the same errors, and records. */
int32_t davit_encode_run(DavitEncodeJob *job, const char *text, size_t len,
                         uint32_t flags, DavitReport *report);

#endif
