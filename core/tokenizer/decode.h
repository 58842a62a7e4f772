/* SPDX-License-Identifier: Apache-2.0
 * Decoders: the `decoder` member of a tokenizer.json as a chain of stages.
 */
#ifndef DAVIT_TOKENIZER_DECODE_H
#define DAVIT_TOKENIZER_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>
#include <jansson.h>

#include "base/report.h"

#define DAVIT_DECODE_MAX_STAGES 8

typedef enum DavitDecodeKind {
    DAVIT_DECODE_BYTE_LEVEL,
    DAVIT_DECODE_BYTE_FALLBACK,
    DAVIT_DECODE_REPLACE,
    DAVIT_DECODE_FUSE,
    DAVIT_DECODE_STRIP,
    DAVIT_DECODE_METASPACE,
    DAVIT_DECODE_WORDPIECE,
    DAVIT_DECODE_BPE, /* BPEDecoder: a suffix ends words */
    DAVIT_DECODE_CTC,
} DavitDecodeKind;

typedef struct DavitDecodeStage {
    DavitDecodeKind kind;
    /* owned; Replace: both; Strip, Metaspace, WordPiece (prefix), BPE (suffix): pattern;
     * CTC: pad token and word delimiter */
    char *pattern, *content;
    size_t pattern_len, content_len;
    size_t start;    /* Strip: how many from the left of a token */
    size_t stop;     /* and from its right; not behind Fuse */
    bool cleanup;    /* WordPiece and CTC: blanks before punctuation go */
    bool drop_first; /* Metaspace: marks of the first token vanish */
} DavitDecodeStage;

typedef struct DavitDecodeChain {
    DavitDecodeStage stages[DAVIT_DECODE_MAX_STAGES];
    size_t n;
    bool joined; /* decoder null: tokens joined by a space */
} DavitDecodeChain;

/* Fill @out (zeroed by the caller) from @node. Unknown stages are refused by name. */
int32_t davit_decode_chain_init(DavitDecodeChain *out, const json_t *node,
                                const char *subject, DavitReport *report);
void davit_decode_chain_clear(DavitDecodeChain *chain);

#endif
