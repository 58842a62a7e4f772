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
    const uint64_t pair = ((uint64_t)left << 32 | right) + 1;
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
static inline DavitBpeSlot *davit_pair_slot(const DavitBpe *bpe, DavitPairKey key)
{
    return &bpe->slots[(uint64_t)key.hash * bpe->n_slots >> 32];
}

/* The slot of the pair, or the empty one where it belongs. */
static inline DavitBpeSlot *davit_pair_find(const DavitBpe *bpe, DavitPairKey key)
{
    DavitBpeSlot *slot = davit_pair_slot(bpe, key);

    while (slot->pair != key.pair && slot->pair != 0)
        slot = slot + 1 == bpe->slots + bpe->n_slots ? bpe->slots : slot + 1;
    return slot;
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
