/* SPDX-License-Identifier: Apache-2.0
 * Page-backed memory of a size fixed at creation: reserved once, zeroed.
 */
#ifndef DAVIT_EXEC_ARENA_H
#define DAVIT_EXEC_ARENA_H

#include "base/report.h"

typedef struct DavitArena {
    uint8_t *base;    /* page-aligned; NULL when n_bytes is 0 */
    uint64_t n_bytes;
} DavitArena;

/* Reserve @n_bytes (0 is fine). @huge: ask for huge pages, for memory that will be used in
 * whole (a huge page costs 2 MiB at its first touch). @what names the memory in the record.
 * Errors: DAVIT_E_LIMIT with DAVIT_R_MEMORY_SHORT. */
int32_t davit_arena_init(DavitArena *arena, uint64_t n_bytes, bool huge, const char *what,
                         DavitReport *report);
void davit_arena_clear(DavitArena *arena);

/* @n rounded up to a multiple of @align (a power of two). */
static inline uint64_t davit_align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

#endif
