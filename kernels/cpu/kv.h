/* SPDX-License-Identifier: Apache-2.0
 * Layout of a kv state on the CPU, f32, f16 or f8_e4m3.
 *
 * A block of B tokens holds its heads one after another. A head holds first its keys, in tiles
 * of KV_TILE tokens, each tile transposed: [k_dim][tile], so that one vector load takes one
 * dimension of many keys; then its values as rows [B][v_dim]. A block of fewer tokens than
 * KV_TILE is one tile of B; the last tile of a block is as wide as the others.
 */
#ifndef DAVIT_CPU_KV_H
#define DAVIT_CPU_KV_H

#include <string.h>

#include "cpu.h"

#define KV_TILE 16

typedef struct kv_view {
    uint8_t *base;
    const int32_t *blocks; /* of one sequence */
    uint64_t block_bytes;
    uint64_t block_tokens;
    uint64_t tile;        /* tokens of a tile */
    uint64_t head_elems;  /* of one head in a block */
    uint64_t v_at;        /* elements from a head's start to its values */
    uint64_t k_dim;
    uint64_t v_dim;
    uint64_t elem_bytes;  /* 4, 2 or 1 */
    const davit_state_spec *spec; /* for the scales of f8_e4m3 */
} kv_view;

static inline uint64_t kv_tile(uint64_t block_tokens)
{
    return cpu_min(block_tokens, KV_TILE);
}

static inline uint64_t kv_elem_bytes(const davit_state_spec *spec)
{
    return strcmp(spec->dtype, "f16/1") == 0 ? 2 : strcmp(spec->dtype, "f8_e4m3/1") == 0 ? 1 : 4;
}

/* Elements of the keys of one head in a block. */
static inline uint64_t kv_key_elems(const davit_state_spec *spec, uint64_t block_tokens)
{
    return cpu_round_up(block_tokens, kv_tile(block_tokens)) * spec->k_dim;
}

static inline kv_view kv_view_of(const davit_call *call, uint64_t seq)
{
    const davit_state_spec *spec = call->state->spec;
    const uint64_t block_tokens = call->batch->block_tokens;
    const uint64_t key_elems = kv_key_elems(spec, block_tokens);

    return (kv_view){
        .base = call->state->base,
        .blocks = call->batch->block_table + seq * call->batch->max_blocks,
        .block_bytes = call->state->block_bytes,
        .block_tokens = block_tokens,
        .tile = kv_tile(block_tokens),
        .head_elems = key_elems + block_tokens * spec->v_dim,
        .v_at = key_elems,
        .k_dim = spec->k_dim,
        .v_dim = spec->v_dim,
        .elem_bytes = kv_elem_bytes(spec),
        .spec = spec,
    };
}

/* Scale of the keys of head @h, of f8_e4m3. */
static inline float kv_key_scale(const kv_view *kv, uint64_t h)
{
    const float scale = kv->spec->k_scales ? kv->spec->k_scales[h] : kv->spec->k_scale;

    return scale > 0.0f ? scale : 1.0f;
}

/* And of its values. */
static inline float kv_value_scale(const kv_view *kv, uint64_t h)
{
    const float scale = kv->spec->v_scales ? kv->spec->v_scales[h] : kv->spec->v_scale;

    return scale > 0.0f ? scale : 1.0f;
}

/* Start of head @h in the block of token @index. */
static inline uint8_t *kv_head(const kv_view *kv, uint64_t index, uint64_t h)
{
    const uint64_t block = (uint64_t)kv->blocks[index / kv->block_tokens];
    return kv->base + block * kv->block_bytes + h * kv->head_elems * kv->elem_bytes;
}

/* Dimension 0 of key @index of head @h; dimension d lies kv->tile * d elements further. */
static inline uint8_t *kv_key(const kv_view *kv, uint64_t index, uint64_t h)
{
    const uint64_t in_block = index % kv->block_tokens;
    const uint64_t tile = in_block / kv->tile, lane = in_block % kv->tile;
    const uint64_t elem = tile * kv->tile * kv->k_dim + lane;
    return kv_head(kv, index, h) + elem * kv->elem_bytes;
}

/* Row of value @index of head @h, v_dim elements. */
static inline uint8_t *kv_value(const kv_view *kv, uint64_t index, uint64_t h)
{
    const uint64_t elem = kv->v_at + index % kv->block_tokens * kv->v_dim;
    return kv_head(kv, index, h) + elem * kv->elem_bytes;
}

/* size of kv_append: a task is one token. */
cpu_size_fn cpu_kv_append_size;

/* Bytes of one block; 0 and a record where the state is not supported. */
uint64_t cpu_state_size(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                        const davit_sink *sink);

#endif
