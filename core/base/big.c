/* SPDX-License-Identifier: Apache-2.0 */
#include "base/big.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20) /* x86-64, and most others */

void *davit_big_alloc(size_t n, size_t size)
{
    void *p;
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    if (bytes < HUGE_PAGE)
        return malloc(bytes ? bytes : 1);
    if (posix_memalign(&p, HUGE_PAGE, bytes) != 0)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE); /* a hint: failure does not matter */
    return p;
}

void davit_big_free(void *p)
{
    free(p);
}
