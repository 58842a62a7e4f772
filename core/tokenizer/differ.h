/* SPDX-License-Identifier: Apache-2.0
 * Two tokenizers of one model, from two of its files: do they give the same ids?
 */
#ifndef DAVIT_TOKENIZER_DIFFER_H
#define DAVIT_TOKENIZER_DIFFER_H

#include "tokenizer/tokenizer.h"

typedef struct DavitDiffer {
    size_t n_both;       /* ids that have a token in both */
    size_t n_other;      /* of them, those whose token has another text */
    int32_t first_other; /* the lowest; -1 = none */
    size_t n_texts;      /* sample texts that both could encode, */
    size_t n_cut;        /* of them, those that get other ids, nothing put round them */
    const char *first_cut; /* (static) the first of those; NULL = none */
    DavitIds left, right;  /* (owned) its ids from the first difference on */
} DavitDiffer;

/* Fill @out; release it with davit_differ_clear. Holes are no difference, nor is how special
 * tokens are found in a text: sample texts have none. The sample is fixed: equal ids for it do not
 * prove equal ids for all texts. */
void davit_tokenizer_differ(const DavitTokenizer *left, const DavitTokenizer *right,
                            DavitDiffer *out);
void davit_differ_clear(DavitDiffer *differ);

#endif
