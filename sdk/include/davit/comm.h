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

typedef struct davit_comm_iface {
    uint64_t struct_size; /* DAVIT_END(davit_comm_iface, barrier) */
    uint64_t (*rank)(void *self);
    uint64_t (*size)(void *self);
    /* In place over @n float32; @queue NULL = host memory, returns when done. */
    int32_t (*all_reduce)(void *self, float *data, uint64_t n, void *queue);
    int32_t (*all_gather)(void *self, const void *mine, void *all, uint64_t n_bytes, void *queue);
    int32_t (*broadcast)(void *self, void *data, uint64_t n_bytes, uint64_t root, void *queue);
    int32_t (*barrier)(void *self);
} davit_comm_iface;

#ifdef __cplusplus
}
#endif
#endif
