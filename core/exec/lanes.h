/* SPDX-License-Identifier: Apache-2.0
 * The pass over the files: all pieces of a load in file order, by a few threads, in one window
 * that is taken once.
 */
#ifndef DAVIT_EXEC_LANES_H
#define DAVIT_EXEC_LANES_H

#include "exec/device.h"
#include "exec/items.h"
#include "exec/reader.h"

/* Private memory of a slot. */
typedef struct DavitSlotPlace {
    uint64_t off;     /* in the arena */
    uint64_t n_bytes;
    GArray *segments; /* DavitPlacedSegment; NULL = the slot has none */
    uint8_t *base;    /* where it starts, on the host or the device */
} DavitSlotPlace;

typedef struct DavitLanesJob {
    const DavitPlan *plan;
    const DavitLoadOptions *options;
    DavitReader *reader;
    GArray *items;        /* DavitItem; sorted here */
    const GArray *places; /* [n_slots] DavitSlotPlace */
    const DavitExecDevice *devices; /* of the plan, with queues */
} DavitLanesJob;

/* Make every piece; adds to @stats. Errors: those of reads and plugins, MEMORY_SHORT,
 * CANCELLED; the first one stops all lanes, their records stay. */
int32_t davit_lanes_run(const DavitLanesJob *job, DavitLoadStats *stats, DavitReport *report);

#endif
