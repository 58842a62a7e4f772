/* SPDX-License-Identifier: Apache-2.0
 * mincore on a mapping that is never touched. */
#include "source/cached.h"

#include <sys/mman.h>
#include <unistd.h>

#define PROBES 512u

void davit_source_cached(const DavitSource *source, uint64_t *probed, uint64_t *cached)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t n_pages = (davit_source_size(source) + page - 1) / page;
    const uint64_t n = MIN(n_pages, PROBES);
    if (davit_source_fd(source) < 0 || n == 0)
        return;
    uint8_t *map = mmap(NULL, n_pages * page, PROT_READ, MAP_SHARED, davit_source_fd(source), 0);
    if (map == MAP_FAILED)
        return;
    for (uint64_t i = 0; i < n; i++) {
        unsigned char resident = 0;
        if (mincore(map + n_pages * i / n * page, page, &resident))
            continue;
        ++*probed;
        *cached += resident & 1;
    }
    munmap(map, n_pages * page);
}
