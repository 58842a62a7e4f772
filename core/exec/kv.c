/* SPDX-License-Identifier: Apache-2.0
 * State memory: for every state of the program one run of blocks. On the host the run is a
 * reservation whose pages come when a block is first written. */
#include "exec/kv.h"

/* Memory of state @s, of @n_bytes, where its device has it. */
static int32_t take_state(DavitKv *kv, size_t s, uint64_t n_bytes, DavitReport *report)
{
    const uint32_t device = kv->plan->program->state_device[s];
    void *memory = NULL;

    if (device != DAVIT_ON_HOST) {
        if (!davit_exec_alloc(&kv->devices[device], n_bytes, "keys and values", "run", &memory,
                              report))
            return DAVIT_E_LIMIT;
        kv->states[s].base = memory;
        return DAVIT_OK;
    }
    if (davit_arena_init(&kv->arenas[s], n_bytes, false, "KV cache", report))
        return DAVIT_E_LIMIT;
    kv->states[s].base = kv->arenas[s].base;
    return DAVIT_OK;
}

DavitKv *davit_kv_new(const DavitPlan *plan, uint64_t n_blocks, DavitReport *report)
{
    const DavitProgram *program = plan->program;
    g_autoptr(DavitKv) kv = g_new0(DavitKv, 1);
    kv->plan = plan;
    kv->n_blocks = n_blocks;
    kv->states = g_new0(davit_state, program->n_states);
    kv->arenas = g_new0(DavitArena, program->n_states);
    kv->devices = davit_exec_devices_open(plan, false, "run", report);
    if (!kv->devices)
        return NULL;
    for (size_t s = 0; s < program->n_states; s++) {
        uint64_t n_bytes;
        const uint64_t block = program->state_block_bytes[s];
        if (__builtin_mul_overflow(block, n_blocks, &n_bytes))
            n_bytes = UINT64_MAX; /* refused with the number */
        kv->states[s] = (davit_state){.block_bytes = block, .spec = &program->states[s]};
        kv->bytes_per_block += block;
        if (take_state(kv, s, n_bytes, report))
            return NULL;
    }
    return g_steal_pointer(&kv);
}

void davit_kv_free(DavitKv *kv)
{
    if (!kv)
        return;
    for (size_t s = 0; s < kv->plan->program->n_states; s++) {
        const uint32_t device = kv->plan->program->state_device[s];
        davit_arena_clear(&kv->arenas[s]);
        if (kv->devices && device != DAVIT_ON_HOST)
            davit_exec_free(&kv->devices[device], kv->states[s].base);
    }
    davit_exec_devices_close(kv->plan, kv->devices);
    g_free(kv->states);
    g_free(kv->arenas);
    g_free(kv);
}

uint64_t davit_kv_bytes_per_block(const DavitKv *kv)
{
    return kv->bytes_per_block;
}
