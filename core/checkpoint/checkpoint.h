/* SPDX-License-Identifier: Apache-2.0
 * DavitCheckpoint: the catalogue of a model's stored tensors and keys, from headers only.
 *
 * Opening asks the format components, opens every file of the set and settles it against
 * its index: absent shards, holes, duplicates, strays, sizes. All findings go to the
 * report. Immutable once open, any thread. No tensor byte is read before
 * davit_checkpoint_read or _view is called.
 */
#ifndef DAVIT_CHECKPOINT_CHECKPOINT_H
#define DAVIT_CHECKPOINT_CHECKPOINT_H

#include "base/report.h"
#include "plugin/registry.h"
#include "source/source.h"

typedef struct davit_catalog DavitCheckpoint;

/* Open MODEL (a directory or file). @purposes: what it is wanted for, DAVIT_INSPECT ...
 * bits.
 * @registry stays borrowed until free. Returns: (owned) or NULL with error records;
 * warnings and notes are in @report either way. */
DavitCheckpoint *davit_checkpoint_open(DavitRegistry *registry, const char *model,
                                       uint64_t purposes, DavitReport *report);
/* The same for looking only: files that all open and merely contradict each other or their
 * index are returned too, with the errors in @report and settled false. */
DavitCheckpoint *davit_checkpoint_open_loose(DavitRegistry *registry, const char *model,
                                             uint64_t purposes, DavitReport *report);
bool davit_checkpoint_settled(const DavitCheckpoint *ckpt);
void davit_checkpoint_free(DavitCheckpoint *ckpt); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitCheckpoint, davit_checkpoint_free)

/* ---- who was asked (also after a failed open) ---- */

/* One component's answer for one file or directory, for `why`. */
typedef struct DavitAsked {
    char *who;        /* component id */
    char *subject;    /* file or directory name that it was shown */
    uint32_t verdict; /* DAVIT_DECLINE, _ACCEPT, _REFUSE */
    uint32_t score;
    uint64_t purposes;
    bool chosen;
    DavitReport *records; /* what it said */
} DavitAsked;

/* (owned GPtrArray of DavitAsked, g_ptr_array_unref) What every format says of MODEL,
 * without opening it: the directory, then the entry file, then every other file of the
 * set that asking alone makes known. */
GPtrArray *davit_checkpoint_ask(DavitRegistry *registry, const char *model,
                                uint64_t purposes, DavitReport *report);
/* (borrowed, DavitAsked) All answers that opening collected. */
const GPtrArray *davit_checkpoint_asked(const DavitCheckpoint *ckpt);
/* (borrowed) id of the format component that took the entry file. */
const char *davit_checkpoint_format(const DavitCheckpoint *ckpt);

/* ---- files ---- */

typedef struct DavitCheckpointFile {
    DavitSource *source; /* (borrowed from the checkpoint) */
    const char *name;    /* (borrowed) name in the directory */
    const char *format;  /* (borrowed) component id */
    uint64_t n_bytes;    /* size of the file */
    uint64_t n_tensors;
} DavitCheckpointFile;

const char *davit_checkpoint_dir(const DavitCheckpoint *ckpt); /* (borrowed) */
/* (borrowed) the index file's name, or NULL if there is none. */
const char *davit_checkpoint_index(const DavitCheckpoint *ckpt);
size_t davit_checkpoint_n_files(const DavitCheckpoint *ckpt);
/* @index < n_files; in the order that davit_tensor_info.file counts. */
DavitCheckpointFile davit_checkpoint_file(const DavitCheckpoint *ckpt, size_t index);

/* ---- tensors, sorted by name ---- */

size_t davit_checkpoint_n_tensors(const DavitCheckpoint *ckpt);
/* (borrowed) @index < n_tensors; they lie in one array. */
const davit_tensor_info *davit_checkpoint_tensor(const DavitCheckpoint *ckpt,
                                                 size_t index);
/* (borrowed) NULL if there is no such tensor. */
const davit_tensor_info *davit_checkpoint_find(const DavitCheckpoint *ckpt,
                                               const char *name);
/* Tensors under a name that the table holds already (opened loosely only): the table has the
 * one where the index says, else the first. In no order. */
size_t davit_checkpoint_n_copies(const DavitCheckpoint *ckpt);
/* (borrowed) @index < n_copies. */
const davit_tensor_info *davit_checkpoint_copy(const DavitCheckpoint *ckpt, size_t index);
/* Bytes of all tensors, each name once. */
uint64_t davit_checkpoint_n_bytes(const DavitCheckpoint *ckpt);

/* ---- names that the user changed: rename.h ---- */

typedef struct DavitRename {
    char *text;       /* as the user wrote it */
    char *from;       /* pattern with stars, or a prefix */
    char *to;         /* NULL = the prefix goes away */
    size_t n_tensors; /* whose names it changed */
    char *first;      /* "old -> new" of the first; NULL = none */
} DavitRename;

size_t davit_checkpoint_n_renames(const DavitCheckpoint *ckpt);
/* (borrowed) @index < n_renames. */
const DavitRename *davit_checkpoint_rename_at(const DavitCheckpoint *ckpt, size_t index);

/* Tensor bytes copied to @buf, or in place (valid while the checkpoint lives). @off
 * counts from the start of the file. */
int32_t davit_checkpoint_read(const DavitCheckpoint *ckpt, uint32_t file, uint64_t off,
                              void *buf, uint64_t n_bytes, DavitReport *report);
int32_t davit_checkpoint_view(const DavitCheckpoint *ckpt, uint32_t file, uint64_t off,
                              uint64_t n_bytes, const uint8_t **out_bytes,
                              DavitReport *report);
/* A few bytes that will be viewed: davit_source_want. */
void davit_checkpoint_want(const DavitCheckpoint *ckpt, uint32_t file, uint64_t off,
                           uint64_t n_bytes);
/* All files are still what they were at open? To be called after a load that borrowed. */
int32_t davit_checkpoint_check(const DavitCheckpoint *ckpt, DavitReport *report);

/* ---- keys: GGUF key/values, "__metadata__.NAME" and "__index__.total_size" ---- */

/* In file order, those of the first file (and of the index). */
size_t davit_checkpoint_n_keys(const DavitCheckpoint *ckpt);
/* (borrowed) @index < n_keys. kv.key is NUL-terminated. */
const davit_kv *davit_checkpoint_key(const DavitCheckpoint *ckpt, size_t index);
/* (borrowed) NULL if absent. */
const davit_kv *davit_checkpoint_find_key(const DavitCheckpoint *ckpt, const char *key);

/* Value @index of @kv (0 for a scalar). Each returns false, leaving *out alone, when the
 * type does not hold such a value exactly or @index is too large: i64 takes every integer
 * type and bool that fits, f64 every number, text needs STR. Strings: use the cursor for
 * arrays. */
bool davit_kv_i64(const davit_kv *kv, uint64_t index, int64_t *out);
bool davit_kv_u64(const davit_kv *kv, uint64_t index, uint64_t *out);
bool davit_kv_f64(const davit_kv *kv, uint64_t index, double *out);
bool davit_kv_bool(const davit_kv *kv, bool *out);
/* (borrowed from the checkpoint) of a scalar string. */
bool davit_kv_text(const davit_kv *kv, davit_span *out);
/* "u32", "str" ..., (static). */
const char *davit_kv_type_name(uint32_t type);
/* Bytes of one element, 0 for strings and unknown types. */
uint32_t davit_kv_type_bytes(uint32_t type);

/* Walks an array of strings without copying:
 *   DavitKvCursor c = davit_kv_strings(kv);
 *   for (davit_span s; davit_kv_next(&c, &s);) ... */
typedef struct DavitKvCursor {
    const uint8_t *p;
    const uint8_t *end;
    uint64_t left;
} DavitKvCursor;

DavitKvCursor davit_kv_strings(const davit_kv *kv);
bool davit_kv_next(DavitKvCursor *cursor, davit_span *out);

/* ---- files beside the weights ---- */

/* Read @name (config.json, tokenizer.json ...) beside the weights. *out_bytes (owned) is
 * NULL when there is no such file; that is DAVIT_OK. Errors: DAVIT_E_LIMIT above
 * @max_bytes, a Git LFS pointer, an empty file, I/O. */
int32_t davit_checkpoint_sibling(const DavitCheckpoint *ckpt, const char *name,
                                 uint64_t max_bytes, GBytes **out_bytes,
                                 DavitReport *report);

/* The "tensor" suite's table; a davit_catalog is a DavitCheckpoint. (static) */
const davit_tensor_suite *davit_tensor_suite_get(void);

#endif
