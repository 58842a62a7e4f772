/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear steps, at most half full. */
#include "plan/name_index.h"

#include <string.h>

#include <glib.h>

typedef struct Entry {
    const char *name; /* (borrowed) NULL = free */
    uint32_t hash;
    uint32_t number;
} Entry;

struct DavitNameIndex {
    Entry *entries;
    size_t mask;
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
    return index;
}

void davit_name_index_free(DavitNameIndex *index)
{
    if (!index)
        return;
    g_free(index->entries);
    g_free(index);
}

int64_t davit_name_index_find(const DavitNameIndex *index, const char *name, size_t len)
{
    const uint32_t hash = hash_of(name, len);

    for (size_t i = hash & index->mask; index->entries[i].name; i = (i + 1) & index->mask) {
        const Entry *e = &index->entries[i];

        if (e->hash == hash && strncmp(e->name, name, len) == 0 && e->name[len] == '\0')
            return e->number;
    }
    return -1;
}

void davit_name_index_add(DavitNameIndex *index, const char *name, uint32_t number)
{
    const uint32_t hash = hash_of(name, strlen(name));
    size_t i = hash & index->mask;

    while (index->entries[i].name)
        i = (i + 1) & index->mask;
    index->entries[i] = (Entry){name, hash, number};
}
