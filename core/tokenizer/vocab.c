/* SPDX-License-Identifier: Apache-2.0
 * Token table: all texts in one block, an array of {offset, length} by id, and one open
 * hash table. A slot of 16 bytes holds a text of up to 8 bytes itself, so looking it up
 * touches one place in memory; longer texts take a second one.
 */
#include "tokenizer/vocab.h"

#include <string.h>

#include "base/big.h"
#include "tokenizer/tokenizer.h"

#define HOLE      DAVIT_VOCAB_HOLE
#define MAX_BLOCK (1u << 31)

typedef DavitVocabEntry Entry;

/* Lengths from this on are not told apart in a slot. */
#define LONG_TEXT 127u

typedef struct Slot {
    uint64_t head; /* of the key */
    uint32_t what; /* 0 = empty; else id + 1 and, in the upper 7 bits, the length */
    uint32_t off;  /* of the text */
} Slot;

struct DavitVocab {
    char *block;
    size_t block_len, block_cap;
    Entry *entries;
    size_t n_ids, entries_cap;
    size_t n_tokens;
    Slot *slots; /* n_slots, at most three fifths full; NULL before seal */
    uint32_t n_slots;
    uint64_t seed;
};

static uint64_t load8(const char *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return GUINT64_FROM_LE(v);
}

static uint64_t load4(const char *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return GUINT32_FROM_LE(v);
}

/* Up to 8 bytes as a number, zeros behind. Loads overlap: no loop, nothing beyond the
 * text. */
static uint64_t load_short(const char *p, size_t n)
{
    const uint8_t *u = (const uint8_t *)p;

    if (n == 8)
        return load8(p);
    if (n >= 4)
        return load4(p) | load4(p + n - 4) << 8 * (n - 4);
    if (n == 0)
        return 0;
    return (uint64_t)u[0] | (uint64_t)u[n / 2] << 8 * (n / 2) |
           (uint64_t)u[n - 1] << 8 * (n - 1);
}

#define K1 0x9e3779b97f4a7c15ull
#define K2 0xd6e8feb86659fd93ull

static uint64_t mix(uint64_t h)
{
    h *= K2;
    return h ^ h >> 32;
}

/* Hash of 9 bytes and more; the last 8 may overlap those before. */
static uint64_t hash_long(const char *p, size_t n, uint64_t seed)
{
    const char *last = p + n - 8;
    uint64_t h = seed ^ n * K1;

    for (; p < last; p += 8)
        h = mix(h ^ load8(p));
    return mix(h ^ load8(last)) * K1;
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
    size_t more = *cap ? *cap : 64;
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

/* ---- text to id ---- */

/* What is compared first. */
typedef struct Key {
    uint64_t head; /* the text itself if it has 8 bytes at most, else its hash */
    uint32_t hash; /* seeded, so that no file's author can choose collisions */
} Key;

static inline Key make_key(const DavitVocab *vocab, const char *text, size_t len)
{
    const uint64_t head =
        len <= 8 ? load_short(text, len) : hash_long(text, len, vocab->seed);
    const uint64_t h = (mix(head ^ vocab->seed) + len) * K1;

    return (Key){head, (uint32_t)(h >> 32)};
}

/* Slots are chosen by the key's upper bits, so their number may be any. */
static inline uint32_t first_slot(const DavitVocab *vocab, Key key)
{
    return (uint32_t)((uint64_t)key.hash * vocab->n_slots >> 32);
}

static inline bool slot_holds(const DavitVocab *vocab, const Slot *slot, Key key,
                              const char *text, size_t len)
{
    if (slot->head != key.head || slot->what >> 25 != MIN(len, LONG_TEXT))
        return false;
    if (len <= 8)
        return true;
    return (len < LONG_TEXT || vocab->entries[(slot->what & 0x1ffffff) - 1].len == len) &&
           memcmp(vocab->block + slot->off, text, len) == 0;
}

/* Slot that holds @text, or the empty slot where it belongs. */
static inline Slot *find_slot(const DavitVocab *vocab, const char *text, size_t len,
                              Key key)
{
    uint32_t at = first_slot(vocab, key);

    for (;; at = at + 1 == vocab->n_slots ? 0 : at + 1) {
        Slot *slot = &vocab->slots[at];

        if (slot->what == 0 || slot_holds(vocab, slot, key, text, len))
            return slot;
    }
}

/* Put @id, whose text has @key, into its slot. False if another id has the text. */
static bool place(DavitVocab *vocab, size_t id, Key key)
{
    const Entry *entry = &vocab->entries[id];
    Slot *slot = find_slot(vocab, vocab->block + entry->off, entry->len, key);

    if (slot->what != 0)
        return false;
    *slot = (Slot){key.head, MIN(entry->len, LONG_TEXT) << 25 | ((uint32_t)id + 1),
                   entry->off};
    return true;
}

int32_t davit_vocab_seal(DavitVocab *vocab)
{
    Key keys[DAVIT_VOCAB_MANY]; /* slots are far apart: fetch before they are needed */
    const size_t n_slots = 16 + vocab->n_tokens * 5 / 3;

    vocab->slots = davit_big_zeroed(n_slots, sizeof(Slot));
    if (!vocab->slots)
        return -2;
    vocab->n_slots = (uint32_t)n_slots;
    for (size_t from = 0; from < vocab->n_ids; from += DAVIT_VOCAB_MANY) {
        const size_t end = MIN(from + DAVIT_VOCAB_MANY, vocab->n_ids);

        for (size_t id = from; id < end; id++) {
            const Entry *entry = &vocab->entries[id];

            if (entry->len == HOLE)
                continue;
            keys[id - from] = make_key(vocab, vocab->block + entry->off, entry->len);
            __builtin_prefetch(&vocab->slots[first_slot(vocab, keys[id - from])]);
        }
        for (size_t id = from; id < end; id++) {
            if (vocab->entries[id].len != HOLE && !place(vocab, id, keys[id - from]))
                return (int32_t)id;
        }
    }
    return -1;
}

int32_t davit_vocab_find(const DavitVocab *vocab, const char *text, size_t len)
{
    const Slot *slot = find_slot(vocab, text, len, make_key(vocab, text, len));

    return (int32_t)(slot->what & 0x1ffffff) - 1;
}

void davit_vocab_find_many(const DavitVocab *vocab, const DavitVocabText *texts, size_t n,
                           int32_t *out_ids)
{
    Key keys[DAVIT_VOCAB_MANY];

    for (size_t i = 0; i < n; i++) {
        keys[i] = make_key(vocab, texts[i].text, texts[i].len);
        __builtin_prefetch(&vocab->slots[first_slot(vocab, keys[i])]);
    }
    for (size_t i = 0; i < n; i++) {
        const Slot *slot = &vocab->slots[first_slot(vocab, keys[i])];

        if (texts[i].len > 8 && slot->what != 0)
            __builtin_prefetch(vocab->block + slot->off);
    }
    for (size_t i = 0; i < n; i++) {
        const Slot *slot = find_slot(vocab, texts[i].text, texts[i].len, keys[i]);

        out_ids[i] = (int32_t)(slot->what & 0x1ffffff) - 1;
    }
}

/* ---- id to text ---- */

size_t davit_vocab_n_ids(const DavitVocab *vocab)
{
    return vocab->n_ids;
}

size_t davit_vocab_n_tokens(const DavitVocab *vocab)
{
    return vocab->n_tokens;
}

const DavitVocabEntry *davit_vocab_entries(const DavitVocab *vocab, const char **out_block)
{
    *out_block = vocab->block;
    return vocab->entries;
}

const char *davit_vocab_text(const DavitVocab *vocab, int64_t id, size_t *out_len)
{
    if (id < 0 || (uint64_t)id >= vocab->n_ids || vocab->entries[id].len == HOLE)
        return NULL;
    *out_len = vocab->entries[id].len;
    return vocab->block + vocab->entries[id].off;
}

bool davit_vocab_is_joined(const DavitVocab *vocab, int64_t id, DavitVocabText left,
                           DavitVocabText right)
{
    const size_t len = left.len + right.len;
    const char *text;

    if (id < 0 || (uint64_t)id >= vocab->n_ids || vocab->entries[id].len != len)
        return false;
    text = vocab->block + vocab->entries[id].off;
    if (len <= 8)
        return load_short(text, len) ==
               (load_short(left.text, left.len) |
                (right.len ? load_short(right.text, right.len) << 8 * left.len : 0));
    return memcmp(text, left.text, left.len) == 0 &&
           memcmp(text + left.len, right.text, right.len) == 0;
}
