/* SPDX-License-Identifier: Apache-2.0
 * Layouts of a plan without a forward: bytes as they are stored. */
#include "plan/choose.h"
#include "plan/layout.h"

/* A rank's slot as it is loaded: as stored where that is possible. */
static DavitLayoutOption rank_option(const DavitDraft *draft, const DavitSlot *slot)
{
    DavitLayoutOption option = {.access = DAVIT_ACCESS_BORROW,
                                .layout = slot->stored_layout,
                                .reason = "as stored"};

    if (slot->value_ops) {
        option.access = DAVIT_ACCESS_DECODE;
        option.layout = draft->f32;
        option.reason = "a transform changes its values";
    } else if (!davit_slot_in_place(slot) || slot->perm_heads) {
        option.access = DAVIT_ACCESS_COPY;
        option.reason = slot->perm_heads ? "rows are put in another order"
                                         : "this rank's bytes are gathered";
    }
    return option;
}

void davit_choose_nothing(DavitDraft *draft)
{
    const bool ranks = draft->plan->tp > 1;

    for (size_t s = 0; s < draft->plan->n_slots; s++) {
        DavitSlot *slot = &draft->plan->slots[s];
        DavitLayoutOption option = {.access = DAVIT_ACCESS_BORROW,
                                    .layout = slot->stored_layout,
                                    .reason = "as stored: no forward was planned"};

        if (!slot->n_sources)
            continue;
        if (ranks)
            option = rank_option(draft, slot);
        davit_layout_set(draft, slot, &option);
        slot->used = ranks; /* a rank's bytes are loaded all the same */
    }
}
