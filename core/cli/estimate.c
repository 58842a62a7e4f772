/* SPDX-License-Identifier: Apache-2.0
 * davit estimate: what a model needs, from its config alone or from its headers. */
#include "estimate/estimate.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "plan/outline.h"
#include "source/path.h"
#include "source/source.h"

#define MAX_CONFIG (64ull << 20) /* bytes, as of any config */

static const DavitFlag flags[] = {
    {"ctx", 'c', DAVIT_FLAG_COUNT, "N",
     "tokens of context; 0 = the model's own, at most 8192", NULL, "0", false},
    {"batch", 0, DAVIT_FLAG_COUNT, "N", "sequences at the same time", NULL, "1", false},
    {"kv-dtype", 0, DAVIT_FLAG_CHOICE, "TYPE", "type of stored keys and values", "f32|f16|bf16|fp8",
     "f16", false},
    {0},
};
static const char *const examples[] = {
    "davit estimate config.json", "parameters, bytes and memory before anything is downloaded",
    "davit estimate model/ --ctx 32768 --batch 8", "memory for eight long conversations",
    "davit estimate org/name --json", "the same for a cached model as one JSON document", NULL};

/* ---- input ---- */

typedef struct Input {
    DavitCheckpoint *checkpoint; /* NULL: settings alone */
    DavitSettings *settings;
    DavitPlan *plan;
} Input;

static void input_clear(Input *in)
{
    davit_plan_free(in->plan);
    davit_settings_free(in->settings);
    davit_checkpoint_free(in->checkpoint);
}

static DavitSettings *read_config(DavitCall *call, const char *path)
{
    g_autoptr(DavitSource) source = davit_source_open(path, call->report);
    const uint64_t n = source ? davit_source_size(source) : 0;
    if (!source)
        return NULL;
    if (n > MAX_CONFIG) {
        davit_report_add(call->report, &(DavitFinding){.code = DAVIT_R_CONFIG_INVALID,
                                                       .status = DAVIT_E_LIMIT,
                                                       .stage = "config",
                                                       .subject = path,
                                                       .expected = "at most 64 MiB",
                                                       .message = "too large for a config"});
        return NULL;
    }
    g_autofree char *text = g_malloc(n + 1);
    if (davit_source_read(source, 0, text, n, call->report))
        return NULL;
    return davit_settings_parse(text, n, NULL, 0, davit_source_name(source), call->report);
}

static bool is_config(const char *model)
{
    return g_str_has_suffix(model, ".json") && !g_str_has_suffix(model, ".index.json");
}

/* A folder with config.json and no weights that can be opened. */
static bool open_alone(DavitCall *call, const DavitModelPath *path, Input *in)
{
    g_autofree char *config = g_build_filename(path->dir, "config.json", NULL);
    davit_report_add(call->report,
                     &(DavitFinding){.code = DAVIT_R_SOURCE_CHOSEN,
                                     .severity = DAVIT_NOTE,
                                     .stage = "config",
                                     .subject = config,
                                     .message = "the weights cannot be opened; the figures come "
                                                "from the config alone",
                                     .hint = "davit doctor tells why"});
    in->settings = read_config(call, config);
    return in->settings != NULL;
}

static bool open_model(DavitCall *call, DavitRegistry *registry, Input *in)
{
    const char *model = call->args[0];
    g_autoptr(DavitReport) said = davit_report_new();
    in->checkpoint = davit_checkpoint_open(registry, model, DAVIT_INSPECT, said);
    if (in->checkpoint) {
        davit_report_append(call->report, said);
        in->settings = davit_settings_open(in->checkpoint, call->report);
        return in->settings != NULL;
    }
    g_autoptr(DavitReport) aside = davit_report_new();
    DavitModelPath path;
    bool ok = false;
    if (!davit_model_path_init(&path, model, aside)) {
        if (!path.entry && davit_model_path_has(&path, "config.json"))
            ok = open_alone(call, &path, in);
        davit_model_path_clear(&path);
    }
    if (!ok && !in->settings && !davit_report_failed(call->report))
        davit_report_append(call->report, said);
    return ok;
}

static bool open_input(DavitCall *call, DavitRegistry *registry, Input *in)
{
    if (is_config(call->args[0]))
        in->settings = read_config(call, call->args[0]);
    else if (!open_model(call, registry, in))
        return false;
    if (!in->settings)
        return false;
    if (!in->checkpoint) {
        in->plan = davit_plan_outline(registry, in->settings, call->report);
        return in->plan != NULL;
    }
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    in->plan = davit_plan_make(registry, in->checkpoint, in->settings, &options, call->report);
    if (!in->plan)
        return false;
    /* states come from the forward, and need no weights; what it says was said above */
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitPlan) outline = davit_plan_outline(registry, in->settings, aside);
    if (outline)
        in->plan->program = g_steal_pointer(&outline->program);
    return true;
}

/* ---- JSON ---- */

static json_t *whole(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *parts_json(const DavitEstimate *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < DAVIT_ESTIMATE_PARTS; i++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o}", "part", e->parts[i].name,
                                              "parameters", whole(e->parts[i].n_params),
                                              "active", whole(e->parts[i].n_active), "bytes",
                                              whole(e->parts[i].n_bytes)));
    return list;
}

static json_t *states_json(const DavitEstimate *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->n_states; i++) {
        const DavitEstimateState *s = &e->states[i];
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", s->kind,
                            "layers", whole(s->n_layers), "heads", whole(s->n_heads), "k_dim",
                            whole(s->k_dim), "v_dim", whole(s->v_dim), "window",
                            whole(s->window), "token_bytes", whole(s->token_bytes),
                            "sequence_bytes", whole(s->sequence_bytes)));
    }
    return list;
}

static json_t *tables_json(const DavitEstimate *e)
{
    json_t *layouts = json_object(), *reads = json_array(), *ranks = json_array();
    for (size_t i = 0; i < e->n_layouts; i++)
        json_object_set_new(layouts, e->layouts[i].name, whole(e->layouts[i].n_bytes));
    for (size_t i = 0; i < DAVIT_ESTIMATE_READS; i++)
        json_array_append_new(reads, json_pack("{s:s, s:f, s:f}", "from", e->reads[i].from,
                                               "gb_s", e->reads[i].gb_s, "seconds",
                                               e->reads[i].seconds));
    for (size_t i = 0; i < DAVIT_ESTIMATE_RANKS; i++)
        json_array_append_new(ranks,
                              json_pack("{s:o, s:b, s:s?, s:o, s:o}", "ranks",
                                        whole(e->ranks[i].n), "possible", !e->ranks[i].obstacle,
                                        "obstacle", e->ranks[i].obstacle, "weight_bytes",
                                        whole(e->ranks[i].weight_bytes), "state_bytes",
                                        whole(e->ranks[i].state_bytes)));
    return json_pack("{s:o, s:o, s:o}", "layouts", layouts, "cold_start", reads,
                     "tensor_parallel", ranks);
}

static void fill_document(DavitCall *call, const DavitEstimate *e)
{
    json_t *doc = json_pack(
        "{s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "architecture", e->arch,
        "dtype", e->dtype, "from_checkpoint", e->from_checkpoint, "tied", e->tied, "parameters",
        whole(e->n_params), "active", whole(e->n_active), "bytes", whole(e->n_bytes),
        "unused_bytes", whole(e->unused_bytes), "parts", parts_json(e), "states_assumed",
        e->states_assumed, "states", states_json(e));
    json_t *tables = tables_json(e);
    json_object_update(doc, tables);
    json_object_set_new(doc, "memory",
                        json_pack("{s:o, s:o, s:o, s:o, s:o}", "context", whole(e->context),
                                  "sequences", whole(e->n_sequences), "weight_bytes",
                                  whole(e->n_bytes), "state_bytes", whole(e->state_bytes),
                                  "total_bytes", whole(e->memory_bytes)));
    json_object_update(call->doc, doc);
    json_decref(tables);
    json_decref(doc);
}

/* ---- text ---- */

static void print_parts(const DavitEstimate *e)
{
    const bool large = e->n_params >= 500000000;
    const double unit = large ? 1e9 : 1e6;
    const char *word = large ? "billion" : "million";
    printf("%s, %.3f %s parameters", e->arch, (double)e->n_params / unit, word);
    if (e->n_active < e->n_params)
        printf(", %.3f %s active for a token", (double)e->n_active / unit, word);
    printf("%s\n", e->tied ? ", head tied to the embedding" : "");
    printf("\n  %-14s %16s  %s\n", "part", "parameters", e->dtype);
    for (size_t i = 0; i < DAVIT_ESTIMATE_PARTS; i++) {
        g_autofree char *bytes = davit_bytes_text(e->parts[i].n_bytes);
        if (e->parts[i].n_params)
            printf("  %-14s %16" G_GUINT64_FORMAT "  %s\n", e->parts[i].name,
                   e->parts[i].n_params, bytes);
    }
    g_autofree char *all = davit_bytes_text(e->n_bytes);
    printf("  %-14s %16" G_GUINT64_FORMAT "  %s\n", "all", e->n_params, all);
    if (e->unused_bytes) {
        g_autofree char *unused = davit_bytes_text(e->unused_bytes);
        printf("  %-14s %16s  %s\n", "not used", "", unused);
    }
}

static void print_states(const DavitEstimate *e)
{
    printf("\n  %-10s %6s %6s %9s %8s %12s %14s\n", "keeps", "layers", "heads", "width",
           "window", "per token", "per sequence");
    for (size_t i = 0; i < e->n_states; i++) {
        const DavitEstimateState *s = &e->states[i];
        g_autofree char *token = davit_bytes_text(s->token_bytes);
        g_autofree char *sequence = davit_bytes_text(s->sequence_bytes);
        g_autofree char *width = g_strdup_printf("%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT,
                                                 s->k_dim, s->v_dim);
        printf("  %-10s %6" G_GUINT64_FORMAT " %6" G_GUINT64_FORMAT " %9s %8" G_GUINT64_FORMAT
               " %12s %14s\n",
               s->kind, s->n_layers, s->n_heads, width, s->window, token, sequence);
    }
    if (e->states_assumed)
        printf("  (the architecture is declared only: this follows from its heads and windows)\n");
    g_autofree char *weights = davit_bytes_text(e->n_bytes);
    g_autofree char *states = davit_bytes_text(e->state_bytes);
    g_autofree char *all = davit_bytes_text(e->memory_bytes);
    printf("\nmemory at %" G_GUINT64_FORMAT " tokens, %" G_GUINT64_FORMAT
           " at a time: weights %s + states %s = %s, and scratch\n",
           e->context, e->n_sequences, weights, states, all);
}

static void print_tables(const DavitEstimate *e)
{
    printf("\nweights in other layouts:");
    for (size_t i = 0; i < e->n_layouts; i++) {
        g_autofree char *bytes = davit_bytes_text(e->layouts[i].n_bytes);
        printf("%s %s %s", i ? "," : "", e->layouts[i].name, bytes);
    }
    printf("\n\n  %-20s %9s %10s\n", "read once from", "GB/s", "seconds");
    for (size_t i = 0; i < DAVIT_ESTIMATE_READS; i++)
        printf("  %-20s %9.2f %10.1f\n", e->reads[i].from, e->reads[i].gb_s,
               e->reads[i].seconds);
    printf("\n  %-6s %14s %14s\n", "ranks", "weights each", "states each");
    for (size_t i = 0; i < DAVIT_ESTIMATE_RANKS; i++) {
        g_autofree char *weights = davit_bytes_text(e->ranks[i].weight_bytes);
        g_autofree char *states = davit_bytes_text(e->ranks[i].state_bytes);
        if (e->ranks[i].obstacle)
            printf("  %-6" G_GUINT64_FORMAT " not possible: %s\n", e->ranks[i].n,
                   e->ranks[i].obstacle);
        else
            printf("  %-6" G_GUINT64_FORMAT " %14s %14s\n", e->ranks[i].n, weights, states);
    }
}

/* ---- run ---- */

static uint32_t kv_width(const char *word)
{
    return strcmp(word, "f32") == 0 ? 4 : strcmp(word, "fp8") == 0 ? 1 : 2;
}

static int run(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    Input in = {0};
    if (open_input(call, registry, &in)) {
        const DavitEstimateOptions options = {.context = davit_call_count(call, "ctx"),
                                              .n_sequences = davit_call_count(call, "batch"),
                                              .kv_bytes =
                                                  kv_width(davit_call_text(call, "kv-dtype"))};
        DavitEstimate e;
        davit_estimate(in.plan, &options, &e);
        if (call->json) {
            fill_document(call, &e);
        } else {
            print_parts(&e);
            print_states(&e);
            print_tables(&e);
        }
    }
    input_clear(&in);
    return davit_call_exit(call);
}

const DavitCommand davit_command_estimate = {
    .name = "estimate",
    .args = "MODEL|config.json",
    .min_args = 1,
    .max_args = 1,
    .summary = "parameters, bytes and memory from a config or from headers",
    .description = "Arithmetic only: nothing is loaded. Speeds of the reading table are nominal "
                   "ones of their class; doctor --deep measures this machine's disk.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
