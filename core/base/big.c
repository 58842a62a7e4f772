/* SPDX-License-Identifier: Apache-2.0
 * From half a huge page on, mappings that begin on one: a calloc of as much lies anywhere, so that
 * what is smaller than two huge pages would have none, and each small page costs a fault of some
 * microseconds on a virtual machine. Sanitizers see calloc only. */
#include "base/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/sanitizer.h"

#define HUGE_PAGE ((size_t)2 << 20) /* x86-64, and most others */
#define HEAD      64u               /* in front of the items: bytes that are mapped, 0 = calloc's */

static void *with_head(char *p, size_t n_mapped)
{
    *(size_t *)(void *)p = n_mapped;
    return p + HEAD;
}

/* @n_bytes on huge pages, NULL = they cannot be had. */
static char *map_huge(size_t n_bytes)
{
    const size_t n = (n_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *p = mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (p == MAP_FAILED)
        return NULL;
    before = -(uintptr_t)p % HUGE_PAGE;
    if (before)
        munmap(p, before);
    munmap(p + before + n, HUGE_PAGE - before);
    madvise(p + before, n, MADV_HUGEPAGE); /* a hint */
    return with_head(p + before, n);
}

void *davit_big_zeroed(size_t n, size_t size)
{
    size_t n_bytes;
    char *p;

    if (__builtin_mul_overflow(n, size, &n_bytes) || n_bytes > SIZE_MAX / 2)
        return NULL;
    n_bytes += HEAD;
    if (n_bytes >= HUGE_PAGE / 2 && !DAVIT_SANITIZED)
        return map_huge(n_bytes);
    p = calloc(1, n_bytes);
    return p ? with_head(p, 0) : NULL;
}

void davit_big_free(void *p)
{
    char *head = p ? (char *)p - HEAD : NULL;
    const size_t n_mapped = head ? *(size_t *)(void *)head : 0;

    if (n_mapped)
        munmap(head, n_mapped);
    else
        free(head);
}
