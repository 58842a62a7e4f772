/* SPDX-License-Identifier: Apache-2.0
 * A plan from beginning to end: architecture, settings, modules, slots, coverage,
 * program, kernels, bytes. Each step reports all that it finds; the program is recorded
 * only when the steps before it found nothing that blocks it. */
#include "plan/plan.h"

#include <string.h>

#include "plan/build.h"
#include "plan/choose.h"
#include "plan/coverage.h"
#include "plan/cross.h"
#include "plan/cut.h"
#include "plan/devices.h"
#include "plan/homes.h"
#include "plan/layout.h"
#include "plan/piece.h"
#include "plan/place.h"
#include "plan/plan_devices.h"
#include "plan/slot.h"
#include "plan/spread.h"
#include "plan/tools.h"

#define DEFAULT_BLOCK_TOKENS 64u

const char *davit_access_name(DavitAccess access)
{
    static const char *const names[] = {"borrow", "copy", "pack", "decode"};

    return names[access];
}

const char *davit_way_name(DavitWay way)
{
    static const char *const names[] = {"BORROW", "DIRECT", "STREAM", "DEFER"};

    return names[way];
}

static void ignored_clear(DavitIgnored *ignored)
{
    g_free(ignored->rule);
    g_free(ignored->reason);
    g_free(ignored->tensor);
}

void davit_plan_free(DavitPlan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->n_ignored; i++)
        ignored_clear(&plan->ignored[i]);
    g_free(plan->ignored);
    for (size_t i = 0; i < plan->n_slots; i++)
        davit_slot_clear(&plan->slots[i]);
    g_free(plan->slots);
    davit_modules_free(plan->modules);
    g_clear_pointer(&plan->cuts, g_ptr_array_unref);
    davit_program_free(plan->program);
    davit_config_free(plan->config);
    if (plan->placed)
        g_array_unref(plan->placed);
    g_free(plan->device_map);
    g_free(plan->devices);
    g_free(plan);
}

/* ---- settings ---- */

/* A symbol of the architecture as an unsigned number, 0 = not stated. */
static uint64_t symbol(const DavitPlan *plan, const char *sym)
{
    int64_t n = 0;

    return davit_config_get_int(plan->config, sym, -1, &n) && n > 0 ? (uint64_t)n : 0;
}

static int32_t bind_settings(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    const DavitTool *arch = &draft->tools->arch;
    DavitSink sink;

    plan->config = davit_config_bind(plan->settings, plan->arch_iface, draft->report);
    if (!plan->config)
        return DAVIT_E_CORRUPT;
    plan->vocab = symbol(plan, "V");
    plan->n_layers = symbol(plan, "L");
    plan->max_ctx = symbol(plan, "max_pos");
    davit_config_report_assumed(plan->config, draft->report);
    if (!plan->arch_iface->check)
        return DAVIT_OK;
    davit_sink_init(&sink, draft->report, arch->component->id, "plan");
    return davit_sink_done(&sink,
                           plan->arch_iface->check(arch->self, plan->config, &sink.abi));
}

/* ---- may it run? ---- */

static void check_forward(DavitDraft *draft)
{
    const DavitComponent *arch = draft->tools->arch.component;
    const size_t before = davit_report_count(draft->report);

    if (!(draft->options->purposes & DAVIT_RUN) ||
        (draft->plan->arch_iface->build && (arch->purposes & DAVIT_RUN)))
        return;
    if (arch->records)
        davit_report_append(draft->report, arch->records);
    for (size_t i = before; i < davit_report_count(draft->report); i++) {
        if (davit_report_get(draft->report, i)->severity == DAVIT_ERROR)
            return;
    }
    davit_report_add(draft->report,
                     &(DavitFinding){.code = DAVIT_R_FORWARD_ABSENT,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .purposes = DAVIT_RUN,
                                     .stage = "plan",
                                     .who = arch->id,
                                     .subject = arch->id,
                                     .message =
                                         "the architecture's weights are known, its "
                                         "forward is not in this build",
                                     .hint = "inspect, plan and dump work"});
}

/* ---- device ---- */

static int32_t no_kernels(DavitDraft *draft)
{
    return davit_report_add(
        draft->report,
        &(DavitFinding){.code = DAVIT_R_NO_PLUGINS,
                        .status = DAVIT_E_UNSUPPORTED,
                        .purposes = DAVIT_RUN,
                        .stage = "plan",
                        .subject = "kernels",
                        .expected = "at least one kernels component for the cpu",
                        .message = "no plugin computes on this device",
                        .hint = "davit plugin list shows where plugins are looked for"});
}

/* "cuda" of ranks that have several: rank r takes the r-th, from the first again after the last. */
static void take_rank_device(DavitPlan *plan, uint64_t n_devices, uint64_t *index)
{
    g_autofree char *name = NULL;

    if (plan->tp <= 1 || n_devices < 2 || strchr(plan->device, ':'))
        return;
    *index = plan->rank % n_devices;
    name = g_strdup_printf("%s:%" PRIu64, plan->device, *index);
    plan->device = davit_intern(name);
}

/* Append device @index of @tool's to the plan. */
static int32_t add_device(DavitDraft *draft, const DavitTool *tool, uint64_t index)
{
    const davit_device_iface *iface = ((const davit_kernels_iface *)tool->iface)->device_iface;
    davit_device_info info = {.struct_size = DAVIT_END(davit_device_info, queue_type)};
    DavitPlanDevice device = {
        .name = draft->plan->device, .kernels = tool->component, .index = index};
    DavitSink sink;
    int32_t status;

    davit_sink_init(&sink, draft->report, tool->component->id, "plan");
    status = davit_sink_done(&sink, iface->info(tool->self, index, &info, &sink.abi));
    if (status)
        return status;
    device.align = MAX(info.align, 1);
    davit_plan_device_add(draft->plan, &device);
    return DAVIT_OK;
}

static int32_t find_device(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    const char *kind;
    uint64_t index;
    const bool named = davit_device_split(plan->device, &kind, &index);

    if (strcmp(plan->device, "cpu") == 0)
        return draft->tools->kernels->len ? DAVIT_OK : no_kernels(draft);
    for (guint k = 0; named && k < draft->tools->kernels->len; k++) {
        const DavitTool *tool = &g_array_index(draft->tools->kernels, DavitTool, k);
        const davit_kernels_iface *iface = tool->iface;

        const uint64_t n = iface->device_iface ? iface->device_iface->count(tool->self) : 0;

        take_rank_device(plan, n, &index);
        if (index < n)
            return add_device(draft, tool, index);
    }
    return davit_report_add(
        draft->report, &(DavitFinding){.code = DAVIT_R_DEVICE_MISSING,
                                       .status = DAVIT_E_UNSUPPORTED,
                                       .purposes = DAVIT_RUN,
                                       .stage = "plan",
                                       .subject = plan->device,
                                       .message = "no kernels component owns this device",
                                       .hint = "davit plugin list shows the devices"});
}

/* ---- slots and modules ---- */

static void make_slots(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    const bool gguf = davit_settings_is_gguf(plan->settings);
    g_autoptr(GArray) table = davit_table_read(plan->arch_iface, gguf, draft->report);
    g_autoptr(DavitModuleTable) modules = davit_module_table_new(
        plan->checkpoint, draft->tools->quants, plan->config, draft->quant);
    g_autofree uint8_t *consumed =
        g_new0(uint8_t, davit_checkpoint_n_tensors(plan->checkpoint) + 1);
    GArray *slots = g_array_new(FALSE, TRUE, sizeof(DavitSlot));

    draft->modules = modules;
    draft->consumed = consumed;
    draft->slots = slots;
    draft->wanted = g_ptr_array_new_with_free_func(g_free);
    if (table) {
        draft->prefix = davit_match_prefix(draft, table);
        davit_slots_make(draft, table);
        davit_coverage_check(draft);
        davit_cut_slots(draft);
        davit_module_table_note_rest(modules, draft->report);
    }
    plan->modules = davit_module_table_steal(modules);
    g_array_set_clear_func(slots, NULL);
    plan->slots = g_array_steal(slots, &plan->n_slots);
    g_array_unref(slots);
    g_ptr_array_unref(draft->wanted);
    draft->modules = NULL;
    draft->consumed = NULL;
    draft->slots = NULL;
}

/* ---- program and bytes ---- */

static void note_unused(const DavitDraft *draft)
{
    for (size_t i = 0; i < draft->plan->n_slots; i++) {
        const DavitSlot *slot = &draft->plan->slots[i];

        if (slot->present && !slot->used)
            davit_report_add(draft->report,
                             &(DavitFinding){.code = DAVIT_R_IGNORED_BY_RULE,
                                             .severity = DAVIT_WARNING,
                                             .stage = "plan",
                                             .who = draft->plan->arch->id,
                                             .subject = slot->id,
                                             .found = slot->source_text,
                                             .message =
                                                 "the forward reads nothing of this "
                                                 "slot, though the checkpoint has it"});
    }
}

static void make_program(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;

    if (find_device(draft))
        return;
    plan->program = davit_program_build(draft, "decode");
    if (!plan->program)
        return;
    davit_config_check_unread(plan->config, draft->report);
    davit_choose(draft, plan->program);
    note_unused(draft);
}

/* Bytes that are read once more when head and embedding are both stored and alike. */
static uint64_t compare_bytes(const DavitPlan *plan)
{
    const davit_tensor_info *t[2] = {davit_plan_whole_tensor(plan, DAVIT_SLOT_HEAD),
                                     davit_plan_whole_tensor(plan, DAVIT_SLOT_EMBED)};

    if (plan->rank > 0)
        return 0; /* the first one tells */
    return plan->program && t[0] && t[1] && strcmp(t[0]->dtype, t[1]->dtype) == 0 &&
                   t[0]->n_bytes == t[1]->n_bytes
               ? t[0]->n_bytes + t[1]->n_bytes
               : 0;
}

/* ---- all of it ---- */

/* Sums and gathers of ranks work on host memory: what they take from a device crosses. */
static void bring_ranks_to_host(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    g_autofree uint32_t *layers = NULL;

    if (plan->tp <= 1 || plan->n_devices == 1 || !plan->program)
        return;
    layers = g_new(uint32_t, plan->n_layers + 1);
    for (uint64_t i = 0; i <= plan->n_layers; i++)
        layers[i] = plan->n_devices - 1;
    davit_cross_devices(plan, layers, draft->report);
}

static void fill_plan(DavitDraft *draft)
{
    const uint64_t purposes = draft->options->purposes;
    g_autoptr(DavitQuantConfig) quant = NULL;

    if (bind_settings(draft))
        return;
    quant = davit_quant_config_new(draft->plan->settings, draft->plan->checkpoint,
                                   draft->options->quant_allow, draft->report);
    draft->quant = quant;
    make_slots(draft);
    davit_homes_set(draft);
    check_forward(draft);
    if ((purposes & DAVIT_RUN) && !davit_report_first_error(draft->report, purposes))
        make_program(draft);
    else
        davit_choose_nothing(draft);
    davit_plan_settle(draft->plan);
    bring_ranks_to_host(draft);
    draft->plan->compare_bytes = compare_bytes(draft->plan);
    davit_plan_sums(draft->plan, draft->options->window_bytes, draft->options->n_lanes);
    davit_place(draft);
    draft->quant = NULL;
}

DavitPlan *davit_plan_draft(const DavitToolbox *tools, const DavitCheckpoint *checkpoint,
                            const DavitSettings *settings,
                            const DavitPlanOptions *options, DavitReport *report)
{
    g_autoptr(DavitPlan) plan = g_new0(DavitPlan, 1);
    g_autoptr(DavitReport) said = davit_report_new();
    DavitDraft draft = {.plan = plan,
                        .options = options,
                        .tools = tools,
                        .report = said,
                        .f32 = davit_intern("f32/1"),
                        .prefix = ""};

    plan->checkpoint = checkpoint;
    plan->settings = settings;
    plan->arch = tools->arch.component;
    plan->arch_iface = tools->arch.iface;
    davit_plan_host_add(plan);
    if (options->device)
        plan->device = davit_intern(options->device);
    plan->tp = 1;
    plan->dtype = options->dtype;
    plan->access = options->access;
    plan->force_tie = options->force_tie;
    plan->force_untie = options->force_untie;
    plan->block_tokens =
        options->block_tokens ? options->block_tokens : DEFAULT_BLOCK_TOKENS;
    fill_plan(&draft);
    plan->refused = davit_report_first_error(said, options->purposes) != NULL;
    davit_report_append(report, said);
    return plan->refused && !options->keep_refused ? NULL : g_steal_pointer(&plan);
}

DavitPlan *davit_plan_make(DavitRegistry *registry, const DavitCheckpoint *checkpoint,
                           const DavitSettings *settings, const DavitPlanOptions *options,
                           DavitReport *report)
{
    const bool spread = options->device_map || options->n_budgets;
    g_autoptr(GArray) quants = NULL;
    g_autoptr(GArray) kernels = NULL;
    DavitToolbox tools = {0};

    if (davit_tools_arch(registry, settings, &tools.arch, report))
        return NULL;
    quants = davit_tools_quants(registry);
    tools.quants = quants;
    if (spread)
        return davit_spread_plan(registry, &tools, checkpoint, settings, options, report);
    kernels = (options->purposes & DAVIT_RUN)
                  ? davit_tools_kernels(registry, options->device)
                  : g_array_new(FALSE, TRUE, sizeof(DavitTool));
    tools.kernels = kernels;
    return davit_place_plan(&tools, checkpoint, settings, options, report);
}
