/* SPDX-License-Identifier: Apache-2.0
 * The "regex" suite: patterns in the onig spelling of tokenizer files, matched by PCRE2.
 *
 * A pattern is translated first (regex_onig.c): \w \s \h and line anchors get the meaning
 * they have there, and constructs that PCRE2 would read in another way are refused. Steps
 * and depth of a match are bounded. Invalid UTF-8 in a text never matches and never
 * crashes.
 */
#ifndef DAVIT_BASE_REGEX_H
#define DAVIT_BASE_REGEX_H

#include <davit/suites.h>

#include "base/report.h"

#define DAVIT_REGEX_MAX_PATTERN (64u * 1024u) /* bytes of a pattern */
#define DAVIT_REGEX_MATCH_LIMIT 10000000u     /* PCRE2 match limit of one match */
#define DAVIT_REGEX_DEPTH_LIMIT 200000u
#define DAVIT_REGEX_HEAP_LIMIT  (64u * 1024u) /* KiB */

typedef struct davit_regex DavitRegex;

/* Returns: (owned) or NULL with a record that names @subject. */
DavitRegex *davit_regex_compile(const char *pattern, size_t len, uint32_t flags,
                                const char *subject, DavitReport *report);
/* As davit_regex_suite.matches. Negative: DAVIT_E_LIMIT, or DAVIT_E_IO without memory. */
int64_t davit_regex_matches(const DavitRegex *regex, davit_span text, uint64_t from,
                            uint64_t *out_pairs, uint64_t cap, uint64_t *out_next);
void davit_regex_free(DavitRegex *regex); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitRegex, davit_regex_free)

/* (owned, g_free) @pattern as PCRE2 shall read it, or NULL and *out_why (static) plus
 * *out_off, the byte where it stands. For tests and messages. */
char *davit_regex_translate(const char *pattern, size_t len, const char **out_why,
                            size_t *out_off);

/* The suite's table. (static) */
const davit_regex_suite *davit_regex_suite_get(void);

#endif
