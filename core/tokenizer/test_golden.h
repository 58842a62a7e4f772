/* SPDX-License-Identifier: Apache-2.0
 * What the golden tests share: the registry of the build tree, and comparing one
 * tokenizer with one <name>.golden.json of tests/golden/tokenizers.
 */
#ifndef DAVIT_TOKENIZER_TEST_GOLDEN_H
#define DAVIT_TOKENIZER_TEST_GOLDEN_H

#include <jansson.h>

#include "tokenizer/tokenizer.h"

/* (borrowed, one for the process) the builtin plugins and nothing else. */
DavitRegistry *davit_test_registry(void);

/* (owned) the tokenizer of a file that must load; fails the test with its records. */
DavitTokenizer *davit_test_load(const char *path);

/* All cases and all random strings of @golden. */
void davit_test_golden(const DavitTokenizer *tokenizer, const char *name,
                       const json_t *golden);

/* Print the records of @report to the test's log. */
void davit_test_show(const DavitReport *report);

/* (borrowed) the first record with @code, or NULL. */
const DavitRecord *davit_test_find(const DavitReport *report, uint32_t code);

/* The ids of @text, joined by spaces, are @want ("status N" when it is refused). */
void davit_test_encode(const DavitTokenizer *tokenizer, const char *text, uint32_t flags,
                       const char *want);

/* Add the cases of test_odd.c. */
void davit_test_odd(void);

#endif
