/* SPDX-License-Identifier: Apache-2.0
 * Normalisers: the `normalizer` member of a tokenizer.json as a flat list of steps.
 */
#ifndef DAVIT_TOKENIZER_NORMALIZE_H
#define DAVIT_TOKENIZER_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>
#include <jansson.h>

#include "base/report.h"
#include "tokenizer/charsmap.h"

typedef struct DavitNormalizer DavitNormalizer;

/* Returns: (owned) the steps of @node (NULL or JSON null: none), or NULL with a record.
 * Known: Sequence, Replace, Prepend, Precompiled, BertNormalizer, NFC, NFD, NFKC, NFKD,
 * StripAccents, Lowercase, Nmt, Strip. Others are refused by name (tokenizer-unsupported). */
DavitNormalizer *davit_normalizer_new(const json_t *node, const char *subject,
                                      DavitReport *report);
/* Returns: (owned) sentencepiece's own normaliser; takes what @rules owns. */
DavitNormalizer *davit_normalizer_spm(const DavitSpmRules *rules);
void davit_normalizer_free(DavitNormalizer *normalizer); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitNormalizer, davit_normalizer_free)

/* No step at all: text stays as it is. */
bool davit_normalizer_is_empty(const DavitNormalizer *normalizer);

/* Two buffers that steps write to in turn. */
typedef struct DavitNormalScratch {
    GString *a, *b;
    GArray *origin; /* DavitOrigin for each byte of the result (origin.h); NULL = not wanted */
} DavitNormalScratch;

/* Returns: (borrowed) @text or a buffer of @scratch, *out_len bytes, valid until the next
 * call. *out_cut: the start of @text was stripped. NULL when a regex met its limits. */
const char *davit_normalize(const DavitNormalizer *normalizer,
                            DavitNormalScratch *scratch, const char *text, size_t len,
                            size_t *out_len, bool *out_cut);

#endif
