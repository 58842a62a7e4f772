/* SPDX-License-Identifier: Apache-2.0
 * How far one long text is, on a terminal's stderr. */
#ifndef DAVIT_CLI_TOKENIZE_PROGRESS_H
#define DAVIT_CLI_TOKENIZE_PROGRESS_H

#include "tokenizer/tokenizer.h"

typedef struct DavitTokenizeProgress DavitTokenizeProgress;

/* Returns: (owned) a thread that shows what @encoder counts, until it is stopped. */
DavitTokenizeProgress *davit_tokenize_progress(DavitEncoder *encoder);
/* Wipes what is shown; NULL is fine. */
void davit_tokenize_progress_stop(DavitTokenizeProgress *progress);

#endif
