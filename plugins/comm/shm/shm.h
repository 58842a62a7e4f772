/* SPDX-License-Identifier: Apache-2.0
 * One segment of shared memory per group: a head, then two sets of one buffer per rank.
 *
 * Who is alive is told by locks: a rank holds a record lock on the byte of its number as long as
 * it is in the group, and the system lets go of it when the process ends, however it ends. One
 * more byte is locked by whoever enters.
 */
#ifndef DAVIT_SHM_H
#define DAVIT_SHM_H

#include <stdatomic.h>

#include <davit/comm.h>

#define SHM_MAGIC  0x316d6873746976ull
#define SHM_BUFFER ((uint64_t)256 << 10) /* of one rank; longer data goes in rounds */

typedef struct shm_head {
    uint64_t magic;
    uint64_t size;             /* ranks of the group */
    _Atomic uint32_t n_joined; /* a futex: ranks that came */
    _Atomic uint32_t opened;   /* a futex: barriers that opened, modulo 2^32 */
    _Atomic uint32_t arrived;  /* ranks at the barrier under way */
    _Atomic uint32_t gone;     /* rank + 1 that left or died first; sticky */
    _Atomic uint32_t present[DAVIT_COMM_MAX_RANKS];
} shm_head;

typedef struct shm_group {
    uint64_t rank, size;
    int fd;
    int joined; /* this rank's place is taken, by this process */
    char name[DAVIT_COMM_ADDRESS]; /* of the segment while it has one, else "" */
    shm_head *head;
    uint8_t *buffers;  /* [2][size][SHM_BUFFER] */
    uint64_t n_mapped; /* bytes at head */
    uint64_t n_file;   /* bytes of the file, windows included */
    struct {
        void *base;
        uint64_t n_bytes;
    } window[16];
    uint32_t n_windows;
    uint32_t n_barriers; /* that this rank entered */
    uint32_t spin_turns; /* before it sleeps; 0 with more ranks than processors */
    const char *why;     /* (static) the sticky failure, NULL = none */
    int32_t gone;        /* whose, -1 = nobody's */
    int32_t (*cancelled)(void *ctx);
    void *ctx;
} shm_group;

/* place.c */
int32_t shm_new_address(void *self, uint64_t size, char out[DAVIT_COMM_ADDRESS],
                        const davit_sink *sink);
int32_t shm_open_group(void *self, const davit_comm_open_in *in, void **out_group,
                       const davit_sink *sink);
void shm_close_group(void *group);
/* A rank that came and whose lock is free, -1 = none. */
int32_t shm_find_gone(const shm_group *g);

/* wait.c */
int64_t shm_now_ms(void);
/* Wake all that sleep on @word. */
void shm_wake(_Atomic uint32_t *word);
/* Until *@word is not @seen: for a tick at most when nobody changes it. Returns DAVIT_E_IO once
 * the group has failed (g->why). */
int32_t shm_wait_tick(shm_group *g, _Atomic uint32_t *word, uint32_t seen);
int32_t shm_barrier(void *group);
/* The sticky failure of @g. Returns DAVIT_E_IO. */
int32_t shm_fail(shm_group *g, const char *why, int32_t gone);

#endif
