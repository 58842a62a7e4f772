/* SPDX-License-Identifier: Apache-2.0
 * What the files of this plugin share. Reading order: gguf.c, gguf_probe.c,
 * gguf_cursor.c, gguf_keys.c, gguf_tensors.c, gguf_types.c, gguf_split.c. */
#ifndef GGUF_H
#define GGUF_H

#include <davit/format.h>
#include <davit/help/records.h>

#define GGUF_MAX_FINDINGS 32u
#define GGUF_MAX_KEY      65535u     /* specification: key length */
#define GGUF_MAX_COUNT    (1u << 30) /* reference reader: strings and arrays */
#define GGUF_MAX_NAME     64u        /* GGML_MAX_NAME with its NUL */
#define GGUF_MAX_DIMS     4u         /* GGML_MAX_DIMS */
#define GGUF_MIN_ALIGN    8u
#define GGUF_MAX_ALIGN    (1u << 20)
#define GGUF_ALIGN        32u /* specification: when the key is absent */

typedef struct gguf_plugin {
    const davit_host *host;
    const davit_io_suite *io;
} gguf_plugin;

/* Walk over the header: [0, have) is in memory at base. Views of a source stay valid
 * while it lives, so pointers into an earlier window stay good. */
typedef struct gguf_cursor {
    const uint8_t *base;
    uint64_t pos;
    uint64_t have;
    uint64_t size; /* of the file */
} gguf_cursor;

/* What one call of open carries around. */
typedef struct gguf_open {
    const gguf_plugin *plugin;
    davit_source *src;
    const char *name; /* of the file, for records */
    const davit_format_out *out;
    const davit_sink *sink;
    gguf_cursor c;
    uint32_t n_findings;
    int32_t status; /* first error, DAVIT_OK so far */
    uint32_t align;
    int64_t split_no;    /* -1 = key absent */
    int64_t split_count; /* -1 = key absent */
} gguf_open;

/* A row of ggml's type table. */
typedef struct gguf_type {
    const char *name;  /* as in ggml, for messages */
    const char *dtype; /* NULL = removed from the format */
    uint32_t block_elems;
    uint32_t block_bytes;
    const char *instead; /* hint where removed */
} gguf_type;

/* NULL for ids past the table. */
const gguf_type *gguf_type_find(uint32_t id);

int32_t gguf_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink);

/* Make @n bytes at the cursor readable. Fails with FILE_TRUNCATED naming @what. */
int32_t gguf_need(gguf_open *o, uint64_t n, const char *what);
/* Read and go past. */
int32_t gguf_u32(gguf_open *o, uint32_t *out, const char *what);
int32_t gguf_u64(gguf_open *o, uint64_t *out, const char *what);
/* u64 length and bytes, at most @max of them. */
int32_t gguf_string(gguf_open *o, uint64_t max, davit_span *out, const char *what);

/* All key/values, delivered one by one; fills align and split fields. */
int32_t gguf_read_keys(gguf_open *o, uint64_t n_kv);
/* All tensor infos, checked against types and file, delivered in file order. */
int32_t gguf_read_tensors(gguf_open *o, uint64_t n_tensors);
/* Split keys against the file's name; delivers the files of the set. */
int32_t gguf_check_split(gguf_open *o);

/* A finding about @subject (ptr NULL = the file); counted, its status kept, returned. */
int32_t gguf_find(gguf_open *o, davit_span subject, int32_t status,
                  const davit_refusal *record);

#endif
