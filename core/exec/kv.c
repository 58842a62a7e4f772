/* SPDX-License-Identifier: Apache-2.0
 * State memory: for every state of the program one run of blocks. On the host the run is a
 * reservation whose pages come when a block is first written. */
#include "exec/kv.h"

#include "exec/arena.h"

DavitKv *davit_kv_new(const DavitPlan *plan, uint64_t n_blocks, DavitReport *report)
{
    const DavitProgram *program = plan->program;
    g_autoptr(DavitKv) kv = g_new0(DavitKv, 1);
    kv->plan = plan;
    kv->n_blocks = n_blocks;
    kv->states = g_new0(davit_state, program->n_states);
    kv->arenas = g_new0(DavitArena, program->n_states);
    if (plan->device_kernels) {
        const davit_kernels_iface *kernels;
        if (davit_component_use(plan->device_kernels, (const void **)&kernels, &kv->device_self,
                                report))
            return NULL;
        kv->device = kernels->device_iface;
    }
    for (size_t s = 0; s < program->n_states; s++) {
        uint64_t n_bytes;
        const uint64_t block = program->state_block_bytes[s];
        if (__builtin_mul_overflow(block, n_blocks, &n_bytes))
            n_bytes = UINT64_MAX; /* the reservation refuses it with the number */
        kv->states[s] = (davit_state){.block_bytes = block, .spec = &program->states[s]};
        kv->bytes_per_block += block;
        if (kv->device) {
            kv->states[s].base = kv->device->alloc(kv->device_self, 0, n_bytes);
        } else {
            if (davit_arena_init(&kv->arenas[s], n_bytes, false, "KV cache", report))
                return NULL;
            kv->states[s].base = kv->arenas[s].base;
        }
        if (!kv->states[s].base) {
            davit_report_add(report, &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                                     .status = DAVIT_E_LIMIT,
                                                     .stage = "run",
                                                     .subject = "KV cache",
                                                     .message = "memory for the context could "
                                                                "not be allocated",
                                                     .hint = "use a smaller --ctx"});
            return NULL;
        }
    }
    return g_steal_pointer(&kv);
}

void davit_kv_free(DavitKv *kv)
{
    if (!kv)
        return;
    for (size_t s = 0; s < kv->plan->program->n_states; s++) {
        davit_arena_clear(&kv->arenas[s]);
        if (kv->device && kv->states[s].base)
            kv->device->free(kv->device_self, 0, kv->states[s].base);
    }
    g_free(kv->states);
    g_free(kv->arenas);
    g_free(kv);
}

uint64_t davit_kv_bytes_per_block(const DavitKv *kv)
{
    return kv->bytes_per_block;
}
