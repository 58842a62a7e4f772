/* SPDX-License-Identifier: Apache-2.0
 * DavitDraft: a plan while it is made. What the steps of plan.c hand on to each other and
 * what no reader of a finished plan needs. Not for other folders.
 */
#ifndef DAVIT_PLAN_DRAFT_H
#define DAVIT_PLAN_DRAFT_H

#include <inttypes.h>

#include "plan/plan.h"

/* A component that the plan may call: loaded, its instance made. */
typedef struct DavitTool {
    DavitComponent *component; /* (borrowed, registry) */
    const void *iface;         /* (borrowed, registry) table of the component's kind; NULL = a
                                * quant component that no module needed yet (tools.h) */
    void *self;                /* (borrowed, registry) */
} DavitTool;

/* Findings of one kind that get a record each; a wrong checkpoint has thousands. */
#define DAVIT_MAX_SINGLE 50u

/* What became of a stored tensor. */
#define DAVIT_TAKEN         1u /* a slot has it */
#define DAVIT_TAKEN_WHOLE   2u /* a slot has all of its rows */
#define DAVIT_TAKEN_REFUSED 4u /* a slot asked for it and was told why not */

/* Everything a plan is made from besides the checkpoint. Arrays in candidate order. */
typedef struct DavitToolbox {
    DavitTool arch;  /* component NULL = not chosen yet */
    GArray *quants;  /* (owned) DavitTool */
    GArray *kernels; /* (owned) DavitTool, of the wanted device only */
    const struct DavitDeviceMap *map; /* (borrowed) NULL = none */
    const char *const *homes;         /* (borrowed) [n_slots] instead of a map; NULL = none */
} DavitToolbox;

typedef struct DavitModuleTable DavitModuleTable;

typedef struct DavitDraft {
    DavitPlan *plan;                 /* (borrowed) being filled */
    const DavitPlanOptions *options; /* (borrowed) */
    const DavitToolbox *tools;       /* (borrowed) */
    DavitReport *report;             /* (borrowed) */
    DavitModuleTable *modules;       /* (borrowed) */
    const struct DavitQuantConfig *quant; /* (borrowed) NULL = nothing is stated */
    const char *f32;                 /* interned "f32/1" */
    const char
        *prefix; /* (static) before "layers.{i}." in Hugging Face names; "" = none */
    uint8_t *consumed; /* (borrowed) [n_tensors] DAVIT_TAKEN_ bits, 0 = left over */
    GArray *slots;     /* (borrowed) DavitSlot, moved into the plan when complete */
    GPtrArray *wanted; /* (owned) char *: names that missing slots looked for */
    uint64_t n_missing,
        n_mismatched; /* findings, also those without a record of their own */
} DavitDraft;

/* The plan itself, without choosing components: what davit_plan_make does after it has
 * found them, and what tests call with tables of their own. */
DavitPlan *davit_plan_draft(const DavitToolbox *tools, const DavitCheckpoint *checkpoint,
                            const DavitSettings *settings,
                            const DavitPlanOptions *options, DavitReport *report);

/* Is @word one of the '|'-joined words of @list (NULL = none)? */
bool davit_words_have(const char *list, const char *word);

#endif
