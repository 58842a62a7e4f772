/* SPDX-License-Identifier: Apache-2.0
 * Sums by device. The state of a layer lives where the layer does. */
#include "plan/merge.h"

#include <string.h>

#include "plan/homes.h"
#include "plan/memory.h"
#include "plan/piece.h"
#include "plan/place.h"

static bool is_global(const DavitPlan *plan, const DavitSlot *slot)
{
    return slot->layer < 0 || (uint64_t)slot->layer >= plan->n_layers;
}

/* ---- what things take ---- */

static void step_memory(const DavitPlan *plan, const DavitPlanOptions *options,
                        DavitStepMemory *out)
{
    const uint64_t ctx = davit_place_ctx(plan, options);

    *out = (DavitStepMemory){0};
    if (plan->program)
        davit_step_memory(plan, davit_place_chunk(ctx, options), ctx,
                          options->n_threads ? options->n_threads : g_get_num_processors(), out);
}

/* Bytes of the states of each layer of @plan for @ctx tokens, those of no layer last. (owned) */
static uint64_t *state_bytes(const DavitPlan *plan, uint64_t ctx)
{
    const DavitProgram *program = plan->program;
    const uint64_t n_blocks = (ctx + plan->block_tokens - 1) / plan->block_tokens;
    uint64_t *out = g_new0(uint64_t, plan->n_layers + 1);
    g_autofree bool *seen = g_new0(bool, (program ? program->n_states : 0) + 1);

    for (size_t i = 0; program && i < program->n_instrs; i++) {
        const DavitInstr *instr = &program->instrs[i];
        const bool global = instr->layer < 0 || (uint64_t)instr->layer >= plan->n_layers;

        if (instr->state < 0 || seen[instr->state])
            continue;
        seen[instr->state] = true; /* the first op on a state tells whose it is */
        out[global ? plan->n_layers : (uint64_t)instr->layer] +=
            program->state_block_bytes[instr->state] * n_blocks;
    }
    return out;
}

static uint64_t constant_bytes(const DavitPlan *plan)
{
    return plan->device_kernels ? plan->device_bytes - plan->private_bytes : plan->constant_bytes;
}

/* ---- filling ---- */

typedef struct Fill {
    const DavitPlan *host;
    DavitPlan *const *devices;
    size_t n, at; /* device that is being filled; at == n: the host */
    uint64_t room;
    uint64_t *states; /* (owned) of devices[at] */
    const uint64_t *budgets;
    const DavitPlanOptions *options;
    const char **homes;
} Fill;

/* Begin with device @at, or the next that has room for anything at all. */
static void open_device(Fill *f)
{
    for (; f->at < f->n; f->at++) {
        const DavitPlan *plan = f->devices[f->at];
        DavitStepMemory m;
        uint64_t fixed;

        step_memory(plan, f->options, &m);
        fixed = constant_bytes(plan) + m.value_bytes + m.scratch_bytes + m.array_bytes;
        if (fixed > f->budgets[f->at])
            continue;
        f->room = f->budgets[f->at] - fixed;
        g_free(f->states);
        f->states = state_bytes(plan, davit_place_ctx(plan, f->options));
        return;
    }
}

/* Is @slot of the piece: layer @layer, or with -1 the embedding and what is tied to it, with -2
 * the other globals? */
static bool in_piece(const DavitPlan *plan, const DavitSlot *slot, int64_t layer)
{
    const bool embed = (slot->row.flags & DAVIT_SLOT_EMBED) || slot->tied_to >= 0;

    if (layer >= 0)
        return slot->layer == layer;
    return is_global(plan, slot) && embed == (layer == -1);
}

static uint64_t piece_bytes(const Fill *f, const DavitPlan *plan, int64_t layer)
{
    uint64_t sum = layer == -1 ? 0 : f->states[layer >= 0 ? (uint64_t)layer : plan->n_layers];

    for (size_t i = 0; i < plan->n_slots; i++) {
        if (in_piece(plan, &plan->slots[i], layer))
            sum += plan->slots[i].private_bytes;
    }
    return sum;
}

static void take_piece(Fill *f, int64_t layer)
{
    const char *home;

    while (f->at < f->n) {
        const uint64_t need = piece_bytes(f, f->devices[f->at], layer);

        if (need <= f->room) {
            f->room -= need;
            break;
        }
        f->at++;
        open_device(f);
    }
    home = davit_intern(f->at < f->n ? f->devices[f->at]->device : f->host->device);
    for (size_t i = 0; i < f->host->n_slots; i++) {
        if (in_piece(f->host, &f->host->slots[i], layer))
            f->homes[i] = home;
    }
}

const char **davit_fill_devices(const DavitPlan *host, DavitPlan *const *devices, size_t n,
                                const uint64_t *budgets, const DavitPlanOptions *options)
{
    Fill f = {.host = host,
              .devices = devices,
              .n = n,
              .budgets = budgets,
              .options = options,
              .homes = g_new0(const char *, host->n_slots + 1)};

    open_device(&f);
    take_piece(&f, -1);
    for (uint64_t i = 0; i < host->n_layers; i++)
        take_piece(&f, (int64_t)i);
    take_piece(&f, -2);
    g_free(f.states);
    return f.homes;
}

/* ---- merging ---- */

static const DavitPlan *plan_of(DavitPlan *const *plans, size_t n, const char *home)
{
    const char *device = davit_home_device(home);

    for (size_t i = 1; device && i < n; i++) {
        if (strcmp(plans[i]->device, device) == 0)
            return plans[i];
    }
    return plans[0];
}

static void take_slot(DavitSlot *to, const DavitSlot *from)
{
    to->access = from->access;
    to->way = from->way;
    to->stored_layout = from->stored_layout;
    to->layout = from->layout;
    to->pack = from->pack;
    to->pack_self = from->pack_self;
    to->borrowed_bytes = from->borrowed_bytes;
    to->private_bytes = from->private_bytes;
    to->read_bytes = from->read_bytes;
    to->made_bytes = from->made_bytes;
    to->reason = from->reason;
}

/* The plan whose device does @instr: where its weight is, its layer, or the op before it was. */
static const DavitPlan *plan_of_call(DavitPlan *const *plans, size_t n, const DavitInstr *instr,
                                     const char *const *layers, const DavitPlan *before)
{
    const DavitPlan *base = plans[0];

    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t slot =
            instr->weight[w] < 0 ? -1 : base->program->weights[instr->weight[w]].slot;

        if (slot >= 0)
            return plan_of(plans, n, base->slots[slot].home);
    }
    return instr->layer < 0 || (uint64_t)instr->layer >= base->n_layers
               ? before
               : plan_of(plans, n, layers[instr->layer]);
}

static void take_calls(DavitPlan *const *plans, size_t n)
{
    DavitProgram *program = plans[0]->program;
    g_autofree const char **layers = davit_homes_of_layers(plans[0]);
    const DavitPlan *from = plans[0];

    for (size_t i = 0; program && i < program->n_instrs; i++) {
        DavitInstr *instr = &program->instrs[i];

        from = plan_of_call(plans, n, instr, layers, from);
        /* one model, one builder: the programs are alike, op by op */
        if (from == plans[0] || from->program->n_instrs != program->n_instrs)
            continue;
        instr->entry = from->program->instrs[i].entry;
        instr->kernels = from->program->instrs[i].kernels;
        instr->self = from->program->instrs[i].self;
    }
}

void davit_plan_merge(DavitPlan *const *plans, size_t n)
{
    DavitPlan *base = plans[0];
    uint64_t host_private = 0, host_constants = base->constant_bytes;

    base->borrowed_bytes = base->read_bytes = base->made_bytes = 0;
    base->device_bytes = base->upload_bytes = 0;
    for (size_t i = 0; i < base->n_slots; i++) {
        DavitSlot *slot = &base->slots[i];
        const DavitPlan *from = plan_of(plans, n, slot->home);

        if (from != base)
            take_slot(slot, &from->slots[i]);
        base->borrowed_bytes += slot->borrowed_bytes;
        base->read_bytes += slot->read_bytes;
        base->made_bytes += slot->made_bytes;
        if (from != base) {
            base->device_bytes += slot->private_bytes;
            base->upload_bytes += slot->made_bytes;
        } else {
            host_private += slot->private_bytes;
        }
    }
    for (size_t i = 1; i < n; i++) {
        base->device_bytes += constant_bytes(plans[i]);
        base->upload_bytes += plans[i]->constant_bytes;
    }
    take_calls(plans, n);
    base->private_bytes = host_private;
    base->constant_bytes = host_constants;
    davit_plan_window(base, base->window_limit, 0);
}

/* ---- what each takes ---- */

static DavitPlaced *placed_of(DavitPlan *plan, const char *device)
{
    const DavitPlaced fresh = {.device = davit_intern(device)};

    for (guint i = 0; i < plan->placed->len; i++) {
        DavitPlaced *p = &g_array_index(plan->placed, DavitPlaced, i);

        if (strcmp(p->device, device) == 0)
            return p;
    }
    g_array_append_val(plan->placed, fresh);
    return &g_array_index(plan->placed, DavitPlaced, plan->placed->len - 1);
}

static const char *home_of(const DavitPlan *plan, const DavitSlot *slot)
{
    if (slot->way == DAVIT_WAY_DEFER)
        return "disk";
    return slot->home && !davit_home_is_disk(slot->home) ? slot->home : plan->device;
}

static void add_weights(DavitPlan *plan)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];
        DavitPlaced *p;

        if (!slot->present || slot->tied_to >= 0)
            continue;
        p = placed_of(plan, home_of(plan, slot));
        p->n_slots++;
        p->weight_bytes += slot->borrowed_bytes + slot->private_bytes;
    }
}

static void add_states(DavitPlan *plan, DavitPlan *const *plans, size_t n)
{
    g_autofree const char **homes = davit_homes_of_layers(plan);

    for (size_t i = 0; i < n; i++) {
        g_autofree uint64_t *states = state_bytes(plans[i], plan->ctx);

        for (uint64_t layer = 0; layer <= plan->n_layers; layer++) {
            if (plan_of(plans, n, homes[layer]) == plans[i] && states[layer])
                placed_of(plan, plans[i]->device)->state_bytes += states[layer];
        }
    }
}

void davit_placed_fill(DavitPlan *plan, DavitPlan *const *plans, size_t n,
                       const DavitPlanOptions *options)
{
    if (plan->placed)
        g_array_unref(plan->placed);
    plan->placed = g_array_new(FALSE, TRUE, sizeof(DavitPlaced));
    plan->ctx = davit_place_ctx(plan, options);
    for (size_t i = 0; i < n; i++) {
        DavitStepMemory m;
        DavitPlaced *p = placed_of(plan, plans[i]->device);

        step_memory(plans[i], options, &m);
        p->step_bytes = m.value_bytes + m.scratch_bytes + m.array_bytes;
        p->weight_bytes = constant_bytes(plans[i]);
    }
    add_weights(plan);
    add_states(plan, plans, n);
    placed_of(plan, plan->device)->budget_bytes = plan->device_kernels ? 0 : plan->memory_bytes;
}

uint64_t davit_placed_beside(DavitPlan *plan)
{
    const DavitPlaced *p = placed_of(plan, plan->device);

    return p->state_bytes + p->step_bytes;
}

/* First slot of @device that is past @room. */
static const char *first_past(const DavitPlan *plan, const char *device, uint64_t room,
                              DavitReport *report)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!slot->present || slot->tied_to >= 0 || strcmp(home_of(plan, slot), device) != 0)
            continue;
        sum += slot->private_bytes + slot->borrowed_bytes;
        if (sum > room)
            return slot->layer < 0 ? slot->id
                                   : davit_report_text(report, "%s of layer %" PRId64, slot->id,
                                                       slot->layer);
    }
    return "keys and values";
}

void davit_placed_budget(DavitPlan *plan, const char *device, uint64_t budget,
                         DavitReport *report)
{
    DavitPlaced *p;
    uint64_t need, beside;

    if (budget == 0 || strcmp(device, "cpu") == 0)
        return;
    p = placed_of(plan, device);
    p->budget_bytes = budget;
    beside = p->state_bytes + p->step_bytes;
    need = p->weight_bytes + beside;
    if (need <= budget)
        return;
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_MEMORY_SHORT,
            .status = DAVIT_E_LIMIT,
            .stage = "plan",
            .subject = first_past(plan, device, budget > beside ? budget - beside : 0, report),
            .expected = davit_report_text(report,
                                          "at least %" PRIu64 " bytes: weights %" PRIu64
                                          ", keys, values and scratch for %" PRIu64
                                          " tokens %" PRIu64,
                                          need, p->weight_bytes, plan->ctx, beside),
            .found = davit_report_text(report, "--memory %s=%" PRIu64, device, budget),
            .message = davit_report_text(report,
                                         "what goes to %s does not fit its budget: %" PRIu64
                                         " bytes short; this is the first slot without room",
                                         device, need - budget),
            .hint = "give more, map less to it, or use a smaller --ctx"});
}
