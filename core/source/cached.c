/* SPDX-License-Identifier: Apache-2.0
 * mincore on a mapping that is never touched. */
#include "source/cached.h"

#include <sys/mman.h>
#include <unistd.h>

#define PROBES       512u
#define RANGE_PROBES 16u

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

bool davit_source_range_cached(const DavitSource *source, uint64_t off, uint64_t n_bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t first = off / page, n_pages = (off + n_bytes + page - 1) / page - first;
    const uint64_t n = MIN(n_pages, RANGE_PROBES);
    bool all = true;
    if (davit_source_fd(source) < 0 || n == 0)
        return false;
    uint8_t *map = mmap(NULL, n_pages * page, PROT_READ, MAP_SHARED, davit_source_fd(source),
                        (off_t)(first * page));
    if (map == MAP_FAILED)
        return false;
    for (uint64_t i = 0; all && i < n; i++) {
        unsigned char resident = 0;
        /* the last page too: a read that stopped early left it out */
        const uint64_t at = n == 1 ? 0 : (n_pages - 1) * i / (n - 1);
        all = mincore(map + at * page, page, &resident) == 0 && (resident & 1);
    }
    munmap(map, n_pages * page);
    return all;
}
