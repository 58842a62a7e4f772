/* SPDX-License-Identifier: Apache-2.0
 * The merge table and what is derived from it at load. Merging itself is in bpe_merge.c.
 */
#include "tokenizer/bpe.h"

#include <stdio.h>
#include <string.h>

#include <davit/help/ucd.h>

#include "base/big.h"
#include "tokenizer/bpe_table.h"

#define TWO_MERGES 65536u /* fewer are not worth a thread */

uint32_t davit_byte_letter(uint8_t byte)
{
    /* GPT-2: printable bytes stand for themselves, the others follow from U+0100 in
     * order. */
    if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

int32_t davit_letter_byte(uint32_t cp)
{
    if (cp < 0x100)
        return davit_byte_letter((uint8_t)cp) == cp ? (int32_t)cp : -1;
    if (cp <= 0x120)
        return (int32_t)(cp - 0x100);
    if (cp <= 0x142)
        return (int32_t)(cp - 0x121 + 0x7f);
    return cp == 0x143 ? 0xad : -1;
}

static uint32_t bits_of(uint64_t most)
{
    return most ? 64 - (uint32_t)__builtin_clzll(most) : 0;
}

bool davit_bpe_init(DavitBpe *bpe, const DavitVocab *vocab, uint64_t n_merges)
{
    const uint32_t id_bits = MAX(bits_of(davit_vocab_n_ids(vocab)), 1);

    bpe->vocab = vocab;
    bpe->unk = -1;
    bpe->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    if (n_merges > UINT32_MAX / 2 - 64)
        return false;
    bpe->at_bits = bits_of(n_merges); /* places + 1 */
    bpe->id_bits = id_bits;
    if (bpe->at_bits == 0 || 2 * id_bits + bpe->at_bits > 64) {
        bpe->at_bits = 0;
        bpe->id_bits = 32;
    }
    bpe->most_merges = (uint32_t)n_merges;
    bpe->n_slots = (uint32_t)(n_merges * 5 / 3 + 64);
    bpe->slots = davit_big_zeroed(bpe->n_slots, (bpe->at_bits ? 1 : 2) * sizeof(uint64_t));
    bpe->joined = davit_big_zeroed(n_merges + 1, sizeof(uint32_t));
    bpe->filter_bits = 9;
    while (1ull << bpe->filter_bits < 8 * n_merges)
        bpe->filter_bits++;
    bpe->filter = davit_big_zeroed((size_t)1 << bpe->filter_bits >> 6, sizeof(uint64_t));
    return bpe->slots && bpe->joined && bpe->filter;
}

void davit_bpe_clear(DavitBpe *bpe)
{
    davit_big_free(bpe->slots);
    davit_big_free(bpe->joined);
    davit_big_free(bpe->ranks);
    davit_big_free(bpe->filter);
    g_free(bpe->bmp);
    g_free(bpe->conditions);
    g_free(bpe->joins);
    g_free(bpe->triples);
}

/* Ranks of merges so far were their places. */
static bool make_ranks(DavitBpe *bpe)
{
    bpe->ranks = davit_big_zeroed(bpe->most_merges + 1u, sizeof(uint32_t));
    for (uint32_t at = 0; bpe->ranks && at < bpe->n_merges; at++)
        bpe->ranks[at] = at;
    return bpe->ranks != NULL;
}

static void put_pair(DavitBpe *bpe, DavitPairKey key, uint32_t at)
{
    const uint64_t bit = davit_pair_bit(bpe, key);
    uint32_t slot;

    davit_pair_find(bpe, key, &slot);
    if (bpe->at_bits) {
        bpe->slots[slot] = key.pair << bpe->at_bits | (at + 1);
    } else {
        bpe->slots[2 * (uint64_t)slot] = (uint64_t)at + 1;
        bpe->slots[2 * (uint64_t)slot + 1] = key.pair;
    }
    bpe->filter[bit / 64] |= 1ull << bit % 64;
}

#define AHEAD 16u /* slots are far apart in memory: fetch before they are needed */

static DavitPairKey fetch_pair(const DavitBpe *bpe, const DavitMerge *merge)
{
    const DavitPairKey key = davit_pair_key(bpe, merge->left, merge->right);

    davit_pair_fetch(bpe, key);
    return key;
}

static bool add_merges(DavitBpe *bpe, const DavitMerge *merges, size_t n)
{
    DavitPairKey keys[AHEAD];

    g_assert(n <= bpe->most_merges - bpe->n_merges);
    for (size_t i = 0; i < MIN(n, AHEAD); i++)
        keys[i] = fetch_pair(bpe, &merges[i]);
    for (size_t i = 0; i < n; i++) {
        const uint32_t at = bpe->n_merges;
        const DavitPairKey key = keys[i % AHEAD];

        if (n - i > AHEAD)
            keys[i % AHEAD] = fetch_pair(bpe, &merges[i + AHEAD]);
        if (merges[i].rank != at && !bpe->ranks && !make_ranks(bpe))
            return false;
        put_pair(bpe, key, at);
        bpe->joined[at] = merges[i].joined;
        if (bpe->ranks)
            bpe->ranks[at] = merges[i].rank;
        bpe->n_merges++;
    }
    return true;
}

uint32_t davit_bpe_find(const DavitBpe *bpe, uint32_t left, uint32_t right)
{
    const DavitPairKey key = davit_pair_key(bpe, left, right);

    return davit_pair_maybe(bpe, key) ? davit_pair_find(bpe, key, &(uint32_t){0})
                                      : DAVIT_BPE_NONE;
}

/* Ids of the bytes: by letter in byte-level files, else by the name <0xNN>. */
static void fill_bytes(DavitBpe *bpe)
{
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        int len;

        bpe->bytes[i] = -1;
        if (bpe->byte_level) {
            len = g_unichar_to_utf8(davit_byte_letter((uint8_t)i), text);
        } else if (bpe->byte_fallback) {
            len = snprintf(text, sizeof text, "<0x%02X>", i);
        } else {
            continue;
        }
        bpe->bytes[i] = davit_vocab_find(bpe->vocab, text, (size_t)len);
    }
}

/* The character below U+10000 that the token is, or UINT32_MAX. */
static inline uint32_t char_of(const char *block, const DavitVocabEntry *entry)
{
    uint32_t n, cp;

    if (entry->len == 0 || entry->len > 3) /* or a hole */
        return UINT32_MAX;
    cp = davit_ucd_decode(block + entry->off, entry->len, 0, &n);
    return n == entry->len && cp < 65536 ? cp : UINT32_MAX;
}

static bool fill_bmp(DavitBpe *bpe)
{
    const size_t n_ids = davit_vocab_n_ids(bpe->vocab);
    const char *block;
    const DavitVocabEntry *entries = davit_vocab_entries(bpe->vocab, &block);

    if (bpe->byte_level)
        return true;
    bpe->n_bmp = 0;
    for (size_t id = 0; id < n_ids; id++)
        bpe->n_bmp = MAX(bpe->n_bmp, char_of(block, &entries[id]) + 1); /* none is 0 */
    bpe->bmp = g_try_new(int32_t, bpe->n_bmp + 1);
    if (!bpe->bmp)
        return false;
    memset(bpe->bmp, 0xff, bpe->n_bmp * sizeof *bpe->bmp);
    for (size_t id = 0; id < n_ids; id++) {
        const uint32_t cp = char_of(block, &entries[id]);

        if (cp != UINT32_MAX)
            bpe->bmp[cp] = (int32_t)id;
    }
    return true;
}

/* What a thread of its own derives while pairs are put into the table. */
typedef struct Cuts {
    DavitBpe *bpe;
    const DavitMerge *merges; /* [n] */
    size_t n;
    bool good;
} Cuts;

static void *find_cuts(void *data)
{
    Cuts *cuts = data;

    cuts->good = davit_bpe_find_cuts(cuts->bpe, cuts->merges, cuts->n);
    return NULL;
}

bool davit_bpe_fill(DavitBpe *bpe, const DavitMerge *merges, size_t n)
{
    Cuts cuts = {bpe, merges, n, false};
    GThread *thread = NULL;
    bool good;

    fill_bytes(bpe);
    if (!fill_bmp(bpe))
        return false;
    if (n >= TWO_MERGES && !bpe->byte_level && g_get_num_processors() > 1)
        thread = g_thread_try_new("davit-cuts", find_cuts, &cuts, NULL);
    good = add_merges(bpe, merges, n);
    if (thread)
        g_thread_join(thread);
    else
        find_cuts(&cuts);
    return good && cuts.good;
}
