/* SPDX-License-Identifier: Apache-2.0
 * Slots from an architecture's table: conditions, shapes, sources, transforms, tied head.
 */
#ifndef DAVIT_PLAN_SLOT_H
#define DAVIT_PLAN_SLOT_H

#include "plan/match.h"

/* Fill draft->slots: globals in table order, then layer by layer. Every finding is
 * reported (missing, mismatched, unknown layouts); a slot with a finding stays without
 * sources. */
void davit_slots_make(DavitDraft *draft, const GArray *table);
void davit_slot_clear(DavitSlot *slot);

/* The rule for an output head that is not in the file (DESIGN 5), in tie.c. */
void davit_slots_tie(DavitDraft *draft, const GArray *table);

/* Sources of one slot, in bind.c. False = no alternative is there (nothing reported). */
bool davit_slot_bind(DavitDraft *draft, DavitSlot *slot, const DavitTableRow *row);

/* TENSOR_MISSING for @slot with every name that was tried. */
void davit_slot_missing(DavitDraft *draft, const DavitSlot *slot,
                        const DavitTableRow *row);

/* (borrowed) NULL if there is none with @flag among the globals. */
DavitSlot *davit_slot_flagged(const DavitDraft *draft, uint32_t flag);

#endif
