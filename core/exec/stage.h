/* SPDX-License-Identifier: Apache-2.0
 * What a lane has read of an item, as the quant plugin gets to see it.
 */
#ifndef DAVIT_EXEC_STAGE_H
#define DAVIT_EXEC_STAGE_H

#include "exec/lane.h"

/* All parts, at their would-be starts. */
typedef struct DavitStage {
    davit_quant_bytes part[DAVIT_MAX_PARTS];
    uint64_t whole_used; /* lane memory behind the parts that are read whole */
} DavitStage;

/* Bytes [pos, pos + n_bytes) of a part to @to, run by run. */
int32_t davit_lane_read_part(DavitLane *lane, const DavitModule *module, size_t part, uint64_t pos,
                             uint64_t n_bytes, uint8_t *to);

/* @n_bytes of the lane's memory until lane->used goes back. The plan's arithmetic says that it
 * fits; a piece that does not is a fault of ours. */
uint8_t *davit_lane_take(DavitLane *lane, uint64_t n_bytes);

/* Read the parts that are read whole; then, for each chunk, the others. */
int32_t davit_stage_whole(DavitLane *lane, const DavitItem *item, DavitStage *stage);
int32_t davit_stage_rows(DavitLane *lane, const DavitItem *item, uint64_t expert, uint64_t row,
                         uint64_t n_rows, DavitStage *stage);

/* Number of row @row of expert @expert among the stored rows of the module. */
uint64_t davit_stored_index(const DavitItem *item, uint64_t expert, uint64_t row);
/* Stored row of slot row @row when the converter's rotary order is undone. */
uint64_t davit_stored_row(const DavitSlot *slot, uint64_t row);

/* (borrowed from the lane) First byte of a row in the stage. */
const uint8_t *davit_stage_row(const DavitItem *item, const DavitStage *stage, size_t part,
                               uint64_t expert, uint64_t row);
davit_quant_tile davit_stage_tile(const DavitItem *item, const DavitStage *stage,
                                  uint64_t expert, uint64_t row, uint64_t n_rows);
/* Rows [row, row + n_rows) as float32 [n_rows, n_cols] to @dst. */
void davit_stage_decode(const DavitItem *item, const DavitStage *stage, uint64_t expert,
                        uint64_t row, uint64_t n_rows, float *dst);
/* Payload check of the quant plugin over rows that are staged. */
int32_t davit_stage_verify(DavitLane *lane, const DavitItem *item, const DavitStage *stage,
                           uint64_t expert, uint64_t row, uint64_t n_rows);

#endif
