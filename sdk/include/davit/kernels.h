/* SPDX-License-Identifier: Apache-2.0
 * Kind "kernels", interface 0.3: entries that compute ops, layouts they pack, a device.
 *
 * The host owns threads, memory and the order of work. A kernel gets a call (what to
 * compute), a phase and a range of tasks, and returns nothing: whatever can be refused was
 * refused by check at plan time. Nothing is promised contiguous: a weight is a list of
 * segments that each bring their own pointers.
 *
 * Determinism: a row of output depends on its own input row only; sums over K and over keys
 * run in an order fixed by shapes and layout, never by T, chunk, thread or batch mates.
 */
#ifndef DAVIT_KERNELS_H
#define DAVIT_KERNELS_H

#include "ops.h"
#include "quant.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_MAX_IN      8
#define DAVIT_MAX_OUT     4
#define DAVIT_MAX_WEIGHTS 8
#define DAVIT_MAX_PHASES  8

/* ---- what a call works on ---- */

/* One step of the engine. Arrays lie at fixed addresses in the device's memory; the struct
 * itself is host memory. All of it is (borrowed) the step, read only; the host has checked that
 * indexes are in range. */
typedef struct davit_batch {
    uint64_t struct_size;
    uint64_t n_tokens;     /* T */
    uint64_t n_seqs;       /* S */
    uint64_t n_rows;       /* R */
    uint64_t block_tokens; /* tokens per KV block, >= 1 */
    uint64_t max_blocks;   /* row length of block_table */
    const int32_t *token;       /* [T] */
    const int32_t *position;    /* [T] */
    const int32_t *seq;         /* [T] sequence index of each token, ascending */
    const int32_t *query_start; /* [S+1] first token of each sequence; the last is T */
    const int32_t *ctx_len;     /* [S] tokens in the state after this step */
    const int32_t *block_table; /* [S, max_blocks] block index of each run of block_tokens */
    const int32_t *state_in;    /* [S] slot that recurrent ops read */
    const int32_t *state_out;   /* [S] slot that they write */
    const int32_t *rope_n;      /* [S] length that selects the rope variant, fixed per request */
    const int32_t *adapter;     /* [S] -1 = none */
    const int32_t *logit_row;   /* [R] token index */
    const int32_t *state_step;  /* [T] slot per position for a verify step, or NULL */
    const uint8_t *tree_mask;   /* [T, T] or NULL = causal */
} davit_batch;

typedef struct davit_value {
    void *data;          /* [n_rows, width] row-major, without gaps between rows; starts at the
                          * device's alignment. (borrowed) the call: the host's memory */
    uint64_t n_rows;     /* T or R of this step */
    uint64_t width;      /* elements of a row, >= 1 */
    const char *dtype;   /* "f32/1" or "i32/1", interned */
} davit_value;

/* Stored or packed bytes of a row range of one expert. No alignment is promised for stored
 * layouts; packed ones start at the device's alignment. Vectors (f32/1, n_cols 1) are one
 * segment without gaps, aligned for float. Packed from CODES: part[1] is the column map, where the
 * codes have one, and then, where they have those, the factors [K] as float32; part[2] a davit_quant_codes of the segment's own, in host memory, where segments
 * differ (DAVIT_PACK_MIXED). */
typedef struct davit_segment {
    uint64_t expert; /* 0 for a matrix */
    uint64_t row;    /* first logical row */
    uint64_t n_rows;
    uint64_t n_parts; /* of the layout, in the order of davit_quant_desc.parts; packed: 1 to 3 */
    /* Start of that part's bytes for this row range; read only. (borrowed) the weights live
     * longer than the engine */
    const uint8_t *part[DAVIT_MAX_PARTS];
    uint64_t row_bytes[DAVIT_MAX_PARTS];   /* bytes between rows; 0 = see the layout */
} davit_segment;

typedef struct davit_weight {
    const char *layout; /* interned: equal names are equal pointers within one process */
    uint64_t n_experts; /* E, 1 for a matrix or vector */
    uint64_t n_rows;    /* N */
    uint64_t n_cols;    /* K, 1 for a vector */
    uint64_t params[8]; /* of the scheme (davit_quant_desc); packed from CODES: the bytes of a
                         * davit_quant_codes. Where segments differ: of the first; check is then
                         * asked once for those of each */
    uint64_t n_segments; /* 0 in check */
    const davit_segment *segments; /* ascending (expert, row), covering all; NULL in check */
} davit_weight;

/* States that ops keep between steps. */
#define DAVIT_STATE_KV 1u /* per token: k [nkv, dk], v [nkv, dv] */

typedef struct davit_state_spec {
    uint64_t struct_size;
    uint32_t kind;     /* DAVIT_STATE_ */
    uint32_t reserved;
    uint64_t n_heads;  /* nkv, >= 1 */
    uint64_t k_dim;    /* elements of a head's key */
    uint64_t v_dim;    /* elements of a head's value */
    uint64_t window;   /* tokens that stay visible; 0 = all */
    /* Set by the host. Storage: "f32/1", "f16/1" or "f8_e4m3/1"; the last holds keys divided by
     * k_scale and values divided by v_scale, saturated to +-448 and rounded to nearest even, and
     * gives back code * scale in float32. */
    const char *dtype;
    float k_scale; /* 0 = 1, else finite and above 0 */
    float v_scale;
    /* Since 0.3. [n_heads] A scale for each head, in place of the two above; NULL = none. Host
     * memory. (borrowed) the program */
    const float *k_scales;
    const float *v_scales;
} davit_state_spec;

/* Memory of one state: the host's, (borrowed) the call; not zeroed: a block holds what ops wrote
 * there. What lies inside a block is the component's own affair. */
typedef struct davit_state {
    uint8_t *base;             /* block b at base + b * block_bytes; the device's alignment */
    uint64_t block_bytes;      /* as answered by state_size */
    const davit_state_spec *spec;
} davit_state;

/* Everything an op works on. In check and size: data, segments and batch are NULL or unset,
 * n_rows of values is 0, state has its spec only. Elements of in, out and weight past their
 * counts are zero. Valid and unchanged until the queue was waited for. */
typedef struct davit_call {
    uint64_t struct_size;
    void *self;           /* the component's instance */
    const char *op;
    const void *attr;     /* the op's attribute struct, padded with zeros to the entry's
                           * attr_size; NULL only if that is 0 */
    const davit_batch *batch;
    const davit_state *state; /* NULL = the op has none */
    void *scratch;            /* scratch_bytes of size, shared by all workers; both kinds
                               * start at the device's alignment and hold anything */
    void *worker_scratch;     /* worker_bytes for each worker: worker w at w * worker_bytes */
    uint64_t worker_bytes;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_weights;
    uint32_t reserved;
    davit_value in[DAVIT_MAX_IN];
    davit_value out[DAVIT_MAX_OUT];
    const davit_weight *weight[DAVIT_MAX_WEIGHTS]; /* NULL = optional one is absent */
} davit_call;

/* What size fills; all but struct_size comes as zeros. */
typedef struct davit_work {
    uint64_t struct_size;   /* set by the host */
    uint64_t scratch_bytes; /* shared by all workers; 0 = none */
    uint64_t worker_bytes;  /* for each worker; 0 = none */
    uint64_t n_phases;      /* 1..DAVIT_MAX_PHASES, must be set; a barrier lies between phases */
    uint64_t n_tasks[DAVIT_MAX_PHASES]; /* of each phase; a task is what one thread does whole.
                                         * 0 = the phase has nothing to do */
} davit_work;

/* ---- entries ---- */

#define DAVIT_ENTRY_NOT_INVARIANT 1u /* breaks the determinism rule above */
#define DAVIT_ENTRY_INT8          2u /* rounds activations to 8 bits per block */
#define DAVIT_ENTRY_CAPTURABLE    4u /* device: may be recorded into a graph */

typedef struct davit_kernel_entry {
    uint64_t struct_size; /* DAVIT_END(davit_kernel_entry, run) */
    const char *op;       /* "linear/1" */
    const char *name;     /* for people and for ranks: "linear q4_k avx2"; once per component */
    const char *layouts;  /* '|'-joined weight layouts it takes for matrix weights; vectors
                           * (bias, norm gains, tables) are always f32/1. NULL = no matrices */
    uint64_t cpu;         /* DAVIT_CPU_ bits that must be there; 0 = none */
    uint64_t attr_size;   /* attribute bytes it knows, DAVIT_END of the last field; a call with
                           * more non-zero is not offered */
    uint32_t score;       /* 0..1000: 100 scalar, 300 generic SIMD, 500 tuned; higher only with
                           * figures. The highest that accepts is taken */
    uint32_t flags;       /* DAVIT_ENTRY_ */

    /* May this call be computed? Static facts only: layouts are in the entry's list and attr_size
     * holds, everything else may be odd (counts, widths, attributes) and is checked here. NULL =
     * yes. Errors: DAVIT_E_UNSUPPORTED with a record. [any thread] */
    int32_t (*check)(void *self, const davit_call *call, const davit_sink *sink);

    /* Scratch, phases and tasks for T = @n_tokens, R = @n_rows and at most @ctx tokens of
     * context (of the longest sequence). Scratch never shrinks as these grow, so the host
     * asks once for the largest step, and again in each step for phases and tasks. NULL =
     * no scratch, one phase, as many tasks as rows of out[0]. Pure. [any thread] */
    void (*size)(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                 uint64_t ctx, davit_work *out);

    /* Do tasks [first, first + count) of @phase; tasks of one phase run in any order and at the
     * same time, so none may write what another reads or writes. @worker < the engine's number of
     * threads, for worker_scratch; no two calls at a time have the same. @queue NULL = host memory.
     * Device entries get one task: enqueue on @queue and return. Cannot fail, allocates nothing,
     * takes no lock. Required. [worker threads] */
    void (*run)(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                uint32_t worker, void *queue);
} davit_kernel_entry;

#define DAVIT_PACK_MIXED 1u /* entries look at the codes of each segment */
#define DAVIT_PACK_PLAIN 2u /* with MIXED: some segments may be DAVIT_CODE_PLAIN; pack gets their values
                             * as F32 tiles, which the type of their scale_type holds exactly */

/* A packed layout that this component writes and its entries take. */
typedef struct davit_pack {
    uint64_t struct_size; /* DAVIT_END(davit_pack, flags) */
    const char *layout;   /* name of the packed layout, "org.me.q4x16/1" */
    const char *from;     /* '|'-joined stored layouts it packs straight from; NULL = none */
    uint32_t forms;       /* DAVIT_FORM_ bits it packs from otherwise */
    uint32_t lossy;       /* 1 = values change: never chosen unasked */
    uint64_t row_block;   /* >= 1; rows are packed in multiples of this (the last may be short) */

    /* Bytes of one row block of @n_cols inputs; 0 = this shape cannot be packed, or codes with a flag
     * that the component does not know. @params as in davit_weight: any value may come, a file decided.
     * Pure. Required. [any thread] */
    uint64_t (*block_bytes)(void *self, uint64_t n_cols, const uint64_t params[8]);
    /* Pack one row block: @n_rows <= row_block rows from @src (one segment of the stored
     * layout, starting at the block's first row; NULL for forms) or, for forms, from @decoded
     * (NULL for stored layouts), into @dst (block_bytes, zeroed, block after block without gaps
     * from the device's alignment on). @weight has shape, stored layout and params, no segments.
     * All (borrowed) the call. Cannot fail. Required. [any thread] */
    void (*pack)(void *self, const davit_weight *weight, const davit_segment *src,
                 const davit_quant_out *decoded, uint64_t n_rows, uint8_t *dst);
    uint64_t flags; /* DAVIT_PACK_ */
} davit_pack;

/* ---- device ---- */

/* What info fills; all but struct_size comes as zeros. */
typedef struct davit_device_info {
    uint64_t struct_size;  /* set by the host */
    const char *name;      /* for people. (borrowed) the instance */
    uint64_t total_bytes;
    uint64_t free_bytes;   /* now */
    uint64_t align;        /* bytes, of every allocation; a power of two */
    const char *queue_type; /* native handle's type, "cuda-stream"; NULL = private */
} davit_device_info;

/* One component owns a device; all functions may be called from any thread, one at a time. */
typedef struct davit_device_iface {
    uint64_t struct_size; /* DAVIT_END(davit_device_iface, wait) */
    uint64_t (*count)(void *self); /* devices; @index below is smaller */
    /* Errors: DAVIT_E_IO with a record when the device does not answer. */
    int32_t (*info)(void *self, uint64_t index, davit_device_info *out, const davit_sink *sink);
    /* (owned: free) device memory that the host does not touch; not zeroed. NULL when there is
     * not enough. */
    void *(*alloc)(void *self, uint64_t index, uint64_t n_bytes);
    void (*free)(void *self, uint64_t index, void *ptr); /* NULL is a no-op */
    /* In-order queue, *out_queue (owned: queue_close). Errors: DAVIT_E_IO with a record. */
    int32_t (*queue_open)(void *self, uint64_t index, void **out_queue, const davit_sink *sink);
    void (*queue_close)(void *self, void *queue); /* after a wait */
    /* Enqueue copies of @n_bytes; @host memory stays unchanged until waited for. A negative status
     * is as sticky as wait's. */
    int32_t (*upload)(void *self, void *queue, void *device, const void *host, uint64_t n_bytes);
    int32_t (*download)(void *self, void *queue, void *host, const void *device,
                        uint64_t n_bytes);
    /* Until everything enqueued is done. DAVIT_OK, or DAVIT_E_IO with a record: the device is lost
     * and stays so. */
    int32_t (*wait)(void *self, void *queue, const davit_sink *sink);
} davit_device_iface;

typedef struct davit_kernels_iface {
    uint64_t struct_size; /* DAVIT_END(davit_kernels_iface, state_size) */
    const char *device;   /* "cpu", or the name of the device it runs on. Required */
    const davit_kernel_entry *const *entries; /* NULL-terminated. Required */
    const davit_pack *const *packs;           /* NULL-terminated; NULL = none */
    const davit_device_iface *device_iface;   /* NULL = host memory */

    /* Bytes of one block of @block_tokens tokens of a state; 0 = not supported (a record is
     * in @sink). @spec (borrowed) the call; sizes in it come from the model and may be odd. The
     * ops on one state all come from the component that answered. Pure. NULL = no entry has a
     * state. [any thread] */
    uint64_t (*state_size)(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                           const davit_sink *sink);
} davit_kernels_iface;

#ifdef __cplusplus
}
#endif
#endif
