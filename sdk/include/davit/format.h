/* SPDX-License-Identifier: Apache-2.0
 * Kind "format", interface 1.0: turn the head of a file into tensor entries and keys.
 *
 * Three hooks, three costs: probe looks at the first bytes or a directory listing; open
 * parses headers; tensor bytes are read by the core from the extents, never by the plugin.
 */
#ifndef DAVIT_FORMAT_H
#define DAVIT_FORMAT_H

#include "suites.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a format is shown. Either a file (head set) or a directory (names set). All pointers are
 * (borrowed) the call. A file that is served remotely looks the same. */
struct davit_probe_in {
    uint64_t struct_size;
    uint64_t purposes;        /* what the caller wants: DAVIT_INSPECT ... bits */
    const char *name;         /* last path part, for extensions and messages */
    const uint8_t *head;      /* first bytes of the file; NULL for a directory */
    uint64_t head_len;        /* min(file size, 4096) */
    uint64_t file_size;       /* bytes; 0 for a directory */
    const char *const *names; /* directory: entry names, sorted, NULL for a file */
    uint64_t n_names;
    /* Directory and ACCEPT: write the entry file's name here (at most out_entry_cap bytes
     * with the NUL); it is one of names. */
    char *out_entry;
    uint64_t out_entry_cap;
};

/* Types of a key's value. Strings and arrays of strings are runs of {u64 length, bytes} without
 * NUL, numbers are little-endian, bool is one byte 0 or 1. Number 9 is not used: an array is told
 * by is_array, and arrays of arrays are not delivered. */
#define DAVIT_KV_U8  0u
#define DAVIT_KV_I8  1u
#define DAVIT_KV_U16 2u
#define DAVIT_KV_I16 3u
#define DAVIT_KV_U32 4u
#define DAVIT_KV_I32 5u
#define DAVIT_KV_F32 6u
#define DAVIT_KV_BOOL 7u
#define DAVIT_KV_STR 8u
#define DAVIT_KV_U64 10u
#define DAVIT_KV_I64 11u
#define DAVIT_KV_F64 12u

typedef struct davit_kv {
    uint64_t struct_size;
    davit_span key;    /* UTF-8; copied by the host. Once per file */
    uint32_t type;     /* DAVIT_KV_ of the value or of each element */
    uint32_t is_array; /* 1 = array of @count elements, 0 = one value (count 1) */
    uint64_t count;
    const uint8_t *data; /* encoded as above, bounds already checked by the format.
                          * (borrowed) valid until close */
    uint64_t n_bytes;
} davit_kv;

/* One tensor. The host copies it during the call, checks what is said here, and refuses the file
 * as corrupt where it does not hold. */
typedef struct davit_extent {
    uint64_t struct_size;
    davit_span name;   /* UTF-8 of 1 to 4096 bytes; once per file */
    const char *dtype; /* "f32/1" "bf16/1" "q4_k/1" or the format's own "com.acme.x/1" */
    uint64_t shape[DAVIT_MAX_RANK]; /* row-major, outermost first ([out, in]) */
    uint32_t rank;
    uint32_t reserved;    /* 0 */
    uint64_t off;         /* bytes from the start of this file; off + n_bytes is inside it */
    uint64_t n_bytes;     /* product of shape / block_elems * block_bytes */
    uint32_t block_elems; /* elements of a block along the last axis, >= 1; divides it */
    uint32_t block_bytes; /* bytes of a block, >= 1 */
} davit_extent;

/* A promise of an index: tensor @tensor lies in file @file. */
typedef struct davit_shard_ref {
    uint64_t struct_size;
    davit_span file;   /* name beside the index; no path parts */
    davit_span tensor; /* empty = only the file is named (split GGUF) */
} davit_shard_ref;

/* Where open delivers what it finds, in file order; what is passed needs to live during the call
 * only, but for davit_kv.data. Each returns DAVIT_OK, or a negative status that open must hand
 * back at once (its record is there already). */
typedef struct davit_format_out {
    uint64_t struct_size;
    void *ctx;
    int32_t (*tensor)(void *ctx, const davit_extent *extent);
    int32_t (*key)(void *ctx, const davit_kv *kv);
    int32_t (*shard)(void *ctx, const davit_shard_ref *ref);
} davit_format_out;

typedef struct davit_format_iface {
    uint64_t struct_size; /* DAVIT_END(davit_format_iface, close) */

    /* Parse the header of @src, never tensor data; deliver everything to @out. On success
     * *out_reader (may be NULL) keeps alive what davit_kv.data points to. On failure leaves
     * it alone, has put a record into @sink and returns a negative status. All findings of
     * a file should be recorded, not only the first. Required.
     * [any thread, one call per source] */
    int32_t (*open)(void *self, davit_source *src, const davit_format_out *out,
                    void **out_reader, const davit_sink *sink);

    /* Once for each open that returned DAVIT_OK, when the checkpoint is closed; @reader as open
     * left it, may be NULL. Required. [any thread] */
    void (*close)(void *self, void *reader);
} davit_format_iface;

#ifdef __cplusplus
}
#endif
#endif
