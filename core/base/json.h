/* SPDX-License-Identifier: Apache-2.0
 * Pull reader for JSON: the "json" suite, and what the core itself uses for vocabularies,
 * safetensors headers and indexes.
 *
 * Linear time, never recursive, no copy of strings without escapes. Limits are here and
 * nowhere else. Duplicate keys are refused in every dialect. RFC 8259.
 */
#ifndef DAVIT_BASE_JSON_H
#define DAVIT_BASE_JSON_H

#include <davit/suites.h>

#include "base/report.h"

#define DAVIT_JSON_MAX_DEPTH  200u         /* open objects and arrays */
#define DAVIT_JSON_MAX_BYTES  (1ull << 30) /* of one text */
#define DAVIT_JSON_MAX_KEYS   (1u << 24)   /* of all open objects together */
#define DAVIT_JSON_MAX_NUMBER 512u         /* characters of one number */

typedef struct davit_json_reader DavitJsonReader;

/* Returns: (owned) a reader on @text (borrowed until close) that puts its error records
 * into
 * @report with @subject as the file, or NULL with a record. */
DavitJsonReader *davit_json_open(const char *text, size_t len, uint32_t dialect,
                                 const char *subject, DavitReport *report);
/* See davit_json_suite: same contracts. After an error every call gives that error again.
 */
int32_t davit_json_next(DavitJsonReader *reader, davit_json_event *out);
int32_t davit_json_skip(DavitJsonReader *reader);
/* Behind an object's start: its keys are not remembered. The caller finds double ones. */
void davit_json_own_keys(DavitJsonReader *reader);
void davit_json_close(DavitJsonReader *reader); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitJsonReader, davit_json_close)

/* Does the text of @event equal the C string @s? */
bool davit_json_is(const davit_json_event *event, const char *s);

/* The suite's table. (static) */
const davit_json_suite *davit_json_suite_get(void);

#endif
