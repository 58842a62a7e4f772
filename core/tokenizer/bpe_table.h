/* SPDX-License-Identifier: Apache-2.0
 * Looking into the tables of pairs and of characters, inline: the innermost steps of
 * merging. For bpe*.c only.
 */
#ifndef DAVIT_TOKENIZER_BPE_TABLE_H
#define DAVIT_TOKENIZER_BPE_TABLE_H

#include <davit/help/ucd.h>

#include "tokenizer/bpe.h"

/* A pair on its way to its slot. */
typedef struct DavitPairKey {
    uint64_t pair; /* as in the slot */
    uint32_t hash;
} DavitPairKey;

static inline DavitPairKey davit_pair_key(const DavitBpe *bpe, uint32_t left,
                                          uint32_t right)
{
    const uint64_t pair = (uint64_t)left << bpe->id_bits | right;
    const uint64_t h = (pair ^ bpe->seed) * 0x9e3779b97f4a7c15ull;

    /* upper bits of a product depend on all bits below */
    return (DavitPairKey){pair, (uint32_t)(h >> 32) ^ (uint32_t)h};
}

/* The bit of @key in the filter. */
static inline uint64_t davit_pair_bit(const DavitBpe *bpe, DavitPairKey key)
{
    return (key.hash * 0xd6e8feb86659fd93ull) >> (64 - bpe->filter_bits);
}

/* False: the table does not have the pair. */
static inline bool davit_pair_maybe(const DavitBpe *bpe, DavitPairKey key)
{
    const uint64_t bit = davit_pair_bit(bpe, key);

    return bpe->filter[bit / 64] >> bit % 64 & 1;
}

/* Where @key belongs; the number of slots may be any. */
static inline uint32_t davit_pair_slot(const DavitBpe *bpe, DavitPairKey key)
{
    return (uint32_t)((uint64_t)key.hash * bpe->n_slots >> 32);
}

static inline void davit_pair_fetch(const DavitBpe *bpe, DavitPairKey key)
{
    const uint64_t slot = davit_pair_slot(bpe, key);

    __builtin_prefetch(&bpe->slots[bpe->at_bits ? slot : 2 * slot]);
}

/* Place of the merge in @slot and its pair; DAVIT_BPE_NONE = the slot is empty. */
static inline uint32_t davit_pair_read(const DavitBpe *bpe, uint32_t slot, uint64_t *out_pair)
{
    uint64_t word;

    if (!bpe->at_bits) {
        *out_pair = bpe->slots[2 * (uint64_t)slot + 1];
        return (uint32_t)bpe->slots[2 * (uint64_t)slot] - 1;
    }
    word = bpe->slots[slot];
    *out_pair = word >> bpe->at_bits;
    return (uint32_t)(word & ((1ull << bpe->at_bits) - 1)) - 1;
}

static inline uint32_t davit_pair_right(const DavitBpe *bpe, uint64_t pair)
{
    return (uint32_t)(pair & ((1ull << bpe->id_bits) - 1));
}

/* Place of the merge, or DAVIT_BPE_NONE. *out_slot: where it is or belongs. */
static inline uint32_t davit_pair_find(const DavitBpe *bpe, DavitPairKey key,
                                       uint32_t *out_slot)
{
    uint32_t slot = davit_pair_slot(bpe, key), at;
    uint64_t pair;

    for (;;) {
        at = davit_pair_read(bpe, slot, &pair);
        if (at == DAVIT_BPE_NONE || pair == key.pair)
            break;
        slot = slot + 1 == bpe->n_slots ? 0 : slot + 1;
    }
    *out_slot = slot;
    return at;
}

/* Rank of the merge at @at, which may be DAVIT_BPE_NONE: higher than all. */
static inline uint32_t davit_bpe_rank(const DavitBpe *bpe, uint32_t at)
{
    return at == DAVIT_BPE_NONE || !bpe->ranks ? at : bpe->ranks[at];
}

/* ---- characters of byte-level tables: bmp ---- */

/* Conditions beside the id: what stands in front, what follows. The end of a piece is
 * fine. */
#define DAVIT_CHAR_LEFT  (1 << 28)
#define DAVIT_CHAR_RIGHT (1 << 29)

static inline bool davit_bpe_usual_before(uint8_t byte)
{
    return byte >= 0x80;
}

static inline bool davit_bpe_usual_behind(uint8_t byte)
{
    return byte < 0xc2 || (byte >= 0xe3 && byte <= 0xe9) || byte >= 0xee;
}

/* Id of the character at @off if it may begin as one symbol, else -1 and a length of 1.
 */
static inline int32_t davit_bpe_char(const DavitBpe *bpe, const char *text, size_t n,
                                     size_t off, uint32_t *out_cp, uint32_t *out_len)
{
    const uint8_t *p = (const uint8_t *)text + off;
    uint32_t cp, len;
    int32_t id;

    *out_len = 1;
    if (*p < 0xc2 || *p >= 0xf0 || !bpe->bmp)
        return -1;
    cp = davit_ucd_next(text, n, off, &len);
    id = len > 1 ? bpe->bmp[cp] : -1;
    if (id < 0 || ((id & DAVIT_CHAR_LEFT) && off > 0 && !davit_bpe_usual_before(p[-1])) ||
        ((id & DAVIT_CHAR_RIGHT) && off + len < n && !davit_bpe_usual_behind(p[len])))
        return -1;
    *out_cp = cp;
    *out_len = len;
    return id & (DAVIT_CHAR_LEFT - 1);
}

#endif
