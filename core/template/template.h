/* SPDX-License-Identifier: Apache-2.0
 * Chat templates: the Jinja of transformers 5 (jinja2 3.1.6, immutable sandbox, trim_blocks,
 * lstrip_blocks, loop controls, {% generation %}), byte for byte, or refused.
 *
 * A template is parsed once and rendered any number of times. Every byte of the output
 * knows whether it came from an input that is not trusted (message contents), so that the
 * tokenizer can keep control tokens in there text.
 *
 * Limits: DAVIT_TEMPLATE_MAX_ below and those of DavitTemplateArgs. What is not supported
 * is refused with line, column and the expression, never rendered otherwise. Finding
 * template files is source.h, preparing messages chat.h.
 */
#ifndef DAVIT_TEMPLATE_TEMPLATE_H
#define DAVIT_TEMPLATE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/report.h"

#define DAVIT_TEMPLATE_MAX_BYTES (4u << 20) /* of the source */
#define DAVIT_TEMPLATE_MAX_DEPTH 200u       /* nested expressions, statements, values, calls */
#define DAVIT_TEMPLATE_MAX_NAMES 4096u      /* different names and frames, each */

typedef struct DavitTemplate DavitTemplate;

/* Returns: (owned) the template of @len bytes at @text (copied), or NULL with a record that
 * names @name, line and column. Errors: CORRUPT not UTF-8 or a syntax error; UNSUPPORTED a
 * construct that is known and not had here; LIMIT. */
DavitTemplate *davit_template_parse(const char *text, size_t len, const char *name,
                                    DavitReport *report);
void davit_template_free(DavitTemplate *template); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitTemplate, davit_template_free)

/* One variable of the context. */
typedef struct DavitTemplateVar {
    const char *name; /* (borrowed) */
    const char *source; /* (borrowed) the file it came from, for findings; NULL = name */
    const char *json; /* (borrowed) one JSON value; Python's NaN and Infinity are read */
    size_t len;
    bool trusted;  /* control tokens in it may act; false for all that users write */
    bool messages; /* a conversation: keys that are null are dropped, reasoning is filled in
                    * under its other names, as transformers 5.24 does before rendering */
} DavitTemplateVar;

typedef struct DavitTemplateArgs {
    const DavitTemplateVar *vars; /* later ones win */
    size_t n_vars;
    bool fixed_clock;      /* strftime_now tells @now as UTC; else local time now */
    int64_t now;           /* seconds since 1970 */
    uint64_t max_output;   /* bytes, 0 = 64 MiB */
    uint64_t max_memory;   /* bytes of values, 0 = 512 MiB */
    uint64_t max_steps;    /* 0 = 64 million: a second or two */
} DavitTemplateArgs;

/* Bytes [start, end) of the output. */
typedef struct DavitOutputSpan {
    size_t start, end;
} DavitOutputSpan;

typedef struct DavitRendered {
    char *text; /* owned, NUL-terminated behind @len */
    size_t len;
    uint8_t *untrusted;    /* owned, @len bytes: 1 = came from an input not trusted */
    DavitOutputSpan *generation; /* owned: outputs of {% generation %} blocks, in order */
    size_t n_generation;
} DavitRendered;
void davit_rendered_clear(DavitRendered *rendered); /* frees and zeroes */

/* Render. @out is filled on success only. [any thread, also at the same time]
 * Errors: UNSUPPORTED with code template-raised when the template calls raise_exception or
 * Python would raise; template-unsupported for what is not had here; CORRUPT when a
 * variable is not JSON; LIMIT. */
int32_t davit_template_render(const DavitTemplate *template, const DavitTemplateArgs *args,
                              DavitRendered *out, DavitReport *report);

/* Does the template load variable @name anywhere? */
bool davit_template_reads(const DavitTemplate *template, const char *name);
/* (borrowed) the source after newlines were made LF and one at the end was dropped. */
const char *davit_template_text(const DavitTemplate *template, size_t *out_len);

#endif
