/* SPDX-License-Identifier: Apache-2.0
 * Plan to JSON. Nothing is decided here. */
#include "plan/document.h"

#include <string.h>

#include "plan/draft.h"
#include "plan/piece.h"
#include "plan/ranks.h"

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

/* ---- kernels ---- */

/* (owned GPtrArray of GPtrArray) Names of the kernels that read each slot, each once. */
static GPtrArray *kernel_names(const DavitPlan *plan)
{
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);

    for (size_t s = 0; s < plan->n_slots; s++)
        g_ptr_array_add(all, g_ptr_array_new());
    for (size_t i = 0; plan->program && i < plan->program->n_instrs; i++) {
        const DavitInstr *instr = &plan->program->instrs[i];

        for (uint32_t w = 0; instr->entry && w < instr->n_weights; w++) {
            const int32_t slot =
                instr->weight[w] < 0 ? -1
                                     : plan->program->weights[instr->weight[w]].slot;
            GPtrArray *names = slot < 0 ? NULL : g_ptr_array_index(all, slot);

            if (names &&
                !g_ptr_array_find(names, (gpointer)(uintptr_t)instr->entry->name, NULL))
                g_ptr_array_add(names, (gpointer)(uintptr_t)instr->entry->name);
        }
    }
    return all;
}

static json_t *calls_json(const DavitPlan *plan)
{
    json_t *list = json_array();
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);

    for (size_t i = 0; plan->program && i < plan->program->n_instrs; i++) {
        const DavitInstr *instr = &plan->program->instrs[i];
        json_t *call = NULL;

        /* what core added for ranks it does itself; without entry and kernels nothing was chosen */
        const bool own = davit_is_rank_op(instr->op);
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

/* ---- slots ---- */

static json_t *shape_json(const DavitSlot *slot)
{
    json_t *shape = json_array();

    for (uint32_t r = 0; r < slot->rank; r++)
        json_array_append_new(shape, number(slot->shape[r]));
    return shape;
}

/* What happens to the stored rows, as words of the slot table's grammar. */
static json_t *transforms_json(const DavitSlot *slot)
{
    json_t *list = json_array();
    const DavitSlotSource *first = slot->n_sources ? &slot->sources[0] : NULL;
    const bool turned = slot->value_ops & DAVIT_VALUE_TRANSPOSE;

    if (first &&
        first->n_rows != (turned ? first->module->desc.n_cols : first->module->desc.n_rows))
        json_array_append_new(list, json_sprintf("rows(%" PRIu64 ",%" PRIu64 ")",
                                                 first->row, first->n_rows));
    if (slot->n_sources > 1)
        json_array_append_new(list, json_string("stack"));
    if (slot->cut)
        json_array_append_new(list, json_sprintf("rank: %s from %" PRIu64 " of %" PRIu64,
                                                 slot->cut, slot->cut_first,
                                                 slot->cut_whole));
    if (slot->perm_heads)
        json_array_append_new(list, json_sprintf("perm(%" PRIu64 ")", slot->perm_heads));
    if (turned)
        json_array_append_new(list, json_string("T"));
    if (slot->value_ops & DAVIT_VALUE_ADD1)
        json_array_append_new(list, json_string("add1"));
    if (slot->value_ops & DAVIT_VALUE_NEG_EXP)
        json_array_append_new(list, json_string("neg_exp"));
    return list;
}

static void add_source(const DavitPlan *plan, const DavitSlot *slot,
                       const DavitSlotSource *source, json_t *list)
{
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(DavitRead));

    davit_reads_of(plan, slot, source, reads);
    for (guint i = 0; i < reads->len; i++) {
        const DavitRead *read = &g_array_index(reads, DavitRead, i);
        const davit_tensor_info *t =
            davit_checkpoint_tensor(plan->checkpoint, read->tensor);
        json_t *one = json_object();

        set(one, "tensor", text_json(t->name));
        set(one, "role", json_string(source->module->desc.parts[read->part].role));
        set(one, "dtype", json_string(t->dtype));
        set(one, "file",
            text_json(davit_checkpoint_file(plan->checkpoint, t->file).name));
        set(one, "offset", number(read->off));
        set(one, "bytes", number(read->n_bytes * read->n_runs));
        if (read->n_runs > 1) {
            set(one, "runs", number(read->n_runs));
            set(one, "stride", number(read->stride));
        }
        if (slot->n_experts > 1)
            set(one, "expert", number(source->slot_expert));
        json_array_append_new(list, one);
    }
}

static const char *slot_device(const DavitPlan *plan, const DavitSlot *slot)
{
    if (slot->tied_to >= 0)
        slot = &plan->slots[slot->tied_to];
    if (slot->way == DAVIT_WAY_DEFER)
        return "disk";
    if (slot->home && strcmp(slot->home, "disk") != 0)
        return slot->home;
    return slot->access == DAVIT_ACCESS_BORROW ? "cpu" : plan->device;
}

static json_t *slot_json(const DavitPlan *plan, const DavitSlot *slot,
                         const GPtrArray *kernels)
{
    json_t *object = json_object(), *sources = json_array(), *names = json_array();
    const DavitModule *module = slot->n_sources ? slot->sources[0].module : NULL;

    for (size_t s = 0; s < slot->n_sources; s++)
        add_source(plan, slot, &slot->sources[s], sources);
    for (guint k = 0; k < kernels->len; k++)
        json_array_append_new(names, json_string(g_ptr_array_index(kernels, k)));
    set(object, "slot", json_string(slot->id));
    set(object, "layer", slot->layer < 0 ? json_null() : number((uint64_t)slot->layer));
    set(object, "class", json_string(slot->row.cls));
    set(object, "shape", shape_json(slot));
    set(object, "present", json_boolean(slot->present));
    set(object, "used", json_boolean(slot->used));
    set(object, "from", text_json(slot->source_text));
    set(object, "tied_to",
        slot->tied_to < 0 ? json_null() : json_string(plan->slots[slot->tied_to].id));
    set(object, "scheme", module ? text_json(module->desc.scheme) : json_null());
    set(object, "quant",
        module && module->quant ? json_string(module->quant->id) : json_null());
    set(object, "stored", text_json(slot->stored_layout));
    set(object, "layout", text_json(slot->layout));
    set(object, "device", json_string(slot_device(plan, slot)));
    set(object, "kernels", names);
    set(object, "access", json_string(davit_way_name(slot->way)));
    set(object, "make", json_string(davit_access_name(slot->access)));
    set(object, "why", text_json(slot->reason));
    set(object, "transforms", transforms_json(slot));
    set(object, "borrowed_bytes", number(slot->borrowed_bytes));
    set(object, "read_bytes", number(slot->read_bytes));
    set(object, "private_bytes", number(slot->private_bytes));
    set(object, "sources", sources);
    return object;
}

static json_t *slots_json(const DavitPlan *plan)
{
    json_t *list = json_array();
    g_autoptr(GPtrArray) kernels = kernel_names(plan);

    for (size_t s = 0; s < plan->n_slots; s++) {
        if (plan->slots[s].present)
            json_array_append_new(list, slot_json(plan, &plan->slots[s],
                                                  g_ptr_array_index(kernels, s)));
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

/* Bytes that each stage of a load moves, in order. */
static json_t *stages_json(const DavitPlan *plan)
{
    const struct {
        const char *stage, *what;
        uint64_t n_bytes;
    } stages[] = {
        {"borrow", "left in the files' mappings", plan->borrowed_bytes},
        {"read", "read from the files", plan->read_bytes},
        {"copy", "stored bytes written", made_by(plan, DAVIT_ACCESS_COPY)},
        {"pack", "packed bytes written", made_by(plan, DAVIT_ACCESS_PACK)},
        {"decode", "decoded values written", made_by(plan, DAVIT_ACCESS_DECODE)},
        {"upload", "sent to the device", plan->upload_bytes},
        {"compare", "at most, read again: head against embedding", plan->compare_bytes},
    };
    json_t *list = json_array();

    for (size_t i = 0; i < G_N_ELEMENTS(stages); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "stage", stages[i].stage,
                                              "what", stages[i].what, "bytes",
                                              (json_int_t)stages[i].n_bytes));
    return list;
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

    set(memory, "peak_host_bytes",
        number(plan->peak_bytes - (plan->device_kernels ? plan->private_bytes : 0)));
    set(memory, "device_bytes", number(plan->device_bytes));
    set(memory, "resident_bytes", number(plan->resident_bytes));
    set(memory, "budget_bytes", plan->memory_bytes ? number(plan->memory_bytes) : json_null());
    set(memory, "private_bytes", number(plan->private_bytes));
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

json_t *davit_plan_document(const DavitPlan *plan, const DavitReport *report)
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
    set(document, "slots", slots_json(plan));
    set(document, "calls", calls_json(plan));
    set(document, "tied", tied_json(plan));
    set(document, "missing", findings_json(report, DAVIT_R_TENSOR_MISSING));
    set(document, "unexpected", findings_json(report, DAVIT_R_TENSOR_UNEXPECTED));
    set(document, "mismatched", findings_json(report, DAVIT_R_SHAPE_MISMATCH));
    set(document, "ignored", ignored_json(plan));
    set(document, "totals", totals_json(plan, document));
    set(document, "stages", stages_json(plan));
    set(document, "memory", memory_json(plan));
    set(document, "placed", davit_placed_json(plan));
    hash = davit_plan_hash(plan);
    set(document, "hash", json_string(hash));
    return document;
}

/* ---- hash ---- */

static void hash_slot(GString *text, const DavitPlan *plan, const DavitSlot *slot,
                      const GPtrArray *kernels, GArray *reads)
{
    g_string_append_printf(text, "%s %" PRId64 " %s %s %s %d %u %" PRIu64, slot->id,
                           slot->layer, slot->stored_layout ? slot->stored_layout : "-",
                           slot->layout ? slot->layout : "-", davit_way_name(slot->way),
                           slot->tied_to, slot->value_ops, slot->perm_heads);
    for (uint32_t r = 0; r < slot->rank; r++)
        g_string_append_printf(text, " %" PRIu64, slot->shape[r]);
    for (guint k = 0; k < kernels->len; k++)
        g_string_append_printf(text, " %s", (const char *)g_ptr_array_index(kernels, k));
    g_string_append_c(text, '\n');
    for (size_t s = 0; s < slot->n_sources; s++) {
        g_array_set_size(reads, 0);
        davit_reads_of(plan, slot, &slot->sources[s], reads);
        for (guint i = 0; i < reads->len; i++) {
            const DavitRead *read = &g_array_index(reads, DavitRead, i);

            g_string_append(text, davit_checkpoint_tensor(plan->checkpoint, read->tensor)
                                      ->name);
            g_string_append_printf(text, " %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                                   read->file, read->off, read->n_bytes, read->n_runs);
        }
    }
}

char *davit_plan_hash(const DavitPlan *plan)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GPtrArray) kernels = kernel_names(plan);
    g_autoptr(GArray) reads = g_array_new(FALSE, FALSE, sizeof(DavitRead));

    g_string_append_printf(text, "%s %s %s %d %" PRIu64 " %" PRIu64 "\n", plan->arch->id,
                           davit_checkpoint_format(plan->checkpoint), plan->device,
                           plan->program != NULL, plan->private_bytes, plan->window_bytes);
    for (size_t f = 0; f < davit_checkpoint_n_files(plan->checkpoint); f++)
        g_string_append_printf(text, "%s\n",
                               davit_checkpoint_file(plan->checkpoint, f).name);
    for (size_t i = 0; i < plan->n_ignored; i++)
        g_string_append_printf(text, "- %s %zu\n", plan->ignored[i].rule,
                               plan->ignored[i].n_tensors);
    for (size_t s = 0; s < plan->n_slots; s++) {
        if (plan->slots[s].present)
            hash_slot(text, plan, &plan->slots[s], g_ptr_array_index(kernels, s), reads);
        g_checksum_update(sum, (const guchar *)text->str, (gssize)text->len);
        g_string_truncate(text, 0);
    }
    g_checksum_update(sum, (const guchar *)text->str, (gssize)text->len);
    return g_strdup(g_checksum_get_string(sum));
}
