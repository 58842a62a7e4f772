/* SPDX-License-Identifier: Apache-2.0
 * Where a model keeps its chat templates, and the special tokens that templates print.
 *
 * Order: a template file that the user names; "chat_template" of a tokenizer_config.json that
 * the user names; chat_template.jinja (with
 * additional_chat_templates/NAME.jinja); tokenizer_config.json, "chat_template" as a text or
 * a list of named ones; GGUF keys tokenizer.chat_template and tokenizer.chat_template.NAME.
 * As transformers 5 chooses among names: the one asked for; "tool_use" when there are tools;
 * "default".
 */
#ifndef DAVIT_TEMPLATE_SOURCE_H
#define DAVIT_TEMPLATE_SOURCE_H

#include "base/report.h"
#include "checkpoint/checkpoint.h"

/* Where to look. A folder without weights has no checkpoint. */
typedef struct DavitTemplateWhere {
    const DavitCheckpoint *checkpoint; /* (borrowed) or NULL */
    const char *dir;                   /* used when checkpoint is NULL; may be NULL */
    const char *file;                  /* the user's template file; NULL = the model's */
    const char *config; /* the user's tokenizer_config.json, before the model's; or NULL */
    const char *name;                  /* name asked for; NULL = by rule */
    bool tools;                        /* there are tools */
} DavitTemplateWhere;

typedef struct DavitTemplateFound {
    char *text;    /* owned */
    size_t len;
    char *subject; /* owned: "chat_template.jinja", "tokenizer_config.json: chat_template" */
} DavitTemplateFound;
void davit_template_found_clear(DavitTemplateFound *found);

/* Fills *out. A template that another one hides is a note when they differ.
 * Errors: template-missing (UNSUPPORTED) when there is none, or none of that name; those of
 * reading and JSON. */
int32_t davit_template_find(const DavitTemplateWhere *where, DavitTemplateFound *out,
                            DavitReport *report);

/* Special tokens by name ("bos_token": text), of tokenizer_config.json, else of
 * special_tokens_map.json, else of the GGUF keys. Returns: (owned) an object of strings,
 * empty when nothing says any; NULL with records. */
json_t *davit_template_specials(const DavitTemplateWhere *where, DavitReport *report);

#endif
