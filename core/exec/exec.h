/* SPDX-License-Identifier: Apache-2.0
 * The executor: weights from a plan, and one step of a program.
 *
 * DavitWeights holds what the plan says, no more: borrowed file bytes stay in the page cache,
 * private ones lie in one arena made in one pass over the files in offset order. DavitStep
 * owns value memory, scratch and call records for up to a number of tokens, and runs the
 * program: leg by leg, on a DavitPool or the queues of devices. Files: load.c (executor),
 * arena.h, pool.h (threads and barrier), device.h, step.h (program runner); plan/memory.h places
 * values.
 */
#ifndef DAVIT_EXEC_EXEC_H
#define DAVIT_EXEC_EXEC_H

#include "comm/comm.h"
#include "plan/plan.h"

/* ---- weights ---- */

/* Taken where bytes move; the load report. Times in seconds from a monotonic clock. */
typedef struct DavitLoadStats {
    uint64_t borrowed_bytes; /* left in the file's mapping */
    uint64_t read_bytes;     /* asked of the kernel by reads for slots */
    uint64_t compared_bytes; /* read once more: head against embedding */
    uint64_t direct_bytes;   /* of read_bytes, past the page cache */
    uint64_t beside_bytes;   /* moved for them beyond what was asked: alignment, probes */
    uint64_t direct_files;   /* opened for that */
    uint64_t direct_refused; /* file systems that cannot */
    uint64_t n_reads;
    uint64_t copied_bytes;   /* stored bytes written to private memory */
    uint64_t packed_bytes;
    uint64_t decoded_bytes;  /* values written */
    uint64_t uploaded_bytes; /* to a device */
    uint64_t private_bytes;  /* resident after loading */
    uint64_t window_bytes;   /* temporary memory that was taken */
    uint32_t n_lanes;        /* threads that worked */
    uint32_t n_pieces;
    uint64_t probed_pages;   /* of the files, before the load: sampled */
    uint64_t cached_pages;   /* of them, in the page cache; private slots' files and others */
    double seconds;          /* all of it */
    double read_seconds;     /* in reads, summed over lanes */
    double make_seconds;     /* in re-ordering, packing, decoding, uploading, likewise */
    double upload_seconds;   /* of make_seconds; and of the program's constants */
} DavitLoadStats;

/* Whether reads for private weights may go past the page cache. */
typedef enum DavitCacheChoice {
    DAVIT_CACHE_AUTO, /* files of which it holds less than half, where the file system can */
    DAVIT_CACHE_USE,  /* never: the next load finds the files there */
    DAVIT_CACHE_SKIP, /* every read of every file that can */
} DavitCacheChoice;

typedef struct DavitLoadOptions {
    /* Called from the loading thread, at most every few MiB, and once at the end. NULL = none.
     * Return false to cancel (DAVIT_R_CANCELLED), at the end too. */
    bool (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *ctx;
    DavitCacheChoice cache;
} DavitLoadOptions;

typedef struct DavitWeights DavitWeights;

/* Execute the plan's loading half. @plan outlives the weights.
 * Returns: (owned) or NULL: I/O, memory (with the bytes), non-finite scales, cancelled. */
DavitWeights *davit_weights_load(const DavitPlan *plan, const DavitLoadOptions *options,
                                 DavitReport *report);
void davit_weights_free(DavitWeights *weights);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitWeights, davit_weights_free)
void davit_weights_stats(const DavitWeights *weights, DavitLoadStats *out);
/* (borrowed) The weight behind handle @index of plan->program->weights. */
const davit_weight *davit_weights_get(const DavitWeights *weights, size_t index);

/* (borrowed) The weight of slot @index of the plan; layout NULL if it was not loaded. */
const davit_weight *davit_weights_slot(const DavitWeights *weights, size_t index);

/* Give back the pages of layer @layer's deferred slots: they are read again from the file when
 * they are used next. [no kernel reads them meanwhile] */
void davit_weights_drop_layer(const DavitWeights *weights, int64_t layer);

/* ---- threads ---- */

/* Worker threads that run tasks of one kernel phase; the caller is worker 0. GLib starts the
 * threads; a spinning barrier with a sleeping fallback runs the phases. */
typedef struct DavitPool DavitPool;
/* @n_threads 0 = CPUs of the affinity mask, clamped by the cgroup quota. Never fails: fewer
 * threads are used when fewer can be started. */
DavitPool *davit_pool_new(unsigned n_threads);
void davit_pool_free(DavitPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitPool, davit_pool_free)
unsigned davit_pool_threads(const DavitPool *pool);

/* ---- states ---- */

/* KV memory of an engine: every state's blocks where the calls on it are; on the host in one
 * reservation that is touched block by block. */
typedef struct DavitKv DavitKv;
DavitKv *davit_kv_new(const DavitPlan *plan, uint64_t n_blocks, DavitReport *report);
void davit_kv_free(DavitKv *kv);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitKv, davit_kv_free)
uint64_t davit_kv_bytes_per_block(const DavitKv *kv);

/* ---- step ---- */

typedef struct DavitStep DavitStep;

/* Most of one step. */
typedef struct DavitStepLimits {
    uint64_t n_tokens;
    uint64_t n_rows; /* of logits */
    uint64_t n_seqs;
    uint64_t n_ctx; /* tokens of a sequence */
} DavitStepLimits;

/* Prepare to run steps within @limits. All memory is taken here. @comm (borrowed): the group of
 * a plan with ranks, else NULL; all ranks run the same steps. */
DavitStep *davit_step_new(const DavitPlan *plan, const DavitWeights *weights, DavitKv *kv,
                          DavitPool *pool, DavitComm *comm, const DavitStepLimits *limits,
                          DavitReport *report);
void davit_step_free(DavitStep *step);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitStep, davit_step_free)

/* The batch to fill before davit_step_run: arrays are host memory owned by the step, with
 * room for the maxima; set n_tokens, n_seqs, n_rows and the arrays (seq, query_start ...). */
typedef struct DavitStepInput {
    uint64_t n_tokens, n_seqs, n_rows, max_blocks;
    int32_t *token, *position, *seq, *query_start, *ctx_len, *block_table;
    int32_t *state_in, *state_out, *rope_n, *adapter, *logit_row;
} DavitStepInput;
DavitStepInput *davit_step_input(DavitStep *step);

/* Run the program once. *out_logits (borrowed until the next run): [n_rows, vocab] f32.
 * Errors: a lost device, a lost rank, a non-finite logit row (the borrowed weight that is not
 * finite, or DAVIT_R_NON_FINITE_LOGITS with the row). */
int32_t davit_step_run(DavitStep *step, const float **out_logits, DavitReport *report);
/* Host memory of values, scratch, arrays and of what passes through on its way between devices. */
uint64_t davit_step_bytes(const DavitStep *step);

/* What went from device to device since the step was made. */
typedef struct DavitStepStats {
    uint64_t n_crossings;   /* values that were copied */
    uint64_t crossed_bytes; /* of them */
    uint64_t logit_bytes;   /* fetched from a device */
} DavitStepStats;
void davit_step_stats(const DavitStep *step, DavitStepStats *out);

#endif
