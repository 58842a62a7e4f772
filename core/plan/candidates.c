/* SPDX-License-Identifier: Apache-2.0
 * What was considered for each op: for `plugin ops`, and for the refusal of an op that nothing
 * computes. */
#include "plan/candidates.h"

#include <inttypes.h>
#include <string.h>

void davit_instr_layouts(const DavitChooser *c, const DavitInstr *instr, GString *out)
{
    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t slot = davit_instr_slot(c, instr, w);
        const char *layout;

        if (slot < 0 || davit_slot_is_vector(&c->draft->plan->slots[slot]))
            continue;
        layout = c->draft->plan->slots[slot].sources[0].module->desc->layout;
        g_string_append_printf(out, "%s%s", out->len ? ", " : "", layout);
    }
}

void davit_kernel_candidate_free(void *p)
{
    DavitKernelCandidate *k = p;

    if (!k)
        return;
    g_free(k->op);
    g_free(k->layouts);
    g_free(k->component);
    g_free(k->entry);
    g_free(k->why);
    g_free(k->shape);
    g_free(k);
}

/* Layouts that the weights of @instr were given. (owned) */
static char *given_layouts(const DavitChooser *c, const DavitInstr *instr)
{
    GString *out = g_string_new(NULL);

    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t slot = davit_instr_slot(c, instr, w);

        if (slot < 0 || davit_slot_is_vector(&c->draft->plan->slots[slot]) ||
            !c->layout_of[slot])
            continue;
        g_string_append_printf(out, "%s%s", out->len ? ", " : "",
                               c->layout_of[slot]->layout);
    }
    return g_string_free(out, FALSE);
}

/* "q4_0/1 [1,1536,576] 576>1536": stored layouts, weights, widths of values. (owned) */
static char *shape_text(const DavitChooser *c, const DavitInstr *instr)
{
    const DavitValue *values = c->program->values;
    GString *out = g_string_new(NULL);

    davit_instr_layouts(c, instr, out);
    for (uint32_t w = 0; w < instr->n_weights; w++) {
        const int32_t at = davit_instr_slot(c, instr, w);
        const DavitSlot *slot = at < 0 ? NULL : &c->draft->plan->slots[at];

        if (slot)
            g_string_append_printf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                                   out->len ? " " : "", slot->n_experts, slot->n_rows,
                                   slot->n_cols);
    }
    for (uint32_t k = 0; k < instr->n_in; k++)
        g_string_append_printf(out, "%s%" PRIu64, k ? "," : out->len ? " " : "",
                               values[instr->in[k]].width);
    for (uint32_t k = 0; k < instr->n_out; k++)
        g_string_append_printf(out, "%s%" PRIu64, k ? "," : ">", values[instr->out[k]].width);
    return g_string_free(out, FALSE);
}

static void tell_candidate(DavitChooser *c, const DavitInstr *instr, const DavitEntryRef *ref,
                           const char *layouts, const char *shape)
{
    DavitKernelCandidate *k = g_new0(DavitKernelCandidate, 1);

    k->op = g_strdup(instr->op);
    k->layouts = g_strdup(layouts);
    k->component = g_strdup(ref->tool->component->id);
    k->entry = g_strdup(ref->entry->name);
    k->score = ref->entry->score;
    k->rank = davit_component_kernel_rank(ref->tool->component, instr->op, k->entry);
    k->chosen = instr->entry == ref->entry;
    k->why = k->chosen ? NULL
                       : g_strdup(davit_entry_fault(c, instr, ref, false,
                                                    c->draft->report));
    k->n_calls = 1;
    k->shape = g_strdup(shape);
    k->instr = (uint32_t)(instr - c->program->instrs);
    k->call = ref->entry;
    k->self = ref->tool->self;
    g_ptr_array_add(c->draft->options->candidates, k);
}

void davit_candidates_tell(DavitChooser *c)
{
    GPtrArray *out = c->draft->options->candidates;
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (size_t i = 0; out && i < c->program->n_instrs; i++) {
        const DavitInstr *instr = &c->program->instrs[i];
        const GArray *list = g_hash_table_lookup(c->by_op, instr->op);
        g_autofree char *layouts = given_layouts(c, instr);
        g_autofree char *shape =
            c->draft->options->candidates_by_shape ? shape_text(c, instr) : NULL;
        g_autofree char *key = g_strdup_printf("%s %s %s", instr->op, layouts, shape ? shape : "");
        guint first;

        if (g_hash_table_contains(seen, key)) {
            first = GPOINTER_TO_UINT(g_hash_table_lookup(seen, key));
            for (guint e = 0; list && e < list->len; e++)
                ((DavitKernelCandidate *)g_ptr_array_index(out, first + e))->n_calls++;
            continue;
        }
        g_hash_table_insert(seen, g_steal_pointer(&key), GUINT_TO_POINTER(out->len));
        for (guint e = 0; list && e < list->len; e++)
            tell_candidate(c, instr, &g_array_index(list, DavitEntryRef, e), layouts,
                           shape);
    }
}

/* ---- notes of a refusal ---- */

/* Candidates that were left out for one reason. */
typedef struct Reason {
    char *key;                  /* what makes two reasons one */
    char *why;                  /* of the first */
    const DavitEntryRef *first; /* (borrowed) */
    GString *names;             /* of all */
    guint n;
} Reason;

static void reason_free(void *p)
{
    Reason *r = p;

    g_free(r->key);
    g_free(r->why);
    g_string_free(r->names, TRUE);
    g_free(r);
}

/* Kernels of twenty other layouts say the same: none of them takes this one. */
static const char *key_of(const char *why)
{
    const char *layout = g_str_has_prefix(why, "takes ") ? strstr(why, ", not ") : NULL;

    return layout ? layout : why;
}

static Reason *reason_of(GPtrArray *reasons, const char *why)
{
    const char *key = key_of(why);
    Reason *r;

    for (guint i = 0; i < reasons->len; i++) {
        r = g_ptr_array_index(reasons, i);
        if (strcmp(r->key, key) == 0)
            return r;
    }
    r = g_new0(Reason, 1);
    r->key = g_strdup(key);
    r->why = g_strdup(why);
    r->names = g_string_new(NULL);
    g_ptr_array_add(reasons, r);
    return r;
}

static void note_reason(const Reason *r, DavitReport *report)
{
    const bool layouts = r->key[0] == ',';

    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_OP_MISSING,
            .severity = DAVIT_NOTE,
            .stage = "plan",
            .who = r->first->tool->component->id,
            .subject = r->n == 1 ? r->first->entry->name
                                 : davit_report_text(report, "%u candidates", r->n),
            .found = r->n == 1 ? NULL : r->names->str,
            .message = r->n > 1 && layouts
                           ? davit_report_text(report, "take other layouts%s", r->key)
                           : r->why});
}

void davit_candidates_note(DavitChooser *c, const DavitInstr *instr, const GArray *list,
                           DavitReport *report)
{
    g_autoptr(GPtrArray) reasons = g_ptr_array_new_with_free_func(reason_free);

    for (guint e = 0; e < list->len; e++) {
        const DavitEntryRef *ref = &g_array_index(list, DavitEntryRef, e);
        const char *why = davit_entry_fault(c, instr, ref, false, report);
        Reason *r = reason_of(
            reasons, why ? why : "fits alone, but not with the other users of a weight");

        r->first = r->first ? r->first : ref;
        g_string_append_printf(r->names, "%s%s", r->n++ ? ", " : "", ref->entry->name);
    }
    for (guint i = 0; i < reasons->len; i++)
        note_reason(g_ptr_array_index(reasons, i), report);
}
