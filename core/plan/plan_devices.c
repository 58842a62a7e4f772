/* SPDX-License-Identifier: Apache-2.0
 * Devices of a plan and sums by device. */
#include "plan/plan_devices.h"

#include <string.h>

#include "plan/piece.h"

#define CPU_ALIGN 64u

void davit_plan_host_add(DavitPlan *plan)
{
    const DavitPlanDevice host = {.name = davit_intern("cpu"), .align = CPU_ALIGN};

    davit_plan_device_add(plan, &host);
    plan->device = host.name;
}

uint32_t davit_plan_device_add(DavitPlan *plan, const DavitPlanDevice *device)
{
    plan->devices = g_renew(DavitPlanDevice, plan->devices, plan->n_devices + 1);
    plan->devices[plan->n_devices] = *device;
    return plan->n_devices++;
}

void davit_plan_settle(DavitPlan *plan)
{
    const uint32_t device = plan->n_devices - 1;
    DavitProgram *program = plan->program;

    for (size_t s = 0; s < plan->n_slots; s++)
        plan->slots[s].device = device;
    if (!program)
        return;
    for (size_t i = 0; i < program->n_instrs; i++)
        program->instrs[i].device = device;
    for (size_t v = 0; v < program->n_values; v++)
        program->values[v].device = device;
    for (size_t w = 0; w < program->n_weights; w++)
        program->weights[w].device = device;
    for (size_t s = 0; s < program->n_states; s++)
        program->state_device[s] = device;
}

/* ---- sums ---- */

static void add_slots(DavitPlan *plan)
{
    plan->borrowed_bytes = plan->private_bytes = plan->read_bytes = plan->made_bytes = 0;
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];
        DavitPlanDevice *device = &plan->devices[slot->device];

        plan->borrowed_bytes += slot->borrowed_bytes;
        plan->private_bytes += slot->private_bytes;
        plan->read_bytes += slot->read_bytes;
        plan->made_bytes += slot->made_bytes;
        device->private_bytes += slot->private_bytes;
        if (slot->device != DAVIT_ON_HOST)
            device->upload_bytes += slot->made_bytes;
    }
}

/* The forward made its tables in host memory; a device gets its own. */
static void add_constants(DavitPlan *plan)
{
    plan->constant_bytes = 0;
    for (size_t w = 0; plan->program && w < plan->program->n_weights; w++) {
        const DavitWeightRef *ref = &plan->program->weights[w];
        const uint64_t n = ref->constant ? ref->n_rows * ref->n_cols * sizeof(float) : 0;
        DavitPlanDevice *device = &plan->devices[ref->device];

        plan->constant_bytes += ref->is_copy ? 0 : n;
        if (ref->device == DAVIT_ON_HOST)
            continue;
        device->constant_bytes += (n + device->align - 1) / device->align * device->align;
        device->upload_bytes += n;
    }
    plan->devices[DAVIT_ON_HOST].constant_bytes = plan->constant_bytes;
}

void davit_plan_sums(DavitPlan *plan, uint64_t window_limit, unsigned n_lanes)
{
    for (uint32_t d = 0; d < plan->n_devices; d++)
        plan->devices[d].private_bytes = plan->devices[d].constant_bytes =
            plan->devices[d].upload_bytes = 0;
    add_slots(plan);
    add_constants(plan);
    plan->device_bytes = plan->upload_bytes = 0;
    for (uint32_t d = DAVIT_ON_HOST + 1; d < plan->n_devices; d++) {
        plan->device_bytes += plan->devices[d].private_bytes + plan->devices[d].constant_bytes;
        plan->upload_bytes += plan->devices[d].upload_bytes;
    }
    davit_plan_window(plan, window_limit, n_lanes);
}
