/* SPDX-License-Identifier: Apache-2.0
 * Ranks of one machine over shared memory (README.md): the door and the collectives.
 *
 * Every round of a collective is: put mine into my buffer, barrier, read the others'. Rounds take
 * the two sets of buffers in turn, so that one barrier is enough: whoever writes a set again has
 * passed the barrier after it, which nobody enters before it has read. */
#include "shm.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fcntl.h>

#include <davit/help/records.h>

static uint8_t *buffer_of(const shm_group *g, uint32_t set, uint64_t rank)
{
    return g->buffers + ((uint64_t)(set & 1) * g->size + rank) * SHM_BUFFER;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* All ranks add in the same order, each for itself: equal bits without a second round. */
static void sum_round(const shm_group *g, uint32_t set, float *data, uint64_t n)
{
    memcpy(data, buffer_of(g, set, 0), n * sizeof *data);
    for (uint64_t r = 1; r < g->size; r++) {
        const float *other = (const float *)(const void *)buffer_of(g, set, r);
        for (uint64_t i = 0; i < n; i++)
            data[i] += other[i];
    }
}

static int32_t shm_all_reduce(void *group, float *data, uint64_t n, void *queue)
{
    shm_group *g = group;
    (void)queue;

    while (n) {
        const uint64_t some = least(n, SHM_BUFFER / sizeof *data);
        const uint32_t set = g->n_barriers;
        memcpy(buffer_of(g, set, g->rank), data, some * sizeof *data);
        if (shm_barrier(g))
            return DAVIT_E_IO;
        sum_round(g, set, data, some);
        data += some;
        n -= some;
    }
    return g->why ? DAVIT_E_IO : DAVIT_OK;
}

static int32_t shm_all_gather(void *group, const void *mine, void *all, uint64_t n_bytes,
                              void *queue)
{
    shm_group *g = group;
    (void)queue;

    for (uint64_t at = 0; at < n_bytes; at += SHM_BUFFER) {
        const uint64_t some = least(n_bytes - at, SHM_BUFFER);
        const uint32_t set = g->n_barriers;
        memcpy(buffer_of(g, set, g->rank), (const uint8_t *)mine + at, some);
        if (shm_barrier(g))
            return DAVIT_E_IO;
        for (uint64_t r = 0; r < g->size; r++)
            memcpy((uint8_t *)all + r * n_bytes + at, buffer_of(g, set, r), some);
    }
    return g->why ? DAVIT_E_IO : DAVIT_OK;
}

static int32_t shm_broadcast(void *group, void *data, uint64_t n_bytes, uint64_t root, void *queue)
{
    shm_group *g = group;
    (void)queue;

    for (uint64_t at = 0; at < n_bytes; at += SHM_BUFFER) {
        const uint64_t some = least(n_bytes - at, SHM_BUFFER);
        const uint32_t set = g->n_barriers;
        if (g->rank == root)
            memcpy(buffer_of(g, set, root), (uint8_t *)data + at, some);
        if (shm_barrier(g))
            return DAVIT_E_IO;
        if (g->rank != root)
            memcpy((uint8_t *)data + at, buffer_of(g, set, root), some);
    }
    return g->why ? DAVIT_E_IO : DAVIT_OK;
}

/* All of it is there before anybody touches it: a full file system is an answer, not a signal. */
static int32_t shm_window(void *group, uint64_t n_bytes, void **out)
{
    shm_group *g = group;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t n = (n_bytes + page - 1) / page * page, off = g->n_file;
    uint8_t mine, all[DAVIT_COMM_MAX_RANKS];
    void *base = MAP_FAILED;

    mine = n >= n_bytes && n && g->n_windows < sizeof g->window / sizeof *g->window &&
           n < (uint64_t)INT64_MAX - off;
    if (mine && g->rank == 0)
        mine = posix_fallocate(g->fd, (off_t)off, (off_t)n) == 0;
    if (shm_barrier(g))
        return DAVIT_E_IO;
    if (mine)
        base = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, (off_t)off);
    mine = base != MAP_FAILED;
    if (shm_all_gather(g, &mine, all, 1, NULL))
        mine = 0;
    for (uint64_t r = 0; mine && r < g->size; r++)
        mine = all[r];
    if (!mine) {
        if (base != MAP_FAILED)
            munmap(base, n);
        return DAVIT_E_IO;
    }
    g->n_file = off + n;
    g->window[g->n_windows].base = base;
    g->window[g->n_windows++].n_bytes = n;
    *out = base;
    return DAVIT_OK;
}

static int32_t shm_status(void *group, const davit_sink *sink)
{
    const shm_group *g = group;
    char found[32];

    if (!g->why)
        return DAVIT_OK;
    snprintf(found, sizeof found, "rank %d", (int)g->gone);
    return davit_say(sink, DAVIT_E_IO,
                     &(davit_refusal){.code = DAVIT_R_RANK_LOST,
                                      .subject = "ranks",
                                      .found = g->gone >= 0 ? found : NULL,
                                      .message = g->why,
                                      .hint = g->gone >= 0 ? "what that rank said tells why"
                                                           : NULL});
}

static const davit_comm_iface shm_comm = {
    .struct_size = DAVIT_END(davit_comm_iface, window),
    .new_address = shm_new_address,
    .open = shm_open_group,
    .close = shm_close_group,
    .status = shm_status,
    .all_reduce = shm_all_reduce,
    .all_gather = shm_all_gather,
    .broadcast = shm_broadcast,
    .barrier = shm_barrier,
    .window = shm_window,
};

DAVIT_COMPONENT(shm, DAVIT_KIND_COMM, "org.davit.comm.shm", "transport=shm", DAVIT_RUN, 50,
                .iface = &shm_comm);
DAVIT_PLUGIN("org.davit.comm.shm", "Ranks over shared memory", "davit", "0.1.0", "Apache-2.0",
             &shm);
