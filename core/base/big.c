/* SPDX-License-Identifier: Apache-2.0 */
#include "base/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20) /* x86-64, and most others */

void *davit_big_zeroed(size_t n, size_t size)
{
    char *p = calloc(n ? n : 1, size);
    size_t skip;

    /* calloc knows that fresh pages are zero; huge ones begin at the next boundary */
    if (!p || n * size < 2 * HUGE_PAGE)
        return p;
    skip = -(uintptr_t)p % HUGE_PAGE;
    madvise(p + skip, n * size - skip, MADV_HUGEPAGE);
    return p;
}

void davit_big_free(void *p)
{
    free(p);
}
