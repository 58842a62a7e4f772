/* SPDX-License-Identifier: Apache-2.0
 * One draft for each device that computes, for bytes and kernels are a device's own; then the
 * slots of each are put together. */
#include "plan/spread.h"

#include <string.h>

#include "plan/device_map.h"
#include "plan/devices.h"
#include "plan/homes.h"
#include "plan/merge.h"
#include "plan/place.h"
#include "plan/tools.h"

typedef struct Spread {
    DavitRegistry *registry;
    const DavitToolbox *tools;
    const DavitCheckpoint *checkpoint;
    const DavitSettings *settings;
    const DavitPlanOptions *options;
    DavitReport *report;
    GArray *devices;       /* (owned) DavitDevice */
    DavitDeviceMap *map;   /* (owned) NULL = none */
    const char **homes;    /* (owned) [n_slots] NULL = none */
} Spread;

static void spread_clear(Spread *s)
{
    if (s->devices)
        g_array_unref(s->devices);
    davit_device_map_free(s->map);
    g_free(s->homes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Spread, spread_clear)

static const DavitDevice *device_at(const Spread *s, guint i)
{
    return &g_array_index(s->devices, DavitDevice, i);
}

/* Budget of --memory for @device, 0 = none is given. */
static uint64_t asked_budget(const Spread *s, const DavitDevice *device)
{
    for (size_t i = 0; i < s->options->n_budgets; i++) {
        if (davit_devices_named(s->devices, s->options->budgets[i].device) == device)
            return s->options->budgets[i].n_bytes;
    }
    return 0;
}

/* "cuda" and "cuda:0" are one device. */
static bool is_given_before(const Spread *s, size_t index)
{
    const DavitDeviceBudget *budgets = s->options->budgets;
    const DavitDevice *device = davit_devices_named(s->devices, budgets[index].device);

    for (size_t i = 0; i < index; i++) {
        if (davit_devices_named(s->devices, budgets[i].device) == device)
            return true;
    }
    return false;
}

static bool check_budgets(const Spread *s)
{
    bool good = true;

    for (size_t i = 0; i < s->options->n_budgets; i++) {
        const char *name = s->options->budgets[i].device;

        if (!davit_devices_named(s->devices, name))
            davit_devices_refuse(s->devices, "--memory", name, s->report);
        else if (is_given_before(s, i))
            davit_report_add(s->report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                                        .status = DAVIT_E_USAGE,
                                                        .stage = "plan",
                                                        .subject = "--memory",
                                                        .found = name,
                                                        .message = "a device is given twice"});
        else
            continue;
        good = false;
    }
    return good;
}

/* ---- drafts ---- */

/* Plan all on @device (its name). @alone: with the budget of the host, and refused if it is over;
 * else kept for its figures. */
static DavitPlan *draft_on(const Spread *s, const char *device, bool alone, DavitReport *report)
{
    const bool run = s->options->purposes & DAVIT_RUN;
    g_autoptr(GArray) kernels = run ? davit_tools_kernels(s->registry, device)
                                    : g_array_new(FALSE, TRUE, sizeof(DavitTool));
    const DavitToolbox tools = {.arch = s->tools->arch,
                                .quants = s->tools->quants,
                                .kernels = kernels,
                                .map = s->map,
                                .homes = s->homes};
    DavitPlanOptions options = *s->options;

    options.device = device;
    options.keep_refused |= !alone;
    if (!alone)
        options.memory_bytes = 0;
    return davit_place_plan(&tools, s->checkpoint, s->settings, &options, report);
}

static DavitPlan *refused(const Spread *s, DavitPlan *plan)
{
    if (!plan || s->options->keep_refused)
        return plan;
    davit_plan_free(plan);
    return NULL;
}

/* ---- one device ---- */

static DavitPlan *plan_on_one(const Spread *s, const char *device)
{
    DavitPlan *plan = draft_on(s, device, true, s->report);

    if (!plan)
        return NULL;
    davit_placed_fill(plan, s->options);
    for (guint i = 0; i < s->devices->len; i++)
        davit_placed_budget(plan, device_at(s, i)->name, asked_budget(s, device_at(s, i)),
                            s->report);
    if (davit_report_first_error(s->report, s->options->purposes))
        plan->refused = true;
    return plan->refused ? refused(s, plan) : plan;
}

/* ---- several ---- */

static void check_places(const Spread *s, DavitPlan *plan)
{
    davit_placed_fill(plan, s->options);
    davit_place_budget(plan, s->options->memory_bytes,
                       davit_place_is_auto(s->options) ? davit_placed_beside(plan) : 0, s->report);
    davit_placed_fill(plan, s->options); /* the disk has its part now */
    for (guint i = 0; i < s->devices->len; i++)
        davit_placed_budget(plan, device_at(s, i)->name, asked_budget(s, device_at(s, i)),
                            s->report);
}

/* The plan over @names, devices that compute, the host first if it is one. */
static DavitPlan *plan_on_many(const Spread *s, const GPtrArray *names)
{
    const uint64_t purposes = s->options->purposes;
    g_autoptr(GPtrArray) drafts =
        g_ptr_array_new_with_free_func((GDestroyNotify)davit_plan_free);
    DavitPlan *base = NULL;

    /* what is wrong with the map, all of them would say */
    for (guint i = 0; i < names->len && !davit_report_first_error(s->report, purposes); i++) {
        g_autoptr(DavitReport) said = davit_report_new();
        DavitPlan *draft = draft_on(s, g_ptr_array_index(names, i), false, said);

        if (i == 0 || davit_report_first_error(said, purposes))
            davit_report_append(s->report, said);
        if (!draft)
            return NULL;
        g_ptr_array_add(drafts, draft);
    }
    base = g_ptr_array_index(drafts, 0);
    if (!davit_report_first_error(s->report, purposes) &&
        !davit_plan_merge((DavitPlan **)drafts->pdata, drafts->len, s->options, s->report))
        check_places(s, base);
    base->refused = davit_report_first_error(s->report, purposes) != NULL;
    g_ptr_array_steal_index(drafts, 0);
    return base->refused ? refused(s, base) : base;
}

/* ---- a file ---- */

/* Devices that compute something of @plan, the host first. (owned) interned names */
static GPtrArray *devices_used(const DavitPlan *plan)
{
    GPtrArray *out = g_ptr_array_new();
    const char *host = davit_intern("cpu");

    for (size_t i = 0; i < plan->n_slots; i++) {
        const char *device = davit_home_device(plan->slots[i].home);

        if (!device || g_ptr_array_find(out, (gpointer)(uintptr_t)device, NULL))
            continue;
        g_ptr_array_insert(out, device == host ? 0 : -1, (gpointer)(uintptr_t)device);
    }
    return out;
}

static DavitPlan *plan_by_file(Spread *s)
{
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitPlan) first = NULL;
    g_autoptr(GPtrArray) used = NULL;

    s->map = davit_device_map_read(s->options->device_map, s->devices, s->report);
    if (!s->map)
        return NULL;
    first = draft_on(s, davit_home_device(
                            ((DavitMapEntry *)g_ptr_array_index(s->map->entries, 0))->home),
                     false, said);
    used = first ? devices_used(first) : NULL;
    if (!used || used->len == 0) { /* no slots: what is wrong is said */
        davit_report_append(s->report, said);
        return refused(s, g_steal_pointer(&first));
    }
    return used->len == 1 ? plan_on_one(s, g_ptr_array_index(used, 0)) : plan_on_many(s, used);
}

/* ---- by the program ---- */

/* Drafts on the devices that are not the host, in order, and what each may take. A device that
 * cannot run the model is left out, with a note why. */
static void draft_devices(const Spread *s, GPtrArray *drafts, GArray *budgets)
{
    const char *only = s->options->device;

    for (guint i = 1; i < s->devices->len; i++) {
        const DavitDevice *device = device_at(s, i);
        g_autoptr(DavitReport) said = davit_report_new();
        uint64_t budget = asked_budget(s, device);
        DavitPlan *draft;
        const DavitRecord *error;

        if (only && davit_devices_named(s->devices, only) != device)
            continue;
        draft = draft_on(s, device->name, false, said);
        error = davit_report_first_error(said, s->options->purposes);
        if (!draft || error || !draft->program) {
            davit_report_add(
                s->report,
                &(DavitFinding){.code = DAVIT_R_DEVICE_MISSING,
                                .severity = DAVIT_NOTE,
                                .stage = "plan",
                                .subject = device->name,
                                .found = error ? error->message : NULL,
                                .message = "the device is not used: it cannot run this model"});
            davit_plan_free(draft);
            continue;
        }
        budget = budget ? budget : device->free_bytes;
        g_ptr_array_add(drafts, draft);
        g_array_append_val(budgets, budget);
    }
}

/* By the homes that are chosen. @host: a plan of the whole model there. */
static DavitPlan *plan_by_homes(const Spread *s, DavitPlan *host)
{
    g_autoptr(GPtrArray) used = NULL;

    for (size_t i = 0; i < host->n_slots; i++)
        host->slots[i].home = s->homes[i];
    used = devices_used(host);
    return used->len == 1 ? plan_on_one(s, g_ptr_array_index(used, 0)) : plan_on_many(s, used);
}

/* The first device of @fill that has more than its budget, fill->n = none. */
static size_t over_budget(DavitPlan *plan, const DavitFill *fill)
{
    size_t i = 0;

    while (i < fill->n && (fill->taken[i] == 0 ||
                           davit_placed_need(plan, fill->devices[i]->device) <= fill->budgets[i]))
        i++;
    return i;
}

/* What crosses is known when it is known what is where: a device that has not enough for it gets
 * one piece less, and all is done again. */
static DavitPlan *fill_and_plan(Spread *s, DavitPlan *host, const DavitFill *fill, size_t *most)
{
    DavitReport *report = s->report;
    const DavitPlanOptions *asked = s->options;
    DavitPlanOptions keep = *asked; /* to see what did not fit */

    keep.keep_refused = true;
    for (;;) {
        g_autoptr(DavitReport) said = davit_report_new();
        DavitPlan *plan;
        size_t over;

        g_free(s->homes);
        s->homes = davit_fill_devices(host, fill, s->options);
        s->report = said;
        s->options = &keep;
        plan = plan_by_homes(s, host);
        s->options = asked;
        s->report = report;
        over = plan && plan->placed ? over_budget(plan, fill) : fill->n;
        if (over == fill->n) {
            davit_report_append(report, said);
            return plan && plan->refused ? refused(s, plan) : plan;
        }
        most[over] = fill->taken[over] - 1;
        davit_plan_free(plan);
    }
}

static DavitPlan *plan_by_program(Spread *s)
{
    g_autoptr(GPtrArray) drafts =
        g_ptr_array_new_with_free_func((GDestroyNotify)davit_plan_free);
    g_autoptr(GArray) budgets = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitPlan) host = NULL;
    g_autofree size_t *most = NULL, *taken = NULL;
    const char *only = s->options->device;

    if ((s->options->purposes & DAVIT_RUN) && !(only && strcmp(only, "cpu") == 0))
        draft_devices(s, drafts, budgets);
    if (drafts->len == 0)
        return plan_on_one(s, "cpu");
    host = draft_on(s, "cpu", false, said);
    if (!host || host->refused || !host->program) {
        davit_report_append(s->report, said);
        return refused(s, g_steal_pointer(&host));
    }
    most = g_new(size_t, drafts->len);
    taken = g_new0(size_t, drafts->len);
    for (guint i = 0; i < drafts->len; i++)
        most[i] = SIZE_MAX;
    return fill_and_plan(s, host,
                         &(DavitFill){.devices = (DavitPlan *const *)drafts->pdata,
                                      .budgets = (const uint64_t *)(const void *)budgets->data,
                                      .most = most,
                                      .taken = taken,
                                      .n = drafts->len},
                         most);
}

/* ---- all of it ---- */

/* "cuda" where that is "cuda:0" of several. */
static const char *own_name(const Spread *s, const char *text)
{
    const DavitDevice *device = davit_devices_named(s->devices, text);

    return device ? device->name : text; /* the draft says that it is not here */
}

/* Ranks divide a model by themselves. */
static DavitPlan *refuse_ranks(const Spread *s)
{
    davit_report_add(s->report,
                     &(DavitFinding){.code = DAVIT_R_NOT_BUILT,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "plan",
                                     .subject = "--device-map",
                                     .expected = "--tp 1",
                                     .found = davit_report_text(s->report, "--tp %u",
                                                                s->options->tp),
                                     .message = "the part of a rank is not placed on devices in "
                                                "this version",
                                     .hint = "leave one of the two out"});
    return NULL;
}

DavitPlan *davit_spread_plan(DavitRegistry *registry, const DavitToolbox *tools,
                             const DavitCheckpoint *checkpoint, const DavitSettings *settings,
                             const DavitPlanOptions *options, DavitReport *report)
{
    g_autoptr(DavitReport) said = davit_report_new(); /* its errors are this plan's alone */
    g_auto(Spread) s = {.registry = registry,
                        .tools = tools,
                        .checkpoint = checkpoint,
                        .settings = settings,
                        .options = options,
                        .report = said,
                        .devices = davit_devices_find(registry)};
    DavitPlan *plan = NULL;

    if (!check_budgets(&s))
        plan = NULL;
    else if (!options->device_map)
        plan = plan_on_one(&s, own_name(&s, options->device ? options->device : "cpu"));
    else if (options->tp > 1)
        plan = refuse_ranks(&s);
    else
        plan = davit_place_is_auto(options) ? plan_by_program(&s) : plan_by_file(&s);
    davit_report_append(report, said);
    return plan;
}
