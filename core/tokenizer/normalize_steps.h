/* SPDX-License-Identifier: Apache-2.0
 * A normaliser's steps, for the files that read and that do them (normalize*.c).
 */
#ifndef DAVIT_TOKENIZER_NORMALIZE_STEPS_H
#define DAVIT_TOKENIZER_NORMALIZE_STEPS_H

#include "base/regex.h"
#include "base/unicode.h"
#include "tokenizer/normalize.h"

typedef enum StepKind {
    STEP_REPLACE,
    STEP_REGEX,  /* Replace of a regex */
    STEP_BLANKS, /* Replace of the regex " {2,}" */
    STEP_PREPEND,
    STEP_FORM,
    STEP_LOWERCASE,
    STEP_STRIP,
    STEP_DROP, /* characters with a flag */
    STEP_NMT,
    STEP_BERT_CLEAN,
    STEP_BERT_CHINESE,
    STEP_PRECOMPILED,
    STEP_SPM,
} StepKind;

typedef struct Step {
    StepKind kind;
    char *pattern, *content; /* owned; Replace both, Prepend content */
    size_t pattern_len, content_len;
    bool left, right;     /* Strip */
    DavitForm form;       /* Form */
    uint32_t flag;        /* Drop */
    DavitRegex *regex;    /* owned; Regex */
    DavitCharsmap *map;   /* owned; Precompiled */
    DavitSpmRules *rules; /* owned; Spm */
} Step;

struct DavitNormalizer {
    GArray *steps; /* Step; a BertNormalizer is several */
};

#endif
