/* SPDX-License-Identifier: Apache-2.0
 * Tables of keys, and the one walk over a document that both kinds share. */
#ifndef DAVIT_CONFIG_DOCUMENT_PRIVATE_H
#define DAVIT_CONFIG_DOCUMENT_PRIVATE_H

#include "config/document.h"

typedef enum DavitDocKind {
    DAVIT_DOC_OBJECT,  /* has keys of its own in the table */
    DAVIT_DOC_BOOL,
    DAVIT_DOC_INT,     /* lo..hi */
    DAVIT_DOC_NUMBER,  /* lo..hi, finite */
    DAVIT_DOC_TEXT,    /* not empty */
    DAVIT_DOC_CHOICE,  /* one of words */
    DAVIT_DOC_TEXTS,   /* array of non-empty strings */
    DAVIT_DOC_ARRAY,   /* looked at by the document's own code */
    DAVIT_DOC_UNBUILT, /* known, not implemented, whatever its value */
} DavitDocKind;

typedef struct DavitDocKey {
    const char *path; /* "uva.cpu_offload_gb"; NULL ends a table */
    DavitDocKind kind;
    int64_t lo, hi;
    const char *words; /* "auto|uva|prefetch" */
} DavitDocKey;

typedef struct DavitDoc {
    const char *name; /* "--offload-config" */
    const char *above; /* where it lies in a larger document, "a.b[0]."; NULL = it is the whole */
    const DavitDocKey *keys;
    json_t *root; /* (owned) NULL = did not parse */
    DavitReport *report;
    int32_t status; /* of the first finding */
} DavitDoc;

/* Parse and check every key against the table. */
void davit_doc_read(DavitDoc *doc, const char *text, size_t len);
/* (borrowed) value at a path of the table; NULL if absent or null. */
const json_t *davit_doc_get(const DavitDoc *doc, const char *path);
int64_t davit_doc_int(const DavitDoc *doc, const char *path, int64_t absent);
bool davit_doc_bool(const DavitDoc *doc, const char *path, bool absent);
const char *davit_doc_text(const DavitDoc *doc, const char *path, const char *absent);

/* A value breaks a rule: USAGE. */
void davit_doc_bad(DavitDoc *doc, const char *path, const char *expected,
                   const json_t *found, const char *message);
/* Known, not implemented. Returns the status. */
int32_t davit_doc_unbuilt(const char *name, const char *path, const char *found,
                          const char *hint, DavitReport *report);

#endif
