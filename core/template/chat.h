/* SPDX-License-Identifier: Apache-2.0
 * A model's way to chat: its template with the variables that every rendering has, prompts
 * from messages, and the ids that end an answer. Used by the program and libdavit.
 */
#ifndef DAVIT_TEMPLATE_CHAT_H
#define DAVIT_TEMPLATE_CHAT_H

#include "template/source.h"
#include "template/template.h"
#include "tokenizer/tokenizer.h"

typedef struct DavitChat DavitChat;

/* Returns: (owned) the template that @where finds, parsed; NULL with records. */
DavitChat *davit_chat_new(const DavitTemplateWhere *where, DavitReport *report);
void davit_chat_free(DavitChat *chat); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitChat, davit_chat_free)

/* (borrowed) where the template came from. */
const char *davit_chat_source(const DavitChat *chat);
const DavitTemplate *davit_chat_template(const DavitChat *chat);

/* One rendering. JSON texts are borrowed during the call; NULL = null. */
typedef struct DavitChatInput {
    const char *messages; /* required: array of messages */
    size_t n_messages;    /* bytes */
    const char *tools;
    size_t n_tools;
    const char *documents;
    size_t n_documents;
    /* names of the files, for findings; NULL = none */
    const char *messages_source, *tools_source, *documents_source;
    bool no_generation_prompt;
    const DavitTemplateVar *vars; /* further ones; they win */
    size_t n_vars;
    bool fixed_clock; /* strftime_now tells @now, as UTC */
    int64_t now;
} DavitChatInput;

/* As davit_template_render. Messages, tools and documents are not trusted; the rest is. */
int32_t davit_chat_render(const DavitChat *chat, const DavitChatInput *input,
                          DavitRendered *out, DavitReport *report);

/* Append the ids of @rendered, without BOS or EOS of the tokenizer's own: the template wrote
 * them. Control tokens inside what is not trusted stay text unless @trust. *out_forged (may
 * be NULL) is true when trusting would have given other ids. */
int32_t davit_chat_encode(const DavitTokenizer *tokenizer, const DavitRendered *rendered,
                          bool trust, DavitIds *out, bool *out_forged, DavitReport *report);

/* Append ids that end an answer: the special token that the template writes behind an
 * answer, found by rendering one, and the end tokens that the tokenizer's files name
 * (eos_token, GGUF eos, eot and eom). Each once; what cannot be found out is left out. */
void davit_chat_stops(const DavitChat *chat, const DavitTokenizer *tokenizer,
                      const DavitCheckpoint *checkpoint, DavitIds *out);

#endif
