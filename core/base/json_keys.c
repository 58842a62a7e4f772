/* SPDX-License-Identifier: Apache-2.0
 * Set of keys per open object: a plain list up to SMALL keys, then an open-addressed
 * table that doubles at three quarters full. */
#include "base/json_keys.h"

#include <string.h>

#include <glib.h>

#define SMALL 12

/* Multiply-and-fold over 8-byte words with a secret seed; 32 bits are kept. */
static uint32_t hash_bytes(uint64_t seed, const char *p, size_t n)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t h = seed ^ (n * k);
    uint64_t w;

    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&w, p, 8);
        h = (h ^ w) * k;
        h ^= (h >> 29) ^ (seed << 1);
    }
    w = 0;
    memcpy(&w, p, n);
    h = (h ^ w) * k;
    h ^= h >> 32;
    h *= seed | 1;
    return (uint32_t)(h >> 32);
}

void davit_json_keys_init(DavitJsonKeys *keys)
{
    *keys = (DavitJsonKeys){0};
    keys->seed = (uint64_t)g_random_int() << 32 | g_random_int();
}

void davit_json_keys_clear(DavitJsonKeys *keys)
{
    g_free(keys->keys);
    keys->keys = NULL;
}

void davit_json_key_table_open(DavitJsonKeyTable *table, const DavitJsonKeys *keys)
{
    *table = (DavitJsonKeyTable){.first = keys->n_keys};
}

void davit_json_key_table_close(DavitJsonKeyTable *table, DavitJsonKeys *keys)
{
    g_free(table->slots);
    table->slots = NULL;
    keys->n_keys = table->first;
}

static bool key_equal(const DavitJsonKey *key, const char *ptr, size_t len)
{
    return key->len == len && memcmp(key->ptr, ptr, len) == 0;
}

/* Is the key in @slot the one at @ptr? The hash in the slot spares most looks at the key.
 */
static bool slot_equal(const DavitJsonKeys *keys, uint64_t slot, uint32_t hash,
                       const char *ptr, size_t len)
{
    return slot >> 32 == hash &&
           key_equal(&keys->keys[(uint32_t)slot - 1], ptr, len);
}

/* Free slot for @hash, or the slot of an equal key. */
static size_t find_slot(const DavitJsonKeyTable *table, const DavitJsonKeys *keys,
                        uint32_t hash, const char *ptr, size_t len)
{
    const size_t mask = table->n_slots - 1;
    size_t at = hash & mask;

    while (table->slots[at] && !slot_equal(keys, table->slots[at], hash, ptr, len))
        at = (at + 1) & mask;
    return at;
}

static uint64_t make_slot(uint32_t hash, size_t index)
{
    return (uint64_t)hash << 32 | (uint32_t)(index + 1);
}

/* A table four times as large with all keys of the object in it. Keys have no hash before the
 * first. */
static bool grow_table(DavitJsonKeyTable *table, DavitJsonKeys *keys)
{
    const size_t n_slots = table->slots ? table->n_slots * 4 : 64;
    uint64_t *slots = g_try_new0(uint64_t, n_slots);

    if (!slots)
        return false;
    for (size_t i = table->slots ? keys->n_keys : table->first; i < keys->n_keys; i++)
        keys->keys[i].hash = hash_bytes(keys->seed, keys->keys[i].ptr, keys->keys[i].len);
    g_free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    for (size_t i = table->first; i < keys->n_keys; i++) {
        size_t at = keys->keys[i].hash & (n_slots - 1);

        while (slots[at])
            at = (at + 1) & (n_slots - 1);
        slots[at] = make_slot(keys->keys[i].hash, i);
    }
    return true;
}

static bool append_key(DavitJsonKeys *keys, uint32_t hash, const char *ptr, size_t len)
{
    if (keys->n_keys == keys->cap) {
        const size_t cap = MAX(64, keys->cap * 2);
        DavitJsonKey *more = g_try_renew(DavitJsonKey, keys->keys, cap);

        if (!more)
            return false;
        keys->keys = more;
        keys->cap = cap;
    }
    keys->keys[keys->n_keys++] = (DavitJsonKey){ptr, (uint32_t)len, hash};
    return true;
}

DavitJsonKeyResult davit_json_key_add(DavitJsonKeyTable *table, DavitJsonKeys *keys,
                                      const char *ptr, size_t len)
{
    const size_t n_own = keys->n_keys - table->first;
    uint32_t hash;

    if (!table->slots && n_own < SMALL) {
        for (size_t i = table->first; i < keys->n_keys; i++)
            if (key_equal(&keys->keys[i], ptr, len))
                return DAVIT_JSON_KEY_TWICE;
        return append_key(keys, 0, ptr, len) ? DAVIT_JSON_KEY_NEW
                                                : DAVIT_JSON_KEY_NO_MEMORY;
    }
    if ((!table->slots || n_own >= table->n_slots / 2) && !grow_table(table, keys))
        return DAVIT_JSON_KEY_NO_MEMORY;
    hash = hash_bytes(keys->seed, ptr, len);
    const size_t at = find_slot(table, keys, hash, ptr, len);
    if (table->slots[at])
        return DAVIT_JSON_KEY_TWICE;
    if (!append_key(keys, hash, ptr, len))
        return DAVIT_JSON_KEY_NO_MEMORY;
    table->slots[at] = make_slot(hash, keys->n_keys - 1);
    return DAVIT_JSON_KEY_NEW;
}
