/* SPDX-License-Identifier: Apache-2.0
 * Rows of a slot from what is staged, by the way that the plan chose. Private to the lane.
 *
 * @segment: where the expert's segment starts in the slot's memory; rows count within the
 * source. Errors: MEMORY, those of reads and uploads, a value that does not fit.
 */
#ifndef DAVIT_EXEC_MAKE_H
#define DAVIT_EXEC_MAKE_H

#include "exec/stage.h"

/* Memory to make @n_bytes in that belong at @off of the slot, and sending them there: nothing
 * to do on the host. */
uint8_t *davit_lane_target(DavitLane *lane, uint64_t off, uint64_t n_bytes);
int32_t davit_lane_put(DavitLane *lane, const DavitItem *item, uint64_t off,
                       const uint8_t *bytes, uint64_t n_bytes);

/* A whole item, read into place. */
int32_t davit_make_direct(DavitLane *lane, const DavitItem *item, uint64_t segment);

int32_t davit_make_copied(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows);
int32_t davit_make_packed(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                          uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows);
int32_t davit_make_decoded(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                           uint64_t segment, uint64_t expert, uint64_t row, uint64_t n_rows);

#endif
