/* SPDX-License-Identifier: Apache-2.0
 * The axis along which a slot is cut for ranks, and who gets what of it.
 */
#ifndef DAVIT_PLAN_AXIS_H
#define DAVIT_PLAN_AXIS_H

#include "plan/draft.h"

typedef struct DavitAxis {
    enum {
        DAVIT_AXIS_KEEP,
        DAVIT_AXIS_ROWS,
        DAVIT_AXIS_COLUMNS,
        DAVIT_AXIS_VOCAB,
        DAVIT_AXIS_EXPERTS
    } kind;
    uint64_t unit; /* rows or columns that stay together */
    bool heads;    /* a unit was named: it means something, and several ranks may hold the
                      same */
} DavitAxis;

/* The axis that the slot table names. Errors: a fault of the architecture. */
int32_t davit_axis_read(DavitDraft *draft, const DavitSlot *slot, DavitAxis *out);

/* Units that @slot has along @axis. */
uint64_t davit_axis_units(const DavitAxis *axis, const DavitSlot *slot);

/* Are experts, or rows and columns that mean no heads: shares may be of different size.
 */
bool davit_axis_is_loose(const DavitAxis *axis);

/* Units [*first, *first + *n) of @all for @rank of @tp. False: they cannot be shared out.
 */
bool davit_axis_share(const DavitAxis *axis, uint64_t all, unsigned tp, unsigned rank,
                      uint64_t *first, uint64_t *n);

#endif
