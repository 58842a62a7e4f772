/* SPDX-License-Identifier: Apache-2.0
 * Calls of linear/1 on random weights, for tests and benchmarks: segments, values,
 * scratch and tasks as a host would lay them out, with guard bytes round everything that
 * is written.
 */
#ifndef TESTS_LINEAR_CASE_H
#define TESTS_LINEAR_CASE_H

#include <davit/help/ref.h>
#include <davit/kernels.h>

#define CASE_GUARD        64
#define CASE_MAX_SEGMENTS 4
#define CASE_WORKERS      4 /* workers that scratch is laid out for */

/* Table of the CPU kernels plugin, opened through its entry. (static) */
const davit_kernels_iface *linear_case_kernels(void);
/* (static), NULL if none of that name. */
const davit_kernel_entry *linear_case_entry(const char *name);
const davit_pack *linear_case_pack(const char *from);
/* DAVIT_CPU_ bits of this machine that the entries here may ask for. */
uint64_t linear_case_features(void);

/* What random bytes of a block's scales may be. */
typedef enum CaseFill {
    CASE_RANDOM, /* any codes, moderate scales */
    CASE_EXTREME /* every code at its largest or smallest, row by row */
} CaseFill;

typedef struct LinearCase {
    const davit_ref_layout *layout;
    uint64_t n_rows, n_cols, n_tokens;
    uint8_t *rows;      /* (owned) stored rows, row_bytes apart */
    uint64_t row_bytes; /* distance of rows in memory */
    float *x;           /* (owned) [T, K] */
    float *bias;        /* (owned) [N] or NULL */
    davit_linear_attr attr;
    davit_segment segments[CASE_MAX_SEGMENTS];
    uint64_t n_segments;
    uint8_t *packed; /* (owned) after linear_case_pack_all, else NULL */
    const char *packed_layout;
} LinearCase;

/* N x K of @layout and T tokens, random everything; @row_pad bytes between rows. */
LinearCase *linear_case_new(const davit_ref_layout *layout, uint64_t n_rows,
                            uint64_t n_cols, uint64_t n_tokens, uint64_t row_pad,
                            CaseFill fill);
void linear_case_free(LinearCase *c);
/* Cut the rows into segments at the given rows (ascending, > 0, < N). */
void linear_case_cut(LinearCase *c, const uint64_t *at, uint64_t n_cuts);
/* Pack every segment; runs with use_packed read these bytes. */
void linear_case_pack_all(LinearCase *c, const davit_pack *pack);

typedef struct CaseRun {
    int use_packed;
    uint64_t first_token, n_tokens; /* part of the case's tokens that this call gets */
    uint64_t chunk;                 /* tasks per run call; 0 = all at once */
    int backwards; /* chunks from the last to the first, workers in turn */
} CaseRun;

/* y[n_tokens, N] += or = by the entry; asserts that guards are whole and check passes. */
void linear_case_run(const LinearCase *c, const davit_kernel_entry *entry,
                     const CaseRun *run, float *y);

/* The same in steps, for benchmarks: the call points into this struct, so it does not
 * move. */
typedef struct CaseCall {
    const davit_kernel_entry *entry;
    davit_call call;
    davit_work work;
    davit_weight weight, bias;
    davit_segment segments[CASE_MAX_SEGMENTS], bias_segment;
    uint8_t *memory[3]; /* (owned) out, scratch, worker scratch, each with guards */
    size_t memory_bytes[3];
} CaseCall;
void linear_case_prepare(const LinearCase *c, const davit_kernel_entry *entry,
                         const CaseRun *run, CaseCall *out);
/* Asserts that the guards are whole. */
void linear_case_finish(CaseCall *call);

#endif
