/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear steps, at most half full. */
#include "plan/name_index.h"

#include <string.h>

#include <glib.h>

typedef struct Entry {
    uint32_t hash;
    uint32_t number; /* + 1; 0 = free */
} Entry;

struct DavitNameIndex {
    Entry *entries;
    size_t mask;
    const char **names; /* by number */
    uint32_t n;
};

/* Eight bytes a step, multiplied and folded: names differ in a few digits anywhere. */
static uint32_t hash_of(const char *name, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15ull ^ len, word;

    for (; len >= 8; name += 8, len -= 8) {
        memcpy(&word, name, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, name, len);
    h = (h ^ word) * 0xc4ceb9fe1a85ec53ull;
    return (uint32_t)(h ^ h >> 32);
}

DavitNameIndex *davit_name_index_new(size_t most)
{
    DavitNameIndex *index = g_new0(DavitNameIndex, 1);
    size_t n = 16;

    while (n < 2 * most)
        n *= 2;
    index->entries = g_new0(Entry, n);
    index->mask = n - 1;
    index->names = g_new(const char *, MAX(most, 1));
    return index;
}

void davit_name_index_free(DavitNameIndex *index)
{
    if (!index)
        return;
    g_free(index->entries);
    g_free(index->names);
    g_free(index);
}

/* The entry of the name, or the free one where it would be. */
static Entry *entry_of(const DavitNameIndex *index, const char *name, size_t len,
                       uint32_t hash)
{
    for (size_t i = hash & index->mask;; i = (i + 1) & index->mask) {
        Entry *e = &index->entries[i];
        const char *own = e->number ? index->names[e->number - 1] : NULL;

        if (!own || (e->hash == hash && strncmp(own, name, len) == 0 && own[len] == '\0'))
            return e;
    }
}

int64_t davit_name_index_find(const DavitNameIndex *index, const char *name, size_t len)
{
    return (int64_t)entry_of(index, name, len, hash_of(name, len))->number - 1;
}

uint32_t davit_name_index_put(DavitNameIndex *index, const char *name, size_t len,
                              const char ***out_place)
{
    const uint32_t hash = hash_of(name, len);
    Entry *e = entry_of(index, name, len, hash);

    *out_place = NULL;
    if (e->number == 0) {
        *out_place = &index->names[index->n];
        *e = (Entry){hash, ++index->n};
    }
    return e->number - 1;
}
