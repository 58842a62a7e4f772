/* SPDX-License-Identifier: Apache-2.0
 * What the files that cut slots share: shares.c (which rank gets what), refuse_cut.c (why
 * it cannot be had) and cut.c (who cuts). Not for others.
 */
#ifndef DAVIT_PLAN_CUTTER_H
#define DAVIT_PLAN_CUTTER_H

#include "plan/axis.h"
#include "plan/part.h"

typedef struct DavitCutter {
    DavitDraft *draft;
    DavitAxis *axes; /* (owned) [n_slots] */
    GArray *splits;  /* (owned) DavitSplit, newest last */
    bool *kind;      /* (owned) [n_slots] the first of its kind: the others are like it */
    GHashTable *told;     /* (owned) ids of slots that have a record */
    const char *together; /* (borrowed, report) counts that the whole model takes; NULL =
                             not asked */
} DavitCutter;

DavitSlot *davit_cut_slot(const DavitCutter *c, guint i);
bool davit_cut_has_bytes(const DavitSlot *slot);

/* Rows [first, first + n) or columns of @slot that @source gives, in its module. False:
 * none. */
bool davit_cut_box(const DavitSlot *slot, const DavitSlotSource *source, bool columns,
                   uint64_t first, uint64_t n, davit_quant_box *out);
/* Can every source be cut there? Its record goes to @report. */
int32_t davit_cut_try(const DavitCutter *c, const DavitSlot *slot, bool columns,
                      uint64_t first, uint64_t n, DavitReport *report);
bool davit_cut_fits(const DavitCutter *c, const DavitSlot *slot, bool columns,
                    uint64_t first, uint64_t n);

/* (owned) For davit_cut_share to remember. */
GArray *davit_splits_new(void);
/* Rows, columns or experts of slot @i for @rank of @tp. False: they cannot be shared out.
 */
bool davit_cut_share(DavitCutter *c, guint i, unsigned tp, unsigned rank, uint64_t *first,
                     uint64_t *n);
/* Can slot @i be cut for every rank of @tp? */
bool davit_cut_all_fit(DavitCutter *c, guint i, unsigned tp);
/* Has slot @i an extent of @whole rows or columns of @layer that may be shared out
 * unevenly? */
bool davit_cut_is_of_split(const DavitCutter *c, guint i, int64_t layer, uint64_t whole);
/* The unit in which the extent of slot @near is shared out: an equal share where it fits,
 * else the finest that does; @alone: as if no other slot had it. 0 = none. */
uint64_t davit_cut_unit(const DavitCutter *c, guint near, unsigned tp, bool alone);

/* Before anything is cut, for all ranks alike: false after a record per kind of slot that
 * cannot be cut. */
bool davit_cut_check(DavitCutter *c, guint i);
/* Does slot @i stand for all of its kind: the first of its id, or of another size or layout than
 * the one before it? */
bool davit_cut_is_new_kind(const DavitCutter *c, guint i);
/* The layout's own record in @said, with the slot's name and the counts. */
void davit_cut_refuse_layout(DavitCutter *c, guint i, const DavitReport *said);

#endif
