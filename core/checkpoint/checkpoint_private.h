/* SPDX-License-Identifier: Apache-2.0
 * Inside of DavitCheckpoint, for the files of this folder and for tests that link a
 * plugin's table directly. Reading order: checkpoint.c, ask.c, collect.c, set.c,
 * sort.c, settle.c, copies.c, misplaced.c, keys.c. */
#ifndef DAVIT_CHECKPOINT_PRIVATE_H
#define DAVIT_CHECKPOINT_PRIVATE_H

#include "base/dtype.h"
#include "checkpoint/checkpoint.h"
#include "source/path.h"

#define DAVIT_PROBE_HEAD      4096u /* bytes of a file that a probe is shown */
#define DAVIT_MAX_LIKE        32u   /* findings of one kind that are shown */
#define DAVIT_MAX_TENSOR_NAME 4096u

/* A format component ready to be asked. */
typedef struct DavitFormat {
    const char *id;                  /* (borrowed) */
    const char *capability;          /* (borrowed) */
    DavitProbeFn probe;              /* NULL = never asked */
    const davit_format_iface *iface; /* (borrowed) */
    void *self;                      /* (borrowed) */
    int32_t user_rank;               /* 0 = none */
} DavitFormat;

/* A promise of an index. Strings lie in the checkpoint's chunk. */
typedef struct DavitRef {
    const char *file;
    const char *tensor; /* NULL = only the file is named */
} DavitRef;

/* One opened file. */
typedef struct DavitPart {
    DavitCheckpoint *ckpt;
    char *name;
    DavitSource *source;
    const DavitFormat *format; /* (borrowed) who opened it */
    void *reader;              /* the format's, until close */
    DavitSink *sink;           /* (borrowed) while it is being opened */
    size_t first_tensor; /* its tensors in the catalogue's array, until that is sorted */
    size_t n_tensors;
    GArray *keys;        /* davit_kv */
    uint32_t *key_order; /* indices of keys, sorted by name; keys->len of them */
    GArray *refs;        /* DavitRef */
    const char *dtype_name;  /* interned, of the last tensor; NULL before the first */
    const DavitDtype *dtype; /* its entry; NULL = a dtype of the format's own */
} DavitPart;

struct davit_catalog {
    DavitModelPath path;
    uint64_t purposes;
    GArray *formats;            /* DavitFormat in candidate order */
    GPtrArray *asked;           /* DavitAsked */
    DavitPart *index;           /* NULL = none */
    GPtrArray *parts;           /* DavitPart, in the order that tensor.file counts */
    GStringChunk *text;         /* names of tensors, keys and files */
    davit_tensor_info *tensors; /* (owned, base/big.h) sorted by name once all files are open */
    size_t n_tensors, n_room;
    uint64_t n_bytes;
    GArray *copies; /* (owned) davit_tensor_info that another of their name stands for; NULL = none */
    bool settled;   /* the files agree with each other and with their index */
    GPtrArray *renames; /* (owned) DavitRename that were applied; NULL = none */
};

/* Opens with formats that the caller made ready (tests, fuzzing). @formats: DavitFormat,
 * copied. */
DavitCheckpoint *davit_checkpoint_open_with(const GArray *formats, const char *model,
                                            uint64_t purposes, DavitReport *report);
/* The same for one source that is no file: probe and open, nothing beside it. */
DavitCheckpoint *davit_checkpoint_open_source(const GArray *formats, DavitSource *source,
                                              uint64_t purposes, DavitReport *report);

/* ---- ask.c ---- */

/* Ask every format about the directory: *out_entry (owned) is the file to start with.
 * Returns: the chosen format or NULL with records. */
const DavitFormat *davit_ask_directory(DavitCheckpoint *ckpt, char **out_entry,
                                       DavitReport *report);
/* Ask every format about one file by its first bytes. */
const DavitFormat *davit_ask_file(DavitCheckpoint *ckpt, const DavitSource *source,
                                  DavitReport *report);
void davit_asked_free(void *asked);

/* ---- collect.c ---- */

/* Returns: (owned) the file @name opened by the format that takes it, or NULL. */
DavitPart *davit_part_open(DavitCheckpoint *ckpt, const char *name, DavitReport *report);
/* The same for a source that is open already; takes @source. */
DavitPart *davit_part_open_source(DavitCheckpoint *ckpt, DavitSource *source,
                                  DavitReport *report);
void davit_part_free(void *part);
const davit_kv *davit_part_key(const DavitPart *part, const char *key);

/* ---- set.c: which files belong to the model ---- */

/* Opens @entry and all files that it names; fills index and parts. All findings go to
 * @report; false if one of them is an error. */
bool davit_set_open(DavitCheckpoint *ckpt, const char *entry, DavitReport *report);

/* ---- sort.c ---- */

/* By name, those of one name by file. */
void davit_tensors_sort(davit_tensor_info *tensors, size_t n);

/* ---- settle.c: do they fit together ---- */

/* Sorted table of all tensors, made of those gathered. */
void davit_settle_tensors(DavitCheckpoint *ckpt, DavitReport *report);
/* Index against shards, sizes, split keys. */
void davit_settle_set(DavitCheckpoint *ckpt, DavitReport *report);
/* Weight files in the directory that were not used. */
void davit_settle_strays(const DavitCheckpoint *ckpt, DavitReport *report);

/* ---- copies.c ---- */

/* Names that the sorted table holds twice are errors; one stays, the one where the index
 * says, and the others go to ckpt->copies. */
void davit_settle_copies(DavitCheckpoint *ckpt, DavitReport *report);

/* ---- misplaced.c: what lies in another file than the index says ---- */

typedef struct DavitMisplaced DavitMisplaced;

DavitMisplaced *davit_misplaced_new(void);
void davit_misplaced_free(DavitMisplaced *misplaced);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitMisplaced, davit_misplaced_free)
/* The index places a tensor in @file. Strings are borrowed until the report is made. */
void davit_misplaced_promise(DavitMisplaced *misplaced, const char *file);
/* ... and it lies in @found. */
void davit_misplaced_add(DavitMisplaced *misplaced, const char *tensor, const char *promised,
                         const char *found);
void davit_misplaced_report(DavitMisplaced *misplaced, DavitReport *report);

/* Findings of one kind, cut after DAVIT_MAX_LIKE with a last record that counts the rest.
 */
typedef struct DavitMany {
    DavitReport *report;
    size_t n;
    DavitFinding last;
} DavitMany;

void davit_many_add(DavitMany *many, const DavitFinding *finding);
void davit_many_end(DavitMany *many);

#endif
