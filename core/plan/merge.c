/* SPDX-License-Identifier: Apache-2.0
 * Sums by device. The state of a layer lives where the layer does. */
#include "plan/merge.h"

#include <string.h>

#include "plan/cross.h"
#include "plan/homes.h"
#include "plan/memory.h"
#include "plan/place.h"
#include "plan/plan_devices.h"

static bool is_global(const DavitPlan *plan, const DavitSlot *slot)
{
    return slot->layer < 0 || (uint64_t)slot->layer >= plan->n_layers;
}

/* ---- what things take ---- */

/* (owned) [plan->n_devices] */
static DavitStepMemory *step_memory(const DavitPlan *plan, const DavitPlanOptions *options)
{
    const uint64_t ctx = davit_place_ctx(plan, options);
    DavitStepMemory *out = g_new0(DavitStepMemory, plan->n_devices);

    if (plan->program)
        davit_step_memory(plan, davit_place_chunk(ctx, options), ctx,
                          options->n_threads ? options->n_threads : g_get_num_processors(), out);
    return out;
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

/* ---- filling ---- */

typedef struct Fill {
    const DavitPlan *host;
    const DavitFill *fill;
    size_t at;        /* device that is being filled; at == n: the host */
    uint64_t room;
    size_t n_pieces;  /* that it has */
    uint64_t *states; /* (owned) of devices[at] */
    const DavitPlanOptions *options;
    const char **homes;
} Fill;

/* Begin with device @at, or the next that has room for anything at all. */
static void open_device(Fill *f)
{
    for (; f->at < f->fill->n; f->at++) {
        const DavitPlan *plan = f->fill->devices[f->at];
        const uint32_t device = plan->n_devices - 1;
        g_autofree DavitStepMemory *m = step_memory(plan, f->options);
        const uint64_t fixed =
            plan->devices[device].constant_bytes + davit_step_memory_sum(&m[device]);

        if (fixed > f->fill->budgets[f->at])
            continue;
        f->room = f->fill->budgets[f->at] - fixed;
        f->n_pieces = 0;
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
    const DavitFill *fill = f->fill;
    const char *home;

    while (f->at < fill->n) {
        const uint64_t need = piece_bytes(f, fill->devices[f->at], layer);

        if (need <= f->room && f->n_pieces < fill->most[f->at]) {
            f->room -= need;
            f->n_pieces++;
            fill->taken[f->at]++;
            break;
        }
        f->at++;
        open_device(f);
    }
    home = f->at < fill->n ? fill->devices[f->at]->device : f->host->device;
    for (size_t i = 0; i < f->host->n_slots; i++) {
        if (in_piece(f->host, &f->host->slots[i], layer))
            f->homes[i] = home;
    }
}

const char **davit_fill_devices(const DavitPlan *host, const DavitFill *fill,
                                const DavitPlanOptions *options)
{
    Fill f = {.host = host,
              .fill = fill,
              .options = options,
              .homes = g_new0(const char *, host->n_slots + 1)};

    memset(fill->taken, 0, fill->n * sizeof *fill->taken);
    open_device(&f);
    take_piece(&f, -1);
    for (uint64_t i = 0; i < host->n_layers; i++)
        take_piece(&f, (int64_t)i);
    take_piece(&f, -2);
    g_free(f.states);
    return f.homes;
}

/* ---- merging ---- */

typedef struct Merge {
    DavitPlan *const *plans; /* [n] plans[0] becomes the plan over all */
    size_t n;
    uint32_t *device_of; /* (owned) [n] device of plans[0] that plans[i] is for */
    uint32_t *plan_of;   /* (owned) [n_devices] which of plans is for it */
} Merge;

/* The devices of all in plans[0]. */
static void take_devices(Merge *m)
{
    DavitPlan *base = m->plans[0];

    for (size_t i = 0; i < m->n; i++) {
        const DavitPlan *plan = m->plans[i];

        m->device_of[i] = plan->n_devices - 1;
        if (i > 0 && m->device_of[i] != DAVIT_ON_HOST)
            m->device_of[i] = davit_plan_device_add(base, &plan->devices[m->device_of[i]]);
        m->plan_of[m->device_of[i]] = (uint32_t)i;
    }
}

/* NULL and what is not among them: plans[0]'s own. */
static uint32_t device_of_home(const Merge *m, const char *home)
{
    const char *device = davit_home_device(home);

    for (size_t i = 0; device && i < m->n; i++) {
        if (m->plans[i]->device == device)
            return m->device_of[i];
    }
    return m->device_of[0];
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

static void take_slots(const Merge *m)
{
    DavitPlan *base = m->plans[0];

    for (size_t i = 0; i < base->n_slots; i++) {
        DavitSlot *slot = &base->slots[i];
        uint32_t from;

        slot->device = device_of_home(m, slot->home);
        from = m->plan_of[slot->device];
        if (from > 0)
            take_slot(slot, &m->plans[from]->slots[i]);
    }
}

/* Each call as its device's plan has it. One model, one builder: the programs are alike, op by op,
 * but for the crossings that plans[0] has by now. */
static void take_calls(const Merge *m)
{
    DavitProgram *program = m->plans[0]->program;
    size_t at = 0;

    for (size_t i = 0; i < program->n_instrs; i++) {
        DavitInstr *instr = &program->instrs[i];
        const uint32_t from = m->plan_of[instr->device];

        if (davit_is_cross_op(instr->op))
            continue;
        if (from > 0) {
            DavitInstr *theirs = &m->plans[from]->program->instrs[at];
            void *attr = instr->attr; /* as long as their entry wants it */

            instr->entry = theirs->entry;
            instr->kernels = theirs->kernels;
            instr->self = theirs->self;
            instr->attr = theirs->attr;
            theirs->attr = attr;
        }
        at++;
    }
    for (size_t s = 0; s < program->n_states; s++) {
        DavitProgram *from = m->plans[m->plan_of[program->state_device[s]]]->program;
        const DavitStatePart ours = program->state_part[s];

        program->states[s] = from->states[s];
        program->state_part[s] = from->state_part[s];
        from->state_part[s] = ours; /* each frees what it has */
        program->state_block_bytes[s] = from->state_block_bytes[s];
    }
}

static int32_t programs_are_alike(const Merge *m, DavitReport *report)
{
    for (size_t i = 1; i < m->n; i++) {
        if (m->plans[i]->program->n_instrs == m->plans[0]->program->n_instrs &&
            m->plans[i]->program->n_states == m->plans[0]->program->n_states)
            continue;
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_NOT_BUILT,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .purposes = DAVIT_RUN,
                                    .stage = "plan",
                                    .who = m->plans[0]->arch->id,
                                    .subject = m->plans[i]->device,
                                    .message = "the forward is another one on this device"});
    }
    return DAVIT_OK;
}

/* (owned) [n_layers + 1] */
static uint32_t *devices_of_layers(const Merge *m)
{
    const DavitPlan *base = m->plans[0];
    g_autofree const char **homes = davit_homes_of_layers(base);
    uint32_t *out = g_new(uint32_t, base->n_layers + 1);

    for (uint64_t i = 0; i <= base->n_layers; i++)
        out[i] = device_of_home(m, homes[i]);
    return out;
}

int32_t davit_plan_merge(DavitPlan *const *plans, size_t n, const DavitPlanOptions *options,
                         DavitReport *report)
{
    g_autofree uint32_t *device_of = g_new0(uint32_t, n + 1);
    g_autofree uint32_t *plan_of = g_new0(uint32_t, n + 2);
    Merge m = {plans, n, device_of, plan_of};
    g_autofree uint32_t *layers = NULL;
    int32_t status;

    take_devices(&m);
    take_slots(&m);
    if (plans[0]->program) {
        status = programs_are_alike(&m, report);
        layers = devices_of_layers(&m);
        if (!status)
            status = davit_cross_devices(plans[0], layers, report);
        if (status)
            return status;
        take_calls(&m);
    }
    davit_plan_sums(plans[0], options->window_bytes, options->n_lanes);
    return DAVIT_OK;
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
    return slot->home && !davit_home_is_disk(slot->home)
               ? slot->home
               : davit_device_of_slot(plan, slot)->name;
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

void davit_placed_fill(DavitPlan *plan, const DavitPlanOptions *options)
{
    g_autofree DavitStepMemory *m = step_memory(plan, options);

    if (plan->placed)
        g_array_unref(plan->placed);
    plan->placed = g_array_new(FALSE, TRUE, sizeof(DavitPlaced));
    plan->ctx = davit_place_ctx(plan, options);
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        DavitPlaced *p = placed_of(plan, plan->devices[d].name);

        p->step_bytes = davit_step_memory_sum(&m[d]);
        p->state_bytes = m[d].state_bytes;
        p->weight_bytes = plan->devices[d].constant_bytes;
    }
    add_weights(plan);
    placed_of(plan, "cpu")->budget_bytes = plan->memory_bytes;
}

uint64_t davit_placed_beside(DavitPlan *plan)
{
    const DavitPlaced *p = placed_of(plan, "cpu");

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

uint64_t davit_placed_need(DavitPlan *plan, const char *device)
{
    const DavitPlaced *p = placed_of(plan, device);

    return p->weight_bytes + p->state_bytes + p->step_bytes;
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
    need = davit_placed_need(plan, device);
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
