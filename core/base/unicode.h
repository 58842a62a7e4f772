/* SPDX-License-Identifier: Apache-2.0
 * Text transformations with the Unicode data that Hugging Face's tokenizers use: normal forms
 * of Unicode 9.0, lower case of its Rust standard library. GLib's are of other versions.
 *
 * Input is valid UTF-8 (davit_ucd_check); output is appended to a GString.
 */
#ifndef DAVIT_BASE_UNICODE_H
#define DAVIT_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* Normal forms of Unicode Standard Annex 15. */
typedef enum DavitForm {
    DAVIT_FORM_NFC,
    DAVIT_FORM_NFD,
    DAVIT_FORM_NFKC,
    DAVIT_FORM_NFKD,
} DavitForm;

/* True if davit_form_append would copy @text unchanged. May say false for such a text. */
bool davit_form_is_plain(DavitForm form, const char *text, size_t len);

/* Linear in @len, however many marks follow each other. */
void davit_form_append(DavitForm form, GString *out, const char *text, size_t len);

/* The same, and an int32_t for each character of the output is appended to @changes (NULL =
 * not wanted): 0 or -n, it stands for the next character of @text and n more; 1, it was put in
 * behind the one before. Marks that changed places keep theirs. */
void davit_form_append_changes(DavitForm form, GString *out, const char *text, size_t len,
                               GArray *changes);

/* The same for NFC. True if davit_nfc_append would copy @text unchanged. May say false for such a text. */
bool davit_nfc_is_plain(const char *text, size_t len);

void davit_nfc_append(GString *out, const char *text, size_t len);

/* Character by character, no context: a final sigma is like any other. */
void davit_lower_append(GString *out, const char *text, size_t len);

#endif
