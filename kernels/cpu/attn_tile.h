/* SPDX-License-Identifier: Apache-2.0
 * Attention of a few query rows over one span of keys; shared by attn's fast layers.
 *
 * Keys are cut into spans of ATTN_SPAN by their index in the sequence, whatever the step, the
 * block size or the batch. A row's result over a span depends on that row and the span's keys
 * only: each score is one chain of fused multiply-adds over the dimensions, each output one
 * chain over the keys, both ascending; keys outside the row's range add an exact zero.
 */
#ifndef DAVIT_CPU_ATTN_TILE_H
#define DAVIT_CPU_ATTN_TILE_H

#include "kv.h"

#define ATTN_SPAN 256
#define ATTN_ROWS 24 /* most query rows of a tile */
#define ATTN_KEY_TILES 4 /* key tiles that a step of the score loop may hold */

/* Rows of one sequence and one key head. */
typedef struct attn_rows {
    uint64_t n;
    uint64_t token[ATTN_ROWS];
    uint64_t head[ATTN_ROWS];
    uint64_t lo[ATTN_ROWS], hi[ATTN_ROWS]; /* visible keys [lo, hi) */
} attn_rows;

/* Working memory of one worker, cut out of its scratch. D = v_dim rounded up to 16. */
typedef struct attn_memory {
    float *q;      /* [ATTN_ROWS, k_dim] */
    float *score;  /* [ATTN_ROWS, ATTN_SPAN] */
    float *part;   /* [ATTN_ROWS, D] of the current span */
    float *sum;    /* [ATTN_ROWS, D] of the spans before */
    float *keys;   /* [ATTN_KEY_TILES, k_dim, KV_TILE] */
    float *values; /* [KV_TILE, D] */
    float part_max[ATTN_ROWS], part_sum[ATTN_ROWS]; /* max -inf: the row sees no key */
} attn_memory;

/* Padded width of a row of values. */
static inline uint64_t attn_width(uint64_t v_dim)
{
    return cpu_round_up(v_dim, 16);
}

static inline uint64_t attn_memory_bytes(uint64_t k_dim, uint64_t v_dim)
{
    const uint64_t D = attn_width(v_dim);
    return sizeof(float) * (ATTN_ROWS * (cpu_round_up(k_dim, 16) + ATTN_SPAN + 2 * D) +
                            KV_TILE * (ATTN_KEY_TILES * k_dim + D));
}

static inline void attn_memory_init(attn_memory *m, void *base, uint64_t k_dim, uint64_t v_dim)
{
    const uint64_t D = attn_width(v_dim);

    m->score = base; /* aligned as scratch is; every part is a multiple of 64 bytes */
    m->part = m->score + ATTN_ROWS * ATTN_SPAN;
    m->sum = m->part + ATTN_ROWS * D;
    m->values = m->sum + ATTN_ROWS * D;
    m->keys = m->values + KV_TILE * D;
    m->q = m->keys + ATTN_KEY_TILES * KV_TILE * k_dim;
}

/* One span of key head @h: fills part, part_max, part_sum of every row from m->q. */
void cpu_attn_span_avx2(const davit_call *call, const kv_view *kv, uint64_t h, uint64_t span,
                        const attn_rows *rows, attn_memory *m);

#endif
