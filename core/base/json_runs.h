/* SPDX-License-Identifier: Apache-2.0
 * Many simple values in one call: what vocabularies and merge lists consist of, a million
 * strings each. A run takes such values from where a reader stands and stops before the
 * first that is not simple; the reader then goes on behind it with its events, and so
 * every error is the reader's.
 *
 *   DavitJsonRun run = davit_json_run(reader);
 *   while ((n = davit_json_run_texts(&run, NULL, items, cap)) > 0)
 *       use(items, n);
 *   davit_json_run_end(&run, reader);
 */
#ifndef DAVIT_BASE_JSON_RUNS_H
#define DAVIT_BASE_JSON_RUNS_H

#include "base/json.h"

/* Spans are bytes of the reader's text between quotes. */
typedef struct DavitJsonItem {
    davit_span text;              /* key, string, or first string of a pair */
    davit_span second;            /* of a pair; ptr NULL = a string alone */
    int64_t number;               /* of a member */
    bool escaped, escaped_second; /* of texts: davit_json_run_unescape is still to do */
} DavitJsonItem;

/* Where a run stands. A place found otherwise may be tried too: {p, end, true}. */
typedef struct DavitJsonRun {
    const char *p; /* behind the last value that was taken */
    const char *end;
    bool first; /* no comma is due */
} DavitJsonRun;

/* The run that starts where @reader stands: behind the start of an object or array, or
 * behind a value in it. It is empty everywhere else. */
DavitJsonRun davit_json_run(const DavitJsonReader *reader);

/* @reader goes on behind the run. If none of its values was taken, nothing changes. */
void davit_json_run_end(const DavitJsonRun *run, DavitJsonReader *reader);

/* Up to @cap members "key": digits (at most nine, the key without escapes) of the
 * innermost object: text and number of the items are filled. For an object whose keys the
 * caller keeps (davit_json_own_keys). */
size_t davit_json_run_members(DavitJsonRun *run, DavitJsonItem *out, size_t cap);

/* Up to @cap elements "text" or ["text", "text"] of the innermost array, of those that
 * begin before @until (NULL = all). Texts are not proven to be UTF-8: for callers that
 * look for them among texts that are, and leave it to the reader to refuse what is not
 * found. */
size_t davit_json_run_texts(DavitJsonRun *run, const char *until, DavitJsonItem *out,
                            size_t cap);

/* Append what the escapes of @raw stand for to @to, at most as many bytes as @raw has.
 * False if one is none. */
bool davit_json_run_unescape(davit_span raw, GString *to);

/* Where the next value begins; NULL if none does. */
const char *davit_json_run_next(const DavitJsonRun *run);

#endif
