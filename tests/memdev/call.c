/* SPDX-License-Identifier: Apache-2.0
 * A call with its pointers translated, run by the SDK's reference. */
#include <stdlib.h>

#include "memdev.h"

void *memdev_translate(const memdev_device *dev, const void *ptr)
{
    if (!memdev_owns(dev, ptr))
        return NULL;
    return dev->shadow + ((const uint8_t *)ptr - dev->device);
}

int memdev_owns(const memdev_device *dev, const void *ptr)
{
    const uint8_t *p = ptr;
    return p >= dev->device && p < dev->device + MEMDEV_BYTES;
}

/* A pointer of the host where one of the device belongs is noted in *bad. */
static void *device_pointer(const memdev_device *dev, const void *ptr, int *bad)
{
    if (ptr && !memdev_owns(dev, ptr))
        *bad = 1;
    return ptr ? memdev_translate(dev, ptr) : NULL;
}

static void translate_batch(const memdev_device *dev, davit_batch *b, int *bad)
{
    const int32_t **arrays[] = {
        &b->token,     &b->position,  &b->seq,    &b->query_start, &b->ctx_len,   &b->block_table,
        &b->state_in,  &b->state_out, &b->rope_n, &b->adapter,     &b->logit_row, &b->state_step,
    };

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = device_pointer(dev, *arrays[i], bad);
    b->tree_mask = device_pointer(dev, b->tree_mask, bad);
}

/* The weight's struct and segments are the host's, its parts the device's. */
static void translate_weight(const memdev_device *dev, const davit_weight *from, davit_weight *to,
                             davit_segment *segments, int *bad)
{
    *to = *from;
    to->segments = segments;
    for (uint64_t i = 0; i < from->n_segments; i++) {
        segments[i] = from->segments[i];
        for (uint64_t p = 0; p < segments[i].n_parts; p++)
            segments[i].part[p] = device_pointer(dev, segments[i].part[p], bad);
    }
}

static uint64_t count_segments(const davit_call *call)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < call->n_weights; i++)
        n += call->weight[i] ? call->weight[i]->n_segments : 0;
    return n;
}

int memdev_call_run(memdev_device *dev, const davit_call *call)
{
    davit_segment *segments = malloc((count_segments(call) + 1) * sizeof *segments);
    davit_segment *next = segments;
    davit_weight weights[DAVIT_MAX_WEIGHTS];
    davit_call c = *call;
    davit_batch batch = *call->batch;
    davit_state state;
    int bad = !segments;

    if (dev->n_calls++ == dev->fails_at) {
        free(segments);
        return MEMDEV_LOST_TOLD;
    }
    for (uint32_t i = 0; i < c.n_in; i++)
        c.in[i].data = device_pointer(dev, c.in[i].data, &bad);
    for (uint32_t i = 0; i < c.n_out; i++)
        c.out[i].data = device_pointer(dev, c.out[i].data, &bad);
    for (uint32_t i = 0; segments && i < c.n_weights; i++) {
        if (!call->weight[i])
            continue;
        translate_weight(dev, call->weight[i], &weights[i], next, &bad);
        next += call->weight[i]->n_segments;
        c.weight[i] = &weights[i];
    }
    translate_batch(dev, &batch, &bad);
    c.batch = &batch;
    if (call->state) {
        state = *call->state;
        state.base = device_pointer(dev, state.base, &bad);
        c.state = &state;
    }
    c.worker_scratch = device_pointer(dev, c.worker_scratch, &bad);
    if (!bad)
        davit_ref_run(&c, 0, davit_ref_rows(&c), c.worker_scratch);
    free(segments);
    return bad ? MEMDEV_LOST_POINTER : 0;
}
