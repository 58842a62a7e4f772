/* SPDX-License-Identifier: Apache-2.0
 * From a slot to rows of modules: the first alternative that is in the checkpoint, its
 * transforms, its shape against the slot's. */
#include <string.h>

#include "plan/slot.h"

#define MAX_EXPERTS 65536u

/* ---- what was tried ---- */

static const char *tried_names(DavitDraft *draft, const DavitSlot *slot,
                               const DavitTableRow *row)
{
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GString) name = g_string_new(NULL);

    for (guint s = 0; s < row->specs->len; s++) {
        const DavitSourceSpec *spec = &g_array_index(row->specs, DavitSourceSpec, s);

        for (size_t v = 0; davit_match_name(draft, spec, slot->layer, 0, v, name); v++) {
            if (v > 0 && strstr(all->str, name->str))
                continue; /* the same name under an empty prefix */
            g_string_append_printf(all, "%s%s", all->len ? ", " : "", name->str);
        }
    }
    return all->len ? davit_report_text(draft->report, "looked for: %s", all->str) : NULL;
}

void davit_slot_missing(DavitDraft *draft, const DavitSlot *slot,
                        const DavitTableRow *row)
{
    g_autoptr(GString) first = g_string_new(slot->id);
    const char *shape;

    if (draft->n_missing++ >= DAVIT_MAX_SINGLE)
        return;
    shape = davit_shape_text(draft->report, slot->shape, slot->rank);
    if (row->specs->len)
        davit_match_tensor(draft, &g_array_index(row->specs, DavitSourceSpec, 0),
                           slot->layer, 0, first);
    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_TENSOR_MISSING,
            .status = DAVIT_E_CORRUPT,
            .stage = "plan",
            .subject = first->str,
            .expected =
                davit_report_text(draft->report, "%s for slot %s", shape, slot->id),
            .found = "absent",
            .message = row->specs->len
                           ? "a tensor that the architecture needs is not in the "
                             "checkpoint"
                           : "the architecture names no source for this slot in "
                             "files of this format",
            .hint = tried_names(draft, slot, row)});
    g_ptr_array_add(draft->wanted, g_strdup(first->str));
}

/* ---- shapes ---- */

/* Stored shape as the file has it, and what the transforms do to it. */
static const char *found_text(DavitDraft *draft, const DavitModule *module,
                              const DavitWindow *w)
{
    const davit_quant_desc *d = module->desc;
    const uint64_t shape[3] = {w->n_experts, w->n_rows, w->n_cols};
    const davit_tensor_info *t = davit_checkpoint_tensor(
        draft->plan->checkpoint, module->tensor[d->parts[0].index]);
    const bool cut = w->n_rows != d->n_rows || w->n_cols != d->n_cols;

    if (!cut && strcmp(d->scheme, "dense/1") == 0)
        return davit_shape_text(draft->report, t->shape, t->rank);
    if (w->n_experts > 1)
        return davit_shape_text(draft->report, shape, 3);
    return davit_shape_text(draft->report, shape + 1,
                            w->n_cols > 1 || d->n_cols > 1 ? 2 : 1);
}

static int32_t check_shape(DavitDraft *draft, const DavitSlot *slot,
                           const DavitModule *module, const DavitWindow *w)
{
    const davit_tensor_info *t = davit_checkpoint_tensor(
        draft->plan->checkpoint, module->tensor[module->desc->parts[0].index]);

    if (w->n_rows == slot->n_rows && w->n_cols == slot->n_cols &&
        w->n_experts == slot->n_experts)
        return DAVIT_OK;
    if (draft->n_mismatched++ >= DAVIT_MAX_SINGLE)
        return DAVIT_E_MISMATCH;
    return davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_SHAPE_MISMATCH,
            .status = DAVIT_E_MISMATCH,
            .stage = "plan",
            .subject = t->name,
            .expected = davit_report_text(
                draft->report, "%s (%s)",
                davit_shape_text(draft->report, slot->shape, slot->rank),
                slot->row.shape),
            .found = found_text(draft, module, w),
            .message = davit_report_text(
                draft->report, "the tensor's shape is not what slot %s needs", slot->id),
            .hint =
                "the configuration and the weights are not of one model, or the tensor was "
                "cropped, padded or transposed"});
}

/* Cuts of a quantised layout fall between its units. */
static int32_t check_units(DavitDraft *draft, const DavitSlot *slot,
                           const DavitModule *module, const DavitWindow *w)
{
    const davit_quant_desc *d = module->desc;
    const bool turned = w->value_ops & DAVIT_VALUE_TRANSPOSE;
    const uint64_t unit = turned ? d->col_unit : d->row_unit;
    const uint64_t whole = turned ? d->n_cols : d->n_rows;
    const uint64_t end = w->row + w->n_rows;
    const bool units_fit =
        unit && w->row % unit == 0 && (end % unit == 0 || end == whole);
    const bool all = w->row == 0 && w->n_rows == whole;

    /* turning reads columns of any width, ordering rows reads single rows */
    if ((all || units_fit) && !(turned && unit != 1) && !(w->perm_heads && unit != 1))
        return DAVIT_OK;
    return davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_QUANT_PARAMS,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "plan",
            .subject = module->name,
            .expected = davit_report_text(
                draft->report, "cuts at multiples of %" PRIu64 " in %s", unit, d->layout),
            .found =
                davit_report_text(draft->report, "%" PRIu64 " to %" PRIu64, w->row, end),
            .message = davit_report_text(draft->report,
                                         "slot %s cuts the quantised weight inside "
                                         "a block",
                                         slot->id)});
}

static int32_t check_purposes(DavitDraft *draft, const DavitModule *module)
{
    const uint64_t can = davit_module_table_purposes(draft->modules, module);

    if ((draft->options->purposes & ~can & (DAVIT_RUN | DAVIT_MAP)) == 0)
        return DAVIT_OK;
    return davit_report_add(
        draft->report,
        &(DavitFinding){.code = DAVIT_R_QUANT_UNKNOWN,
                        .status = DAVIT_E_UNSUPPORTED,
                        .purposes = DAVIT_RUN | DAVIT_MAP,
                        .stage = "plan",
                        .who = module->quant->id,
                        .subject = module->name,
                        .found = module->desc->layout,
                        .message = "the quant plugin reads this layout, but not "
                                   "for this purpose"});
}

/* ---- sources ---- */

static void consume(DavitDraft *draft, const DavitModule *module, uint8_t how)
{
    for (size_t p = 0; p < module->n_parts; p++)
        draft->consumed[module->tensor[p]] |= how;
}

/* The last module that fitted: one with the same desc fits in the same way. */
typedef struct Fitted {
    const davit_quant_desc *desc; /* (borrowed, plan) NULL = none yet */
    uint64_t purposes;
    DavitWindow window;
} Fitted;

/* Window and checks of one claimed module that fills @slot, or one expert of it. */
static int32_t check_window(DavitDraft *draft, const DavitSlot *slot,
                            const DavitSourceSpec *spec, DavitModule *module,
                            DavitWindow *out)
{
    DavitConfigScope at = {draft->plan->config, slot->layer};
    const DavitScope scope = {davit_config_lookup, &at};
    int32_t status;

    *out = (DavitWindow){.n_experts = module->desc->n_experts,
                         .n_rows = module->desc->n_rows,
                         .n_cols = module->desc->n_cols,
                         .oriented = strcmp(module->desc->scheme, "dense/1") != 0};
    status = davit_source_apply(spec, &scope, module->name, out, draft->report);
    if (!status)
        status = check_purposes(draft, module);
    if (!status)
        status = check_units(draft, slot, module, out);
    return status ? status : check_shape(draft, slot, module, out);
}

/* Claims @module; its window goes into @fitted. */
static int32_t window_of(DavitDraft *draft, const DavitSlot *slot,
                         const DavitSourceSpec *spec, DavitModule *module, Fitted *fitted)
{
    DavitWindow *out = &fitted->window;
    int32_t status = davit_module_table_need(draft->modules, module, draft->report);
    const uint64_t purposes = davit_module_table_purposes(draft->modules, module);

    if (!status && (module->desc != fitted->desc || purposes != fitted->purposes))
        status = check_window(draft, slot, spec, module, out);
    fitted->desc = status ? NULL : module->desc;
    fitted->purposes = purposes;
    if (status)
        consume(draft, module, DAVIT_TAKEN | DAVIT_TAKEN_REFUSED);
    else if (out->n_rows == module->desc->n_rows && out->n_cols == module->desc->n_cols)
        consume(draft, module, DAVIT_TAKEN | DAVIT_TAKEN_WHOLE);
    else
        consume(draft, module, DAVIT_TAKEN);
    return status;
}

static void add_source(DavitSlot *slot, const DavitModule *module, const DavitWindow *w,
                       uint64_t slot_expert)
{
    slot->sources[slot->n_sources++] = (DavitSlotSource){
        .module = module,
        .slot_expert = slot_expert,
        .n_experts = w->n_experts,
        .slot_row = 0,
        .row = w->row,
        .n_rows = w->n_rows,
    };
    slot->stored_layout = module->desc->layout;
    slot->value_ops = w->value_ops;
    slot->perm_heads = w->perm_heads;
}

static void expert_missing(DavitDraft *draft, const DavitSlot *slot, const char *name)
{
    if (draft->n_missing++ >= DAVIT_MAX_SINGLE)
        return;
    davit_report_add(
        draft->report,
        &(DavitFinding){.code = DAVIT_R_TENSOR_MISSING,
                        .status = DAVIT_E_CORRUPT,
                        .stage = "plan",
                        .subject = name,
                        .expected = davit_report_text(draft->report,
                                                      "%" PRIu64 " experts for slot %s",
                                                      slot->n_experts, slot->id),
                        .found = "absent",
                        .message = "an expert of this layer is not in the checkpoint"});
    g_ptr_array_add(draft->wanted, g_strdup(name));
}

/* Expert @e of a slot of one source in a layer, or of one of the whole model, which may have
 * several names. */
static DavitModule *find_expert(DavitDraft *draft, const DavitSlot *slot,
                                const DavitSourceSpec *spec, uint64_t e,
                                DavitExpertNames *names, GString *buf)
{
    return slot->layer >= 0 ? davit_expert_names_find(names, draft, e)
                            : davit_match_find(draft, spec, slot->layer, e, buf);
}

/* '*' gathers one module per expert. */
static void bind_experts(DavitDraft *draft, DavitSlot *slot, const DavitSourceSpec *spec,
                         GString *name)
{
    DavitExpertNames names;
    DavitSlot one = *slot; /* what each of them must be */
    Fitted fitted = {0};

    one.n_experts = 1;
    if (slot->n_experts > MAX_EXPERTS) {
        davit_arch_fault(slot->id, NULL, "more experts than 65536", draft->report);
        return;
    }
    slot->sources = g_new0(DavitSlotSource, slot->n_experts);
    davit_expert_names_init(&names, draft, spec, slot->layer, slot->n_experts);
    for (uint64_t e = 0; e < slot->n_experts; e++) {
        DavitModule *module = find_expert(draft, slot, spec, e, &names, name);

        if (!module) {
            davit_match_tensor(draft, spec, slot->layer, e, name);
            expert_missing(draft, slot, name->str);
        } else if (!window_of(draft, &one, spec, module, &fitted)) {
            add_source(slot, module, &fitted.window, e);
        }
    }
    davit_expert_names_clear(&names);
}

static void bind_one(DavitDraft *draft, DavitSlot *slot, const DavitSourceSpec *spec,
                     DavitModule *module)
{
    Fitted fitted = {0};

    if (window_of(draft, slot, spec, module, &fitted))
        return;
    slot->sources = g_new0(DavitSlotSource, 1);
    add_source(slot, module, &fitted.window, 0);
}

/* A converter's rotary row order may stay when the forward knows of it. */
static void keep_rotary_order(DavitSlot *slot, const DavitSourceSpec *spec)
{
    if (!(slot->row.flags & DAVIT_SLOT_ROPE) || !davit_source_only_perm(spec))
        return;
    slot->interleaved = true;
    slot->perm_heads = 0;
}

bool davit_slot_bind(DavitDraft *draft, DavitSlot *slot, const DavitTableRow *row)
{
    g_autoptr(GString) name = g_string_new(NULL);

    for (guint s = 0; s < row->specs->len; s++) {
        const DavitSourceSpec *spec = &g_array_index(row->specs, DavitSourceSpec, s);
        DavitModule *module = davit_match_find(draft, spec, slot->layer, 0, name);

        if (!module && spec->star) /* expert 0 may be the one that is missing */
            module =
                davit_match_find(draft, spec, slot->layer, slot->n_experts - 1, name);
        if (!module)
            continue;
        slot->source_text = g_strdup(spec->name);
        if (spec->star)
            bind_experts(draft, slot, spec, name);
        else
            bind_one(draft, slot, spec, module);
        keep_rotary_order(slot, spec);
        return true;
    }
    return false;
}
