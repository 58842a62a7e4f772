/* SPDX-License-Identifier: Apache-2.0
 * Best entries that were found already: layers are alike, so that the same call is asked about once
 * for each of them.
 */
#ifndef DAVIT_PLAN_KNOWN_ENTRY_H
#define DAVIT_PLAN_KNOWN_ENTRY_H

#include "plan/entry.h"

/* What was best for a call with these layouts of its weights. */
typedef struct DavitKnownEntry {
    const DavitInstr *instr; /* (borrowed, program) NULL = nothing is known */
    const DavitLayoutOption *layouts[DAVIT_MAX_WEIGHTS]; /* (borrowed) NULL = a constant, or none */
    const DavitEntryRef *best;                           /* (borrowed, chooser) NULL = none can */
    uint64_t score;
} DavitKnownEntry;

#define DAVIT_KNOWN_ENTRIES 64u /* a layer has some twenty calls, with a few layouts each */

/* The place of @instr with the layouts considered now: instr is NULL, and layouts are those, where
 * its best entry is to be found and kept there. One option in two calls means equal weights:
 * slots share their options only if they are alike (choose.c). */
DavitKnownEntry *davit_known_entry(DavitChooser *chooser, const DavitInstr *instr);

#endif
