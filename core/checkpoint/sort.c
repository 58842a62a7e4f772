/* SPDX-License-Identifier: Apache-2.0
 * Order by name, eight bytes at a time: names of one model begin alike for thirty bytes, which
 * a comparison would walk each time. Names with equal eight bytes are sorted by the next
 * eight, so no byte of a name is looked at twice. Merges, so that no file makes it slow. */
#include <string.h>

#include "checkpoint/checkpoint_private.h"

#define FEW 12u /* sorted by insertion */

typedef struct Key {
    uint64_t head; /* eight bytes of the name, the first in front; zeros behind its end */
    size_t at;     /* tensor */
} Key;

typedef struct Sort {
    const davit_tensor_info *tensors; /* (borrowed) */
    Key *spare;
} Sort;

static uint64_t head_of(const char *name)
{
    uint64_t head = 0;
    unsigned n = 0;

    for (; n < 8 && name[n]; n++)
        head = head << 8 | (unsigned char)name[n];
    return n ? head << 8 * (8 - n) : 0;
}

static void insert_few(Key *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const Key key = keys[i];
        size_t at = i;

        for (; at > 0 && keys[at - 1].head > key.head; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static void merge_sort(Key *keys, size_t n, Key *spare)
{
    const size_t half = n / 2;
    size_t a = 0, b = half, to = 0;

    if (n <= FEW) {
        insert_few(keys, n);
        return;
    }
    merge_sort(keys, half, spare);
    merge_sort(keys + half, n - half, spare);
    if (keys[half - 1].head <= keys[half].head)
        return;
    memcpy(spare, keys, half * sizeof *keys);
    while (a < half)
        keys[to++] = b < n && keys[b].head < spare[a].head ? keys[b++] : spare[a++];
}

/* @n tensors of one name. */
static void sort_by_file(const Sort *sort, Key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        keys[i].head = sort->tensors[keys[i].at].file;
    merge_sort(keys, n, sort->spare);
}

/* @n tensors whose names are equal up to @depth. */
static void sort_from(const Sort *sort, Key *keys, size_t n, size_t depth)
{
    bool sorted = true; /* as the first bytes of all names are */

    for (size_t i = 0; i < n; i++) {
        keys[i].head = head_of(sort->tensors[keys[i].at].name + depth);
        sorted = sorted && (i == 0 || keys[i - 1].head <= keys[i].head);
    }
    if (!sorted)
        merge_sort(keys, n, sort->spare);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && keys[end].head == keys[i].head; end++)
            ;
        if (end - i > 1 && (keys[i].head & 0xff)) /* all eight are bytes of the name */
            sort_from(sort, keys + i, end - i, depth + 8);
        else if (end - i > 1)
            sort_by_file(sort, keys + i, end - i);
    }
}

/* Move every tensor to where @keys says; each is copied once. */
static void apply(davit_tensor_info *tensors, Key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const davit_tensor_info first = tensors[i];
        size_t to = i;

        if (keys[i].at == i)
            continue;
        while (keys[to].at != i) {
            const size_t from = keys[to].at;

            tensors[to] = tensors[from];
            keys[to].at = to;
            to = from;
        }
        tensors[to] = first;
        keys[to].at = to;
    }
}

void davit_tensors_sort(davit_tensor_info *tensors, size_t n)
{
    g_autofree Key *keys = NULL;
    g_autofree Key *spare = NULL;
    size_t sorted = 1;

    while (sorted < n && strcmp(tensors[sorted - 1].name, tensors[sorted].name) < 0)
        sorted++;
    if (sorted >= n)
        return;
    keys = g_new(Key, n);
    spare = g_new(Key, n / 2 + 1);
    for (size_t i = 0; i < n; i++)
        keys[i].at = i;
    sort_from(&(Sort){tensors, spare}, keys, n, 0);
    apply(tensors, keys, n);
}
