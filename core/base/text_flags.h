/* SPDX-License-Identifier: Apache-2.0
 * Facts about characters that normalisers need and scanners do not: grapheme clusters and
 * what BERT's normaliser drops. Tables: text_flags_tables.c, made by sdk/src/ucd/make_ucd.py.
 */
#ifndef DAVIT_BASE_TEXT_FLAGS_H
#define DAVIT_BASE_TEXT_FLAGS_H

#include <stdint.h>

/* Classes of extended grapheme clusters (UAX 29), of Rust's unicode-segmentation. Hangul
 * syllables have none here: LV and LVT follow from the code point. */
#define DAVIT_TEXT_CONTROL     (1u << 0) /* also CR and LF */
#define DAVIT_TEXT_PREPEND     (1u << 1)
#define DAVIT_TEXT_EXTEND      (1u << 2) /* without ZWJ */
#define DAVIT_TEXT_SPACING     (1u << 3)
#define DAVIT_TEXT_ZWJ         (1u << 4)
#define DAVIT_TEXT_L           (1u << 5)
#define DAVIT_TEXT_V           (1u << 6)
#define DAVIT_TEXT_T           (1u << 7)
#define DAVIT_TEXT_PICT        (1u << 8)
#define DAVIT_TEXT_CONSONANT   (1u << 9)  /* Indic conjunct break */
#define DAVIT_TEXT_LINKER      (1u << 10) /* the same */
#define DAVIT_TEXT_INCB_EXTEND (1u << 11) /* the same; linkers have it too */

#define DAVIT_TEXT_MARK        (1u << 12) /* StripAccents drops it */
#define DAVIT_TEXT_BERT_DROP   (1u << 13) /* clean_text of BertNormalizer drops it */
#define DAVIT_TEXT_BERT_ACCENT (1u << 14) /* strip_accents drops it behind NFD */

/* Tables; use the function below. */
extern const uint16_t davit_text_sets[];
extern const uint16_t davit_text_index[];
extern const uint8_t davit_text_blocks[];

static inline uint32_t davit_text_flags(uint32_t cp)
{
    if (cp > 0x10ffff)
        return 0;
    return davit_text_sets[davit_text_blocks[davit_text_index[cp >> 7] * 128u +
                                             (cp & 127)]];
}

#endif
