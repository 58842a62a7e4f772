/* SPDX-License-Identifier: Apache-2.0
 * Inside of the plugin memdev: memory, queue, calls.
 *
 * Device addresses lie in a range that nobody may touch (PROT_NONE for ever). The device has
 * the bytes in a second range of the same size and translates every pointer of a call, so that
 * host code which follows a device pointer dies at once, at any time and on any thread.
 */
#ifndef MEMDEV_H
#define MEMDEV_H

#include <pthread.h>

#include <davit/help/ref.h>

#define MEMDEV_ALIGN 256
#define MEMDEV_BYTES ((uint64_t)4 << 30) /* address space; pages come when they are touched */

typedef struct memdev {
    uint8_t *device; /* what the host gets: PROT_NONE */
    uint8_t *shadow; /* what the device works on */
    pthread_mutex_t lock;
    uint64_t next;   /* offset of the next allocation; addresses are never given twice */
    uint64_t used;   /* bytes allocated now */
    uint64_t peak;   /* most that were allocated at one time */
    uint64_t n_up;   /* bytes that uploads were asked for */
} memdev;

/* NULL stays NULL; a pointer outside the device's range stays as it is and is caught by
 * memdev_owns. */
void *memdev_translate(const memdev *dev, const void *ptr);
int memdev_owns(const memdev *dev, const void *ptr);

/* ---- queue.c: one thread per queue, in order, later than enqueued ---- */

typedef struct memdev_queue memdev_queue;

memdev_queue *memdev_queue_new(memdev *dev);
void memdev_queue_free(memdev_queue *queue); /* runs what is left */
/* Copies read their source when they run, not when they are enqueued. 0, or -1 when memory
 * is gone. */
int memdev_queue_copy(memdev_queue *queue, void *dst, const void *src, uint64_t n_bytes);
int memdev_queue_call(memdev_queue *queue, const davit_call *call);
/* 0, or -1: a call held a pointer that is not the device's. Sticky. */
int memdev_queue_wait(memdev_queue *queue);

/* ---- call.c ---- */

/* Run all rows of @call on the shadow memory. -1: a pointer is not the device's. */
int memdev_call_run(const memdev *dev, const davit_call *call);

#endif
