/* SPDX-License-Identifier: Apache-2.0
 * A vendor's kernel set: linear/1 on weights stored as q8_0/1, for processors with AVX2, FMA and
 * F16C. This file is baseline code, since it runs before anybody knows the processor; the
 * instructions are in vendor_avx2.c. */
#include <davit/help/records.h>
#include <davit/help/ref.h>

#include "vendor.h"

#define NEEDED (DAVIT_CPU_AVX2 | DAVIT_CPU_FMA | DAVIT_CPU_F16C)

/* Without its instructions the whole set says no, and why; davit goes on with others. */
static int32_t vendor_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                             const davit_sink *sink)
{
    const davit_cpu_suite *cpu = davit_need_suite(in, "cpu", 1, 0, sink);

    (void)bundle_ctx;
    if (!cpu)
        return DAVIT_E_UNSUPPORTED;
    if ((cpu->features(in->host->ctx) & NEEDED) != NEEDED)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_CPU_UNSUPPORTED,
                                          .flags = DAVIT_REFUSAL_ENVIRONMENT,
                                          .subject = in->component,
                                          .expected = "AVX2, FMA and F16C",
                                          .found = "a processor (or DAVIT_CPU_LEVEL) without",
                                          .message = "these kernels need instructions that are "
                                                     "not here",
                                          .hint = "davit's own kernels are used instead"});
    *out_self = NULL;
    return DAVIT_OK;
}

static void vendor_destroy(void *self)
{
    (void)self;
}

static int32_t vendor_check(void *self, const davit_call *call, const davit_sink *sink)
{
    (void)self;
    return davit_ref_check(call, sink); /* counts, widths, whole blocks */
}

/* A task is a range of output rows of the matrix, for all tokens: weights are read once. */
static void vendor_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)n_tokens;
    (void)n_rows;
    (void)ctx;
    out->scratch_bytes = out->worker_bytes = 0;
    out->n_phases = 1;
    out->n_tasks[0] = (call->weight[0]->n_rows + VENDOR_ROWS - 1) / VENDOR_ROWS;
}

/* y = (x . w) * out_scale + bias, added to what y holds where the call says so. */
static void vendor_row(const davit_call *call, const uint8_t *row, uint64_t n, const float *bias)
{
    const davit_linear_attr *a = call->attr;
    const uint64_t K = call->in[0].width, N = call->out[0].width;
    const float scale = a->out_scale != 0 ? a->out_scale : 1.0f;

    for (uint64_t t = 0; t < call->out[0].n_rows; t++) {
        const float *x = (const float *)call->in[0].data + t * K;
        float *y = (float *)call->out[0].data + t * N + n;
        const float sum = vendor_dot_q8_0(row, x, K / 32) * scale + (bias ? bias[n] : 0.0f);

        *y = a->flags & DAVIT_LINEAR_ADD ? *y + sum : sum;
    }
}

static void vendor_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                       uint32_t worker, void *queue)
{
    const davit_weight *w = call->weight[0];
    const davit_ref_layout *layout = davit_ref_layout_find("q8_0/1");
    const float *bias = davit_ref_weight_vector(call->weight[1]);
    uint64_t end = (first + count) * VENDOR_ROWS;

    (void)phase;
    (void)worker;
    (void)queue;
    end = end < w->n_rows ? end : w->n_rows;
    for (uint64_t n = first * VENDOR_ROWS; n < end; n++)
        vendor_row(call, davit_ref_weight_row(w, layout, 0, n), n, bias);
}

/* 520: above davit's own entries for this layout (350 to 500), so that the example is chosen. A
 * vendor states a figure in the README before going above 500 in earnest. */
static const davit_kernel_entry vendor_linear = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_LINEAR,
    .name = "vendor linear q8_0",
    .layouts = "q8_0/1",
    .cpu = NEEDED,
    .attr_size = DAVIT_END(davit_linear_attr, flags),
    .score = 520,
    .check = vendor_check,
    .size = vendor_size,
    .run = vendor_run,
};

static const davit_kernel_entry *const vendor_entries[] = {&vendor_linear, NULL};
static const davit_kernels_iface vendor_kernels = {
    .struct_size = DAVIT_END(davit_kernels_iface, state_size),
    .device = "cpu",
    .entries = vendor_entries,
};

DAVIT_COMPONENT(vendor, DAVIT_KIND_KERNELS, "org.example.kernels.vendor",
                "op=linear;layout=q8_0;device=cpu", DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .create = vendor_create,
                .destroy = vendor_destroy, .iface = &vendor_kernels);
DAVIT_PLUGIN("org.example.kernels.vendor", "Vendor kernels", "Example", "1.0.0", "Apache-2.0",
             &vendor);
