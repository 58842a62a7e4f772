/* SPDX-License-Identifier: Apache-2.0
 * A kernel for one op, scale/1. Sound as it is; FAULT (CMakeLists.txt) breaks one rule. */
#include <davit/help/records.h>
#include <davit/help/ref.h>
#include <davit/kernels.h>

enum { NONE, NO_RECORD, DIVIDES, SHRINKS, WRONG_ROW, SPLIT, PAST_ROW, CLAIMS };

static int32_t scale_check(void *self, const davit_call *call, const davit_sink *sink)
{
    (void)self;
    if (FAULT == NO_RECORD && call->in[0].width != call->out[0].width)
        return DAVIT_E_UNSUPPORTED;
    if (FAULT == DIVIDES && call->in[0].width % call->out[0].width)
        return DAVIT_E_UNSUPPORTED;
    return davit_ref_check(call, sink);
}

static void scale_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                       uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)call;
    (void)n_rows;
    (void)ctx;
    out->n_phases = 1;
    out->n_tasks[0] = n_tokens;
    out->scratch_bytes = FAULT == SHRINKS ? 4096 / n_tokens : 0;
}

static void scale_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                      uint32_t worker, void *queue)
{
    const davit_scale_attr *a = call->attr;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const uint64_t D = call->out[0].width;

    (void)phase;
    (void)worker;
    (void)queue;
    for (uint64_t t = first; t < first + count; t++)
        for (uint64_t i = 0; i < D + (FAULT == PAST_ROW && t + 1 == call->out[0].n_rows); i++)
            y[t * D + i] = (a->scale == 0 ? 1 : a->scale) *
                           x[(FAULT == WRONG_ROW && t > 0 ? t - 1 : t) * D + i] *
                           (FAULT == SPLIT && count == 1 ? 1.0001f : 1);
}

static const davit_kernel_entry entry = {.struct_size = DAVIT_END(davit_kernel_entry, run),
                                         .op = DAVIT_OP_SCALE,
                                         .name = "scale example",
                                         .attr_size = DAVIT_END(davit_scale_attr, reserved),
                                         .score = 10,
                                         .check = scale_check,
                                         .size = scale_size,
                                         .run = scale_run};
static const davit_kernel_entry *const entries[] = {&entry, NULL};
static const davit_kernels_iface iface = {.struct_size = DAVIT_END(davit_kernels_iface, state_size),
                                          .device = "cpu",
                                          .entries = entries};
DAVIT_COMPONENT(kernels, DAVIT_KIND_KERNELS, "org.example.check_kernels." NAME,
                "device=cpu;op=" OP_NAME, DAVIT_RUN, 50, .iface = &iface);
DAVIT_PLUGIN("org.example.bundle.check_kernels." NAME, NAME, "Example", "1.0.0", "MIT", &kernels);
