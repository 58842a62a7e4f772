/* SPDX-License-Identifier: Apache-2.0
 * Inside of the public handles. Each starts with its own magic number, so that a handle of
 * the wrong kind is refused instead of read.
 */
#ifndef DAVIT_ENGINE_PRIVATE_H
#define DAVIT_ENGINE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/report.h"
#include "comm/comm.h"
#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "engine/libdavit.h"
#include "engine/sampler.h"
#include "engine/stop.h"
#include "exec/exec.h"
#include "plan/plan.h"
#include "plugin/registry.h"
#include "tokenizer/tokenizer.h"

#define DAVIT_MAGIC_MODEL   0x6d6f64656c5f7631ull
#define DAVIT_MAGIC_ENGINE  0x656e67696e5f7631ull
#define DAVIT_MAGIC_REQUEST 0x726571756573745full
#define DAVIT_MAGIC_DIALOG  0x6469616c6f675f76ull
#define DAVIT_MAGIC_TEXT    0x746578745f763100ull
#define DAVIT_MAGIC_STREAM  0x73747265616d7631ull

struct davit_records {
    DavitReport *report;
};

struct davit_model {
    uint64_t magic;
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitTokenizer *tokenizer; /* NULL when asked for without */
    DavitPlan *plan;
    DavitWeights *weights;
    DavitComm *comm;           /* NULL = one process */
    atomic_int comm_taken;     /* by an engine: the group's calls have one order */
    char *tokenizer_family;
    char *kernels_id;          /* components that compute, in the order of the program */
    double open_seconds, plan_seconds, tokenizer_seconds;
    uint64_t peak_rss_bytes; /* when the load ended */
};

typedef enum DavitRequestState {
    DAVIT_REQUEST_WAITING,
    DAVIT_REQUEST_RUNNING,
    DAVIT_REQUEST_DONE,
} DavitRequestState;

typedef struct DavitEvent {
    uint32_t kind;
    int32_t id;
    char *text; /* owned */
    size_t len;
    const char *reason;
} DavitEvent;

struct davit_request {
    uint64_t magic;
    davit_engine *engine;      /* NULL once the engine has let go of it */
    davit_model *model;
    GArray *ids;               /* int32_t: prompt, then answer */
    size_t n_prompt;
    uint64_t max_tokens;
    uint32_t ignore_eos, reuse_prefix;
    GArray *stop_ids;          /* int32_t: the caller's, beside the model's */
    DavitSampler *sampler;
    DavitStop *stop;
    DavitDecoder *decoder;     /* NULL without tokenizer */
    DavitRequestState state;
    size_t n_done;             /* ids whose keys and values are stored */
    atomic_int cancelled;
    pthread_mutex_t lock;      /* guards events */
    GQueue events;             /* DavitEvent */
    char *last_text;           /* of the event handed out last */
    davit_records error;
    davit_request_stats stats;
    int64_t t_start, t_first;
};

struct davit_engine {
    uint64_t magic;
    davit_model *model;
    DavitPool *pool;
    DavitKv *kv;
    DavitStep *step;
    uint32_t chunk;
    uint64_t ctx;
    uint64_t step_rows;        /* logit rows that step has room for */
    uint64_t crossed_bytes;    /* by the steps before it */
    uint64_t kv_tokens;        /* most tokens that were stored at one time */
    GArray *kv_ids;            /* int32_t: whose keys and values lie at positions 0, 1, ... */
    uint64_t kv_rope_n;        /* length that chose their rope variant */
    bool leads;                /* rank 0 of several: the others wait for its word */
    unsigned losses;           /* of mapped pages, when the engine was made */
    GQueue requests;           /* davit_request, oldest first */
};

/* Hand @report (owned) to the caller as records, or free it when @out is NULL. */
void davit_records_give(DavitReport *report, davit_records **out);
/* Status of a wrong handle or parameter, with a record. */
int davit_usage(const char *message, davit_records **out);

/* Name of the @i-th file beside the weights that may be a tokenizer by itself, in the order in
 * which they are believed; NULL behind the last. */
const char *davit_tokenizer_file_name(size_t i);
/* Tokenizer in the files beside the weights. *out NULL with DAVIT_OK: there is none. */
int32_t davit_tokenizer_beside(const DavitCheckpoint *checkpoint, DavitRegistry *registry,
                               DavitTokenizer **out, DavitReport *report);
/* Returns: (owned) the tokenizer of @path: a tokenizer file by itself, a directory with one
 * (weights or not), or a checkpoint; NULL with records. */
DavitTokenizer *davit_tokenizer_open(const char *path, DavitRegistry *registry,
                                     DavitReport *report);
/* Tokenizer of a checkpoint: tokenizer.json beside it (preferred, with a note when a GGUF has
 * its own), or GGUF keys. Returns: (owned) or NULL with records. */
DavitTokenizer *davit_tokenizer_of(const DavitCheckpoint *checkpoint, DavitRegistry *registry,
                                   DavitReport *report);

/* Make sure that engine->step has room for @n_rows logit rows a step. */
int32_t davit_engine_prepare(davit_engine *engine, uint64_t n_rows, DavitReport *report);
/* Run @n tokens of one sequence that starts at position @at. @rope_n: length that selects the
 * rope variant. @all_rows: logits of every token instead of the last. */
int32_t davit_engine_run(davit_engine *engine, const int32_t *ids, size_t n, size_t at,
                         size_t rope_n, bool all_rows, const float **out_logits,
                         DavitReport *report);
/* How many of the first @ids need not be computed for a request of length @rope_n, because
 * their keys and values are still there; fewer than @n. */
size_t davit_engine_held(const davit_engine *engine, const int32_t *ids, size_t n,
                         uint64_t rope_n);
/* Agree with the other ranks on @engine's context and chunk, before its memory is taken. A model
 * in one process agrees with itself. (follow.c) */
int32_t davit_engine_agree(davit_engine *engine, DavitReport *report);
/* Rank 0: have the others run the step that is about to be run. */
int32_t davit_engine_lead(davit_engine *engine, const int32_t *ids, size_t n, size_t at,
                          size_t rope_n, bool all_rows, DavitReport *report);
/* Rank 0: no more steps. Once. */
void davit_engine_dismiss(davit_engine *engine);
/* (owned) A request in state WAITING; parameters were checked. */
davit_request *davit_request_make(davit_engine *engine, const davit_request_params *params);
/* One step of work on @request; emits its events. */
void davit_request_work(davit_request *request);

#endif
