/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/collective.h"

#include <string.h>

#include "plan/ranks.h"

static void reduce_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    (void)self;
    (void)call;
    (void)n_tokens;
    (void)n_rows;
    (void)ctx;
    out->n_phases = 1;
    out->n_tasks[0] = 1;
}

static void reduce_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                       uint32_t worker, void *queue)
{
    (void)phase;
    (void)first;
    (void)count;
    (void)worker;
    (void)queue;
    davit_comm_all_reduce(call->self, call->out[0].data, call->out[0].n_rows * call->out[0].width);
}

/* Shares of all ranks, rank by rank, and before them mine: rows of a short share are padded. */
static void gather_size(void *self, const davit_call *call, uint64_t n_tokens, uint64_t n_rows,
                        uint64_t ctx, davit_work *out)
{
    const DavitGatherAttr *attr = call->attr;

    reduce_size(self, call, n_tokens, n_rows, ctx, out);
    out->scratch_bytes =
        (davit_comm_size(call->self) + 1) * n_rows * attr->share * sizeof(float);
}

static void gather_run(const davit_call *call, uint32_t phase, uint64_t first, uint64_t count,
                       uint32_t worker, void *queue)
{
    const DavitGatherAttr *attr = call->attr;
    const uint64_t rows = call->out[0].n_rows, width = call->out[0].width;
    const uint64_t own = call->in[0].width, share = attr->share;
    const float *x = call->in[0].data;
    float *mine = call->scratch, *all = mine + rows * share, *y = call->out[0].data;
    (void)phase;
    (void)first;
    (void)count;
    (void)worker;
    (void)queue;

    for (uint64_t r = 0; r < rows; r++) {
        memcpy(mine + r * share, x + r * own, own * sizeof *x);
        memset(mine + r * share + own, 0, (share - own) * sizeof *x);
    }
    if (davit_comm_all_gather(call->self, mine, all, rows * share * sizeof *x))
        return;
    for (uint64_t k = 0; k < davit_comm_size(call->self); k++) {
        const uint64_t at = k * share, n = MIN(share, width - at);

        for (uint64_t r = 0; r < rows; r++)
            memcpy(y + r * width + at, all + (k * rows + r) * share, n * sizeof *x);
    }
}

static const davit_kernel_entry reduce = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_ALL_REDUCE,
    .name = "all_reduce",
    .size = reduce_size,
    .run = reduce_run,
};
static const davit_kernel_entry gather = {
    .struct_size = DAVIT_END(davit_kernel_entry, run),
    .op = DAVIT_OP_ALL_GATHER,
    .name = "all_gather",
    .attr_size = sizeof(DavitGatherAttr),
    .size = gather_size,
    .run = gather_run,
};

const davit_kernel_entry *davit_collective_entry(const char *op)
{
    return strcmp(op, reduce.op) == 0 ? &reduce : strcmp(op, gather.op) == 0 ? &gather : NULL;
}
