/* SPDX-License-Identifier: Apache-2.0
 * Kind "comm", interface 0.1: ranks of one model on one or several machines.
 *
 * The interface is declared so that the kind is known; no part of this version asks for it.
 * Sums are made in ascending rank order whatever the transport. A dead peer is a sticky status.
 */
#ifndef DAVIT_COMM_H
#define DAVIT_COMM_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective calls: every rank makes them in the same order with the same sizes. @queue NULL =
 * host memory, and the call returns when it is done; else device memory, in the order of that
 * queue. Memory is the caller's, (borrowed) until then. All return DAVIT_OK, or DAVIT_E_IO when a
 * peer is gone, from then on always. All slots are required. [one thread at a time] */
typedef struct davit_comm_iface {
    uint64_t struct_size; /* DAVIT_END(davit_comm_iface, barrier) */
    uint64_t (*rank)(void *self); /* < size. [any thread] */
    uint64_t (*size)(void *self); /* ranks, >= 1. [any thread] */
    /* data[n] float32 becomes the sum over all ranks, in place. */
    int32_t (*all_reduce)(void *self, float *data, uint64_t n, void *queue);
    /* @mine: @n_bytes; @all: size * n_bytes, in rank order; @mine may be its place in @all. */
    int32_t (*all_gather)(void *self, const void *mine, void *all, uint64_t n_bytes, void *queue);
    /* @n_bytes of rank @root (< size) to all. */
    int32_t (*broadcast)(void *self, void *data, uint64_t n_bytes, uint64_t root, void *queue);
    int32_t (*barrier)(void *self); /* returns when every rank has called */
} davit_comm_iface;

#ifdef __cplusplus
}
#endif
#endif
