/* SPDX-License-Identifier: Apache-2.0
 * Strings and numbers of JSON text: the two tokens whose bytes need decoding. Private to
 * the reader (json.c) and the writer (json_write.c); plain_end serves other names, too. */
#ifndef DAVIT_BASE_JSON_TEXT_H
#define DAVIT_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* @p stands after the opening quote. On success *out_end is the closing quote and
 * *out_escapes tells whether the text between needs davit_json_unescape. On failure
 * returns why (static) and *out_end is where. */
const char *davit_json_scan_string(const char *p, const char *end, const char **out_end,
                                   bool *out_escapes);

/* First byte at or after @p that is '"', '\\' or below 0x20, or @end. */
const char *davit_json_find_special(const char *p, const char *end);
/* First byte from @p on that a string cannot hold as it is or that is not ASCII: quote,
 * backslash, control, 0x80 and above; else @end. */
const char *davit_json_plain_end(const char *p, const char *end);

/* Appends the text of a scanned string to @to. @python: lone surrogates become U+FFFD,
 * else they are an error. Returns: NULL, or why not (static) with *out_at where. */
const char *davit_json_unescape(const char *p, const char *end, bool python, GString *to,
                                const char **out_at);

typedef struct DavitJsonNumber {
    const char *end;
    bool too_long; /* the reason is its length and not its grammar */
    bool whole;    /* fits int64 and was written without fraction and exponent */
    int64_t i64;
    double f64;
} DavitJsonNumber;

/* @p stands on '-' or a digit. @end is one past the text; reading stops there.
 * Returns: NULL, or why not (static). */
const char *davit_json_scan_number(const char *p, const char *end, size_t max_chars,
                                   bool python, DavitJsonNumber *out);

#endif
