/* SPDX-License-Identifier: Apache-2.0
 * memdev, a kernels plugin for tests that plays devices: their memory is unreadable for the
 * host, their queues run later on threads of their own, their alignment is 256. Ops are the SDK's
 * reference. Never installed. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <davit/help/records.h>

#include "entries.h"
#include "memdev.h"

#define FILL_BYTES ((uint64_t)1 << 20) /* of an allocation that start as NaN */

/* ---- life ---- */

static void memdev_destroy(void *self)
{
    memdev *m = self;

    for (uint64_t i = 0; m && i < m->n_devices; i++) {
        memdev_device *dev = &m->device[i];

        if (dev->device)
            munmap(dev->device, MEMDEV_BYTES);
        if (dev->shadow)
            munmap(dev->shadow, MEMDEV_BYTES);
        pthread_mutex_destroy(&dev->lock);
    }
    free(m);
}

static uint8_t *reserve(int protection)
{
    void *p = mmap(NULL, MEMDEV_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static int open_device(memdev_device *dev)
{
    pthread_mutex_init(&dev->lock, NULL);
    dev->device = reserve(PROT_NONE);
    dev->shadow = reserve(PROT_READ | PROT_WRITE);
    dev->next = MEMDEV_ALIGN; /* aligned to 256 and to no more */
    dev->fails_at = UINT64_MAX;
    return dev->device && dev->shadow ? 0 : -1;
}

/* MEMDEV_FAIL=1:30: device 1 is lost with its call 30. */
static void be_told(memdev *m)
{
    const char *fail = getenv("MEMDEV_FAIL");
    char *colon = NULL;
    const uint64_t index = fail ? strtoull(fail, &colon, 10) : MEMDEV_MAX;

    if (index < m->n_devices && *colon == ':')
        m->device[index].fails_at = strtoull(colon + 1, NULL, 10);
}

static int32_t memdev_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                             const davit_sink *sink)
{
    const char *n = getenv("MEMDEV_DEVICES");
    memdev *m = calloc(1, sizeof *m);
    int bad = !m;
    (void)bundle_ctx;
    (void)in;

    if (m) {
        m->n_devices = n ? strtoull(n, NULL, 10) : 1;
        m->n_devices = m->n_devices > MEMDEV_MAX ? MEMDEV_MAX : m->n_devices;
        for (uint64_t i = 0; i < m->n_devices; i++)
            bad |= open_device(&m->device[i]) != 0;
        be_told(m);
    }
    if (!bad) {
        *out_self = m;
        return DAVIT_OK;
    }
    memdev_destroy(m);
    return davit_say(sink, DAVIT_E_LIMIT,
                     &(davit_refusal){.code = DAVIT_R_MEMORY_SHORT,
                                      .message = "no address space for the device"});
}

/* ---- device ---- */

static uint64_t memdev_count(void *self)
{
    return ((const memdev *)self)->n_devices;
}

static int32_t memdev_info(void *self, uint64_t index, davit_device_info *out,
                           const davit_sink *sink)
{
    memdev *m = self;
    memdev_device *dev;

    if (index >= m->n_devices)
        return davit_say(sink, DAVIT_E_USAGE,
                         &(davit_refusal){.code = DAVIT_R_DEVICE_MISSING,
                                          .message = "there are not so many memdevs"});
    dev = &m->device[index];
    pthread_mutex_lock(&dev->lock);
    out->name = "memdev";
    out->total_bytes = MEMDEV_BYTES;
    out->free_bytes = MEMDEV_BYTES - dev->used;
    out->align = MEMDEV_ALIGN;
    out->queue_type = NULL;
    pthread_mutex_unlock(&dev->lock);
    return DAVIT_OK;
}

/* Allocations are kept as {size} in the shadow, one unit before the first byte. */
static void *memdev_alloc(void *self, uint64_t index, uint64_t n_bytes)
{
    memdev *m = self;
    memdev_device *dev;
    uint64_t at, size;

    if (index >= m->n_devices || n_bytes > MEMDEV_BYTES)
        return NULL;
    dev = &m->device[index];
    size = (n_bytes + MEMDEV_ALIGN - 1) / MEMDEV_ALIGN * MEMDEV_ALIGN;
    pthread_mutex_lock(&dev->lock);
    if (size + 2 * MEMDEV_ALIGN > MEMDEV_BYTES - dev->next) {
        pthread_mutex_unlock(&dev->lock);
        return NULL;
    }
    at = dev->next + MEMDEV_ALIGN;
    dev->next = at + size;
    dev->used += size;
    if (dev->used > dev->peak)
        dev->peak = dev->used;
    pthread_mutex_unlock(&dev->lock);
    memcpy(dev->shadow + at - MEMDEV_ALIGN, &size, sizeof size);
    memset(dev->shadow + at, 0xff, size < FILL_BYTES ? size : FILL_BYTES);
    return dev->device + at;
}

static void memdev_free(void *self, uint64_t index, void *ptr)
{
    memdev_device *dev = &((memdev *)self)->device[index];
    uint64_t size;

    if (!ptr)
        return;
    memcpy(&size, (uint8_t *)memdev_translate(dev, ptr) - MEMDEV_ALIGN, sizeof size);
    pthread_mutex_lock(&dev->lock);
    dev->used -= size;
    pthread_mutex_unlock(&dev->lock);
}

static int32_t memdev_queue_open(void *self, uint64_t index, void **out_queue,
                                 const davit_sink *sink)
{
    memdev *m = self;
    memdev_queue *queue = index < m->n_devices ? memdev_queue_new(&m->device[index]) : NULL;

    if (!queue)
        return davit_say(sink, DAVIT_E_LIMIT,
                         &(davit_refusal){.code = DAVIT_R_DEVICE_MISSING,
                                          .message = "no queue could be opened"});
    *out_queue = queue;
    return DAVIT_OK;
}

static void memdev_queue_close(void *self, void *queue)
{
    (void)self;
    memdev_queue_free(queue);
}

static int32_t memdev_upload(void *self, void *queue, void *device, const void *host,
                             uint64_t n_bytes)
{
    memdev_device *dev = memdev_queue_device(queue);
    (void)self;

    if (!memdev_owns(dev, device) || memdev_queue_copy(queue, device, host, n_bytes))
        return DAVIT_E_IO;
    pthread_mutex_lock(&dev->lock);
    dev->n_up += n_bytes;
    pthread_mutex_unlock(&dev->lock);
    return DAVIT_OK;
}

static int32_t memdev_download(void *self, void *queue, void *host, const void *device,
                               uint64_t n_bytes)
{
    memdev_device *dev = memdev_queue_device(queue);
    (void)self;

    if (!memdev_owns(dev, device) || memdev_queue_copy(queue, host, device, n_bytes))
        return DAVIT_E_IO;
    pthread_mutex_lock(&dev->lock);
    dev->n_down += n_bytes;
    pthread_mutex_unlock(&dev->lock);
    return DAVIT_OK;
}

static int32_t memdev_wait(void *self, void *queue, const davit_sink *sink)
{
    const int lost = memdev_queue_wait(queue);
    (void)self;

    if (!lost)
        return DAVIT_OK;
    return davit_say(sink, DAVIT_E_IO,
                     &(davit_refusal){.code = DAVIT_R_DEVICE_LOST,
                                      .subject = "memdev",
                                      .found = lost == MEMDEV_LOST_TOLD ? "its last call"
                                                                        : "a foreign pointer",
                                      .message = lost == MEMDEV_LOST_TOLD
                                                     ? "the device was told to fail"
                                                     : "a call held a pointer of the host"});
}

static const davit_device_iface device_iface = {
    .struct_size = DAVIT_END(davit_device_iface, wait),
    .count = memdev_count,
    .info = memdev_info,
    .alloc = memdev_alloc,
    .free = memdev_free,
    .queue_open = memdev_queue_open,
    .queue_close = memdev_queue_close,
    .upload = memdev_upload,
    .download = memdev_download,
    .wait = memdev_wait,
};

/* ---- ops ---- */

static int32_t check(void *self, const davit_call *call, const davit_sink *sink)
{
    (void)self;
    return davit_ref_check(call, sink);
}

static void size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                 uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)n_tokens;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes = davit_ref_work_bytes(call);
    out->n_phases = 1;
    out->n_tasks[0] = 1;
}

static void run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                uint32_t worker, void *queue)
{
    (void)phase;
    (void)first;
    (void)count;
    (void)worker;
    memdev_queue_call(queue, call);
}

#define ENTRY(sym, op_, layouts_, attr_end)                                               \
    static const davit_kernel_entry sym = {                                               \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = op_,                                                                        \
        .name = #sym " memdev",                                                           \
        .layouts = layouts_,                                                              \
        .attr_size = attr_end,                                                            \
        .score = 100,                                                                     \
        .check = check,                                                                   \
        .size = size,                                                                     \
        .run = run,                                                                       \
    };
MEMDEV_OPS(ENTRY)

#define ADDRESS(sym, op_, layouts_, attr_end) &sym,
static const davit_kernel_entry *const entries[] = {MEMDEV_OPS(ADDRESS) NULL};

static uint64_t state_size(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                           const davit_sink *sink)
{
    const uint64_t n = davit_ref_state_size(spec, block_tokens, sink);
    (void)self;
    return (n + MEMDEV_ALIGN - 1) / MEMDEV_ALIGN * MEMDEV_ALIGN;
}

static const davit_kernels_iface memdev_iface = {
    .struct_size = DAVIT_END(davit_kernels_iface, state_size),
    .device = "memdev",
    .entries = entries,
    .device_iface = &device_iface,
    .state_size = state_size,
};

DAVIT_COMPONENT(memdev_kernels, DAVIT_KIND_KERNELS, "test.davit.memdev", "device=memdev",
                DAVIT_RUN, 0, .flags = DAVIT_COMPONENT_CONCURRENT, .create = memdev_create,
                .destroy = memdev_destroy, .iface = &memdev_iface);

DAVIT_PLUGIN("test.davit.memdev", "A device for tests", "davit", "0.1.0", "Apache-2.0",
             &memdev_kernels);
