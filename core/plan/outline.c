/* SPDX-License-Identifier: Apache-2.0
 * Slots and states of a model from its settings alone: the same tables and the same
 * forward as with a checkpoint, and nothing that needs bytes. */
#include "plan/outline.h"

#include <string.h>

#include "plan/build.h"
#include "plan/plan_devices.h"
#include "plan/slot.h"
#include "plan/tools.h"

#define MAX_LAYERS 10000 /* as for a plan */

static uint64_t symbol(const DavitPlan *plan, const char *sym)
{
    int64_t n = 0;

    return davit_config_get_int(plan->config, sym, -1, &n) && n > 0 ? (uint64_t)n : 0;
}

static bool holds(const DavitDraft *draft, const DavitTableRow *row,
                  const DavitScope *scope)
{
    int64_t value = 1;

    if (row->row.when &&
        davit_expr_eval(row->row.when, scope, row->row.id, &value, draft->report))
        return false;
    return value != 0;
}

static bool fill_shape(DavitSlot *slot, const int64_t *dims, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (dims[i] <= 0)
            return false;
        slot->shape[i] = (uint64_t)dims[i];
    }
    slot->rank = (uint32_t)n;
    slot->n_experts = n == 3 ? slot->shape[0] : 1;
    slot->n_rows = n == 3 ? slot->shape[1] : n > 0 ? slot->shape[0] : 1;
    slot->n_cols = n == 3 ? slot->shape[2] : n == 2 ? slot->shape[1] : 1;
    return true;
}

/* Optional matrices that have a source in this kind of file only are there: another row
 * stands for them in the other kind. */
static bool is_expected(const DavitTableRow *row, uint32_t rank)
{
    const bool one_kind = !row->row.hf || !row->row.gguf;

    return !(row->row.flags & DAVIT_SLOT_OPTIONAL) ||
           (rank >= 2 && one_kind && row->specs->len > 0);
}

static void add_slot(DavitDraft *draft, const DavitTableRow *row, int64_t layer)
{
    DavitConfigScope at = {draft->plan->config, layer};
    const DavitScope scope = {davit_config_lookup, &at};
    DavitSlot slot = {.layer = layer, .row = row->row, .tied_to = -1};
    int64_t dims[3];
    int32_t n;

    if (!holds(draft, row, &scope))
        return;
    n = davit_expr_list(row->row.shape, &scope, row->row.id, dims, 3, draft->report);
    if (n < 0)
        return;
    if (!fill_shape(&slot, dims, n)) {
        davit_report_add(draft->report,
                         &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                         .status = DAVIT_E_CORRUPT,
                                         .stage = "plan",
                                         .subject = row->row.id,
                                         .expected = "every axis at least 1",
                                         .found = row->row.shape,
                                         .message = "the configuration gives a slot an "
                                                    "empty axis"});
        return;
    }
    slot.id = g_strdup(row->row.id);
    slot.present = is_expected(row, slot.rank);
    g_array_append_val(draft->slots, slot);
}

static void add_layer(DavitDraft *draft, const GArray *table, int64_t layer)
{
    for (guint r = 0; r < table->len; r++) {
        const DavitTableRow *row = &g_array_index(table, DavitTableRow, r);

        if (row->per_layer == (layer >= 0))
            add_slot(draft, row, layer);
    }
}

/* A tied head is the embedding's second use. The flag, or the class's default. */
static void tie_head(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    DavitSlot *head = davit_slot_flagged(draft, DAVIT_SLOT_HEAD);
    const DavitSlot *embed = davit_slot_flagged(draft, DAVIT_SLOT_EMBED);

    plan->tied = davit_config_tied(plan->config, &plan->tied_given) != 0;
    if (head && embed && plan->tied)
        head->tied_to = (int32_t)(embed - &g_array_index(draft->slots, DavitSlot, 0));
}

static int32_t bind(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;

    plan->config = davit_config_bind(plan->settings, plan->arch_iface, draft->report);
    if (!plan->config)
        return DAVIT_E_CORRUPT;
    plan->vocab = symbol(plan, "V");
    plan->n_layers = symbol(plan, "L");
    plan->max_ctx = symbol(plan, "max_pos");
    if (plan->n_layers > MAX_LAYERS)
        return davit_report_add(
            draft->report,
            &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                            .status = DAVIT_E_CORRUPT,
                            .stage = "plan",
                            .subject = "L",
                            .expected = "1 to 10000 layers",
                            .found = davit_report_text(draft->report, "%" PRIu64,
                                                       plan->n_layers),
                            .message = "number of layers is out of range"});
    davit_config_report_assumed(plan->config, draft->report);
    return DAVIT_OK;
}

static void fill_slots(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    g_autoptr(GArray) table = davit_table_read(
        plan->arch_iface, davit_settings_is_gguf(plan->settings), draft->report);
    GArray *slots = g_array_new(FALSE, TRUE, sizeof(DavitSlot));

    draft->slots = slots;
    if (table) {
        add_layer(draft, table, -1);
        for (uint64_t i = 0; i < plan->n_layers; i++)
            add_layer(draft, table, (int64_t)i);
        tie_head(draft);
    }
    plan->slots = g_array_steal(slots, &plan->n_slots);
    g_array_unref(slots);
    draft->slots = NULL;
}

DavitPlan *davit_plan_outline(DavitRegistry *registry, const DavitSettings *settings,
                              DavitReport *report)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_autoptr(DavitPlan) plan = g_new0(DavitPlan, 1);
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitReport) aside = davit_report_new();
    DavitToolbox tools = {0};
    DavitDraft draft = {.plan = plan,
                        .options = &options,
                        .tools = &tools,
                        .report = said,
                        .f32 = davit_intern("f32/1"),
                        .prefix = ""};

    if (davit_tools_arch(registry, settings, &tools.arch, report))
        return NULL;
    plan->settings = settings;
    plan->arch = tools.arch.component;
    plan->arch_iface = tools.arch.iface;
    davit_plan_host_add(plan);
    if (!bind(&draft))
        fill_slots(&draft);
    davit_report_append(report, said);
    if (davit_report_failed(said))
        return NULL;
    /* states only: what the forward may miss here, a plan with weights will say */
    draft.report = aside;
    if (plan->arch_iface->build)
        plan->program = davit_program_build(&draft, "decode");
    return g_steal_pointer(&plan);
}
