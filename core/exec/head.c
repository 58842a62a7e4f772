/* SPDX-License-Identifier: Apache-2.0
 * The head in the file is always used; this only tells whether it says anything new. */
#include "exec/head.h"

#include <string.h>

static const DavitSlot *find_slot(const DavitPlan *plan, uint32_t flag)
{
    for (size_t i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].row.flags & flag)
            return &plan->slots[i];
    return NULL;
}

/* The whole stored tensor of a slot that is one plain module, or NULL. */
static const davit_tensor_info *whole_tensor(const DavitPlan *plan, const DavitSlot *slot)
{
    if (!slot || !slot->present || slot->tied_to >= 0 || slot->n_sources != 1 ||
        slot->sources[0].module->n_parts != 1)
        return NULL;
    return davit_checkpoint_tensor(plan->checkpoint, slot->sources[0].module->tensor[0]);
}

int32_t davit_head_compare(const DavitPlan *plan, DavitReport *report)
{
    const davit_tensor_info *head = whole_tensor(plan, find_slot(plan, DAVIT_SLOT_HEAD));
    const davit_tensor_info *embed = whole_tensor(plan, find_slot(plan, DAVIT_SLOT_EMBED));
    if (!head || !embed || strcmp(head->dtype, embed->dtype) != 0 ||
        head->n_bytes != embed->n_bytes)
        return DAVIT_OK;
    const uint8_t *a, *b;
    int32_t status = davit_checkpoint_view(plan->checkpoint, head->file, head->off,
                                           head->n_bytes, &a, report);
    if (!status)
        status = davit_checkpoint_view(plan->checkpoint, embed->file, embed->off,
                                       embed->n_bytes, &b, report);
    if (status)
        return status;
    const bool equal = memcmp(a, b, head->n_bytes) == 0;
    if (!equal && !(plan->tied && plan->tied_given))
        return DAVIT_OK; /* an untied head of its own: nothing to remark */
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_HEAD_COMPARED,
                                     .severity = equal ? DAVIT_NOTE : DAVIT_WARNING,
                                     .stage = "load",
                                     .subject = head->name,
                                     .found = equal ? "the same bytes as the embedding"
                                                    : "other bytes than the embedding",
                                     .expected = equal ? NULL : "tied, by tie_word_embeddings",
                                     .message = equal ? "the stored head is the embedding again"
                                                      : "the stored head is used although the "
                                                        "config says that it is tied",
                                     .hint = equal ? NULL
                                                   : "--tie uses the embedding instead"});
    return DAVIT_OK;
}
