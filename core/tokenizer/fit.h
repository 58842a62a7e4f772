/* SPDX-License-Identifier: Apache-2.0
 * `truncation` and `padding` of a tokenizer.json: how many ids a text may have and must
 * have. Encoders have them; Hugging Face's encode applies them to every text.
 */
#ifndef DAVIT_TOKENIZER_FIT_H
#define DAVIT_TOKENIZER_FIT_H

#include <jansson.h>

#include "base/report.h"
#include "tokenizer/tokenizer.h"

typedef struct DavitFit {
    bool cuts, pads;
    uint64_t most;    /* ids at most, those added round the text counted */
    bool cut_left;    /* the end of the text stays */
    bool fixed;       /* filled up to @least, rounded; else only to a whole @multiple */
    uint64_t least;   /* ids at least, filled up with pad */
    uint64_t multiple; /* their number is a multiple of it; 0 = any */
    bool pad_left;
    int32_t pad;
} DavitFit;

/* Fill @out (zeroed by the caller); NULL and JSON null change nothing. What is not known
 * exactly is refused. */
int32_t davit_fit_init(DavitFit *out, const json_t *truncation, const json_t *padding,
                       const char *subject, DavitReport *report);

/* How @n ids of a text change that @added more stand round. */
typedef struct DavitFitting {
    size_t from, n;     /* of the text's ids, these stay */
    size_t front, back; /* pads before and behind all */
} DavitFitting;
DavitFitting davit_fit(const DavitFit *fit, size_t n, size_t added);

#endif
