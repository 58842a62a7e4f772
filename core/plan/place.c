/* SPDX-License-Identifier: Apache-2.0
 * Sums against a budget. The unit that comes and goes is a layer: its slots are read together
 * and by nobody else. */
#include "plan/place.h"

#include <string.h>

#include "plan/homes.h"
#include "plan/layout.h"
#include "plan/memory.h"

#define DEFAULT_CTX   4096u /* where none is asked for: the keys and values of more are large */
#define DEFAULT_CHUNK 512u  /* as core/engine computes */

bool davit_place_is_auto(const DavitPlanOptions *options)
{
    return options->device_map && strcmp(options->device_map, "auto") == 0;
}

uint64_t davit_place_ctx(const DavitPlan *plan, const DavitPlanOptions *options)
{
    if (options->ctx)
        return options->ctx;
    return plan->max_ctx ? MIN(plan->max_ctx, DEFAULT_CTX) : DEFAULT_CTX;
}

uint64_t davit_place_chunk(uint64_t ctx, const DavitPlanOptions *options)
{
    return MIN(ctx, options->chunk ? options->chunk : DEFAULT_CHUNK);
}

/* Does it take memory of the host, or come from the disk beside it? */
static bool counts(const DavitSlot *slot)
{
    return slot->present && slot->tied_to < 0 && slot->device == DAVIT_ON_HOST;
}

static bool is_global(const DavitPlan *plan, const DavitSlot *slot)
{
    return slot->layer < 0 || (uint64_t)slot->layer >= plan->n_layers;
}

static const char *slot_text(const DavitSlot *slot, DavitReport *report)
{
    return slot->layer < 0 ? slot->id
                           : davit_report_text(report, "%s of layer %" PRId64, slot->id,
                                               slot->layer);
}

/* ---- sums ---- */

/* Bytes of files that slots use in place. What is deferred comes and goes by layer; globals that
 * are count as kept, for a step uses them at both ends. */
typedef struct Borrowed {
    uint64_t kept;      /* globals, and slots of layers that are not deferred */
    uint64_t *layer;    /* (owned) [n_layers] all of a layer */
    uint64_t *deferred; /* (owned) [n_layers] what comes and goes with it */
} Borrowed;

static void sum_borrowed(const DavitPlan *plan, Borrowed *out)
{
    out->kept = 0;
    out->layer = g_new0(uint64_t, plan->n_layers + 1);
    out->deferred = g_new0(uint64_t, plan->n_layers + 1);
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!counts(slot))
            continue;
        if (!is_global(plan, slot))
            out->layer[slot->layer] += slot->borrowed_bytes;
        if (!is_global(plan, slot) && slot->way == DAVIT_WAY_DEFER)
            out->deferred[slot->layer] += slot->borrowed_bytes;
        else
            out->kept += slot->borrowed_bytes;
    }
}

static void borrowed_clear(Borrowed *sums)
{
    g_free(sums->layer);
    g_free(sums->deferred);
}

/* Most that is held at one time, as slots stand. */
static uint64_t resident(const DavitPlan *plan, const Borrowed *sums)
{
    uint64_t largest = 0;

    for (uint64_t i = 0; i < plan->n_layers; i++)
        largest = MAX(largest, sums->deferred[i]);
    return plan->peak_bytes + sums->kept + largest;
}

/* ---- what stays on disk ---- */

static void defer_from(DavitPlan *plan, uint64_t first)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        DavitSlot *slot = &plan->slots[i];

        if (is_global(plan, slot) || (uint64_t)slot->layer < first ||
            slot->way != DAVIT_WAY_BORROW || slot->device != DAVIT_ON_HOST)
            continue;
        slot->way = DAVIT_WAY_DEFER;
        slot->reason = "stays on disk: the budget has no room for all layers";
    }
}

/* The most layers from the first on that can be kept in @room, the largest of the others coming
 * and going: 0 also where that is too much. Keeping one more never takes less. */
static uint64_t count_kept(const DavitPlan *plan, const Borrowed *sums, uint64_t room)
{
    uint64_t below = plan->peak_bytes + sums->kept, largest = 0;

    for (uint64_t k = plan->n_layers; k > 0; k--) {
        if (below + largest <= room)
            return k;
        below -= sums->layer[k - 1];
        largest = MAX(largest, sums->layer[k - 1]);
    }
    return 0;
}

/* ---- refusal ---- */

/* First slot in order that is past @room. (owned by the report) */
static const char *first_past(const DavitPlan *plan, uint64_t room, DavitReport *report)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!counts(slot))
            continue;
        sum += slot->private_bytes +
               (slot->layer < 0 || slot->way != DAVIT_WAY_DEFER ? slot->borrowed_bytes : 0);
        if (sum > room)
            return slot_text(slot, report);
    }
    return "the largest layer";
}

static void refuse(const DavitPlan *plan, uint64_t need, uint64_t beside, DavitReport *report)
{
    const uint64_t fixed =
        plan->peak_bytes - plan->devices[DAVIT_ON_HOST].private_bytes + beside;
    const uint64_t room = plan->memory_bytes > fixed ? plan->memory_bytes - fixed : 0;
    const char *parts =
        beside ? davit_report_text(report,
                                   ": weights %" PRIu64 ", keys, values and scratch for %" PRIu64
                                   " tokens %" PRIu64,
                                   need - beside, plan->ctx, beside)
               : "";

    davit_report_add(
        report, &(DavitFinding){
                    .code = DAVIT_R_MEMORY_SHORT,
                    .status = DAVIT_E_LIMIT,
                    .stage = "plan",
                    .subject = first_past(plan, room, report),
                    .expected = davit_report_text(report, "at least %" PRIu64 " bytes%s", need,
                                                  parts),
                    .found = davit_report_text(report, "--memory cpu=%" PRIu64,
                                               plan->memory_bytes),
                    .message = davit_report_text(report,
                                                 "the weights do not fit the budget: %" PRIu64
                                                 " bytes short; this is the first slot without "
                                                 "room",
                                                 need - plan->memory_bytes),
                    .hint = beside ? "give more, or a smaller --ctx or --window"
                                   : "give more, or use --layout stored and a smaller "
                                     "--window"});
}

/* ---- the budget ---- */

void davit_place_budget(DavitPlan *plan, uint64_t memory_bytes, uint64_t beside_bytes,
                        DavitReport *report)
{
    const uint64_t room = memory_bytes > beside_bytes ? memory_bytes - beside_bytes : 0;
    const bool mapped = plan->device_map && strcmp(plan->device_map, "auto") != 0;
    Borrowed sums;

    plan->memory_bytes = memory_bytes;
    plan->beside_bytes = beside_bytes;
    sum_borrowed(plan, &sums);
    plan->resident_bytes = resident(plan, &sums);
    if (memory_bytes && plan->resident_bytes > room && !mapped) {
        defer_from(plan, count_kept(plan, &sums, room));
        borrowed_clear(&sums);
        sum_borrowed(plan, &sums);
        plan->resident_bytes = resident(plan, &sums);
    }
    if (memory_bytes && plan->resident_bytes > room)
        refuse(plan, plan->resident_bytes + beside_bytes, beside_bytes, report);
    borrowed_clear(&sums);
}

/* ---- homes of a device map ---- */

/* What a map leaves on disk is read there in place. Vectors are made into float32 all the same:
 * they are small, and stay in memory. */
static void defer_mapped(DavitDraft *draft)
{
    const DavitSlot *first = NULL;
    uint64_t n = 0;

    for (size_t i = 0; i < draft->plan->n_slots; i++) {
        DavitSlot *slot = &draft->plan->slots[i];

        if (!davit_home_is_disk(slot->home) || !slot->present || slot->tied_to >= 0 ||
            !slot->used)
            continue;
        if (slot->way == DAVIT_WAY_BORROW) {
            slot->way = DAVIT_WAY_DEFER;
            slot->reason = "stays on disk, by --device-map";
        } else if (davit_slot_is_vector(slot)) {
            slot->home = davit_intern("cpu");
        } else if (n++ == 0) {
            first = slot;
        }
    }
    if (!first)
        return;
    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_FLAG_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .purposes = DAVIT_RUN,
            .stage = "plan",
            .subject = slot_text(first, draft->report),
            .expected = "weights that kernels read as they are stored",
            .found = davit_report_text(draft->report, "%s: %s", davit_access_name(first->access),
                                       first->reason),
            .message = davit_report_text(draft->report,
                                         "%" PRIu64 " slots cannot stay on disk, as the device "
                                         "map says: they are made while loading; this is the first",
                                         n),
            .hint = "leave --dtype, --access and --layout out, or map them to cpu"});
}

/* States and steps, where the placement is the program's. */
static uint64_t reckon_beside(DavitDraft *draft)
{
    const DavitPlanOptions *options = draft->options;
    g_autofree DavitStepMemory *m = g_new0(DavitStepMemory, draft->plan->n_devices);

    if (!davit_place_is_auto(options) || !draft->plan->program ||
        davit_report_first_error(draft->report, options->purposes))
        return 0;
    draft->plan->ctx = davit_place_ctx(draft->plan, options);
    if (!davit_step_memory(draft->plan, davit_place_chunk(draft->plan->ctx, options),
                           draft->plan->ctx,
                           options->n_threads ? options->n_threads : g_get_num_processors(), m))
        return 0;
    return davit_step_memory_sum(&m[DAVIT_ON_HOST]) + m[DAVIT_ON_HOST].state_bytes;
}

void davit_place(DavitDraft *draft)
{
    draft->plan->device_map = g_strdup(draft->options->device_map);
    if (draft->plan->n_devices == 1)
        defer_mapped(draft);
    davit_place_budget(draft->plan, draft->options->memory_bytes, reckon_beside(draft),
                       draft->report);
}

/* ---- without packed copies ---- */

static bool has_packs(const DavitPlan *plan)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (plan->slots[i].access == DAVIT_ACCESS_PACK)
            return true;
    }
    return false;
}

DavitPlan *davit_place_plan(const DavitToolbox *tools, const DavitCheckpoint *checkpoint,
                            const DavitSettings *settings,
                            const DavitPlanOptions *options, DavitReport *report)
{
    DavitPlanOptions again = *options;
    g_autoptr(DavitPlan) first = NULL;
    g_autoptr(DavitReport) said = davit_report_new();

    if (options->memory_bytes == 0 || options->layout != DAVIT_LAYOUT_AUTO)
        return davit_plan_draft(tools, checkpoint, settings, options, report);
    again.keep_refused = true; /* to see what did not fit */
    first = davit_plan_draft(tools, checkpoint, settings, &again, said);
    again.keep_refused = options->keep_refused;
    if (first && has_packs(first) &&
        first->peak_bytes + first->borrowed_bytes + first->beside_bytes >
            options->memory_bytes) {
        again.layout = DAVIT_LAYOUT_STORED;
        davit_report_add(report,
                         &(DavitFinding){.code = DAVIT_R_USER_DECISION,
                                         .severity = DAVIT_NOTE,
                                         .stage = "plan",
                                         .who = "user",
                                         .subject = "--memory",
                                         .message = "no weight is packed: the copies "
                                                    "would not fit the budget"});
        return davit_plan_draft(tools, checkpoint, settings, &again, report);
    }
    davit_report_append(report, said);
    return first && first->refused && !options->keep_refused ? NULL
                                                             : g_steal_pointer(&first);
}
