/* SPDX-License-Identifier: Apache-2.0
 * refcpu, a kernels plugin for tests: the SDK's reference on the host. With it and memdev a model
 * is computed by the same operations wherever its layers are, so that results are equal to the
 * bit or something went wrong on the way. Scored above every other. Never installed. */
#include <string.h>

#include <davit/help/records.h>

#include "entries.h"

#define ALIGN 64

static int32_t check(void *self, const davit_call *call, const davit_sink *sink)
{
    (void)self;
    return davit_ref_check(call, sink);
}

/* Of attn and moe_ffn, which have a row of output for each token and need memory for it. */
static void size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                 uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)n_rows;
    (void)ctx;
    out->worker_bytes = davit_ref_work_bytes(call);
    out->n_phases = 1;
    out->n_tasks[0] = n_tokens;
}

static void run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                uint32_t worker, void *queue)
{
    uint8_t *work = call->worker_scratch;
    (void)phase;
    (void)queue;

    davit_ref_run(call, first, count, work ? work + worker * call->worker_bytes : NULL);
}

#define ENTRY(sym, op_, layouts_, attr_end)                                               \
    static const davit_kernel_entry sym = {                                               \
        .struct_size = DAVIT_END(davit_kernel_entry, run),                                \
        .op = op_,                                                                        \
        .name = #sym " refcpu",                                                           \
        .layouts = layouts_,                                                              \
        .attr_size = attr_end,                                                            \
        .score = 1000,                                                                    \
        .check = check,                                                                   \
        .size = SIZE_OF_##sym,                                                            \
        .run = run,                                                                       \
    };

#define SIZE_OF_embed       NULL
#define SIZE_OF_linear      NULL
#define SIZE_OF_rmsnorm     NULL
#define SIZE_OF_layernorm   NULL
#define SIZE_OF_add         NULL
#define SIZE_OF_scale       NULL
#define SIZE_OF_softcap     NULL
#define SIZE_OF_act         NULL
#define SIZE_OF_glu         NULL
#define SIZE_OF_rope_angles NULL
#define SIZE_OF_rope        NULL
#define SIZE_OF_kv_append   NULL
#define SIZE_OF_attn        size
#define SIZE_OF_moe_route   NULL
#define SIZE_OF_moe_ffn     size
#define SIZE_OF_gather_rows NULL

MEMDEV_OPS(ENTRY)

#define ADDRESS(sym, op_, layouts_, attr_end) &sym,
static const davit_kernel_entry *const entries[] = {MEMDEV_OPS(ADDRESS) NULL};

static uint64_t state_size(void *self, const davit_state_spec *spec, uint64_t block_tokens,
                           const davit_sink *sink)
{
    const uint64_t n = davit_ref_state_size(spec, block_tokens, sink);
    (void)self;
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static const davit_kernels_iface refcpu_iface = {
    .struct_size = DAVIT_END(davit_kernels_iface, state_size),
    .device = "cpu",
    .entries = entries,
    .state_size = state_size,
};

DAVIT_COMPONENT(refcpu_kernels, DAVIT_KIND_KERNELS, "test.davit.refcpu", "device=cpu", DAVIT_RUN,
                0, .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &refcpu_iface);

DAVIT_PLUGIN("test.davit.refcpu", "The reference on the host, for tests", "davit", "0.1.0",
             "Apache-2.0", &refcpu_kernels);
