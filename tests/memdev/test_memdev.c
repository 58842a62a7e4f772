/* SPDX-License-Identifier: Apache-2.0
 * The device keeps its promises: memory out of reach, order, rounding of addresses, loss. */
#include <dlfcn.h>
#include <string.h>

#include <glib.h>

#include <davit/help/ref.h>

typedef struct Device {
    const davit_component *component;
    const davit_kernels_iface *kernels;
    const davit_device_iface *iface;
    void *self;
    void *queue;
} Device;

static void device_open(Device *d)
{
    void *so = dlopen(MEMDEV_DIR "/davit-memdev.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const davit_hello hello = {.struct_size = DAVIT_END(davit_hello, host_version)};
    davit_entry_v1_fn entry = NULL;
    void *symbol;

    g_assert_nonnull(so);
    symbol = dlsym(so, "davit_plugin_entry_v1");
    memcpy(&entry, &symbol, sizeof entry);
    d->component = entry(&hello, NULL)->components[0];
    d->kernels = d->component->iface;
    d->iface = d->kernels->device_iface;
    g_assert_cmpint(d->component->create(NULL, NULL, &d->self, NULL), ==, DAVIT_OK);
    g_assert_cmpint(d->iface->queue_open(d->self, 0, &d->queue, NULL), ==, DAVIT_OK);
}

static void device_close(Device *d)
{
    d->iface->queue_close(d->self, d->queue);
    d->component->destroy(d->self);
}

static uint64_t free_bytes(const Device *d)
{
    davit_device_info info = {.struct_size = DAVIT_END(davit_device_info, queue_type)};

    g_assert_cmpint(d->iface->info(d->self, 0, &info, NULL), ==, DAVIT_OK);
    g_assert_cmpuint(info.align, ==, 256);
    return info.free_bytes;
}

static void host_cannot_read_device_memory(void)
{
    if (g_test_subprocess()) {
        Device d;
        void *mem;

        device_open(&d);
        mem = d.iface->alloc(d.self, 0, 64);
        g_assert_nonnull(mem);
        if (*(volatile uint8_t *)mem == 1) /* dies here */
            g_print("read a one\n");
        exit(0);
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
}

static void copies_go_round_in_order(void)
{
    uint8_t out[1000], in[3][1000];
    const uint64_t before = 4;
    Device d;
    uint8_t *mem;

    device_open(&d);
    const uint64_t unused = free_bytes(&d);
    mem = d.iface->alloc(d.self, 0, sizeof out);
    g_assert_cmpuint((uintptr_t)mem % 256, ==, 0);
    g_assert_cmpuint(free_bytes(&d), ==, unused - 1024);
    for (uint64_t i = 0; i < 3; i++) {
        memset(in[i], (int)(i + before), sizeof in[i]);
        g_assert_cmpint(d.iface->upload(d.self, d.queue, mem, in[i], sizeof in[i]), ==, 0);
    }
    g_assert_cmpint(d.iface->download(d.self, d.queue, out, mem, sizeof out), ==, 0);
    g_assert_cmpint(d.iface->wait(d.self, d.queue, NULL), ==, DAVIT_OK);
    g_assert_cmpmem(out, sizeof out, in[2], sizeof in[2]);
    d.iface->free(d.self, 0, mem);
    g_assert_cmpuint(free_bytes(&d), ==, unused);
    device_close(&d);
}

static const davit_kernel_entry *entry_of(const Device *d, const char *op)
{
    for (size_t i = 0; d->kernels->entries[i]; i++)
        if (strcmp(d->kernels->entries[i]->op, op) == 0)
            return d->kernels->entries[i];
    return NULL;
}

/* scale of three values at @data, in place. */
static davit_call scale_call(void *data, const davit_scale_attr *attr, const davit_batch *batch)
{
    davit_call call = {.struct_size = DAVIT_END(davit_call, weight),
                       .op = DAVIT_OP_SCALE,
                       .attr = attr,
                       .batch = batch,
                       .n_in = 1,
                       .n_out = 1};

    call.in[0] = call.out[0] = (davit_value){data, 1, 3, "f32/1"};
    return call;
}

static void ops_run_on_device_memory(void)
{
    const davit_scale_attr attr = {DAVIT_END(davit_scale_attr, reserved), 2.0f, 0};
    const davit_batch batch = {.struct_size = DAVIT_END(davit_batch, tree_mask), .n_tokens = 1};
    const float in[3] = {1.0f, -2.0f, 3.0f};
    float out[3] = {0};
    davit_call call;
    Device d;
    void *mem;

    device_open(&d);
    mem = d.iface->alloc(d.self, 0, sizeof in);
    call = scale_call(mem, &attr, &batch);
    d.iface->upload(d.self, d.queue, mem, in, sizeof in);
    entry_of(&d, DAVIT_OP_SCALE)->run(&call, 0, 0, 1, 0, d.queue);
    entry_of(&d, DAVIT_OP_SCALE)->run(&call, 0, 0, 1, 0, d.queue);
    d.iface->download(d.self, d.queue, out, mem, sizeof out);
    g_assert_cmpint(d.iface->wait(d.self, d.queue, NULL), ==, DAVIT_OK);
    for (int i = 0; i < 3; i++)
        g_assert_cmpfloat(out[i], ==, 4.0f * in[i]);
    device_close(&d);
}

static void host_pointer_loses_the_device(void)
{
    const davit_scale_attr attr = {DAVIT_END(davit_scale_attr, reserved), 2.0f, 0};
    const davit_batch batch = {.struct_size = DAVIT_END(davit_batch, tree_mask), .n_tokens = 1};
    float mine[3] = {1.0f, 2.0f, 3.0f};
    const davit_call call = scale_call(mine, &attr, &batch);
    Device d;

    device_open(&d);
    entry_of(&d, DAVIT_OP_SCALE)->run(&call, 0, 0, 1, 0, d.queue);
    g_assert_cmpint(d.iface->wait(d.self, d.queue, NULL), ==, DAVIT_E_IO);
    g_assert_cmpint(d.iface->wait(d.self, d.queue, NULL), ==, DAVIT_E_IO); /* sticky */
    g_assert_cmpfloat(mine[1], ==, 2.0f);
    g_assert_cmpint(d.iface->upload(d.self, d.queue, mine, mine, 4), ==, DAVIT_E_IO);
    device_close(&d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memdev/out_of_reach", host_cannot_read_device_memory);
    g_test_add_func("/memdev/copies", copies_go_round_in_order);
    g_test_add_func("/memdev/ops", ops_run_on_device_memory);
    g_test_add_func("/memdev/lost", host_pointer_loses_the_device);
    return g_test_run();
}
