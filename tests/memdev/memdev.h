/* SPDX-License-Identifier: Apache-2.0
 * Inside of the plugin memdev: memory, queue, calls.
 *
 * Addresses of a device lie in a range of its own that nobody may touch (PROT_NONE for ever). The device has
 * the bytes in a second range of the same size and translates every pointer of a call, so that
 * host code which follows a device pointer dies at once, at any time and on any thread.
 */
#ifndef MEMDEV_H
#define MEMDEV_H

#include <pthread.h>

#include <davit/help/ref.h>

#define MEMDEV_ALIGN 256
#define MEMDEV_MAX   4 /* devices */
#define MEMDEV_BYTES ((uint64_t)4 << 30) /* address space; pages come when they are touched */

/* One of the devices. */
typedef struct memdev_device {
    uint8_t *device; /* what the host gets: PROT_NONE */
    uint8_t *shadow; /* what the device works on */
    pthread_mutex_t lock;
    uint64_t next;   /* offset of the next allocation; addresses are never given twice */
    uint64_t used;   /* bytes allocated now */
    uint64_t peak;   /* most that were allocated at one time */
    uint64_t n_up;   /* bytes that uploads were asked for */
    uint64_t n_down; /* and downloads */
    uint64_t n_calls;
    uint64_t fails_at; /* the call, counted from 0, with which the device is lost */
    int lost;          /* MEMDEV_LOST_, for ever */
} memdev_device;

#define MEMDEV_LOST_POINTER 1 /* a call held a pointer that is not this device's */
#define MEMDEV_LOST_TOLD    2 /* fails_at */

typedef struct memdev {
    memdev_device device[MEMDEV_MAX];
    uint64_t n_devices; /* as MEMDEV_DEVICES of the environment says, else 1 */
} memdev;

/* NULL stays NULL; a pointer outside the device's range stays as it is and is caught by
 * memdev_owns. */
void *memdev_translate(const memdev_device *dev, const void *ptr);
int memdev_owns(const memdev_device *dev, const void *ptr);

/* ---- queue.c: one thread per queue, in order, later than enqueued ---- */

typedef struct memdev_queue memdev_queue;

memdev_queue *memdev_queue_new(memdev_device *dev);
memdev_device *memdev_queue_device(const memdev_queue *queue);
void memdev_queue_free(memdev_queue *queue); /* runs what is left */
/* Copies read their source when they run, not when they are enqueued. 0, or -1 when memory
 * is gone. */
int memdev_queue_copy(memdev_queue *queue, void *dst, const void *src, uint64_t n_bytes);
int memdev_queue_call(memdev_queue *queue, const davit_call *call);
/* 0, or MEMDEV_LOST_: sticky, for all queues of the device. */
int memdev_queue_wait(memdev_queue *queue);

/* ---- call.c ---- */

/* Run all rows of @call on the shadow memory. MEMDEV_LOST_, or 0. */
int memdev_call_run(memdev_device *dev, const davit_call *call);

#endif
