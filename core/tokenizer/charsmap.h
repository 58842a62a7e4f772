/* SPDX-License-Identifier: Apache-2.0
 * precompiled_charsmap of SentencePiece: a double array of texts, and what each becomes.
 *
 * Layout (sentencepiece, src/normalizer.cc; darts-clone): u32 bytes of the array, its u32
 * units, then the replacements, each ended by NUL. Little-endian. A unit: 8 bits label, bit
 * 8 "a text ends here", bit 9 and 22 bits above: offset to the children, XORed to the
 * unit's own place; the unit of the end holds the place of the replacement in 31 bits.
 */
#ifndef DAVIT_TOKENIZER_CHARSMAP_H
#define DAVIT_TOKENIZER_CHARSMAP_H

#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>

#include <glib.h>

#include <davit/suites.h>

#include "tokenizer/pieces.h"

#define DAVIT_CHARSMAP_MAX     (16u << 20) /* bytes; nmt_nfkc has 240 KB */
#define DAVIT_CHARSMAP_MAX_KEY 256         /* bytes of one text that is replaced */

typedef struct DavitCharsmap DavitCharsmap;

/* Returns: (owned) the map of @len bytes (copied), or NULL and *out_why (static). Every
 * path of the array is walked once here: none leads out of it, none is a loop, every
 * replacement lies inside the texts and is UTF-8. */
DavitCharsmap *davit_charsmap_new(const uint8_t *bytes, size_t len, const char **out_why);
void davit_charsmap_free(DavitCharsmap *map); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitCharsmap, davit_charsmap_free)

/* As Hugging Face's Precompiled: by grapheme clusters; the shortest text that begins a
 * cluster below 6 bytes replaces all of it, else its characters are looked at alone. @changes: as
 * davit_trace_changes takes them (origin.h); NULL = not wanted. */
void davit_charsmap_append(const DavitCharsmap *map, const char *text, size_t len,
                           GString *out, GArray *changes);

/* sentencepiece's normalizer_spec. */
typedef struct DavitSpmRules {
    DavitCharsmap *map;   /* owned; NULL = none */
    DavitPieces user;     /* user-defined symbols, which stay as they are */
    bool dummy_prefix;    /* a space in front */
    bool strip_spaces;    /* no space at the ends, none behind a space */
} DavitSpmRules;
void davit_spm_rules_clear(DavitSpmRules *rules);

/* As sentencepiece's Normalizer: the longest text that begins the rest is replaced, and
 * spaces become U+2581 (escape_whitespaces). */
void davit_spm_append(const DavitSpmRules *rules, const char *text, size_t len,
                      GString *out);

#endif
