/* SPDX-License-Identifier: Apache-2.0
 * Host suites that plugins of every kind may ask for: cpu, io, json, regex, tensor, config.
 *
 * Each suite is a table whose first field is struct_size, fetched with
 *   const davit_json_suite *json = host->suite(host->ctx, "json", 1, 0);
 * NULL = this host has none. @host_ctx is davit_host.ctx. A struct that a function fills has its
 * struct_size set by the caller (DAVIT_END of the last field that it knows); the host writes no
 * further. The host owns all limits (depth, header bytes, match steps), so
 * a plugin has none of its own. The "build" suite belongs to architectures: see arch.h.
 */
#ifndef DAVIT_SUITES_H
#define DAVIT_SUITES_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A run of bytes. Not NUL-terminated. */
typedef struct davit_span {
    const char *ptr; /* (borrowed) see the function that gave it */
    uint64_t len;    /* bytes */
} davit_span;

/* ---- "cpu" 1.0 ---- */

#define DAVIT_CPU_SSE42      (1ull << 0)
#define DAVIT_CPU_AVX        (1ull << 1)
#define DAVIT_CPU_AVX2       (1ull << 2)
#define DAVIT_CPU_FMA        (1ull << 3)
#define DAVIT_CPU_F16C       (1ull << 4)
#define DAVIT_CPU_BMI2       (1ull << 5)
#define DAVIT_CPU_AVX512F    (1ull << 6)
#define DAVIT_CPU_AVX512BW   (1ull << 7)
#define DAVIT_CPU_AVX512DQ   (1ull << 8)
#define DAVIT_CPU_AVX512VL   (1ull << 9)
#define DAVIT_CPU_AVX512VNNI (1ull << 10)
#define DAVIT_CPU_AVX512BF16 (1ull << 11)
#define DAVIT_CPU_AVXVNNI    (1ull << 12)
#define DAVIT_CPU_AVX512VBMI (1ull << 13)

typedef struct davit_cpu_suite {
    uint64_t struct_size;
    /* DAVIT_CPU_ bits that the processor AND the operating system offer, capped by
     * DAVIT_CPU_LEVEL. [any thread] */
    uint64_t (*features)(void *host_ctx);
} davit_cpu_suite;

/* ---- "io" 1.0 ---- */

typedef struct davit_source davit_source; /* one open file or remote object */

typedef struct davit_io_suite {
    uint64_t struct_size;
    uint64_t (*size)(const davit_source *src); /* bytes, fixed at open */
    /* (borrowed, lives as long as the source) name for messages, last path part. */
    const char *(*name)(const davit_source *src);
    /* Read exactly @n bytes at @off into @buf. Errors: DAVIT_E_IO, DAVIT_E_CORRUPT when the
     * range passes the end; a record is in @sink. [any thread] */
    int32_t (*read)(const davit_source *src, uint64_t off, void *buf, uint64_t n,
                    const davit_sink *sink);
    /* Bytes [off, off+n) in memory: mapped for local files, fetched and kept for others.
     * (borrowed) valid while the source lives. Same errors as read. [any thread] */
    int32_t (*view)(const davit_source *src, uint64_t off, uint64_t n,
                    const uint8_t **out_bytes, const davit_sink *sink);
} davit_io_suite;

/* ---- "json" 1.0: pull reader ---- */

#define DAVIT_JSON_OBJECT     1u /* { */
#define DAVIT_JSON_OBJECT_END 2u
#define DAVIT_JSON_ARRAY      3u /* [ */
#define DAVIT_JSON_ARRAY_END  4u
#define DAVIT_JSON_KEY        5u /* text */
#define DAVIT_JSON_STRING     6u /* text */
#define DAVIT_JSON_INT        7u /* i64 and f64; whole number within int64 */
#define DAVIT_JSON_REAL       8u /* f64 */
#define DAVIT_JSON_TRUE       9u
#define DAVIT_JSON_FALSE      10u
#define DAVIT_JSON_NULL       11u
#define DAVIT_JSON_DONE       12u /* after the top value; only white space followed */

typedef struct davit_json_event {
    uint64_t struct_size;
    uint32_t type;   /* DAVIT_JSON_ */
    uint32_t depth;  /* of the value; 0 = top */
    davit_span text; /* KEY, STRING: unescaped UTF-8; numbers: the literal as written.
                      * (borrowed) valid until the next call on the reader */
    int64_t i64;
    double f64;
    uint64_t off; /* byte offset of the value in the text */
} davit_json_event;

/* Dialect bits. Strict JSON refuses what these allow. Duplicate keys are refused always. */
#define DAVIT_JSON_PYTHON 1u /* NaN, Infinity, -Infinity, lone surrogates (-> U+FFFD) */

typedef struct davit_json_reader davit_json_reader;

typedef struct davit_json_suite {
    uint64_t struct_size;
    /* Start reading @text (borrowed until close). @subject names the file in records. @sink is
     * used until close, so it must be that of the call which reads to the end. Returns DAVIT_OK
     * and *out_reader (owned: close), or a negative status after a record. One thread per reader. */
    int32_t (*open)(void *host_ctx, davit_span text, uint32_t dialect, const char *subject,
                    davit_json_reader **out_reader, const davit_sink *sink);
    /* Next event: the value's pieces in order, after an OBJECT pairs of KEY and value, then
     * OBJECT_END; DONE after the top value. DAVIT_OK, or DAVIT_E_CORRUPT or _LIMIT after a record
     * with the byte offset; the same again when called further. */
    int32_t (*next)(davit_json_reader *reader, davit_json_event *out);
    /* After OBJECT, ARRAY or KEY: skip that whole value. Anywhere else: nothing. Same errors. */
    int32_t (*skip)(davit_json_reader *reader);
    void (*close)(davit_json_reader *reader); /* NULL is a no-op */
} davit_json_suite;

/* ---- "regex" 1.0 ---- */

typedef struct davit_regex davit_regex;

#define DAVIT_REGEX_CASELESS 1u

typedef struct davit_regex_suite {
    uint64_t struct_size;
    /* Compile a pattern in the onig spelling of tokenizer files. Classes \p \s \w mean the
     * Unicode version that Hugging Face uses; what PCRE2 would read otherwise is refused with
     * DAVIT_E_UNSUPPORTED and a record. *out_regex is (owned: free). [any thread] */
    int32_t (*compile)(void *host_ctx, davit_span pattern, uint32_t flags,
                       davit_regex **out_regex, const davit_sink *sink);
    /* Non-overlapping matches from @from, leftmost first: writes up to @cap pairs
     * (start, end) of byte offsets into @out, returns how many, or a negative status (match
     * limit). *out_next = where to go on, == text.len when done. [any thread] */
    int64_t (*matches)(const davit_regex *regex, davit_span text, uint64_t from,
                       uint64_t *out_pairs, uint64_t cap, uint64_t *out_next);
    void (*free)(davit_regex *regex); /* NULL is a no-op */
} davit_regex_suite;

/* ---- "tensor" 1.0: the checkpoint's catalogue ---- */

typedef struct davit_catalog davit_catalog; /* all tensors of a checkpoint, headers only */

#define DAVIT_MAX_RANK 8

typedef struct davit_tensor_info {
    uint64_t struct_size;
    const char *name;    /* (borrowed) lives as long as the catalog */
    const char *dtype;   /* interned dtype name, "bf16/1" */
    uint64_t shape[DAVIT_MAX_RANK]; /* row-major, outermost first: a matrix is [out, in] */
    uint32_t rank;       /* 0 = scalar */
    uint32_t file;       /* index of the shard */
    uint64_t off;        /* bytes from the start of that file */
    uint64_t n_bytes;
    uint32_t block_elems; /* elements of one block along the last axis; 1 = plain */
    uint32_t block_bytes;
} davit_tensor_info;

typedef struct davit_tensor_suite {
    uint64_t struct_size;
    uint64_t (*count)(const davit_catalog *catalog);
    /* @index < count, in name order. */
    void (*get)(const davit_catalog *catalog, uint64_t index, davit_tensor_info *out);
    /* 1 and *out filled, or 0. */
    int32_t (*find)(const davit_catalog *catalog, const char *name, davit_tensor_info *out);
} davit_tensor_suite;

/* ---- "config" 1.0: settings of a model by symbol ---- */

typedef struct davit_config davit_config; /* config.json or GGUF keys, resolved */

/* Rotary embedding of one layer type, normalised from every spelling (archs.md 4). */
#define DAVIT_ROPE_NONE         0u
#define DAVIT_ROPE_DEFAULT      1u
#define DAVIT_ROPE_LINEAR       2u
#define DAVIT_ROPE_DYNAMIC      3u
#define DAVIT_ROPE_YARN         4u
#define DAVIT_ROPE_LLAMA3       5u
#define DAVIT_ROPE_LONGROPE     6u
#define DAVIT_ROPE_PROPORTIONAL 7u

typedef struct davit_rope_spec {
    uint64_t struct_size;
    uint32_t type;        /* DAVIT_ROPE_ */
    uint32_t n_factors;   /* entries in short_factor and long_factor; 0 = none */
    double theta;         /* base frequency */
    double partial;       /* partial_rotary_factor, 1 = whole head */
    double factor;
    double original_max;  /* original_max_position_embeddings, filled */
    double max_positions; /* max_position_embeddings */
    double attention_factor; /* NaN = not given: derive */
    double mscale;        /* 0 = not given */
    double mscale_all_dim;
    double beta_fast;
    double beta_slow;
    double low_freq_factor;
    double high_freq_factor;
    uint64_t truncate;    /* 1 = yarn rounds its band (default), 0 = does not */
    const double *short_factor; /* (borrowed, lives as long as the config) */
    const double *long_factor;
} davit_rope_spec;

typedef struct davit_config_suite {
    uint64_t struct_size;
    /* Value of symbol @sym of the arch's config table; @layer picks from a per-layer array,
     * -1 where there is none. A value once read counts as seen (watch list). A symbol that
     * is absent without default was refused before the plugin is asked, so these cannot
     * fail; an unknown symbol or wrong type is the plugin's mistake: 0, and a record. */
    int64_t (*integer)(const davit_config *config, const char *sym, int64_t layer);
    double (*number)(const davit_config *config, const char *sym, int64_t layer);
    int32_t (*flag)(const davit_config *config, const char *sym, int64_t layer);
    const char *(*text)(const davit_config *config, const char *sym, int64_t layer);
    /* 1 if the file gives a value that is not null (a default does not count). */
    int32_t (*given)(const davit_config *config, const char *sym);
    /* Rope of a layer type: "" = the model's only one, else "full_attention",
     * "sliding_attention" ... Filled with type NONE where the file says null. */
    void (*rope)(const davit_config *config, const char *layer_type, davit_rope_spec *out);
    int32_t (*is_gguf)(const davit_config *config); /* 1 = settings come from GGUF keys */
} davit_config_suite;

#ifdef __cplusplus
}
#endif
#endif
