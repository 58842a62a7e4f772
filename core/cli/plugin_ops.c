/* SPDX-License-Identifier: Apache-2.0
 * davit plugin ops: which kernel entries compute an op, in the order in which they are taken,
 * and why others are not. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/plugin_measure.h"
#include "config/config.h"
#include "plan/plan.h"

static const DavitFlag flags[] = {
    {"model", 0, DAVIT_FLAG_TEXT, "MODEL", "rank for the ops and layouts of this model", NULL, NULL,
     false},
    {"activations", 0, DAVIT_FLAG_CHOICE, "KIND", "with --model: as `run` takes it",
     "auto|f32|int8", "auto", false},
    {"layout", 0, DAVIT_FLAG_CHOICE, "KIND", "with --model: as `run` takes it",
     "auto|stored|packed", "auto", false},
    {"measure", 0, DAVIT_FLAG_SWITCH, NULL, "with --model: time the candidates on its weights",
     NULL, NULL, false},
    {"tokens", 0, DAVIT_FLAG_LIST, "N",
     "with --measure: tokens of a step; may be repeated; as if 1 and 512 were given", NULL, NULL,
     false},
    {"rounds", 0, DAVIT_FLAG_COUNT, "N", "with --measure: the median of so many", NULL, "5", false},
    {"write", 0, DAVIT_FLAG_SWITCH, NULL,
     "with --measure: keep the order as your kernel_ranks, which plans obey", NULL, NULL, false},
    {0},
};
static const char *const examples[] = {
    "davit plugin ops", "every kernel entry, by op",
    "davit plugin ops linear --model model/", "who computes it for this model, and why not others",
    "davit plugin ops linear --model model/ --measure --write",
    "time them here and keep the order", NULL};

typedef struct Ops {
    DavitCall *call;
    json_t *rows;
    const char *last; /* (borrowed) heading printed last */
} Ops;

static void heading(Ops *ops, const char *text)
{
    if (!ops->call->json && g_strcmp0(ops->last, text) != 0)
        printf("%s\n", davit_shown(text));
    ops->last = text;
}

static void row(Ops *ops, const DavitKernelCandidate *k, const char *device)
{
    const char *verdict = k->why ? "no" : k->chosen ? "chosen" : "able";
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s}", "op", k->op, "layouts",
                             k->layouts, "component", k->component, "entry", k->entry, "device",
                             device, "score", (int)k->score, "rank", (int)k->rank, "verdict",
                             verdict);
    json_object_set_new(json, "why", k->why ? davit_json_text(k->why) : json_null());
    json_object_set_new(json, "calls", json_integer(k->n_calls));
    json_array_append_new(ops->rows, json);
    if (ops->call->json)
        return;
    g_autofree char *rank = k->rank ? g_strdup_printf(", your rank %d", (int)k->rank) : g_strdup("");
    printf("  %-6s  %-28s  %-32s  score %4u%s%s%s\n", verdict, davit_shown(k->entry),
           davit_shown(k->component), k->score, rank, k->why ? "  " : "", k->why ? k->why : "");
}

/* Chosen first, then those that could, by rank and score, then the others. */
static int by_order(const void *pa, const void *pb)
{
    const DavitKernelCandidate *a = *(DavitKernelCandidate *const *)pa;
    const DavitKernelCandidate *b = *(DavitKernelCandidate *const *)pb;
    int order = strcmp(a->op, b->op);
    if (!order)
        order = strcmp(a->layouts, b->layouts);
    if (!order)
        order = (a->why != NULL) - (b->why != NULL);
    if (!order)
        order = b->chosen - a->chosen;
    if (!order && a->rank != b->rank)
        order = a->rank > b->rank ? -1 : 1;
    if (!order && a->score != b->score)
        order = a->score > b->score ? -1 : 1;
    if (!order)
        order = strcmp(a->component, b->component);
    return order ? order : strcmp(a->entry, b->entry);
}

bool davit_ops_is(const char *name, const char *wanted)
{
    const size_t n = strlen(wanted);
    return strncmp(name, wanted, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

static guint show(Ops *ops, GPtrArray *candidates, const char *op, const char *device)
{
    g_autoptr(GPtrArray) headings = g_ptr_array_new_with_free_func(g_free);
    guint n = 0;
    g_ptr_array_sort(candidates, by_order);
    for (guint i = 0; i < candidates->len; i++) {
        const DavitKernelCandidate *k = g_ptr_array_index(candidates, i);
        if (op && !davit_ops_is(k->op, op))
            continue;
        char *title = *k->layouts ? g_strdup_printf("%s  of %s  (%u in the program)", k->op, k->layouts,
                                                    k->n_calls)
                                  : g_strdup_printf("%s  (%u in the program)", k->op, k->n_calls);
        if (k->n_calls == 0) {
            g_free(title);
            title = g_strdup(k->op);
        }
        const bool same = ops->last && strcmp(ops->last, title) == 0;
        g_ptr_array_add(headings, title);
        if (!same)
            heading(ops, title);
        row(ops, k, device);
        n++;
    }
    ops->last = NULL;
    return n;
}

/* ---- without a model ---- */

static void list_component(DavitComponent *c, GPtrArray *out, DavitReport *said)
{
    const void *iface;
    void *self;
    if (davit_component_use(c, &iface, &self, said))
        return;
    const davit_kernels_iface *kernels = iface;
    for (size_t e = 0; kernels->entries[e]; e++) {
        const davit_kernel_entry *entry = kernels->entries[e];
        DavitKernelCandidate *k = g_new0(DavitKernelCandidate, 1);
        k->op = g_strdup(entry->op);
        k->layouts = g_strdup("");
        k->component = g_strdup(c->id);
        k->entry = g_strdup(entry->layouts
                                ? davit_report_text(said, "%s [%s]", entry->name, entry->layouts)
                                : entry->name);
        k->score = entry->score;
        k->rank = davit_component_kernel_rank(c, entry->op, entry->name);
        if (entry->cpu & ~davit_cpu_features())
            k->why = g_strdup("needs a CPU feature that this machine does not offer");
        g_ptr_array_add(out, k);
    }
}

static GPtrArray *list_all(DavitCall *call, DavitRegistry *registry)
{
    const GPtrArray *all = davit_registry_kind(registry, DAVIT_KIND_ID_KERNELS);
    GPtrArray *out = g_ptr_array_new_with_free_func(davit_kernel_candidate_free);
    for (guint i = 0; i < all->len; i++) {
        g_autoptr(DavitReport) said = davit_report_new();
        list_component(g_ptr_array_index(all, i), out, said);
        for (size_t r = 0; r < davit_report_count(said); r++) {
            const DavitRecord *record = davit_report_get(said, r);
            if (!call->json)
                fprintf(stderr, "davit: warning: %s: %s\n", record->who, record->message);
        }
    }
    return out;
}

/* ---- for a model ---- */

static uint32_t choice(const DavitCall *call, const char *flag, const char *const *names)
{
    const char *text = davit_call_text(call, flag);
    for (uint32_t i = 0; names[i]; i++)
        if (text && strcmp(text, names[i]) == 0)
            return i;
    return 0;
}

/* *out (owned): what the plan considered. Returns: an exit code. */
static int for_model(DavitCall *call, DavitRegistry *registry, GPtrArray **out_list)
{
    static const char *const activations[] = {"auto", "f32", "int8", NULL};
    static const char *const layouts[] = {"auto", "stored", "packed", NULL};
    g_autoptr(GPtrArray) out = g_ptr_array_new_with_free_func(davit_kernel_candidate_free);
    g_autoptr(DavitCheckpoint) c = davit_checkpoint_open(registry, davit_call_text(call, "model"),
                                                         DAVIT_RUN, call->report);
    g_autoptr(DavitSettings) settings = c ? davit_settings_open(c, call->report) : NULL;
    if (!settings)
        return davit_call_exit(call);
    DavitPlanOptions options = {
        .purposes = DAVIT_RUN,
        .device = davit_call_text(call, "device"),
        .activations = (DavitActivations)choice(call, "activations", activations),
        .layout = (DavitLayoutChoice)choice(call, "layout", layouts)};
    if (davit_call_has(call, "measure"))
        return davit_ops_measure(call, registry, c, settings, &options,
                                 call->n_args ? call->args[0] : NULL);
    options.candidates = out;
    g_autoptr(DavitPlan) plan = davit_plan_make(registry, c, settings, &options, call->report);
    if (!plan)
        return davit_call_exit(call);
    *out_list = g_steal_pointer(&out);
    return DAVIT_EXIT_OK;
}

/* Flags that need others. True: they are there. */
static bool flags_fit(const DavitCall *call)
{
    const bool measure = davit_call_has(call, "measure");
    return measure ? davit_call_has(call, "model")
                   : !davit_call_has(call, "write") && !davit_call_has(call, "tokens") &&
                         !davit_call_has(call, "rounds");
}

static int run(DavitCall *call)
{
    const char *op = call->n_args ? call->args[0] : NULL;
    if (!flags_fit(call))
        return davit_call_usage(call, "--measure", "needs --model; --write, --tokens and --rounds "
                                "need --measure",
                                "davit plugin ops linear --model MODEL --measure --write");
    if (davit_call_has(call, "measure") && strcmp(davit_call_text(call, "device"), "cpu") != 0)
        return davit_call_usage(call, "--device", "kernels are measured on the cpu only", NULL);
    Ops ops = {.call = call, .rows = json_array()};
    json_object_set_new(call->doc, "candidates", ops.rows);
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    const bool has_model = davit_call_text(call, "model") != NULL;
    g_autoptr(GPtrArray) candidates = has_model ? NULL : list_all(call, registry);
    const int status = has_model ? for_model(call, registry, &candidates) : DAVIT_EXIT_OK;
    if (!candidates)
        return status;
    if (show(&ops, candidates, op, davit_call_text(call, "device")) == 0)
        return davit_call_usage(call, op ? op : "ops",
                                has_model ? "the model has no such op"
                                          : "no kernels component has such an op",
                                "davit plugin ops lists the ops");
    if (!call->json)
        printf("`able` could compute it and has a lower score; ranks of your own go into "
               "kernel_ranks of %s\n",
               davit_registry_config_path(registry) ? davit_registry_config_path(registry)
                                                    : "plugins.json");
    return DAVIT_EXIT_OK;
}

const DavitCommand davit_command_plugin_ops = {
    .name = "plugin ops",
    .args = "[OP]",
    .max_args = 1,
    .summary = "rank the kernels of each op, with the reason each other was not taken",
    .flags = flags,
    .examples = examples,
    .run = run,
};
