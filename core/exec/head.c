/* SPDX-License-Identifier: Apache-2.0
 * The head in the file is always used; this only tells whether it says anything new. */
#include "exec/head.h"

#include <string.h>

#define BLOCK (64u << 10)

static void tell(const DavitPlan *plan, bool equal, const char *head, DavitReport *report)
{
    if (!equal && !(plan->tied && plan->tied_given))
        return; /* an untied head of its own: nothing to remark */
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_HEAD_COMPARED,
                                     .severity = equal ? DAVIT_NOTE : DAVIT_WARNING,
                                     .stage = "load",
                                     .subject = head,
                                     .found = equal ? "the same bytes as the embedding"
                                                    : "other bytes than the embedding",
                                     .expected = equal ? NULL : "tied, by tie_word_embeddings",
                                     .message = equal ? "the stored head is the embedding again"
                                                      : "the stored head is used although the "
                                                        "config says that it is tied",
                                     .hint = equal ? NULL
                                                   : "--tie uses the embedding instead"});
}

int32_t davit_head_compare(const DavitPlan *plan, DavitLoadStats *stats, DavitReport *report)
{
    const davit_tensor_info *head = davit_plan_whole_tensor(plan, DAVIT_SLOT_HEAD);
    const davit_tensor_info *embed = davit_plan_whole_tensor(plan, DAVIT_SLOT_EMBED);
    if (plan->compare_bytes == 0)
        return DAVIT_OK;
    g_autofree uint8_t *a = g_malloc(2 * (size_t)BLOCK);
    uint8_t *b = a + BLOCK;
    bool equal = true;
    for (uint64_t at = 0; equal && at < head->n_bytes; at += BLOCK) {
        const uint64_t n = MIN(head->n_bytes - at, BLOCK);
        int32_t status =
            davit_checkpoint_read(plan->checkpoint, head->file, head->off + at, a, n, report);
        if (!status)
            status = davit_checkpoint_read(plan->checkpoint, embed->file, embed->off + at, b, n,
                                           report);
        if (status)
            return status;
        stats->compared_bytes += 2 * n;
        equal = memcmp(a, b, n) == 0;
    }
    tell(plan, equal, head->name, report);
    return DAVIT_OK;
}
