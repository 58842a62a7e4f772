/* SPDX-License-Identifier: Apache-2.0
 * Reading the small members of a tokenizer.json as Jansson trees, with records that name
 * the member by path.
 */
#ifndef DAVIT_TOKENIZER_NODE_H
#define DAVIT_TOKENIZER_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/report.h"

/* Stages may nest; a flat list longer than this is refused. */
#define DAVIT_TOK_MAX_STAGES 64

/* What is being read, for records: "<file>: <member>". */
typedef struct DavitNodePlace {
    const char *file;   /* (borrowed) */
    const char *member; /* (borrowed) "normalizer", "decoder", ... */
    DavitReport *report;
} DavitNodePlace;

/* tokenizer-invalid about @key of the member; returns DAVIT_E_CORRUPT. */
int32_t davit_node_invalid(const DavitNodePlace *place, const char *key,
                           const char *expected, const json_t *found);
/* tokenizer-unsupported; returns DAVIT_E_UNSUPPORTED. */
int32_t davit_node_unsupported(const DavitNodePlace *place, const char *key,
                               const char *expected, const char *found);

/* Members of @node. The text is borrowed from @node; out values are filled on success. */
int32_t davit_node_text(const DavitNodePlace *place, const json_t *node, const char *key,
                        const char **out, size_t *out_len);
int32_t davit_node_bool(const DavitNodePlace *place, const json_t *node, const char *key,
                        bool *out);
/* As davit_node_bool, but absent or null gives @absent. */
int32_t davit_node_bool_or(const DavitNodePlace *place, const json_t *node,
                           const char *key, bool absent, bool *out);
int32_t davit_node_count(const DavitNodePlace *place, const json_t *node, const char *key,
                         size_t *out);
/* {"String": text} of a Replace or Split; a {"Regex": ...} is unsupported here. */
int32_t davit_node_pattern(const DavitNodePlace *place, const json_t *node,
                           const char **out, size_t *out_len);

/* "type" of a stage, NULL with a record if there is none. */
const char *davit_node_type(const DavitNodePlace *place, const json_t *node);

/* Flatten @node, whose Sequences keep their parts in the array @parts_key, into *out_n <=
 * DAVIT_TOK_MAX_STAGES stages, in order. NULL and JSON null give none. */
int32_t davit_node_flatten(const DavitNodePlace *place, const json_t *node,
                           const char *parts_key, const json_t **out, size_t *out_n);

#endif
