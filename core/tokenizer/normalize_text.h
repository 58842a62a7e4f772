/* SPDX-License-Identifier: Apache-2.0
 * Normalisers that look at one character at a time. Facts: Hugging Face tokenizers,
 * normalizers/{bert,unicode,strip}.rs; classes are those of its crates (text_flags.h).
 *
 * Each appends what becomes of @text. Returns: true if the first character was dropped.
 */
#ifndef DAVIT_TOKENIZER_NORMALIZE_TEXT_H
#define DAVIT_TOKENIZER_NORMALIZE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* Without the characters that have @flag (DAVIT_TEXT_MARK, DAVIT_TEXT_BERT_ACCENT). */
bool davit_drop_append(GString *out, const char *text, size_t len, uint32_t flag);

/* clean_text: control characters vanish, white space becomes a space. */
bool davit_bert_clean_append(GString *out, const char *text, size_t len);

/* handle_chinese_chars: a space on both sides of each CJK ideograph. Drops nothing. */
void davit_bert_chinese_append(GString *out, const char *text, size_t len);

/* Nmt: some control characters vanish, other blanks become a space. */
bool davit_nmt_append(GString *out, const char *text, size_t len);

/* Characters of @len bytes of UTF-8, NUL among them (which GLib's count ends at). */
size_t davit_count_chars(const char *text, size_t len);

#endif
