/* SPDX-License-Identifier: Apache-2.0
 * Sums against a budget. The unit that comes and goes is a layer: its slots are read together
 * and by nobody else. */
#include "plan/place.h"

static bool counts(const DavitSlot *slot)
{
    return slot->present && slot->tied_to < 0;
}

/* Borrowed bytes of the whole model's slots, and of the largest layer. */
static void sum_borrowed(const DavitPlan *plan, uint64_t *globals, uint64_t *largest)
{
    g_autofree uint64_t *layer = g_new0(uint64_t, plan->n_layers + 1);

    *globals = *largest = 0;
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!counts(slot))
            continue;
        if (slot->layer < 0 || (uint64_t)slot->layer >= plan->n_layers)
            *globals += slot->borrowed_bytes;
        else
            layer[slot->layer] += slot->borrowed_bytes;
    }
    for (uint64_t i = 0; i < plan->n_layers; i++)
        *largest = MAX(*largest, layer[i]);
}

static void defer_layers(DavitPlan *plan)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        DavitSlot *slot = &plan->slots[i];

        if (slot->layer < 0 || slot->way != DAVIT_WAY_BORROW)
            continue;
        slot->way = DAVIT_WAY_DEFER;
        slot->reason = "stays on disk: the budget has no room for all layers";
    }
}

/* First slot in order that is past @room. (owned by the report) */
static const char *first_past(const DavitPlan *plan, uint64_t room, DavitReport *report)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!counts(slot))
            continue;
        sum += slot->private_bytes + (slot->layer < 0 ? slot->borrowed_bytes : 0);
        if (sum > room)
            return slot->layer < 0
                       ? slot->id
                       : davit_report_text(report, "%s of layer %" PRId64, slot->id,
                                           slot->layer);
    }
    return "the largest layer";
}

static void refuse(DavitDraft *draft, uint64_t need)
{
    const DavitPlan *plan = draft->plan;
    const uint64_t fixed = plan->peak_bytes - plan->private_bytes;
    const uint64_t room = plan->memory_bytes > fixed ? plan->memory_bytes - fixed : 0;

    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_MEMORY_SHORT,
            .status = DAVIT_E_LIMIT,
            .stage = "plan",
            .subject = first_past(plan, room, draft->report),
            .expected = davit_report_text(draft->report, "at least %" PRIu64 " bytes", need),
            .found = davit_report_text(draft->report, "--memory cpu=%" PRIu64,
                                       plan->memory_bytes),
            .message = davit_report_text(draft->report,
                                         "the weights do not fit the budget: %" PRIu64
                                         " bytes short; this is the first slot without "
                                         "room",
                                         need - plan->memory_bytes),
            .hint = "give more, or use --layout stored and a smaller --window"});
}

void davit_place(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    uint64_t globals, largest;

    plan->memory_bytes = draft->options->memory_bytes;
    plan->resident_bytes = plan->peak_bytes + plan->borrowed_bytes;
    if (plan->memory_bytes == 0 || plan->resident_bytes <= plan->memory_bytes)
        return;
    sum_borrowed(plan, &globals, &largest);
    plan->resident_bytes = plan->peak_bytes + globals + largest;
    defer_layers(plan);
    if (plan->resident_bytes > plan->memory_bytes)
        refuse(draft, plan->resident_bytes);
}

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
        first->peak_bytes + first->borrowed_bytes > options->memory_bytes) {
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
