/* SPDX-License-Identifier: Apache-2.0
 * davit plan: what loading a model would do, from headers only. */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/rename.h"
#include "cli/commands.h"
#include "cli/plan.h"
#include "cli/repair.h"
#include "cli/run.h"
#include "engine/private.h"
#include "exec/budget.h"
#include "plan/document.h"
#include "plan/place.h"
#include "plan/slot_document.h"
#include "tokenizer/beyond.h"

#define MAX_RANKS 1024u

static const DavitFlag flags[] = {
    {"diff", 0, DAVIT_FLAG_TEXT, "OTHER",
     "what differs in another model's plan, or in one saved with --json", NULL, NULL, false},
    {"activations", 0, DAVIT_FLAG_CHOICE, "HOW", "precision of activations", "auto|f32|int8",
     "auto", false},
    {"layout", 0, DAVIT_FLAG_CHOICE, "HOW", "layout of weights in memory", "auto|stored|packed",
     "auto", false},
    {"kv-dtype", 0, DAVIT_FLAG_CHOICE, "TYPE",
     "storage of keys and values; without it f16, f32 under --activations f32", "f32|f16|fp8", NULL, false},
    DAVIT_REPAIR_FLAGS,
    DAVIT_LOADING_FLAGS,
    {"tp", 0, DAVIT_FLAG_COUNT, "N", "tensor parallel: what one of N ranks holds and reads", NULL,
     "1", false},
    {"rank", 0, DAVIT_FLAG_COUNT, "R", "the rank to plan for, 0 to N-1", NULL, "0", false},
    {"ctx", 0, DAVIT_FLAG_COUNT, "N",
     "context that --device-map leaves room for, 0 = the model's, at most 4096", NULL, "0", false},
    {"read-speed", 0, DAVIT_FLAG_NUMBER, "GB/S",
     "speed of the disk for predicted seconds, 1e9 bytes a second; 0 = nominal ones", NULL, "0",
     false},
    {"allow-draft", 0, DAVIT_FLAG_SWITCH, NULL, "take components of draft kinds", NULL, NULL,
     false},
    {0},
};

static const char *const examples[] = {
    "davit plan model/", "what run would do, grouped by layer",
    "davit plan model/ --json > plan.json", "every slot with files, offsets and lengths",
    "davit plan model/ --layout packed --diff plan.json", "what packing would change",
    "davit plan model/ --rename rules.json --ignore 'extra.*'", "a checkpoint with other names",
    "davit plan model/ --device-map auto --memory cpu=8GiB --ctx 8192",
    "which layers stay on disk where all of it may take 8 GiB",
    NULL};

/* One model, planned as run would. */
typedef struct Planned {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitPlan *plan;
    json_t *document;
} Planned;

static void planned_clear(Planned *p)
{
    json_decref(p->document);
    davit_plan_free(p->plan);
    davit_settings_free(p->settings);
    davit_checkpoint_free(p->checkpoint);
    davit_registry_free(p->registry);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Planned, planned_clear)

static void fill_options(const DavitCall *call, const char **ignore, const GArray *budgets,
                         DavitPlanOptions *out)
{
    uint64_t window = 0;
    davit_parse_bytes(davit_call_text(call, "window"), &window);
    *out = (DavitPlanOptions){
        .purposes = DAVIT_MAP | DAVIT_RUN,
        .tp = (unsigned)davit_call_count(call, "tp"),
        .rank = (unsigned)davit_call_count(call, "rank"),
        .activations =
            (DavitActivations)davit_call_choice(call, "activations", davit_activation_names),
        .layout = (DavitLayoutChoice)davit_call_choice(call, "layout", davit_layout_names),
        .device = davit_call_device(call),
        .kv_dtype = davit_call_kv_dtype(call),
        .force_tie = davit_call_has(call, "tie"),
        .force_untie = davit_call_has(call, "no-tie"),
        .ignore = ignore,
        .access = (DavitAccessChoice)davit_call_choice(call, "access", davit_access_names),
        .dtype = (DavitDtypeChoice)davit_call_choice(call, "dtype", davit_dtype_names),
        .window_bytes = window,
        .n_lanes = (unsigned)davit_call_count(call, "io-threads"),
        .memory_bytes = davit_call_memory(call),
        .device_map = davit_call_text(call, "device-map"),
        .budgets = (const DavitDeviceBudget *)(const void *)budgets->data,
        .n_budgets = budgets->len,
        .ctx = davit_call_count(call, "ctx"),
        .n_threads = (unsigned)MIN(davit_call_count(call, "threads"), 1024),
        .quant_allow = davit_call_quant_allow(call),
        .keep_refused = true};
}

/* False when there is nothing to print. @for_people: slots in the document, to be shown or
 * compared; else they are written by write_slots. */
static bool make_plan(DavitCall *call, const char *model, bool for_people, Planned *p)
{
    g_autofree const char **ignore = davit_call_list(call, "ignore");
    g_autoptr(GArray) budgets = davit_call_memories(call);
    DavitPlanOptions options;
    fill_options(call, ignore, budgets, &options);
    if (davit_place_is_auto(&options) && !options.memory_bytes)
        options.memory_bytes = davit_budget_free(NULL);
    p->registry = davit_call_registry(call);
    if (!p->registry)
        return false;
    p->checkpoint = davit_checkpoint_open(p->registry, model, DAVIT_MAP, call->report);
    if (!p->checkpoint ||
        davit_checkpoint_repair(p->checkpoint, davit_call_text(call, "strip-prefix"),
                                davit_call_text(call, "rename"), call->report))
        return false;
    p->settings = davit_settings_open(p->checkpoint, call->report);
    if (!p->settings)
        return false;
    p->plan = davit_plan_make(p->registry, p->checkpoint, p->settings, &options, call->report);
    if (!p->plan)
        return false;
    p->document = davit_plan_document(
        p->plan, call->report,
        &(DavitDocumentOptions){for_people, davit_call_number(call, "read-speed")});
    json_object_set_new(p->document, "model", davit_json_text(model));
    return true;
}

/* The plan needs no tokenizer, and text does. */
static void warn_tokenizer(DavitCall *call, const DavitReport *said)
{
    const DavitRecord *r = davit_report_first_error(said, 0);
    if (!r || r->code == DAVIT_R_NOT_FOUND)
        return; /* a model without one takes ids */
    davit_report_add(call->report,
                     &(DavitFinding){.code = r->code,
                                     .severity = DAVIT_WARNING,
                                     .stage = r->stage,
                                     .who = r->who,
                                     .subject = r->subject,
                                     .expected = r->expected,
                                     .found = r->found,
                                     .message = davit_report_text(
                                         call->report, "the weights would load, and text would be "
                                                       "refused: %s", r->message),
                                     .hint = r->hint});
}

/* Ids of the tokenizer that have no row. A model without one, or with a broken one, is planned all
 * the same. */
static void check_vocabulary(DavitCall *call, const Planned *p)
{
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitTokenizer) tokenizer = davit_tokenizer_of(p->checkpoint, p->registry, aside);
    if (!tokenizer)
        warn_tokenizer(call, aside);
    for (size_t i = 0; tokenizer && i < p->plan->n_slots; i++) {
        const DavitSlot *slot = &p->plan->slots[i];
        if (slot->present && (slot->row.flags & DAVIT_SLOT_EMBED)) {
            davit_tokenizer_tell_beyond(tokenizer, slot->n_rows, slot->id, call->report);
            return;
        }
    }
}

/* (owned) The plan saved in @path, NULL if that is no such document (nothing reported). */
static json_t *saved_plan(const char *path)
{
    json_t *document = g_str_has_suffix(path, ".json") ? json_load_file(path, 0, NULL) : NULL;
    const char *schema = json_string_value(json_object_get(document, "schema"));
    if (schema && strcmp(schema, "davit-plan/1") == 0 &&
        json_is_array(json_object_get(document, "slots")))
        return document;
    json_decref(document);
    return NULL;
}

static int diff(DavitCall *call, const Planned *p, const char *other)
{
    g_auto(Planned) o = {0};
    o.document = saved_plan(other);
    if (!o.document && !make_plan(call, other, true, &o))
        return davit_call_exit(call);
    json_t *changes = davit_plan_diff(p->document, o.document);
    if (call->json)
        json_object_set(call->doc, "diff", changes);
    else
        davit_plan_diff_print(changes);
    json_decref(changes);
    return davit_call_exit(call);
}

/* All fields, and the slots as text: a checkpoint has tens of thousands of tensors. */
static void fill_document(DavitCall *call, const Planned *p)
{
    json_object_update(call->doc, p->document);
    DavitJsonWriter *w = davit_call_begin_part(call, "slots");
    davit_plan_write_slots(p->plan, true, w, NULL);
    davit_json_writer_finish(w);
}

static int run(DavitCall *call)
{
    g_auto(Planned) p = {0};
    const char *other = davit_call_text(call, "diff");
    const uint64_t tp = davit_call_count(call, "tp"), rank = davit_call_count(call, "rank");
    const int code = davit_call_check_loading(call);
    if (code)
        return code;
    if (tp < 1 || tp > MAX_RANKS)
        return davit_call_usage(call, "--tp", "the number of ranks is not 1 to 1024", NULL);
    if (rank >= tp)
        return davit_call_usage(call, "--rank", "the rank is not below --tp", NULL);
    if (davit_call_has(call, "read-speed") && !(davit_call_number(call, "read-speed") > 0))
        return davit_call_usage(call, "--read-speed", "a speed is above 0", NULL);
    if (!make_plan(call, call->args[0], !call->json || other, &p))
        return davit_call_exit(call);
    check_vocabulary(call, &p);
    if (call->json)
        fill_document(call, &p);
    else if (!other)
        davit_plan_print(p.document, call->report, call->verbose);
    return other ? diff(call, &p, other) : davit_call_exit(call);
}

const DavitCommand davit_command_plan = {
    .name = "plan",
    .args = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "print the load plan",
    .description =
        "Reads headers only and prints what loading MODEL would do: for every slot of the\n"
        "architecture the stored tensors, the access (BORROW: used where it lies in the file,\n"
        "DIRECT: read into place, STREAM: read in pieces and changed on the way, DEFER: left on\n"
        "disk by a budget), the layout and the kernel; what is tied, missing, unexpected, mismatched or ignored by which rule; the\n"
        "bytes of every stage and the peak of memory. Exit 0 means that run would load it.",
    .flags = flags,
    .examples = examples,
    .run = run,
};
