/* SPDX-License-Identifier: Apache-2.0
 * Plan to JSON. Nothing is decided here. Slots, which may be many, are in slot_document.c. */
#include "plan/document.h"

#include <string.h>

#include "plan/draft.h"
#include "plan/hash.h"
#include "plan/cross.h"
#include "plan/ranks.h"
#include "plan/slot_document.h"
#include "plan/speed.h"

/* (owned) @text as JSON string; names of files and tensors may be any bytes. */
static json_t *text_json(const char *text)
{
    g_autofree char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

    return valid ? json_string(valid) : json_null();
}

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

/* ---- calls ---- */

static json_t *calls_json(const DavitPlan *plan)
{
    json_t *list = json_array();
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);

    for (size_t i = 0; plan->program && i < plan->program->n_instrs; i++) {
        const DavitInstr *instr = &plan->program->instrs[i];
        json_t *call = NULL;

        /* what core added it does itself; without entry and kernels nothing was chosen */
        const bool own = davit_is_rank_op(instr->op) || davit_is_cross_op(instr->op);
        const void *key = own ? (const void *)instr->op : instr->entry;

        if (!key)
            continue;
        call = g_hash_table_lookup(seen, key);
        if (!call) {
            call = json_pack("{s:s, s:s, s:s, s:i}", "op", instr->op, "kernel",
                             own ? "of the core" : instr->entry->name, "component",
                             own ? "core" : instr->kernels->id, "calls", 0);
            g_hash_table_insert(seen, (gpointer)(uintptr_t)key, call);
            json_array_append_new(list, call);
        }
        json_object_set_new(
            call, "calls",
            json_integer(json_integer_value(json_object_get(call, "calls")) + 1));
    }
    return list;
}

/* ---- findings ---- */

/* Records of @code as {"tensor","expected","found","hint"}. */
static json_t *findings_json(const DavitReport *report, uint32_t code)
{
    json_t *list = json_array();

    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);

        if (r->code != code || r->severity != DAVIT_ERROR)
            continue;
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:o, s:o}", "tensor", text_json(r->subject),
                            "expected", text_json(r->expected), "found",
                            text_json(r->found), "hint", text_json(r->hint)));
    }
    return list;
}

static json_t *ignored_json(const DavitPlan *plan)
{
    json_t *list = json_array();

    for (size_t i = 0; i < plan->n_ignored; i++) {
        const DavitIgnored *ignored = &plan->ignored[i];
        json_t *names = json_array();

        for (size_t t = 0; t < ignored->n_tensors; t++)
            json_array_append_new(
                names, text_json(davit_checkpoint_tensor(plan->checkpoint,
                                                         ignored->tensor[t])
                                     ->name));
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:o, s:o, s:o}", "rule", text_json(ignored->rule),
                            "by", ignored->by, "reason", text_json(ignored->reason),
                            "bytes", number(ignored->n_bytes), "tensors", names));
    }
    return list;
}

static json_t *tied_json(const DavitPlan *plan)
{
    json_t *list = json_array();

    for (size_t s = 0; s < plan->n_slots; s++) {
        const DavitSlot *slot = &plan->slots[s];

        if (slot->tied_to >= 0)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "slot", slot->id, "to",
                                            plan->slots[slot->tied_to].id));
    }
    return list;
}

/* ---- decisions of the user ---- */

static void add_decision(json_t *list, const char *what, const char *value,
                         const char *effect)
{
    json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "flag", what, "value",
                                          text_json(value), "effect",
                                          text_json(effect)));
}

/* A stored head is used whatever the flag says. */
static bool is_head_tied(const DavitPlan *plan)
{
    for (size_t i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].row.flags & DAVIT_SLOT_HEAD)
            return plan->slots[i].tied_to >= 0;
    return false;
}

static json_t *decisions_json(const DavitPlan *plan)
{
    static const char *const dtypes[] = {NULL, "f32", "f16", "bf16"};
    static const char *const accesses[] = {NULL, "borrow", "direct", "stream"};
    json_t *list = json_array();

    for (size_t i = 0; i < davit_checkpoint_n_renames(plan->checkpoint); i++) {
        const DavitRename *r = davit_checkpoint_rename_at(plan->checkpoint, i);
        g_autofree char *effect =
            g_strdup_printf("%zu tensors%s%s", r->n_tensors,
                            r->first ? ", first " : "", r->first ? r->first : "");

        add_decision(list, r->to ? "--rename" : "--strip-prefix", r->text, effect);
    }
    for (size_t i = 0; i < plan->n_ignored; i++) {
        g_autofree char *effect =
            g_strdup_printf("%zu tensors left out", plan->ignored[i].n_tensors);

        if (strcmp(plan->ignored[i].by, "user") == 0)
            add_decision(list, "--ignore", plan->ignored[i].rule, effect);
    }
    if (plan->force_tie)
        add_decision(list, "--tie", NULL,
                     is_head_tied(plan) ? "the embedding serves as head"
                                        : "none: the stored head is used");
    if (plan->force_untie)
        add_decision(list, "--no-tie", NULL, "the embedding does not serve as head");
    if (dtypes[plan->dtype])
        add_decision(list, "--dtype", dtypes[plan->dtype], "matrices in this type");
    if (accesses[plan->access])
        add_decision(list, "--access", accesses[plan->access], NULL);
    if (plan->device_map)
        add_decision(list, "--device-map", plan->device_map, NULL);
    return list;
}

/* ---- sums ---- */

static uint64_t made_by(const DavitPlan *plan, DavitAccess access)
{
    uint64_t n = 0;

    for (size_t s = 0; s < plan->n_slots; s++)
        n += plan->slots[s].access == access ? plan->slots[s].made_bytes : 0;
    return n;
}

/* Bytes that each stage of a load moves, in order, and seconds at @read_gb_s and at the nominal
 * speeds of as many threads as there are. */
static json_t *stages_json(const DavitPlan *plan, double read_gb_s)
{
    const double threads = MAX(plan->n_lanes, 1u);
    const struct {
        const char *stage, *what;
        uint64_t n_bytes;
        double gb_s;
    } stages[] = {
        {"borrow", "left in the files' mappings", plan->borrowed_bytes, read_gb_s},
        {"read", "read from the files", plan->read_bytes, read_gb_s},
        {"copy", "stored bytes written", made_by(plan, DAVIT_ACCESS_COPY),
         DAVIT_SPEED_COPY * threads},
        {"pack", "packed bytes written", made_by(plan, DAVIT_ACCESS_PACK),
         DAVIT_SPEED_PACK * threads},
        {"decode", "decoded values written", made_by(plan, DAVIT_ACCESS_DECODE),
         DAVIT_SPEED_DECODE * threads},
        {"upload", "sent to devices", plan->upload_bytes, DAVIT_SPEED_UPLOAD},
        {"compare", "at most, read again: head against embedding", plan->compare_bytes,
         read_gb_s},
    };
    json_t *list = json_array();

    for (size_t i = 0; i < G_N_ELEMENTS(stages); i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:f, s:f}", "stage", stages[i].stage, "what",
                            stages[i].what, "bytes", (json_int_t)stages[i].n_bytes, "gb_s",
                            stages[i].gb_s, "seconds",
                            davit_speed_seconds(stages[i].n_bytes, stages[i].gb_s)));
    return list;
}

static json_t *time_json(const DavitPlan *plan, const DavitLoadBytes *bytes, const char *from,
                         double gb_s)
{
    return json_pack("{s:s, s:f, s:f, s:f}", "from", from, "gb_s", gb_s, "load_seconds",
                     davit_load_seconds(bytes, gb_s), "touch_seconds",
                     davit_speed_seconds(plan->borrowed_bytes, gb_s));
}

/* At the user's speed, or at those of what a machine usually has. */
static json_t *times_json(const DavitPlan *plan, double read_gb_s)
{
    static const size_t usual[] = {DAVIT_READ_CACHED, DAVIT_READ_DISK, 3};
    const DavitLoadBytes bytes = {.read = plan->read_bytes + plan->compare_bytes,
                                  .copy = made_by(plan, DAVIT_ACCESS_COPY),
                                  .pack = made_by(plan, DAVIT_ACCESS_PACK),
                                  .decode = made_by(plan, DAVIT_ACCESS_DECODE),
                                  .upload = plan->upload_bytes,
                                  .n_threads = plan->n_lanes};
    json_t *list = json_array();

    if (read_gb_s > 0)
        json_array_append_new(list, time_json(plan, &bytes, "--read-speed", read_gb_s));
    for (size_t i = 0; read_gb_s <= 0 && i < G_N_ELEMENTS(usual); i++)
        json_array_append_new(list, time_json(plan, &bytes, davit_read_speeds[usual[i]].from,
                                              davit_read_speeds[usual[i]].gb_s));
    return json_pack("{s:I, s:o}", "threads", (json_int_t)plan->n_lanes, "sources", list);
}

/* (owned) "attn.q of layer 3", or null. */
static json_t *slot_name(const DavitPlan *plan, int32_t slot)
{
    const DavitSlot *s = slot < 0 ? NULL : &plan->slots[slot];

    if (!s)
        return json_null();
    return s->layer < 0 ? json_string(s->id)
                        : json_sprintf("%s of layer %" PRId64, s->id, s->layer);
}

static json_t *memory_json(const DavitPlan *plan)
{
    json_t *memory = json_object();

    set(memory, "peak_host_bytes", number(plan->peak_bytes));
    set(memory, "device_bytes", number(plan->device_bytes));
    set(memory, "resident_bytes", number(plan->resident_bytes));
    set(memory, "budget_bytes", plan->memory_bytes ? number(plan->memory_bytes) : json_null());
    set(memory, "private_bytes", number(plan->private_bytes));
    set(memory, "host_private_bytes", number(plan->devices[DAVIT_ON_HOST].private_bytes));
    set(memory, "constant_bytes", number(plan->constant_bytes));
    set(memory, "window_bytes", number(plan->window_bytes));
    set(memory, "window_limit", number(plan->window_limit));
    set(memory, "stack_bytes", number(plan->stack_bytes));
    set(memory, "lanes", number(plan->n_lanes));
    set(memory, "lane_bytes", number(plan->lane_bytes));
    set(memory, "largest_private_slot", slot_name(plan, plan->peak_slot));
    set(memory, "window_set_by", slot_name(plan, plan->lane_slot));
    return memory;
}

static json_t *totals_json(const DavitPlan *plan, const json_t *document)
{
    json_t *totals = json_object();
    uint64_t n_present = 0, n_ignored = 0;

    for (size_t s = 0; s < plan->n_slots; s++)
        n_present += plan->slots[s].present;
    for (size_t i = 0; i < plan->n_ignored; i++)
        n_ignored += plan->ignored[i].n_tensors;
    set(totals, "tensors", number(davit_checkpoint_n_tensors(plan->checkpoint)));
    set(totals, "stored_bytes", number(davit_checkpoint_n_bytes(plan->checkpoint)));
    set(totals, "slots", number(n_present));
    set(totals, "ignored_tensors", number(n_ignored));
    set(totals, "tied", number(json_array_size(json_object_get(document, "tied"))));
    set(totals, "missing", number(json_array_size(json_object_get(document, "missing"))));
    set(totals, "unexpected",
        number(json_array_size(json_object_get(document, "unexpected"))));
    set(totals, "mismatched",
        number(json_array_size(json_object_get(document, "mismatched"))));
    return totals;
}

static json_t *files_json(const DavitPlan *plan)
{
    json_t *list = json_array();

    for (size_t i = 0; i < davit_checkpoint_n_files(plan->checkpoint); i++) {
        const DavitCheckpointFile f = davit_checkpoint_file(plan->checkpoint, i);

        json_array_append_new(list, json_pack("{s:o, s:I, s:I}", "name",
                                              text_json(f.name), "bytes",
                                              (json_int_t)f.n_bytes, "tensors",
                                              (json_int_t)f.n_tensors));
    }
    return list;
}

/* ---- all of it ---- */

/* (owned) The slots without what they read, as a tree. */
static json_t *slots_json(const DavitPlan *plan)
{
    DavitJsonWriter *w = davit_json_writer_tree();

    davit_plan_write_slots(plan, false, w, NULL);
    return davit_json_writer_finish(w);
}

json_t *davit_plan_document(const DavitPlan *plan, const DavitReport *report,
                            const DavitDocumentOptions *options)
{
    json_t *document = json_object();
    g_autofree char *hash = NULL;

    set(document, "arch", json_string(plan->arch->id));
    set(document, "format", json_string(davit_checkpoint_format(plan->checkpoint)));
    set(document, "device", json_string(plan->device));
    set(document, "runs", json_boolean(plan->program && !plan->refused));
    set(document, "layers", number(plan->n_layers));
    set(document, "vocabulary", number(plan->vocab));
    set(document, "context", number(plan->max_ctx));
    set(document, "tp", number(plan->tp));
    set(document, "rank", number(plan->rank));
    set(document, "decisions", decisions_json(plan));
    set(document, "files", files_json(plan));
    set(document, "slots", options->with_slots ? slots_json(plan) : json_null());
    set(document, "calls", calls_json(plan));
    set(document, "tied", tied_json(plan));
    set(document, "missing", findings_json(report, DAVIT_R_TENSOR_MISSING));
    set(document, "unexpected", findings_json(report, DAVIT_R_TENSOR_UNEXPECTED));
    set(document, "mismatched", findings_json(report, DAVIT_R_SHAPE_MISMATCH));
    set(document, "ignored", ignored_json(plan));
    set(document, "totals", totals_json(plan, document));
    set(document, "stages",
        stages_json(plan, options->read_gb_s > 0 ? options->read_gb_s
                                                 : davit_read_speeds[DAVIT_READ_DISK].gb_s));
    set(document, "times", times_json(plan, options->read_gb_s));
    set(document, "memory", memory_json(plan));
    set(document, "placed", davit_placed_json(plan));
    set(document, "legs", davit_legs_json(plan));
    hash = davit_plan_hash(plan);
    set(document, "hash", json_string(hash));
    return document;
}
