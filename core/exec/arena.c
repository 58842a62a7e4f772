/* SPDX-License-Identifier: Apache-2.0
 * Anonymous mappings. Pages come on first touch, so a reservation costs nothing until used. */
#include "exec/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_FROM (4u << 20) /* smaller arenas do not gain from huge pages */

int32_t davit_arena_init(DavitArena *arena, uint64_t n_bytes, bool huge, const char *what,
                         DavitReport *report)
{
    *arena = (DavitArena){0};
    if (n_bytes == 0)
        return DAVIT_OK;
    void *p = n_bytes > SIZE_MAX / 2
                  ? MAP_FAILED
                  : mmap(NULL, (size_t)n_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                    .status = DAVIT_E_LIMIT,
                                    .stage = "load",
                                    .subject = what,
                                    .expected = davit_report_text(report, "%" G_GUINT64_FORMAT
                                                                  " bytes", n_bytes),
                                    .found = g_strerror(errno),
                                    .message = "memory could not be reserved",
                                    .hint = "use a smaller context, or a smaller model"});
    if (huge && n_bytes >= HUGE_FROM)
        madvise(p, (size_t)n_bytes, MADV_HUGEPAGE); /* a hint: failure does not matter */
    arena->base = p;
    arena->n_bytes = n_bytes;
    return DAVIT_OK;
}

void davit_arena_clear(DavitArena *arena)
{
    if (arena->base)
        munmap(arena->base, (size_t)arena->n_bytes);
    *arena = (DavitArena){0};
}
