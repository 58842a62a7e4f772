/* SPDX-License-Identifier: Apache-2.0
 * Post-processors: which ids stand before and behind the text.
 */
#ifndef DAVIT_TOKENIZER_POST_H
#define DAVIT_TOKENIZER_POST_H

#include <jansson.h>

#include "tokenizer/tokenizer.h"

typedef struct DavitPost {
    DavitIds prefix, suffix;
} DavitPost;

/* Fill @out (zeroed by the caller) from @node; NULL and JSON null add nothing. Known:
 * Sequence, ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing. */
int32_t davit_post_init(DavitPost *out, const json_t *node, const char *subject,
                        DavitReport *report);
void davit_post_clear(DavitPost *post);

#endif
