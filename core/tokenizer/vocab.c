/* SPDX-License-Identifier: Apache-2.0
 * Token table: all texts in one block, an array of {offset, length} by id, and one open
 * hash table whose slots repeat the entry, so that a lookup touches two places in memory.
 */
#include "tokenizer/vocab.h"

#include <string.h>

#include "base/big.h"
#include "tokenizer/tokenizer.h"

#define HOLE      UINT32_MAX
#define MAX_BLOCK (1u << 31)
#define AHEAD     8 /* ids whose slots are on their way while the table is built */

typedef struct Entry {
    uint32_t off;
    uint32_t len; /* HOLE = no token */
} Entry;

typedef struct Slot {
    uint32_t tag; /* upper half of the hash */
    uint32_t id;  /* id + 1; 0 = empty */
    Entry entry;
} Slot;

struct DavitVocab {
    char *block;
    size_t block_len, block_cap;
    Entry *entries;
    size_t n_ids, entries_cap;
    size_t n_tokens;
    Slot *slots; /* n_slots, a power of two, at most half full; NULL before seal */
    size_t n_slots;
    uint64_t seed;
};

uint64_t davit_hash_bytes(const char *bytes, size_t len, uint64_t seed)
{
    const uint64_t k1 = 0x9e3779b97f4a7c15ull, k2 = 0xd6e8feb86659fd93ull;
    uint64_t h = seed ^ (len * k1), v;

    for (; len >= 8; len -= 8, bytes += 8) {
        memcpy(&v, bytes, 8);
        h = (h ^ v) * k2;
        h ^= h >> 32;
    }
    if (len > 0) {
        v = 0;
        memcpy(&v, bytes, len);
        h = (h ^ v) * k2;
        h ^= h >> 32;
    }
    h *= k1;
    return h ^ h >> 29;
}

DavitVocab *davit_vocab_new(void)
{
    DavitVocab *vocab = g_new0(DavitVocab, 1);

    vocab->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    return vocab;
}

void davit_vocab_free(DavitVocab *vocab)
{
    if (!vocab)
        return;
    g_free(vocab->block);
    g_free(vocab->entries);
    davit_big_free(vocab->slots);
    g_free(vocab);
}

/* Make room for @need items of @size bytes; doubles. */
static bool reserve(void **array, size_t *cap, size_t need, size_t size)
{
    size_t more = *cap ? *cap : 1024;
    void *grown;

    if (need <= *cap)
        return true;
    while (more < need)
        more *= 2;
    grown = g_try_realloc_n(*array, more, size);
    if (!grown)
        return false;
    *array = grown;
    *cap = more;
    return true;
}

/* Ids up to and including @id become holes. */
static bool extend_ids(DavitVocab *vocab, size_t id)
{
    void *entries = vocab->entries;

    if (!reserve(&entries, &vocab->entries_cap, id + 1, sizeof(Entry)))
        return false;
    vocab->entries = entries;
    while (vocab->n_ids <= id)
        vocab->entries[vocab->n_ids++] = (Entry){0, HOLE};
    return true;
}

DavitVocabAdd davit_vocab_add(DavitVocab *vocab, int64_t id, const char *text, size_t len)
{
    void *block = vocab->block;

    if (id < 0 || id > DAVIT_TOK_MAX_ID)
        return DAVIT_VOCAB_ID_RANGE;
    if ((size_t)id < vocab->n_ids && vocab->entries[id].len != HOLE)
        return DAVIT_VOCAB_ID_TAKEN;
    if (len >= MAX_BLOCK - vocab->block_len ||
        !reserve(&block, &vocab->block_cap, vocab->block_len + len + 1, 1))
        return DAVIT_VOCAB_TOO_LARGE;
    vocab->block = block;
    if ((size_t)id >= vocab->n_ids && !extend_ids(vocab, (size_t)id))
        return DAVIT_VOCAB_TOO_LARGE;

    vocab->entries[id] = (Entry){(uint32_t)vocab->block_len, (uint32_t)len};
    memcpy(vocab->block + vocab->block_len, text, len);
    vocab->block[vocab->block_len + len] = '\0';
    vocab->block_len += len + 1;
    if (!vocab->slots)
        vocab->n_tokens++;
    return DAVIT_VOCAB_ADDED;
}

/* Slot that holds @text, or the empty slot where it belongs. */
static Slot *find_slot(const DavitVocab *vocab, const char *text, size_t len,
                       uint64_t hash)
{
    const uint32_t tag = (uint32_t)(hash >> 32);
    size_t at = hash & (vocab->n_slots - 1);

    for (;; at = (at + 1) & (vocab->n_slots - 1)) {
        Slot *slot = &vocab->slots[at];

        if (slot->id == 0 || (slot->tag == tag && slot->entry.len == len &&
                              memcmp(vocab->block + slot->entry.off, text, len) == 0))
            return slot;
    }
}

/* Put @id, whose text has @hash, into its slot. False if another id has the text. */
static bool place(DavitVocab *vocab, size_t id, uint64_t hash)
{
    const Entry *entry = &vocab->entries[id];
    Slot *slot;

    if (entry->len == HOLE)
        return true;
    slot = find_slot(vocab, vocab->block + entry->off, entry->len, hash);
    if (slot->id != 0)
        return false;
    *slot = (Slot){(uint32_t)(hash >> 32), (uint32_t)id + 1, *entry};
    return true;
}

int32_t davit_vocab_seal(DavitVocab *vocab)
{
    uint64_t hashes[AHEAD] = {0}; /* slots are far apart: fetch before they are needed */
    size_t n_slots = 1024;

    while (n_slots < 2 * vocab->n_tokens)
        n_slots *= 2;
    vocab->slots = davit_big_alloc(n_slots, sizeof(Slot));
    if (!vocab->slots)
        return -2;
    memset(vocab->slots, 0, n_slots * sizeof(Slot));
    vocab->n_slots = n_slots;
    for (size_t id = 0; id < vocab->n_ids + AHEAD; id++) {
        if (id < vocab->n_ids && vocab->entries[id].len != HOLE) {
            const Entry *next = &vocab->entries[id];
            uint64_t *hash = &hashes[id % AHEAD];

            if (id >= AHEAD && !place(vocab, id - AHEAD, *hash))
                return (int32_t)(id - AHEAD);
            *hash = davit_hash_bytes(vocab->block + next->off, next->len, vocab->seed);
            davit_vocab_fetch_slot(vocab, *hash);
        } else if (id >= AHEAD && !place(vocab, id - AHEAD, hashes[id % AHEAD])) {
            return (int32_t)(id - AHEAD);
        }
    }
    return -1;
}

size_t davit_vocab_n_ids(const DavitVocab *vocab)
{
    return vocab->n_ids;
}

size_t davit_vocab_n_tokens(const DavitVocab *vocab)
{
    return vocab->n_tokens;
}

const char *davit_vocab_text(const DavitVocab *vocab, int64_t id, size_t *out_len)
{
    if (id < 0 || (uint64_t)id >= vocab->n_ids || vocab->entries[id].len == HOLE)
        return NULL;
    *out_len = vocab->entries[id].len;
    return vocab->block + vocab->entries[id].off;
}

uint64_t davit_vocab_hash(const DavitVocab *vocab, const char *text, size_t len)
{
    return davit_hash_bytes(text, len, vocab->seed);
}

void davit_vocab_fetch_slot(const DavitVocab *vocab, uint64_t hash)
{
    __builtin_prefetch(&vocab->slots[hash & (vocab->n_slots - 1)]);
}

void davit_vocab_fetch_text(const DavitVocab *vocab, uint64_t hash)
{
    const Slot *slot = &vocab->slots[hash & (vocab->n_slots - 1)];

    if (slot->id != 0)
        __builtin_prefetch(vocab->block + slot->entry.off);
}

int32_t davit_vocab_find_hashed(const DavitVocab *vocab, const char *text, size_t len,
                                uint64_t hash)
{
    return (int32_t)find_slot(vocab, text, len, hash)->id - 1;
}

int32_t davit_vocab_find(const DavitVocab *vocab, const char *text, size_t len)
{
    return davit_vocab_find_hashed(vocab, text, len, davit_vocab_hash(vocab, text, len));
}

void davit_vocab_prefetch(const DavitVocab *vocab, const char *text, size_t len)
{
    davit_vocab_fetch_slot(vocab, davit_vocab_hash(vocab, text, len));
}
