/* SPDX-License-Identifier: Apache-2.0
 * From half a huge page on, memory that begins on one: a calloc of as much lies anywhere, so that
 * what is smaller than two huge pages would have none, and each small page costs a fault of some
 * microseconds on a virtual machine. Sanitizers see what was asked for. */
#include "base/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/sanitizer.h"

#define HUGE_PAGE ((size_t)2 << 20) /* x86-64, and most others */
#define HEAD      64u               /* in front of the items: what is to be freed */

static void *with_head(char *at, void *whole)
{
    *(void **)(void *)at = whole;
    return at + HEAD;
}

void *davit_big_zeroed(size_t n, size_t size)
{
    size_t n_bytes, skip;
    char *p;

    if (__builtin_mul_overflow(n, size, &n_bytes) || n_bytes > SIZE_MAX / 2)
        return NULL;
    n_bytes += HEAD;
    if (n_bytes < HUGE_PAGE / 2 || DAVIT_SANITIZED) {
        p = calloc(1, n_bytes);
        return p ? with_head(p, p) : NULL;
    }
    /* calloc knows that fresh pages are zero; those in front and behind are never made */
    n_bytes = (n_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    p = calloc(1, n_bytes + HUGE_PAGE);
    if (!p)
        return NULL;
    skip = -(uintptr_t)p % HUGE_PAGE;
    madvise(p + skip, n_bytes, MADV_HUGEPAGE); /* a hint */
    return with_head(p + skip, p);
}

void davit_big_free(void *p)
{
    if (p)
        free(*(void **)(void *)((char *)p - HEAD));
}
