/* SPDX-License-Identifier: Apache-2.0
 * Kind "comm", interface 0.2: the ranks of one model as a group.
 *
 * A group is made once per model. Its calls are collective: every rank makes the same ones in
 * the same order, with equal sizes. Sums are made in ascending rank order whatever the transport
 * and the size, so that all ranks get the same bits. A rank that is gone is a sticky status: the
 * call that notices it returns negative in bounded time, and so does every later one.
 *
 * @queue is a queue of the device whose memory the data lies in; NULL = host memory, and the call
 * returns when it is done.
 */
#ifndef DAVIT_COMM_H
#define DAVIT_COMM_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_COMM_MAX_RANKS 64u
#define DAVIT_COMM_ADDRESS   256u /* bytes of an address, NUL included */

typedef struct davit_comm_open_in {
    uint64_t struct_size; /* DAVIT_END(davit_comm_open_in, ctx) */
    const char *address;  /* (borrowed) where the ranks meet, without the "transport:" in front */
    uint64_t rank;        /* < size */
    uint64_t size;        /* 1..DAVIT_COMM_MAX_RANKS */
    uint64_t timeout_ms;  /* how long to wait for the others to come */
    /* Asked now and then by a rank that waits, here and in every later call of the group; 1 = give
     * up. NULL = never. [the waiting thread] */
    int32_t (*cancelled)(void *ctx);
    void *ctx; /* (borrowed) of cancelled, until close */
} davit_comm_open_in;

typedef struct davit_comm_iface {
    uint64_t struct_size; /* DAVIT_END(davit_comm_iface, window) */

    /* A new address for @size ranks that are this process and children that it starts afterwards,
     * NUL-terminated. Nobody else can meet there, and nothing stays behind when they end. NULL =
     * this transport has none. [any thread] */
    int32_t (*new_address)(void *self, uint64_t size, char out[DAVIT_COMM_ADDRESS],
                           const davit_sink *sink);

    /* Meet the others: returns when all are there. Errors: DAVIT_E_USAGE (address, rank or size
     * impossible, or the rank's place is taken), DAVIT_E_IO (time is up, cancelled, another rank
     * is gone). Required. [any thread] */
    int32_t (*open)(void *self, const davit_comm_open_in *in, void **out_group,
                    const davit_sink *sink);
    /* Leave. The others notice at their next call. NULL is a no-op. Required. */
    void (*close)(void *group);

    /* The sticky status: DAVIT_OK, or negative with a record that says who is gone. Required.
     * [any thread] */
    int32_t (*status)(void *group, const davit_sink *sink);

    /* Collective, one at a time per group, on any thread. Memory is the caller's, (borrowed) until
     * the call is done. Returns DAVIT_OK, or the sticky status without a record. */

    /* In place over @n float32. Required. */
    int32_t (*all_reduce)(void *group, float *data, uint64_t n, void *queue);
    /* @n_bytes of each rank, in rank order, into @all [size * n_bytes]; they may not overlap.
     * Required. */
    int32_t (*all_gather)(void *group, const void *mine, void *all, uint64_t n_bytes, void *queue);
    /* @n_bytes at @data of rank @root to all. Required. */
    int32_t (*broadcast)(void *group, void *data, uint64_t n_bytes, uint64_t root, void *queue);
    int32_t (*barrier)(void *group); /* returns when every rank has called. Required */

    /* @n_bytes of host memory that all ranks see, zeroed, until close; a barrier lies before every
     * use by another. NULL = this transport has none (its ranks may be on several machines). */
    int32_t (*window)(void *group, uint64_t n_bytes, void **out);
} davit_comm_iface;

#ifdef __cplusplus
}
#endif
#endif
