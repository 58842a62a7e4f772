/* SPDX-License-Identifier: Apache-2.0
 * Sets of code points for regex classes, with the Unicode tables of the SDK (the version
 * that Hugging Face's regex engine has). Private to the regex translator. */
#ifndef DAVIT_BASE_REGEX_SET_H
#define DAVIT_BASE_REGEX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

typedef struct DavitCharSet {
    uint64_t words[0x110000 / 64]; /* bit of each code point */
} DavitCharSet;

/* (owned, g_free) an empty set. */
DavitCharSet *davit_char_set_new(void);
void davit_char_set_add_range(DavitCharSet *set, uint32_t first, uint32_t last);
/* @set gets what @other has. */
void davit_char_set_unite(DavitCharSet *set, const DavitCharSet *other);
void davit_char_set_intersect(DavitCharSet *set, const DavitCharSet *other);
void davit_char_set_complement(DavitCharSet *set);
bool davit_char_set_is_empty(const DavitCharSet *set);

/* Adds the class that onig's \w, \d, \s or \h means, alone or (@in_class) in brackets. */
void davit_char_set_add_escape(DavitCharSet *set, char letter, bool in_class);
/* Adds \p{@name}; false if the tables do not have this property. *out_cased: upper, lower
 * or title case letters, which mean another set where case is ignored. */
bool davit_char_set_add_property(DavitCharSet *set, const char *name, size_t len,
                                 bool *out_cased);

/* Appends the ranges as they stand inside brackets, "\x{41}-\x{5a}". Surrogates are left
 * out. */
void davit_char_set_append(const DavitCharSet *set, GString *to);

#endif
