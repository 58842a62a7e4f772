/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/slot_kernels.h"

GPtrArray *davit_slot_kernels(const DavitPlan *plan)
{
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);

    for (size_t s = 0; s < plan->n_slots; s++)
        g_ptr_array_add(all, g_ptr_array_new());
    for (size_t i = 0; plan->program && i < plan->program->n_instrs; i++) {
        const DavitInstr *instr = &plan->program->instrs[i];

        for (uint32_t w = 0; instr->entry && w < instr->n_weights; w++) {
            const int32_t slot =
                instr->weight[w] < 0 ? -1
                                     : plan->program->weights[instr->weight[w]].slot;
            GPtrArray *names = slot < 0 ? NULL : g_ptr_array_index(all, slot);

            if (names &&
                !g_ptr_array_find(names, (gpointer)(uintptr_t)instr->entry->name, NULL))
                g_ptr_array_add(names, (gpointer)(uintptr_t)instr->entry->name);
        }
    }
    return all;
}
