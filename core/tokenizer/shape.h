/* SPDX-License-Identifier: Apache-2.0
 * Canonical shapes of pre-tokenizers, and the plugins that claim them.
 */
#ifndef DAVIT_TOKENIZER_SHAPE_H
#define DAVIT_TOKENIZER_SHAPE_H

#include <glib.h>
#include <jansson.h>

#include <davit/tokenizer.h>

#include "base/report.h"
#include "plugin/registry.h"

/* Returns: (owned, g_free) the canonical text of @node (NULL and JSON null: "null"), or
 * NULL with a record. Sequences are flattened, keys sorted, defaults filled in, keys
 * without an effect on ids left out (trim_offsets, str_rep), \r \n \t \xHH \x{H} \uHHHH
 * of a regex turned into their characters unless those have a meaning of their own. */
char *davit_shape_canonical(const json_t *node, const char *subject, DavitReport *report);

/* A claim that was found. */
typedef struct DavitShapeClaim {
    davit_tok_shape shape; /* copy, zeros where an older plugin has no field */
    const char *plugin;    /* (borrowed from the registry) component id */
    DavitComponent *component; /* (borrowed from the registry) */
} DavitShapeClaim;

/* The first plugin in registry order that claims @canonical. Otherwise
 * DAVIT_E_UNSUPPORTED and a pretokenizer-unknown record that prints the shape, the
 * nearest claimed one and the node that differs. */
int32_t davit_shape_find(DavitRegistry *registry, const char *canonical,
                         const char *subject, DavitShapeClaim *out, DavitReport *report);

/* The same by GGUF pre name (@name, @len bytes; names that begin with '@' are the core's
 * own, see davit/tokenizer.h). */
int32_t davit_shape_find_pre(DavitRegistry *registry, const char *name, size_t len,
                             const char *subject, DavitShapeClaim *out,
                             DavitReport *report);

/* Why no shipped plugin claims a GGUF pre name that llama.cpp writes, one sentence kept in
 * @report; NULL = the name is unknown. */
const char *davit_shape_why_unclaimed(const char *name, size_t len, DavitReport *report);

/* The same by the hash of a rank list. */
int32_t davit_shape_find_ranks(DavitRegistry *registry, const char *hash,
                               const char *subject, DavitShapeClaim *out,
                               DavitReport *report);

#endif
