/* SPDX-License-Identifier: Apache-2.0
 * template --diff-ids: a rendered prompt against the ids of a training run. */
#ifndef DAVIT_CLI_TEMPLATE_DIFF_H
#define DAVIT_CLI_TEMPLATE_DIFF_H

#include "cli/command.h"
#include "template/chat.h"

/* What was rendered, and how to render it otherwise. */
typedef struct DavitTemplateJob {
    DavitCall *call;
    DavitTokenizer *tokenizer;
    DavitChat *chat;
    DavitChatInput input;
    DavitRendered rendered;
    DavitIds ids;
} DavitTemplateJob;

/* Compares job->ids with those in file @path: prints where they part, the text round it and
 * the likely cause, or fills the document. Returns: exit code, 0 = equal. */
int davit_template_diff(DavitTemplateJob *job, const char *path);

#endif
