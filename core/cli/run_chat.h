/* SPDX-License-Identifier: Apache-2.0
 * Conversations of `run`: messages from a file or a terminal, through the chat template.
 */
#ifndef DAVIT_CLI_RUN_CHAT_H
#define DAVIT_CLI_RUN_CHAT_H

#include "cli/run.h"

#define DAVIT_CHAT_TOKENS 1024u /* most tokens of an answer where --max-tokens is not given */

typedef struct DavitTalk DavitTalk;

/* Do the flags ask for messages (--messages, --chat)? */
bool davit_talk_wanted(const DavitCall *call);
/* Mistakes of the flags, before a model is loaded. Returns: exit code, 0 = none. */
int davit_talk_check(DavitCall *call);

/* Returns: (owned) the dialog and its first messages (--messages, --system, --prompt), or
 * NULL with records. @model must outlive it. */
DavitTalk *davit_talk_open(DavitCall *call, const davit_model *model);
void davit_talk_free(DavitTalk *talk); /* NULL is fine */

/* A message of the user's. */
void davit_talk_say(DavitTalk *talk, const char *text);
/* (owned) ids of the messages so far, with the answer's turn opened; NULL with records. */
GArray *davit_talk_prompt(DavitTalk *talk);
/* Ids that end an answer; borrowed. 0 with --raw. */
size_t davit_talk_stops(const DavitTalk *talk, const int32_t **out);

/* One answer to @prompt: fills *out_text (borrowed until the next). Returns: exit code. */
typedef int DavitAnswerFn(void *ctx, const GArray *prompt, const char **out_text);

/* Lines of stdin as messages of the user, each answered, until /exit or the end. Ctrl-C
 * stops an answer only. Returns: exit code. */
int davit_talk_converse(DavitTalk *talk, DavitAnswerFn *answer, void *ctx);

#endif
