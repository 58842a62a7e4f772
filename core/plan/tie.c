/* SPDX-License-Identifier: Apache-2.0
 * The output head: a stored one is always used; otherwise the tie flag decides. The
 * flag's default belongs to the class and is in the architecture's config table. */
#include "plan/slot.h"

static void tie(DavitDraft *draft, DavitSlot *head, const DavitSlot *embed)
{
    const bool fits = head->rank == embed->rank && head->n_rows == embed->n_rows &&
                      head->n_cols == embed->n_cols;

    if (!fits) {
        davit_report_add(
            draft->report,
            &(DavitFinding){
                .code = DAVIT_R_SHAPE_MISMATCH,
                .status = DAVIT_E_MISMATCH,
                .stage = "plan",
                .subject = head->id,
                .expected = davit_shape_text(draft->report, head->shape, head->rank),
                .found = davit_shape_text(draft->report, embed->shape, embed->rank),
                .message = "the embedding cannot serve as head: its shape is another"});
        return;
    }
    head->present = true;
    head->tied_to = (int32_t)(embed - &g_array_index(draft->slots, DavitSlot, 0));
    head->source_text = g_strdup(embed->source_text);
}

/* Row of the head, for its name. */
static const DavitSourceSpec *head_source(const GArray *table)
{
    for (guint r = 0; r < table->len; r++) {
        const DavitTableRow *row = &g_array_index(table, DavitTableRow, r);

        if ((row->row.flags & DAVIT_SLOT_HEAD) && row->specs->len)
            return &g_array_index(row->specs, DavitSourceSpec, 0);
    }
    return NULL;
}

static void refuse(DavitDraft *draft, const GArray *table, const DavitSlot *head,
                   bool given)
{
    const DavitSourceSpec *source = head_source(table);
    g_autoptr(GString) name = g_string_new(head->id);

    if (source)
        davit_match_tensor(draft, source, -1, 0, name);
    davit_report_add(
        draft->report,
        &(DavitFinding){
            .code = DAVIT_R_TENSOR_MISSING,
            .status = DAVIT_E_CORRUPT,
            .stage = "plan",
            .subject = name->str,
            .expected = davit_shape_text(draft->report, head->shape, head->rank),
            .found = given ? "absent, and tie_word_embeddings is false"
                           : "absent, and tie_word_embeddings is not given; this "
                             "class's default is false",
            .message = "the checkpoint has no output head and does not say that "
                       "the embedding serves as one",
            .hint = "--tie uses the embedding as head"});
    g_ptr_array_add(draft->wanted, g_strdup(name->str));
}

static void note_default(DavitDraft *draft, const DavitSlot *head)
{
    davit_report_add(draft->report,
                     &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                     .severity = DAVIT_NOTE,
                                     .stage = "plan",
                                     .subject = head->id,
                                     .found = "tie_word_embeddings is not given",
                                     .message =
                                         "no head is stored; the embedding serves as "
                                         "head by this class's default"});
}

void davit_slots_tie(DavitDraft *draft, const GArray *table)
{
    DavitSlot *head = davit_slot_flagged(draft, DAVIT_SLOT_HEAD);
    const DavitSlot *embed = davit_slot_flagged(draft, DAVIT_SLOT_EMBED);
    bool given = false;
    bool tied;

    draft->plan->tied = davit_config_tied(draft->plan->config, &given) != 0;
    draft->plan->tied_given = given;
    if (!head || head->present)
        return;
    if (davit_settings_is_gguf(draft->plan->settings))
        given = true; /* output.weight absent says it */
    tied =
        (draft->plan->tied || draft->options->force_tie) && !draft->options->force_untie;
    if (!tied || !embed || !embed->present) {
        if (!tied || !embed) /* an embedding that is missing was reported */
            refuse(draft, table, head, given);
        return;
    }
    if (!given && !draft->options->force_tie)
        note_default(draft, head);
    tie(draft, head, embed);
}

const davit_tensor_info *davit_plan_whole_tensor(const DavitPlan *plan, uint32_t flag)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        const DavitSlot *slot = &plan->slots[i];

        if (!(slot->row.flags & flag))
            continue;
        if (!slot->present || slot->tied_to >= 0 || slot->n_sources != 1 ||
            slot->sources[0].module->n_parts != 1)
            return NULL;
        return davit_checkpoint_tensor(plan->checkpoint,
                                       slot->sources[0].module->tensor[0]);
    }
    return NULL;
}
