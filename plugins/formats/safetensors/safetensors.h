/* SPDX-License-Identifier: Apache-2.0
 * What the files of this plugin share. Reading order: safetensors.c, st_probe.c,
 * st_header.c, st_ranges.c, st_plain.c, st_index.c. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <davit/format.h>
#include <davit/help/records.h>

/* Reference: MAX_HEADER_SIZE of the safetensors crate. The index shares the bound. */
#define ST_MAX_HEADER 100000000u
/* Findings of one file; more are counted in the last record. */
#define ST_MAX_FINDINGS 32u

typedef struct st_plugin {
    const davit_host *host;
    const davit_io_suite *io;
    const davit_json_suite *json;
} st_plugin;

/* Memory that lives until close: copies of names, encoded metadata values. */
typedef struct st_block {
    struct st_block *next;
    uint8_t bytes[];
} st_block;

/* One open file: kept alive by the core until close. */
typedef struct st_reader {
    char *text; /* the JSON, NUL-terminated */
    uint64_t n_text;
    st_block *blocks;
} st_reader;

/* What one call of open carries around. */
typedef struct st_open {
    const st_plugin *plugin;
    davit_source *src;
    const char *name; /* of the file, for records */
    const davit_format_out *out;
    const davit_sink *sink;
    st_reader *reader;
    davit_json_reader *json;
    uint32_t n_findings;
    int32_t status; /* first error, DAVIT_OK so far */
} st_open;

/* A dtype of the format and what core calls it. */
typedef struct st_dtype {
    const char *name;  /* "BF16" */
    const char *dtype; /* "bf16/1" */
    uint32_t block_elems;
    uint32_t block_bytes;
} st_dtype;

/* One entry of the header. */
typedef struct st_tensor {
    davit_span name;
    const char *dtype; /* NULL = unknown, already reported */
    uint32_t block_elems;
    uint32_t block_bytes;
    uint32_t rank;
    uint32_t n_shape;
    uint64_t shape[DAVIT_MAX_RANK];
    uint64_t begin; /* from the start of the data */
    uint64_t end;
} st_tensor;

typedef struct st_table {
    st_tensor *tensors;
    uint64_t n;
    uint64_t cap;
} st_table;

int32_t st_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink);

/* Read [off, off + n) of the file as the reader's text. */
int32_t st_read_text(st_open *o, uint64_t off, uint64_t n);
/* Parse the header into @table; @data_bytes is what follows it in the file. */
int32_t st_read_header(st_open *o, st_table *table);
/* Ranges against each other and the file; then deliver. @data_off: start of the data. */
int32_t st_check_ranges(st_open *o, st_table *table, uint64_t data_off,
                        uint64_t data_bytes);
/* The same for a header without fault in the reference writer's form: returns 1 and
 * *out_status once it is delivered. 0 = it is not so; nothing was said or delivered. */
int st_read_plain(st_open *o, uint64_t data_off, uint64_t data_bytes, int32_t *out_status);
int32_t st_read_index(st_open *o);

/* (static) NULL = none has that name. */
const st_dtype *st_find_dtype(davit_span name);

/* A finding about @span; counts it, keeps its status, and returns it. */
int32_t st_find(st_open *o, davit_span subject, int32_t status,
                const davit_refusal *record);
/* @span where it will stay valid: itself inside the text, else a copy. ptr NULL = no
 * memory. */
davit_span st_keep(st_open *o, davit_span span);
uint8_t *st_alloc(st_open *o, uint64_t n);
int32_t st_no_memory(st_open *o);
/* "an object", "a number" ... of a JSON event's type. */
const char *st_type_name(uint32_t type);
int st_is(davit_span span, const char *s);
int st_ends_with(const char *name, const char *suffix);
/* Deliver one key; @value is copied into the reader. */
int32_t st_give_text(st_open *o, const char *prefix, davit_span key, davit_span value);
int32_t st_give_u64(st_open *o, const char *key, uint64_t value);

#endif
