/* SPDX-License-Identifier: Apache-2.0
 * DavitEstimate: what a model needs, by arithmetic: parameters and bytes by part, bytes by
 * layout, keys and values per token, memory at a context, time to read, shares of ranks.
 *
 * From settings alone (an outline) or from a checkpoint's headers (a plan for DAVIT_MAP).
 * No payload is read, nothing is allocated on trial. Sizes saturate at UINT64_MAX.
 */
#ifndef DAVIT_ESTIMATE_ESTIMATE_H
#define DAVIT_ESTIMATE_ESTIMATE_H

#include "plan/plan.h"
#include "plan/speed.h"

/* A kind of weights: "embedding" "output head" "attention" "MLP" "experts" "router"
 * "norms" "other". */
typedef struct DavitEstimatePart {
    const char *name;  /* (static) */
    uint64_t n_params; /* tied head: 0, it is the embedding */
    uint64_t n_active; /* used for one token: experts by their share */
    uint64_t n_bytes;  /* stored, from the checkpoint; or by the config's data type */
    uint64_t n_vector; /* of n_params: in vectors, which quantised layouts leave plain */
} DavitEstimatePart;

/* Layers whose attention keeps the same: one row of the KV table. */
typedef struct DavitEstimateState {
    const char *kind;        /* (static) "attention" "window" "latent" "recurrent" */
    uint64_t n_layers;
    uint64_t n_heads, k_dim, v_dim;
    uint64_t window;         /* tokens that stay, 0 = all */
    uint64_t token_bytes;    /* of one token, all its layers, in the KV type asked for */
    uint64_t sequence_bytes; /* of one sequence at the context asked for, all layers */
} DavitEstimateState;

/* All weights in one layout. */
typedef struct DavitEstimateLayout {
    const char *name; /* (static) "bf16" "q4_k" */
    uint64_t n_bytes;
} DavitEstimateLayout;

/* Time to read all weights once. */
typedef struct DavitEstimateRead {
    const char *from; /* (static) "NVMe disk" */
    double gb_s;      /* nominal, 1e9 bytes a second */
    double seconds;
} DavitEstimateRead;

/* One rank of n. */
typedef struct DavitEstimateRank {
    uint64_t n;
    const char *obstacle;   /* (static) why it cannot be cut so; NULL = it can */
    uint64_t weight_bytes;  /* stored bytes of the fullest rank */
    uint64_t state_bytes;   /* of all sequences */
} DavitEstimateRank;

#define DAVIT_ESTIMATE_PARTS   8
#define DAVIT_ESTIMATE_LAYOUTS 12
#define DAVIT_ESTIMATE_READS   DAVIT_READ_SPEEDS
#define DAVIT_ESTIMATE_RANKS   5
#define DAVIT_ESTIMATE_STATES  16

typedef struct DavitEstimate {
    const char *arch;  /* (borrowed, plan) component id */
    const char *dtype; /* (static) type that n_bytes of parts are in; "stored" with a
                        * checkpoint */
    bool from_checkpoint, tied;
    bool states_assumed; /* the architecture records none: plain attention was taken */
    uint64_t n_params, n_active, n_bytes;
    uint64_t unused_bytes; /* of tensors that no slot takes */
    uint64_t context, n_sequences;
    uint64_t state_bytes;  /* all sequences at the context */
    uint64_t memory_bytes; /* weights and states; values and scratch come on top */
    DavitEstimatePart parts[DAVIT_ESTIMATE_PARTS];
    size_t n_states;
    DavitEstimateState states[DAVIT_ESTIMATE_STATES]; /* the rest is in the last */
    size_t n_layouts;
    DavitEstimateLayout layouts[DAVIT_ESTIMATE_LAYOUTS];
    DavitEstimateRead reads[DAVIT_ESTIMATE_READS];
    DavitEstimateRank ranks[DAVIT_ESTIMATE_RANKS];
} DavitEstimate;

typedef struct DavitEstimateOptions {
    uint64_t context;     /* tokens, 0 = the model's maximum, at most 8192 */
    uint64_t n_sequences; /* 0 = 1 */
    uint32_t kv_bytes;    /* of one stored number: 4, 2 or 1; 0 = 2 */
} DavitEstimateOptions;

/* Fill @out from @plan, an outline or a plan. @out borrows from it. */
void davit_estimate(const DavitPlan *plan, const DavitEstimateOptions *options,
                    DavitEstimate *out);

#endif
