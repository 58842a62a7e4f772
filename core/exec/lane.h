/* SPDX-License-Identifier: Apache-2.0
 * A lane: one thread's share of the window, and how it makes pieces.
 *
 * A lane reads what a chunk of rows needs into its stage, makes the rows there (re-order,
 * pack, decode) and writes them once to the slot's memory; what can be read straight into
 * place is. It never touches a mapping, so a file that is cut is an error and not a signal.
 */
#ifndef DAVIT_EXEC_LANE_H
#define DAVIT_EXEC_LANE_H

#include "exec/items.h"
#include "exec/reader.h"

typedef struct DavitLane {
    const DavitPlan *plan; /* (borrowed) */
    DavitReader *reader;   /* (borrowed) of all lanes */
    uint8_t *mem;          /* (borrowed) lane_bytes of the window */
    uint64_t n_bytes, used;
    uint8_t *base;         /* (borrowed) memory of the item's slot, NULL = on a device */
    /* Device: copy @n bytes that stay unchanged during the call to @off of the slot. */
    int32_t (*upload)(void *ctx, const DavitItem *item, uint64_t off, const uint8_t *bytes,
                      uint64_t n_bytes);
    void *ctx;
    DavitLoadStats stats;  /* of this lane */
    DavitReport *report;   /* (borrowed) of the item */
} DavitLane;

/* Make one piece: lane->base or lane->upload is set. */
int32_t davit_lane_make(DavitLane *lane, const DavitItem *item);

/* Exactly @n_bytes of a file at @off to their place, counted; memory of the lane that is not in
 * use may be overwritten. */
int32_t davit_lane_read(DavitLane *lane, uint32_t file, uint64_t off, uint8_t *to,
                        uint64_t n_bytes);

#endif
