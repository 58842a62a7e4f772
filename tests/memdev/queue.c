/* SPDX-License-Identifier: Apache-2.0
 * The device's queue: a thread that runs jobs in order, each a moment after it could have. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memdev.h"

#define DELAY_NS 50000 /* before a job runs: the host is ahead by then */

typedef struct job {
    struct job *next;
    const davit_call *call; /* NULL = copy */
    void *dst;
    const void *src;
    uint64_t n_bytes;
} job;

struct memdev_queue {
    memdev_device *dev;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *head, **tail;
    int is_busy, is_closing;
};

/* Either end of a copy may be the host's. */
static void *any_pointer(const memdev_device *dev, const void *ptr)
{
    if (memdev_owns(dev, ptr))
        return memdev_translate(dev, ptr);
    return (void *)(uintptr_t)ptr;
}

static int lost(memdev_device *dev, int how)
{
    pthread_mutex_lock(&dev->lock);
    dev->lost = dev->lost ? dev->lost : how;
    how = dev->lost;
    pthread_mutex_unlock(&dev->lock);
    return how;
}

static int run_job(const memdev_queue *q, const job *j)
{
    nanosleep(&(struct timespec){.tv_nsec = DELAY_NS}, NULL);
    if (j->call)
        return memdev_call_run(q->dev, j->call);
    memcpy(any_pointer(q->dev, j->dst), any_pointer(q->dev, j->src), j->n_bytes);
    return 0;
}

static void *queue_main(void *arg)
{
    memdev_queue *q = arg;

    pthread_mutex_lock(&q->lock);
    while (q->head || !q->is_closing) {
        job *j = q->head;

        if (!j) {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        q->head = j->next;
        if (!q->head)
            q->tail = &q->head;
        q->is_busy = 1;
        pthread_mutex_unlock(&q->lock);
        if (!lost(q->dev, 0))
            lost(q->dev, run_job(q, j));
        free(j);
        pthread_mutex_lock(&q->lock);
        q->is_busy = 0;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

memdev_queue *memdev_queue_new(memdev_device *dev)
{
    memdev_queue *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    q->dev = dev;
    q->tail = &q->head;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    if (pthread_create(&q->thread, NULL, queue_main, q) == 0)
        return q;
    free(q);
    return NULL;
}

void memdev_queue_free(memdev_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->is_closing = 1;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    free(q);
}

static int enqueue(memdev_queue *q, const job *from)
{
    job *j = malloc(sizeof *j);

    if (!j)
        return -1;
    *j = *from;
    pthread_mutex_lock(&q->lock);
    *q->tail = j;
    q->tail = &j->next;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return 0;
}

int memdev_queue_copy(memdev_queue *q, void *dst, const void *src, uint64_t n_bytes)
{
    return enqueue(q, &(job){.dst = dst, .src = src, .n_bytes = n_bytes});
}

int memdev_queue_call(memdev_queue *q, const davit_call *call)
{
    return enqueue(q, &(job){.call = call});
}

int memdev_queue_wait(memdev_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->head || q->is_busy)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
    return lost(q->dev, 0);
}

memdev_device *memdev_queue_device(const memdev_queue *q)
{
    return q->dev;
}
