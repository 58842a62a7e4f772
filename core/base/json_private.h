/* SPDX-License-Identifier: Apache-2.0
 * The state of a JSON reader, for the files that move it: json.c (events) and json_runs.c
 * (many simple values at once).
 */
#ifndef DAVIT_BASE_JSON_PRIVATE_H
#define DAVIT_BASE_JSON_PRIVATE_H

#include <string.h>

#include "base/json.h"
#include "base/json_keys.h"

/* What may come next. */
typedef enum DavitJsonState {
    STATE_VALUE,       /* a value */
    STATE_FIRST,       /* after [ : a value or ] */
    STATE_FIRST_KEY,   /* after { : a key or } */
    STATE_COLON_VALUE, /* after a key: a colon and a value */
    STATE_AFTER,       /* after a value: a comma or the end of what is open */
    STATE_DONE,        /* after the top value */
} DavitJsonState;

typedef struct DavitJsonFrame {
    bool is_object;
    bool own_keys; /* the caller looks for double ones */
    DavitJsonKeyTable keys;
} DavitJsonFrame;

struct davit_json_reader {
    const char *text; /* (borrowed) */
    const char *p;
    const char *end;
    char *subject;
    const davit_sink *sink; /* (borrowed) until close; where records go, or */
    DavitReport *report;    /* (borrowed) until close */
    bool python;
    DavitJsonState state;
    int32_t failed; /* sticky status */
    uint32_t depth; /* open frames */
    uint32_t last_type;
    DavitJsonKeys keys;
    GStringChunk *key_copies; /* unescaped keys of open objects; NULL until needed */
    GString *buf;             /* text of the event when it had escapes */
    DavitJsonFrame frames[DAVIT_JSON_MAX_DEPTH]; /* last: each is filled when it opens */
};

/* First byte from @p on that is no blank, or @end. Indented files are half blanks: eight
 * are looked at together. */
static inline const char *davit_json_blanks(const char *p, const char *end)
{
    const uint64_t spaces = 0x2020202020202020u;
    uint64_t w;

    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
        while (end - p >= 8) {
            memcpy(&w, p, 8);
            w = GUINT64_FROM_LE(w) ^ spaces;
            if (w) {
                p += __builtin_ctzll(w) / 8;
                break;
            }
            p += 8;
        }
    }
    return p;
}

#endif
