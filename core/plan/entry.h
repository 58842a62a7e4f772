/* SPDX-License-Identifier: Apache-2.0
 * Kernel entries of the plan's device, and whether one of them can compute a call.
 */
#ifndef DAVIT_PLAN_ENTRY_H
#define DAVIT_PLAN_ENTRY_H

#include "plan/layout.h"

typedef struct DavitEntryRef {
    const davit_kernel_entry *entry; /* (borrowed, component) */
    const DavitTool *tool;           /* (borrowed, toolbox) */
    uint64_t score;                  /* the user's rank first, then the entry's own */
    size_t n_layouts;
    const char **layouts; /* (owned) [n_layouts] interned: entry->layouts, '|'-joined there */
} DavitEntryRef;

/* Entries by op, in candidate order, and the layout considered for each slot. */
typedef struct DavitChooser {
    DavitDraft *draft;     /* (borrowed) */
    DavitProgram *program; /* (borrowed) */
    GHashTable *by_op;     /* op (interned) -> GArray of DavitEntryRef */
    const DavitLayoutOption *
        *layout_of;               /* [n_slots] (borrowed) considered now, NULL = none */
    const DavitTool **state_tool; /* [n_states] whose ops a state's ops must be */
    GArray **state_instrs;        /* [n_states] uint32_t: instructions on each state */
    DavitReport *scratch; /* (owned) where refused checks write, emptied after each */
    uint64_t cpu;         /* DAVIT_CPU_ bits of this machine */
    struct DavitKnownEntry *known; /* (owned) [DAVIT_KNOWN_ENTRIES] a ring */
    uint32_t n_known, known_hit;   /* that were put into it; the one that was found last */
} DavitChooser;

void davit_chooser_init(DavitChooser *chooser, DavitDraft *draft, DavitProgram *program);
void davit_chooser_clear(DavitChooser *chooser);

/* Why @ref cannot compute @instr with the layouts considered now; NULL = it can. The text
 * is owned by @report (NULL = nobody reads it). @any_layout: leave matrix layouts and
 * check out. */
const char *davit_entry_fault(DavitChooser *chooser, const DavitInstr *instr,
                              const DavitEntryRef *ref, bool any_layout,
                              DavitReport *report);

/* The best entry: highest score, then candidate order; @tool not NULL = only its entries.
 * (borrowed) NULL if none can. */
const DavitEntryRef *davit_entry_best(DavitChooser *chooser, const DavitInstr *instr,
                                      const DavitTool *tool, bool any_layout,
                                      uint64_t *out_score);

/* Slot whose bytes weight @index of @instr uses (a tied one's owner), -1 = a constant or
 * absent. */
int32_t davit_instr_slot(const DavitChooser *chooser, const DavitInstr *instr,
                         uint32_t index);

#endif
