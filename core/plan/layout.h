/* SPDX-License-Identifier: Apache-2.0
 * In which ways a slot's bytes may reach a kernel, and what each costs.
 */
#ifndef DAVIT_PLAN_LAYOUT_H
#define DAVIT_PLAN_LAYOUT_H

#include "plan/draft.h"

typedef struct DavitLayoutOption {
    DavitAccess access;
    const char *layout;     /* interned: what kernels get */
    const davit_pack *pack; /* PACK only */
    void *pack_self;
    const char *reason; /* (static) */
    bool spare; /* only where no kernel takes the others; spare ones come last */
} DavitLayoutOption;

/* Do kernels get @slot as plain float32 whatever it is stored in? */
bool davit_slot_is_vector(const DavitSlot *slot);

/* First source of @slot that is stored otherwise than source 0; 0 = none. */
size_t davit_slot_other_layout(const DavitSlot *slot);
/* Can its bytes be read where they lie in the files? */
bool davit_slot_in_place(const DavitSlot *slot);

/* Do all sources of @slot take the same rows of whole modules that are alike? */
bool davit_slot_is_even(const DavitSlot *slot);
/* Two even slots of one row of the table: are their options the same? */
bool davit_slots_are_alike(const DavitSlot *a, const DavitSlot *b);

/* (owned) DavitLayoutOption, the stored layout first, then packs in candidate order.
 * Empty when the slot's sources differ in layout, or nothing can read their rows:
 * *out_why says which (static). */
GArray *davit_layout_options(const DavitDraft *draft, const DavitSlot *slot,
                             const char **out_why);

/* Does @pack read the slot's stored layout itself, or decoded tiles? */
bool davit_pack_from_stored(const davit_pack *pack, const DavitSlot *slot);
/* Weight params of @source of @slot packed by @pack: the scheme's, or what describes its CODES. */
void davit_pack_params(const davit_pack *pack, const DavitSlot *slot,
                       const DavitSlotSource *source, uint64_t params[8]);
/* Bytes of one row block of a source of a packed slot. */
uint64_t davit_pack_block_bytes(const DavitSlot *slot, const DavitSlotSource *source);
/* Columns of a packed source: those of the codes where some have no input, else the slot's. */
uint64_t davit_pack_cols(const DavitSlot *slot, const DavitSlotSource *source);
/* Scale groups of a row when @source is packed from codes; 0 = it is packed from float32 or as
 * stored. */
uint64_t davit_pack_groups(const DavitSlot *slot, const DavitSlotSource *source);
/* Bytes of part 1 of a segment of a packed @source: column map (uint32_t), then factors of inputs
 * (float32); 0 = it has neither. */
uint64_t davit_pack_map_bytes(const DavitSlot *slot, const DavitSlotSource *source);
/* Of those the factors'. */
uint64_t davit_pack_factor_bytes(const DavitSlot *slot, const DavitSlotSource *source);

/* Write the choice and its bytes into @slot. @option's strings are interned or static. */
void davit_layout_set(const DavitDraft *draft, DavitSlot *slot,
                      const DavitLayoutOption *option);

#endif
