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

/* Fill cuts, keep and beside, behind bytes and bmp; the table of pairs is not looked at. False when
 * memory is gone. */
bool davit_bpe_find_cuts(DavitBpe *bpe, const DavitMerge *merges, size_t n);

/* ---- characters of byte-level tables: bmp ---- */

/* An item of bmp: the id, and above it which of bpe->conditions goes with it. */
#define DAVIT_CHAR_ID_BITS 20
#define DAVIT_CHAR_CONDITIONS 2048u

/* What may not stand beside a character that shall begin as one symbol. A bit is a last byte's low
 * six bits before it, and behind it a first byte less C0, with bit 0 for all of ASCII. */
typedef struct DavitCharCondition {
    uint64_t before;
    uint64_t behind;
    uint64_t behind_whole; /* what is left if the next character begins as one symbol itself */
    uint64_t ascii_before; /* 1: nor may any of ASCII */
} DavitCharCondition;

/* A character that may begin as one symbol. */
typedef struct DavitBpeChar {
    int32_t id; /* -1 = it may not: the rest is unset but len, 1 for what has no item */
    uint32_t cp, len;
    bool alone;   /* it begins so */
    bool in_line; /* it does if the next one does */
} DavitBpeChar;

static inline DavitBpeChar davit_bpe_look(const DavitBpe *bpe, const char *text, size_t n, size_t off)
{
    const uint8_t *p = (const uint8_t *)text + off;
    DavitBpeChar c = {.id = -1, .len = 1};
    const DavitCharCondition *condition;
    uint32_t bit;
    int32_t item;

    if (*p < 0xc2 || *p >= 0xf0 || !bpe->bmp)
        return c;
    c.cp = davit_ucd_next(text, n, off, &c.len);
    item = c.len > 1 ? bpe->bmp[c.cp] : -1;
    if (item < 0)
        return c;
    condition = &bpe->conditions[item >> DAVIT_CHAR_ID_BITS];
    if (off > 0 && (p[-1] < 0x80 ? condition->ascii_before : condition->before >> (p[-1] & 63) & 1))
        return c;
    bit = off + c.len == n || p[c.len] < 0x80 ? 0 : p[c.len] & 63;
    c.alone = off + c.len == n || !(condition->behind >> bit & 1);
    c.in_line = c.alone || !(condition->behind_whole >> bit & 1);
    c.id = item & ((1 << DAVIT_CHAR_ID_BITS) - 1);
    return c;
}

/* Id of the character at @off if it is seen to begin as one symbol, else -1. */
static inline int32_t davit_bpe_char(const DavitBpe *bpe, const char *text, size_t n,
                                     size_t off, uint32_t *out_len)
{
    const DavitBpeChar c = davit_bpe_look(bpe, text, n, off);
    const bool begins =
        c.id >= 0 && (c.alone || (c.in_line && davit_bpe_look(bpe, text, n, off + c.len).alone));

    *out_len = begins ? c.len : 1;
    return begins ? c.id : -1;
}

#endif
