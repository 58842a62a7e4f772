/* SPDX-License-Identifier: Apache-2.0
 * DavitJsonWriter: a JSON value given piece by piece, in order. It becomes text at once, or
 * a Jansson tree where somebody wants to read in it: what writes a large document is written
 * once and serves both. The text is what Jansson prints with JSON_INDENT(n) or JSON_COMPACT,
 * byte by byte (test_json_write holds it), at a tenth of the work for tens of thousands of
 * rows.
 *
 * Every value takes a key inside an object and NULL elsewhere; keys are our own words, without
 * quotes, backslashes and controls, those of a tree aside. Text that is not UTF-8 gets
 * U+FFFD in place of what is wrong.
 *
 * Not thread-safe. Errors: none; nesting beyond DAVIT_JSON_WRITE_DEPTH is our mistake, but a
 * tree that is put whole may be deeper: what lies below is on one line.
 */
#ifndef DAVIT_BASE_JSON_WRITE_H
#define DAVIT_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>
#include <jansson.h>

#define DAVIT_JSON_WRITE_DEPTH 64u

typedef struct DavitJsonWriter DavitJsonWriter;

/* (owned) Writes at the end of @out, which outlives it. @indent: blanks for a level, 0 = one
 * line without blanks. @depth: levels around the value when it is a part of something. */
DavitJsonWriter *davit_json_writer_text(GString *out, unsigned indent, unsigned depth);
/* (owned) Builds a tree. */
DavitJsonWriter *davit_json_writer_tree(void);
/* Returns: (owned) the tree, NULL where text was written. All that was begun has ended. */
json_t *davit_json_writer_finish(DavitJsonWriter *writer);

/* An object, or an array, until davit_json_end. */
void davit_json_begin(DavitJsonWriter *w, const char *key, bool is_object);
void davit_json_end(DavitJsonWriter *w);

void davit_json_put_text(DavitJsonWriter *w, const char *key, const char *text); /* or NULL */
void davit_json_put_int(DavitJsonWriter *w, const char *key, int64_t n);
void davit_json_put_u64(DavitJsonWriter *w, const char *key, uint64_t n); /* at most INT64_MAX */
void davit_json_put_bool(DavitJsonWriter *w, const char *key, bool is);
void davit_json_put_null(DavitJsonWriter *w, const char *key);
/* (borrowed) @value as it is; NULL = null. */
void davit_json_put_tree(DavitJsonWriter *w, const char *key, const json_t *value);
/* @text is one JSON value that a text writer made for this depth. Text writers only. */
void davit_json_put_written(DavitJsonWriter *w, const char *key, const GString *text);

#endif
