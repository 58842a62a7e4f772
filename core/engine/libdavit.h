/* SPDX-License-Identifier: Apache-2.0
 * libdavit: load a model, run requests. The davit program's `run` and `eval` are clients.
 *
 * Nothing here prints, exits, installs a signal handler or changes the locale. A failing
 * function returns a negative DAVIT_LIB_ status and, when asked, hands out the records that
 * say why. Parameter structs start with struct_size = sizeof; zero in any field means the
 * documented default, and later versions only append. A handle of the wrong kind, or one
 * that was freed, is refused with DAVIT_LIB_USAGE as far as its memory still tells.
 *
 * Threads: a davit_model is immutable and may serve several engines on several threads. An
 * engine is driven by one thread at a time; davit_request_next and davit_request_cancel may
 * be called from any thread.
 */
#ifndef LIBDAVIT_H
#define LIBDAVIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_LIB_OK          0
#define DAVIT_LIB_IO          (-1) /* I/O, memory or device: exit 1 of the program */
#define DAVIT_LIB_CORRUPT     (-2) /* malformed input: exit 4 */
#define DAVIT_LIB_UNSUPPORTED (-3) /* understood, not supported here: exit 3 */
#define DAVIT_LIB_LIMIT       (-4) /* a bound was exceeded: exit 1 */
#define DAVIT_LIB_MISMATCH    (-5) /* two sources disagree: exit 4 */
#define DAVIT_LIB_USAGE       (-6) /* the call is wrong: exit 2 */

typedef struct davit_model davit_model;     /* plan and weights, immutable, shared */
typedef struct davit_engine davit_engine;   /* KV memory, threads, queue of requests */
typedef struct davit_request davit_request; /* one prompt and its answer */
typedef struct davit_records davit_records; /* findings of a call */

/* ---- records ---- */

typedef struct davit_record {
    uint64_t struct_size;
    const char *code;     /* stable string, "shape-mismatch" */
    const char *severity; /* "error" "warning" "note" */
    int32_t status;       /* of an error: DAVIT_LIB_; 0 otherwise */
    uint32_t reserved;
    const char *stage;    /* NULL where not stated; so are the following */
    const char *who;
    const char *subject;
    const char *expected;
    const char *found;
    const char *message;
    const char *hint;
} davit_record;

size_t davit_records_count(const davit_records *records); /* NULL counts 0 */
/* Fills *out with strings borrowed from @records; set out->struct_size first. 0 or USAGE. */
int davit_records_get(const davit_records *records, size_t index, davit_record *out);
void davit_records_free(davit_records *records); /* NULL is fine */

/* ---- model ---- */

#define DAVIT_LIB_ACTIVATIONS_AUTO 0u /* int8 where a kernel gains from it */
#define DAVIT_LIB_ACTIVATIONS_F32  1u /* the reference path */
#define DAVIT_LIB_ACTIVATIONS_INT8 2u
#define DAVIT_LIB_LAYOUT_AUTO   0u
#define DAVIT_LIB_LAYOUT_STORED 1u
#define DAVIT_LIB_LAYOUT_PACKED 2u

#define DAVIT_LIB_DTYPE_STORED 0u /* as in the file */
#define DAVIT_LIB_DTYPE_F32    1u
#define DAVIT_LIB_DTYPE_F16    2u
#define DAVIT_LIB_DTYPE_BF16   3u
#define DAVIT_LIB_ACCESS_AUTO   0u /* bytes that kernels take as they lie stay in the file */
#define DAVIT_LIB_ACCESS_BORROW 1u /* the same, and nothing is packed */
#define DAVIT_LIB_ACCESS_DIRECT 2u /* private copies, read into place */
#define DAVIT_LIB_ACCESS_STREAM 3u /* private copies, through the window */
/* Reads for private copies (not of bytes that stay in the file). */
#define DAVIT_LIB_CACHE_AUTO 0u /* past the page cache where it holds less than half of a file */
#define DAVIT_LIB_CACHE_USE  1u /* through it: the next load finds the files there */
#define DAVIT_LIB_CACHE_SKIP 2u /* past it wherever the file system can */

/* How much of a device a model may take. */
typedef struct davit_device_budget {
    const char *device; /* "cuda:0" */
    uint64_t n_bytes;
} davit_device_budget;

typedef struct davit_model_params {
    uint64_t struct_size;
    const char *model;                /* directory or file. Required */
    const char *const *plugin_paths;  /* further plugin directories or files; may be NULL */
    const char *device;               /* NULL = "cpu"; "cuda", "cuda:1" */
    const char *kv_dtype;             /* "f32" "f16" "fp8"; NULL = by activations */
    uint32_t activations;             /* DAVIT_LIB_ACTIVATIONS_ */
    uint32_t layout;                  /* DAVIT_LIB_LAYOUT_ */
    uint32_t n_threads;               /* 0 = all this process may use */
    uint32_t block_tokens;            /* tokens of a KV block, 0 = default */
    uint32_t tie;                     /* 0 by the file, 1 force tied, 2 force untied */
    uint32_t no_tokenizer;            /* 0 required, 1 used where there is one, 2 not looked for */
    const char *const *ignore;        /* globs of tensors left out; may be NULL */
    /* Progress of loading; return 0 to cancel. NULL = none. [calling thread] */
    int (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_ctx;
    const char *const *trust_dirs; /* plugin directories taken although others may write; NULL */
    const char *rename;            /* file with rules for tensor names; NULL = none */
    const char *strip_prefix;      /* taken away from tensor names; NULL = none */
    uint32_t dtype;                /* DAVIT_LIB_DTYPE_ of matrices in memory */
    uint32_t access;               /* DAVIT_LIB_ACCESS_ */
    uint64_t window_bytes;         /* most temporary memory while loading, 0 = 256 MiB */
    uint32_t n_io_threads;         /* that read and convert while loading, 0 = by the machine */
    uint32_t page_cache;           /* DAVIT_LIB_CACHE_ */
    uint64_t memory_bytes;         /* budget of the host for weights, 0 = none: beyond it layers
                                    * stay on disk */
    uint32_t allow_draft;          /* 1: take components of draft kinds */
    uint32_t quant_allow;          /* DAVIT_QUANT_ALLOW_ bits of davit/quant.h */
    /* Tensor parallel: @tp processes (0 and 1 = one) each load a part, and this is @rank. They
     * meet at @comm, "TRANSPORT:PLACE" ("shm:NAME"). Rank 0 may leave @comm NULL: a new place is
     * made for this process and its children, and start_ranks is told of it once, to start the
     * others (not 0 = it could not). Rank 0 is then used as any model; the others call
     * davit_engine_follow. */
    uint32_t tp, rank;
    const char *comm;
    uint32_t comm_timeout_s; /* for the others to come, 0 = 60 */
    uint32_t reserved3;
    int (*start_ranks)(void *ctx, const char *comm);
    /* Asked while this rank waits for others, here and later; return 1 to give up. NULL = never.
     * [any thread] */
    int (*comm_cancelled)(void *ctx);
    void *comm_ctx;
    /* Placement: "auto", or the file of a device map (a JSON object of module names and devices);
     * NULL = all on @device. With "auto" memory_bytes is for all that a run takes, and 0 = what is
     * free. */
    const char *device_map;
    const davit_device_budget *budgets; /* of other devices than the host; may be NULL */
    uint64_t n_budgets;
    uint64_t ctx;   /* context that "auto" leaves room for, 0 = the model's, at most 4096 */
    uint32_t chunk; /* tokens that will be computed at a time, 0 = 512 */
    uint32_t reserved4;
} davit_model_params;

/* Load. *out_records (may be NULL) gets all findings, also on success (warnings, notes):
 * free it. On failure *out_model is left alone. */
int davit_model_load(const davit_model_params *params, davit_model **out_model,
                     davit_records **out_records);
/* Engines and requests of the model must be freed before. NULL is fine. */
void davit_model_free(davit_model *model);

typedef struct davit_model_info {
    uint64_t struct_size;
    const char *arch;   /* component ids, borrowed from the model */
    const char *format;
    const char *kernels;
    const char *tokenizer; /* family name; NULL = none */
    uint64_t n_vocab;
    uint64_t n_layers;
    uint64_t max_ctx;      /* 0 = not stated by the file */
    uint64_t n_weights;    /* stored elements */
    uint64_t borrowed_bytes, private_bytes, read_bytes, copied_bytes, packed_bytes,
        decoded_bytes, uploaded_bytes, window_bytes;
    double load_seconds;
    /* predicted by the plan, and what else was seen while loading */
    uint64_t planned_borrowed_bytes, planned_read_bytes, planned_private_bytes,
        planned_made_bytes, planned_window_bytes, planned_peak_bytes;
    uint64_t compared_bytes; /* read again: head against embedding */
    uint64_t n_reads, n_pieces, n_io_threads;
    uint64_t probed_pages, cached_pages; /* of the files, before the load, sampled */
    double open_seconds, plan_seconds, tokenizer_seconds;
    double read_seconds, make_seconds; /* within load_seconds, summed over threads */
    uint64_t access_slots[4];          /* slots borrowed, read direct, streamed, deferred */
    uint64_t memory_bytes;             /* the budget, 0 = none */
    uint64_t resident_bytes;           /* most that weights hold at one time, as planned */
    /* of read_bytes, past the page cache; files opened for that and file systems that refused;
     * bytes moved beside them, for alignment */
    uint64_t direct_bytes, direct_files, direct_refused, beside_bytes;
    double upload_seconds;   /* within make_seconds, and the program's constants */
    uint64_t header_bytes;   /* of the model's files: what is not weights */
    uint64_t used_tensors;   /* stored tensors that weights are made of */
    uint64_t ignored_tensors; /* that rules leave out */
    uint64_t tied_slots;     /* weights that share another's bytes */
    uint64_t peak_rss_bytes; /* most that the process had resident when the load ended: with the
                              * program itself, and mapped pages of the files */
} davit_model_info;
int davit_model_describe(const davit_model *model, davit_model_info *out);

/* EOS ids that end a request. Returns the count; *out borrowed from the model. */
size_t davit_model_eos(const davit_model *model, const int32_t **out);
/* Sampling that the model's files ask for; NaN / -1 where they say nothing. */
typedef struct davit_model_sampling {
    uint64_t struct_size;
    double temperature, top_p, min_p, repeat_penalty;
    int64_t top_k;
    uint64_t do_sample; /* 1 = the files ask for sampling */
} davit_model_sampling;
int davit_model_sampling_defaults(const davit_model *model, davit_model_sampling *out);

#define DAVIT_LIB_NO_SPECIAL 1u /* add no BOS and the like */
/* Text that looks like a special token stays text. Ids marked special come only from what has no
 * other: the unknown token, and <0xNN> for a byte, where a file marks them so. */
#define DAVIT_LIB_SAFE       2u
/* Ids of @n bytes of UTF-8. *out_ids (malloc'ed, free with davit_free) and *out_n. */
int davit_model_tokenize(const davit_model *model, const char *text, size_t n, uint32_t flags,
                         int32_t **out_ids, size_t *out_n, davit_records **out_records);
/* Text of ids, special tokens left out if @skip_special. *out_text as above, NUL-terminated. */
int davit_model_detokenize(const davit_model *model, const int32_t *ids, size_t n,
                           int skip_special, char **out_text, size_t *out_len,
                           davit_records **out_records);
void davit_free(void *p);

/* ---- text: a tokenizer without a model ---- */

/* A tokenizer and the word caches of whoever uses it. All functions below may be called on
 * one davit_text from any number of threads at the same time. */
typedef struct davit_text davit_text;

typedef struct davit_text_params {
    uint64_t struct_size;
    /* A model directory (weights are not needed), a GGUF, or a tokenizer by itself:
     * tokenizer.json, tekken.json, SentencePiece .model, .tiktoken. Required */
    const char *source;
    const char *const *plugin_paths; /* as in davit_model_params; may be NULL */
    const char *const *trust_dirs;
} davit_text_params;

int davit_text_load(const davit_text_params *params, davit_text **out_text,
                    davit_records **out_records);
/* No other thread may be in a call on @text. NULL is fine. */
void davit_text_free(davit_text *text);

typedef struct davit_text_info {
    uint64_t struct_size;
    const char *source; /* "tokenizer.json", "gguf" ...; all borrowed from the text */
    const char *family; /* the pre-tokenizer's name, "llama3" */
    const char *plugin; /* component that claims it */
    const char *shape;  /* canonical form of the pre-tokenizer */
    const char *why;    /* how the plugin was chosen */
    const char *model;  /* "BPE, byte level" ... */
    uint64_t n_ids;     /* one past the highest id; some below may be unused */
    int64_t bos, eos, unk, pad; /* -1 where the source does not say */
} davit_text_info;
int davit_text_describe(const davit_text *text, davit_text_info *out);

/* Text of @id as the file spells it (byte-level files in their letters), NULL = unused id.
 * Borrowed from the text. */
const char *davit_text_token(const davit_text *text, int32_t id, size_t *out_len);
/* Id of a token spelled like that, -1 = none. */
int32_t davit_text_id(const davit_text *text, const char *token, size_t n);
int davit_text_is_special(const davit_text *text, int32_t id); /* 1 or 0 */

typedef struct davit_encode_params {
    uint64_t struct_size;
    uint32_t flags;     /* DAVIT_LIB_NO_SPECIAL, DAVIT_LIB_SAFE, DAVIT_LIB_OFFSETS */
    uint32_t n_threads; /* of a batch or one long text; 0 = all this process may use */
    /* Most ids of one encoding, 0 = no limit. BOS, EOS and the like are kept, ids of the
     * text are cut from its end. */
    uint64_t max_ids;
} davit_encode_params;

#define DAVIT_LIB_OFFSETS 4u /* fill starts and ends */

/* One encoded text. Free its arrays with davit_encoding_clear. */
typedef struct davit_encoding {
    uint64_t struct_size;
    int32_t *ids;
    size_t n;
    size_t total; /* ids without max_ids */
    /* Bytes of the text that each id stands for, NULL unless asked for. Exact inside characters
     * that the tokenizer's normaliser leaves alone; what it puts in or together has the place of a
     * whole character. Where a word has characters for which the vocabulary has nothing, each id
     * of it may get the whole word. */
    uint64_t *starts, *ends;
} davit_encoding;
void davit_encoding_clear(davit_encoding *encoding);

/* Ids of @n bytes of UTF-8 (@bytes may be NULL if there are none). @params may be NULL: special
 * tokens added, no limit. Set out->struct_size first; on failure *out is left alone. */
int davit_text_encode(davit_text *text, const char *bytes, size_t n,
                      const davit_encode_params *params, davit_encoding *out,
                      davit_records **out_records);
/* The same for @count texts on several threads; results do not depend on how many. Stops at
 * the first failure of the lowest index: then all of @out is left alone. */
int davit_text_encode_batch(davit_text *text, const char *const *bytes, const size_t *n,
                            size_t count, const davit_encode_params *params,
                            davit_encoding *out, davit_records **out_records);
/* How many ids davit_text_encode would give without max_ids. */
int davit_text_count(davit_text *text, const char *bytes, size_t n,
                     const davit_encode_params *params, size_t *out_count,
                     davit_records **out_records);

/* Text of ids; as davit_model_detokenize. */
int davit_text_decode(const davit_text *text, const int32_t *ids, size_t n,
                      int skip_special, char **out, size_t *out_len);

/* Decoding one id at a time. What comes out is valid UTF-8, and all of it together equals
 * davit_text_decode of all ids. One thread at a time for each stream. */
typedef struct davit_text_stream davit_text_stream;
davit_text_stream *davit_text_stream_new(const davit_text *text, int skip_special);
void davit_text_stream_free(davit_text_stream *stream); /* before its text; NULL is fine */
/* The text that @id completes: borrowed until the next call on the stream, *out_len may be
 * 0. OK, or USAGE if @id is unused. */
int davit_text_stream_push(davit_text_stream *stream, int32_t id, const char **out,
                           size_t *out_len);
/* What was held back; the stream is at its start again. */
int davit_text_stream_end(davit_text_stream *stream, const char **out, size_t *out_len);

/* ---- conversations ---- */

/* A model's chat template, ready to make prompts. Control tokens (special tokens of the
 * tokenizer) that stand inside messages, tools or documents stay text, so that no content
 * can forge a turn, unless trust_content is set: then ids equal Hugging Face's. */
typedef struct davit_dialog davit_dialog;

typedef struct davit_dialog_params {
    uint64_t struct_size;
    const char *template_file; /* NULL = the model's own */
    const char *template_name; /* NULL = "tool_use" when with_tools and there is one, "default" */
    uint32_t with_tools;
    uint32_t trust_content;
    uint32_t fixed_clock;      /* the template's clock tells @now, as UTC; else local time */
    uint32_t reserved;
    int64_t now;               /* seconds since 1970 */
    /* Another tokenizer_config.json, whose template and special tokens go before the model's;
     * NULL = none. template_file goes before its template. */
    const char *tokenizer_config;
} davit_dialog_params;

/* @params may be NULL. The model must have a tokenizer and outlive the dialog. A model without
 * a template is refused (UNSUPPORTED, code template-missing): nothing is put in its place. */
int davit_dialog_open(const davit_model *model, const davit_dialog_params *params,
                      davit_dialog **out_dialog, davit_records **out_records);
void davit_dialog_free(davit_dialog *dialog); /* NULL is fine */
/* Where the template came from, "tokenizer_config.json: chat_template". Borrowed. */
const char *davit_dialog_source(const davit_dialog *dialog);
/* Ids that end an answer: what the template writes behind one, the tokenizer's and the
 * generation config's end tokens. Returns the count; *out borrowed. For request stop_ids. */
size_t davit_dialog_stops(const davit_dialog *dialog, const int32_t **out);

typedef struct davit_dialog_input {
    uint64_t struct_size;
    const char *messages;  /* JSON array of {"role", "content", ...}. Required */
    size_t n_messages;     /* bytes */
    const char *tools;     /* JSON array; NULL = none */
    size_t n_tools;
    const char *documents; /* JSON array; NULL = none */
    size_t n_documents;
    const char *vars;      /* JSON object of further template variables; NULL = none. Trusted */
    size_t n_vars;
    uint32_t no_generation_prompt;
    uint32_t reserved;
} davit_dialog_input;

/* Render and encode; each out may be NULL, texts and ids are freed with davit_free. No BOS is
 * added: the template writes it. A template that refuses the messages is UNSUPPORTED, code
 * template-raised, with its own words. [any thread] */
int davit_dialog_render(const davit_dialog *dialog, const davit_dialog_input *input,
                        char **out_text, size_t *out_len, int32_t **out_ids, size_t *out_n,
                        davit_records **out_records);

/* ---- engine ---- */

typedef struct davit_engine_params {
    uint64_t struct_size;
    uint32_t n_threads; /* 0 = all this process may use */
    uint32_t chunk;     /* tokens of a prefill step, 0 = 512 */
    uint64_t ctx;       /* longest prompt + answer, 0 = the model's maximum or what fits */
} davit_engine_params;

int davit_engine_new(davit_model *model, const davit_engine_params *params,
                     davit_engine **out_engine, davit_records **out_records);
void davit_engine_free(davit_engine *engine); /* after its requests */
/* Ranks past the first: do the steps that rank 0's engine asks for, until it is freed. Returns
 * DAVIT_LIB_OK then, and a negative status with records when a rank is gone or a step of this one
 * failed; the others fail then too, in bounded time. */
int davit_engine_follow(davit_engine *engine, davit_records **out_records);
uint64_t davit_engine_ctx(const davit_engine *engine);
uint32_t davit_engine_threads(const davit_engine *engine);
/* Memory that the engine holds now: KV touched, values, scratch. */
uint64_t davit_engine_bytes(const davit_engine *engine);
/* Bytes of values that went from one device to another so far; 0 where all is on one. */
uint64_t davit_engine_crossed(const davit_engine *engine);

/* Logits of every position of @ids in one request of length @n (rope variants by n).
 * @row is called in order with [n_vocab] float32, valid during the call; return 0 to stop. */
int davit_engine_eval(davit_engine *engine, const int32_t *ids, size_t n,
                      int (*row)(void *ctx, size_t position, const float *logits), void *ctx,
                      davit_records **out_records);

/* ---- requests ---- */

typedef struct davit_request_params {
    uint64_t struct_size;
    const int32_t *prompt; /* ids, copied. Required, n_prompt > 0 */
    size_t n_prompt;
    uint64_t max_tokens;       /* 0 = 16 */
    double temperature;        /* 0 = greedy */
    double top_p;              /* 0 = 1 = off */
    double min_p;              /* 0 = off */
    int64_t top_k;             /* 0 = off */
    double repeat_penalty;     /* 0 = 1 = off */
    double presence_penalty;   /* 0 = off */
    uint64_t seed;
    const char *const *stop;   /* strings, NULL-terminated, copied; may be NULL */
    uint32_t ignore_eos;
    uint32_t reuse_prefix;     /* 1: keys and values that the engine still holds of the same first
                                * ids are not computed again; the answer is the same */
    const int32_t *stop_ids;   /* further end-of-text ids, copied; may be NULL */
    size_t n_stop_ids;
} davit_request_params;

#define DAVIT_EVENT_NONE   0u /* davit_request_wait only: a prompt step is done, nothing new */
#define DAVIT_EVENT_TOKEN  1u /* id, and text that became certain (may be empty) */
#define DAVIT_EVENT_FINISH 2u /* finish_reason, and the last held-back text */
#define DAVIT_EVENT_ERROR  3u /* records say why; nothing follows */

typedef struct davit_event {
    uint64_t struct_size;
    uint32_t kind;
    int32_t id;                /* TOKEN */
    const char *text;          /* UTF-8, whole characters; valid until the next call */
    size_t text_len;
    const char *finish_reason; /* FINISH: "length" "stop" "cancelled" */
    const davit_records *records; /* ERROR: borrowed from the request */
} davit_event;

/* Queue a request. Refused when prompt + max_tokens passes the context (both numbers named). */
int davit_request_submit(davit_engine *engine, const davit_request_params *params,
                         davit_request **out_request, davit_records **out_records);
/* Work on the oldest unfinished request: one prefill chunk or one token. Returns how many
 * requests are unfinished, or a negative status (a call error, not a request's). */
int davit_engine_step(davit_engine *engine);
/* Next event of the request: 1 and *out filled, or 0 = none now. [any thread] */
int davit_request_next(davit_request *request, davit_event *out);
void davit_request_cancel(davit_request *request); /* [any thread] */
void davit_request_free(davit_request *request);   /* cancels first; NULL is fine */

typedef struct davit_request_stats {
    uint64_t struct_size;
    uint64_t prompt_tokens, decode_tokens;
    double prompt_seconds; /* until the first token was chosen */
    double decode_seconds; /* after it */
    uint64_t reused_tokens; /* of the prompt: not computed again */
} davit_request_stats;
int davit_request_describe(const davit_request *request, davit_request_stats *out);
/* After an ERROR event: its records (owned, davit_records_free), NULL when there are none. */
davit_records *davit_request_take_error(davit_request *request);

/* Blocking helper: step until @request is finished, handing every event to @event (on this
 * thread; return 0 to cancel), and an event of kind NONE after a step that gave no other, so
 * that a long prompt can be cancelled. Returns 0, or the status of the request's error. */
int davit_request_wait(davit_engine *engine, davit_request *request,
                       int (*event)(void *ctx, const davit_event *event), void *ctx);

/* "0.1.0". */
const char *davit_version(void);

#ifdef __cplusplus
}
#endif
#endif
