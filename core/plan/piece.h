/* SPDX-License-Identifier: Apache-2.0
 * How a private slot is loaded: which ranges of files, in pieces of what size, through how
 * much lane memory. Plan and executor ask the same functions, so that what is predicted is
 * what happens.
 */
#ifndef DAVIT_PLAN_PIECE_H
#define DAVIT_PLAN_PIECE_H

#include "plan/plan.h"
#include "source/direct.h"

/* Bytes by which the memory of a read is larger than what is asked for: reads past the page
 * cache start before it and end behind it. */
#define DAVIT_READ_SLACK (2ull * DAVIT_DIRECT_ALIGN)

/* A range of a file that a slot takes. */
typedef struct DavitRead {
    uint32_t tensor;  /* catalogue index */
    uint32_t part;    /* of the module's desc */
    uint32_t file;
    uint64_t off;     /* from the start of the file */
    uint64_t n_bytes;
    uint64_t n_runs;  /* so many times, 1 = one range */
    uint64_t stride;  /* from one run to the next */
} DavitRead;

/* Append the ranges of @source to @reads (DavitRead), part by part in file order; those that
 * touch are one. */
void davit_reads_of(const DavitPlan *plan, const DavitSlot *slot,
                    const DavitSlotSource *source, GArray *reads);

/* How one source of a slot is cut. */
typedef struct DavitPiece {
    uint64_t rows;          /* of a piece, the unit of work; the last may be shorter */
    uint64_t chunk_rows;    /* read and made at a time within a piece */
    uint64_t stage_bytes;   /* file bytes in the lane at one time */
    uint64_t scratch_bytes; /* beside them: rows gathered, decoded or waiting for upload */
} DavitPiece;

/* @target: bytes of file that a chunk aims at. */
void davit_piece_of(const DavitPlan *plan, const DavitSlot *slot,
                    const DavitSlotSource *source, uint64_t target, DavitPiece *out);
/* The target that belongs to @plan's window and lanes. */
uint64_t davit_piece_target(uint64_t window_limit, unsigned n_lanes);

/* Rows of @part can be read by row; else it is read whole. */
bool davit_part_by_row(const DavitSlot *slot, const DavitModule *module, size_t part);
/* Bytes of one value of a DECODE slot's layout: 4, or 2. */
uint64_t davit_decoded_value_bytes(const DavitSlot *slot);

/* Rows of a packed slot that are decoded at a time: its row block; codes whose rows lie side by side and not
 * one after another, as many blocks as lines of the processor's cache have, so that lines are read once. */
uint64_t davit_decode_rows(const DavitSlot *slot, const DavitSlotSource *source);

/* Fill lanes, window, stacks and peak of @plan; @n_lanes 0 = by the machine. */
void davit_plan_window(DavitPlan *plan, uint64_t window_limit, unsigned n_lanes);

#endif
