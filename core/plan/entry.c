/* SPDX-License-Identifier: Apache-2.0
 * One entry against one call. Everything static that can be refused is refused here, so
 * that run cannot fail. */
#include "plan/entry.h"

#include <string.h>

#include "base/cpu.h"
#include "plan/known_entry.h"

#define MAX_ATTR 4096u
#define MAX_RANK 400 /* of the user's ranks: higher ones count as this */

/* ---- tables ---- */

static void list_free(void *p)
{
    GArray *list = p;

    for (guint i = 0; i < list->len; i++)
        g_free(g_array_index(list, DavitEntryRef, i).layouts);
    g_array_unref(list);
}

/* A weight's layout is interned, so that an entry's are compared by pointer. */
static void split_layouts(const char *text, DavitEntryRef *ref)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "", "|", -1);

    ref->n_layouts = g_strv_length(words);
    ref->layouts = g_new(const char *, MAX(ref->n_layouts, 1));
    for (size_t i = 0; i < ref->n_layouts; i++)
        ref->layouts[i] = davit_intern(words[i]);
}

static bool takes_layout(const DavitEntryRef *ref, const char *layout)
{
    for (size_t i = 0; i < ref->n_layouts; i++) {
        if (ref->layouts[i] == layout)
            return true;
    }
    return false;
}

/* Where 8-bit activations are asked for, an entry that uses them goes first. */
static uint64_t score_of(const DavitChooser *c, const DavitTool *tool,
                         const davit_kernel_entry *entry)
{
    const bool first = c->draft->options->activations == DAVIT_ACTIVATIONS_INT8 &&
                       (entry->flags & DAVIT_ENTRY_INT8);
    const int32_t rank =
        davit_component_kernel_rank(tool->component, entry->op, entry->name);

    if (rank < 0) /* the user's word: after all others */
        return 1;
    return (first ? 1000000u : 0u) + (uint64_t)MIN(rank, MAX_RANK) * 2000u +
           (uint64_t)MIN(entry->score, 1000u) + 1u;
}

static void add_entry(DavitChooser *c, const DavitTool *tool,
                      const davit_kernel_entry *entry)
{
    DavitEntryRef ref = {.entry = entry, .tool = tool};
    const char *op = davit_intern(entry->op);
    GArray *list;

    if (!op || !entry->run || !entry->name)
        return; /* the registry's validation refuses such tables; tests may not pass it */
    ref.score = score_of(c, tool, entry);
    split_layouts(entry->layouts, &ref);
    list = g_hash_table_lookup(c->by_op, op);
    if (!list) {
        list = g_array_new(FALSE, FALSE, sizeof(DavitEntryRef));
        g_hash_table_insert(c->by_op, (gpointer)(uintptr_t)op, list);
    }
    g_array_append_val(list, ref);
}

static void index_states(DavitChooser *c)
{
    c->state_instrs = g_new0(GArray *, MAX(c->program->n_states, 1));
    for (size_t s = 0; s < c->program->n_states; s++)
        c->state_instrs[s] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < c->program->n_instrs; i++) {
        const int32_t state = c->program->instrs[i].state;

        if (state >= 0)
            g_array_append_val(c->state_instrs[state], i);
    }
}

void davit_chooser_init(DavitChooser *c, DavitDraft *draft, DavitProgram *program)
{
    *c = (DavitChooser){.draft = draft, .program = program};
    c->by_op = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, list_free);
    for (guint k = 0; k < draft->tools->kernels->len; k++) {
        const DavitTool *tool = &g_array_index(draft->tools->kernels, DavitTool, k);
        const davit_kernels_iface *iface = tool->iface;

        for (size_t e = 0; iface->entries[e]; e++)
            add_entry(c, tool, iface->entries[e]);
    }
    c->layout_of = g_new0(const DavitLayoutOption *, MAX(draft->plan->n_slots, 1));
    c->state_tool = g_new0(const DavitTool *, MAX(program->n_states, 1));
    index_states(c);
    c->scratch = davit_report_new();
    c->cpu = davit_cpu_features();
    c->known = g_new0(DavitKnownEntry, DAVIT_KNOWN_ENTRIES);
}

void davit_chooser_clear(DavitChooser *c)
{
    g_hash_table_unref(c->by_op);
    g_free(c->layout_of);
    g_free(c->state_tool);
    for (size_t s = 0; s < c->program->n_states; s++)
        g_array_unref(c->state_instrs[s]);
    g_free(c->state_instrs);
    g_free(c->known);
    davit_report_free(c->scratch);
}

int32_t davit_instr_slot(const DavitChooser *c, const DavitInstr *instr, uint32_t index)
{
    int32_t slot;

    if (instr->weight[index] < 0)
        return -1;
    slot = c->program->weights[instr->weight[index]].slot;
    if (slot >= 0 && c->draft->plan->slots[slot].tied_to >= 0)
        return c->draft->plan->slots[slot].tied_to;
    return slot;
}

/* ---- the call as check sees it ---- */

typedef struct CallData {
    davit_call call;
    davit_weight weights[DAVIT_MAX_WEIGHTS];
    davit_state state;
    uint8_t attr[MAX_ATTR]; /* padded with zeros to what the entry knows */
} CallData;

static void fill_value(const DavitChooser *c, int32_t handle, davit_value *out)
{
    const DavitValue *value = &c->program->values[handle];

    *out = (davit_value){.width = value->width, .dtype = value->dtype};
}

static void fill_weight(const DavitChooser *c, const DavitInstr *instr, uint32_t index,
                        davit_weight *out)
{
    const DavitWeightRef *ref = &c->program->weights[instr->weight[index]];
    const int32_t at = davit_instr_slot(c, instr, index);
    const DavitSlot *slot;

    *out = (davit_weight){.layout = c->draft->f32,
                          .n_experts = 1,
                          .n_rows = ref->n_rows,
                          .n_cols = ref->n_cols};
    if (at < 0)
        return;
    slot = &c->draft->plan->slots[at];
    out->n_experts = slot->n_experts;
    out->n_rows = slot->n_rows;
    out->n_cols = slot->n_cols;
    if (!c->layout_of[at])
        return;
    out->layout = c->layout_of[at]->layout;
    if (c->layout_of[at]->access == DAVIT_ACCESS_PACK)
        davit_pack_params(c->layout_of[at]->pack, slot, &slot->sources[0], out->params);
    else if (c->layout_of[at]->access != DAVIT_ACCESS_DECODE)
        memcpy(out->params, slot->sources[0].module->desc->params, sizeof out->params);
}

static void fill_call(const DavitChooser *c, const DavitInstr *instr,
                      const DavitEntryRef *ref, CallData *out)
{
    uint64_t n_attr = 0;

    memset(&out->call, 0, sizeof out->call);
    out->call.struct_size = DAVIT_END(davit_call, weight);
    out->call.self = ref->tool->self;
    out->call.op = instr->op;
    out->call.n_in = instr->n_in;
    out->call.n_out = instr->n_out;
    out->call.n_weights = instr->n_weights;
    if (instr->attr)
        memcpy(&n_attr, instr->attr, sizeof n_attr);
    if (instr->attr || ref->entry->attr_size) {
        memset(out->attr, 0, MIN(MAX(ref->entry->attr_size, n_attr), MAX_ATTR));
        if (instr->attr)
            memcpy(out->attr, instr->attr, n_attr);
        out->call.attr = out->attr;
    }
    if (instr->state >= 0) {
        out->state =
            (davit_state){.block_bytes = c->program->state_block_bytes[instr->state],
                          .spec = &c->program->states[instr->state]};
        out->call.state = &out->state;
    }
    for (uint32_t i = 0; i < instr->n_in; i++)
        fill_value(c, instr->in[i], &out->call.in[i]);
    for (uint32_t i = 0; i < instr->n_out; i++)
        fill_value(c, instr->out[i], &out->call.out[i]);
    for (uint32_t w = 0; w < instr->n_weights; w++) {
        if (instr->weight[w] < 0)
            continue;
        fill_weight(c, instr, w, &out->weights[w]);
        out->call.weight[w] = &out->weights[w];
    }
}

/* ---- faults ---- */

/* True if @instr's attributes say more than the @known bytes that an entry reads. */
static bool attr_beyond(const DavitInstr *instr, uint64_t known)
{
    const uint8_t *bytes = instr->attr;
    uint64_t n = 0;

    if (!instr->attr)
        return false;
    memcpy(&n, instr->attr, sizeof n);
    for (uint64_t i = MAX(known, sizeof n); i < n; i++) {
        if (bytes[i])
            return true;
    }
    return false;
}

static const char *static_fault(const DavitChooser *c, const DavitInstr *instr,
                                const davit_kernel_entry *entry)
{
    const DavitPlanOptions *options = c->draft->options;

    if (entry->cpu & ~c->cpu)
        return "needs a CPU feature that this machine does not offer";
    if (entry->attr_size > MAX_ATTR || attr_beyond(instr, entry->attr_size))
        return "does not know an attribute that is set";
    if ((entry->flags & DAVIT_ENTRY_INT8) &&
        options->activations == DAVIT_ACTIVATIONS_F32)
        return "rounds activations to 8 bits; float32 was asked for";
    if ((entry->flags & DAVIT_ENTRY_NOT_INVARIANT) && !options->allow_not_invariant)
        return "its results depend on what is computed beside them";
    return NULL;
}

/* A reason in words, or just that there is one when nobody will read it. */
static const char *text_or(DavitReport *report, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
static const char *text_or(DavitReport *report, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    if (!report)
        return "refused";
    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    return davit_report_text(report, "%s", text);
}

static const char *layout_fault(const DavitChooser *c, const DavitInstr *instr,
                                const DavitEntryRef *ref, DavitReport *report)
{
    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t at = davit_instr_slot(c, instr, w);
        const DavitSlot *slot = at < 0 ? NULL : &c->draft->plan->slots[at];

        if (!slot || davit_slot_is_vector(slot))
            continue;
        if (!c->layout_of[at])
            return "a weight has no layout that could be used";
        if (takes_layout(ref, c->layout_of[at]->layout))
            continue;
        return text_or(report, "takes %s, not %s",
                       ref->entry->layouts ? ref->entry->layouts : "no matrices",
                       c->layout_of[at]->layout);
    }
    return NULL;
}

/* Asks for the call as it is, and for each other description of a weight that is packed from codes
 * which differ. */
static int32_t check_all(DavitChooser *c, const DavitInstr *instr, const DavitEntryRef *ref,
                         CallData *data, const davit_sink *sink)
{
    int32_t status = ref->entry->check(ref->tool->self, &data->call, sink);

    for (uint32_t w = 0; w < instr->n_weights && !status; w++) {
        const int32_t at = instr->weight[w] < 0 ? -1 : davit_instr_slot(c, instr, w);
        const DavitSlot *slot = at < 0 ? NULL : &c->draft->plan->slots[at];
        const DavitLayoutOption *option = at < 0 ? NULL : c->layout_of[at];
        size_t s;

        if (!option || option->access != DAVIT_ACCESS_PACK || slot->n_sources < 2)
            continue;
        for (s = davit_slot_other_layout(slot); s && s < slot->n_sources && !status; s++) {
            if (memcmp(&slot->sources[s].module->desc->codes,
                       &slot->sources[s - 1].module->desc->codes,
                       sizeof(davit_quant_codes)) == 0)
                continue;
            davit_pack_params(option->pack, slot, &slot->sources[s], data->weights[w].params);
            status = ref->entry->check(ref->tool->self, &data->call, sink);
        }
        davit_pack_params(option->pack, slot, &slot->sources[0], data->weights[w].params);
    }
    return status;
}

static const char *check_fault(DavitChooser *c, const DavitInstr *instr,
                               const DavitEntryRef *ref, DavitReport *report)
{
    const char *why = NULL;
    const DavitRecord *error;
    CallData data;
    DavitSink sink;

    if (!ref->entry->check)
        return NULL;
    fill_call(c, instr, ref, &data);
    davit_sink_init(&sink, c->scratch, ref->tool->component->id, "plan");
    if (davit_sink_done(&sink, check_all(c, instr, ref, &data, &sink.abi))) {
        error = davit_report_first_error(c->scratch, 0);
        why = text_or(report, "%s%s%s", error->message, error->found ? ": found " : "",
                      error->found ? error->found : "");
    }
    davit_report_truncate(c->scratch, 0);
    return why;
}

const char *davit_entry_fault(DavitChooser *c, const DavitInstr *instr,
                              const DavitEntryRef *ref, bool any_layout,
                              DavitReport *report)
{
    const char *why = static_fault(c, instr, ref->entry);

    if (why || any_layout)
        return why;
    if (instr->state >= 0 && c->state_tool[instr->state] &&
        c->state_tool[instr->state] != ref->tool)
        return "another component keeps the state that this op works on";
    why = layout_fault(c, instr, ref, report);
    return why ? why : check_fault(c, instr, ref, report);
}

static const DavitEntryRef *find_best(DavitChooser *c, const DavitInstr *instr,
                                      const DavitTool *tool, bool any_layout,
                                      uint64_t *out_score)
{
    const GArray *list = g_hash_table_lookup(c->by_op, instr->op);
    const DavitEntryRef *best = NULL;
    uint64_t most = 0;

    for (guint e = 0; list && e < list->len; e++) {
        const DavitEntryRef *ref = &g_array_index(list, DavitEntryRef, e);

        if ((tool && ref->tool != tool) || ref->score <= most)
            continue;
        if (davit_entry_fault(c, instr, ref, any_layout, NULL))
            continue;
        best = ref;
        most = ref->score;
    }
    *out_score = most;
    return best;
}

const DavitEntryRef *davit_entry_best(DavitChooser *c, const DavitInstr *instr,
                                      const DavitTool *tool, bool any_layout,
                                      uint64_t *out_score)
{
    DavitKnownEntry *known;

    if (tool || any_layout)
        return find_best(c, instr, tool, any_layout, out_score);
    known = davit_known_entry(c, instr);
    if (!known->instr) {
        known->best = find_best(c, instr, NULL, false, &known->score);
        known->instr = instr;
    }
    *out_score = known->score;
    return known->best;
}
