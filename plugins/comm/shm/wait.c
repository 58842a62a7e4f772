/* SPDX-License-Identifier: Apache-2.0
 * Sleeping on a word of the segment, and the barrier. A sleeper wakes every few dozen
 * milliseconds to see whether those it waits for still live. */
#include "shm.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 40

int64_t shm_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void shm_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int32_t shm_fail(shm_group *g, const char *why, int32_t gone)
{
    uint32_t none = 0;

    if (!g->why) {
        g->why = why;
        g->gone = gone;
        /* the others need not wait for a tick, and name the same rank */
        atomic_compare_exchange_strong(&g->head->gone, &none,
                                       (uint32_t)(gone >= 0 ? gone : (int32_t)g->rank) + 1);
        shm_wake(&g->head->opened);
        shm_wake(&g->head->n_joined);
    }
    return DAVIT_E_IO;
}

/* What a waiting rank looks at, cheap things always, locks when a tick has passed. */
static int32_t look_round(shm_group *g, int ticked)
{
    const uint32_t gone = atomic_load(&g->head->gone);

    if (gone)
        return shm_fail(g, "another rank has ended", (int32_t)gone - 1);
    if (!ticked)
        return DAVIT_OK;
    if (g->cancelled && g->cancelled(g->ctx))
        return shm_fail(g, "waiting for the other ranks was given up", -1);
    if (shm_find_gone(g) >= 0)
        return shm_fail(g, "another rank has ended", shm_find_gone(g));
    return DAVIT_OK;
}

int32_t shm_wait_tick(shm_group *g, _Atomic uint32_t *word, uint32_t seen)
{
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000l};
    int ticked;

    for (uint32_t i = 0; i < g->spin_turns; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen)
            return DAVIT_OK;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    ticked = syscall(SYS_futex, word, FUTEX_WAIT, seen, &tick, NULL, 0) && errno == ETIMEDOUT;
    if (atomic_load_explicit(word, memory_order_acquire) != seen)
        return DAVIT_OK; /* what was waited for came, whatever happened since */
    return look_round(g, ticked);
}

int32_t shm_barrier(void *group)
{
    shm_group *g = group;
    shm_head *head = g->head;
    const uint32_t mine = ++g->n_barriers;
    uint32_t opened;

    if (g->why)
        return DAVIT_E_IO;
    if (atomic_fetch_add(&head->arrived, 1) + 1 == g->size) {
        atomic_store(&head->arrived, 0);
        atomic_store(&head->opened, mine);
        shm_wake(&head->opened);
        return DAVIT_OK;
    }
    while ((opened = atomic_load(&head->opened)) != mine) {
        const int32_t status = shm_wait_tick(g, &head->opened, opened);
        if (status)
            return status;
    }
    return DAVIT_OK;
}
