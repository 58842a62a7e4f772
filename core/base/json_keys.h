/* SPDX-License-Identifier: Apache-2.0
 * Keys of the objects that a JSON reader has open, to refuse the second of two equal
 * ones. Linear for small and huge objects; hashes are seeded, so no input can make them
 * collide. */
#ifndef DAVIT_BASE_JSON_KEYS_H
#define DAVIT_BASE_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct DavitJsonKey {
    const char *ptr; /* (borrowed) text, or the set's own copy of an unescaped key */
    uint32_t len;
    uint32_t hash; /* 0 while the object is small */
} DavitJsonKey;

typedef struct DavitJsonKeys {
    DavitJsonKey *keys; /* of all open objects, outermost first */
    size_t n_keys;
    size_t cap;
    uint64_t seed;
} DavitJsonKeys;

/* Lookup table of one open object; slots NULL while it is small. */
typedef struct DavitJsonKeyTable {
    uint64_t *slots; /* hash << 32 | index into keys + 1; 0 = free */
    size_t n_slots;  /* power of two */
    size_t first;    /* first key of this object */
} DavitJsonKeyTable;

typedef enum DavitJsonKeyResult {
    DAVIT_JSON_KEY_NEW,
    DAVIT_JSON_KEY_TWICE,
    DAVIT_JSON_KEY_NO_MEMORY,
} DavitJsonKeyResult;

void davit_json_keys_init(DavitJsonKeys *keys);
void davit_json_keys_clear(DavitJsonKeys *keys);

void davit_json_key_table_open(DavitJsonKeyTable *table, const DavitJsonKeys *keys);
/* Forgets the keys of the object; @keys shrinks to what it was at open. */
void davit_json_key_table_close(DavitJsonKeyTable *table, DavitJsonKeys *keys);

/* @ptr must stay valid until the table is closed. */
DavitJsonKeyResult davit_json_key_add(DavitJsonKeyTable *table, DavitJsonKeys *keys,
                                      const char *ptr, size_t len);

#endif
