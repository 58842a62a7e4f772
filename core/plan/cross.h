/* SPDX-License-Identifier: Apache-2.0
 * Which device does what, and what crosses between devices.
 *
 * A call is done where its state is, or its weight, or its layer; one that has none of them where
 * the call before it was. Sums and gathers of ranks are the host's. A state is where the first call on it is done. A value lies where it is
 * written; a call on another device that reads it gets a copy, made by an op of the core before the
 * first call in a row on that device. A copy serves all later readers there until the value is
 * written anew.
 */
#ifndef DAVIT_PLAN_CROSS_H
#define DAVIT_PLAN_CROSS_H

#include "plan/draft.h"

/* In x on one device; out y on another, that of the instruction: the same rows. */
#define DAVIT_OP_CROSS "cross/1"

bool davit_is_cross_op(const char *op);

/* A leg of a program's way: instructions in a row on one device. */
typedef struct DavitLeg {
    uint32_t device;
    size_t first, begin, end;        /* crossings from first on, calls from begin up to end */
    int64_t first_layer, last_layer; /* -1 = it has calls of no layer only */
} DavitLeg;

/* (owned) DavitLeg: every instruction is on one of them. A plan for one device has one. */
GArray *davit_legs(const DavitProgram *program);

/* Bytes that cross before @leg in a step of @n_tokens tokens and @n_rows logit rows. */
uint64_t davit_leg_bytes(const DavitProgram *program, const DavitLeg *leg, uint64_t n_tokens,
                         uint64_t n_rows);

/* Bytes of a value of @n_tokens or @n_rows rows. */
uint64_t davit_value_bytes(const DavitValue *value, uint64_t n_tokens, uint64_t n_rows);

#define DAVIT_STAGING_ALIGN 64u
/* What crosses from one device to another that is not the host goes through host memory: most of
 * it at one time, each value at a multiple of DAVIT_STAGING_ALIGN. */
uint64_t davit_staging_bytes(const DavitProgram *program, uint64_t n_tokens, uint64_t n_rows);

/* Set the device of every call, value, table and state of plan->program by those of the slots
 * (@layers: [n_layers + 1] device of each layer and of the rest), and add what crosses.
 * Errors: NOT_BUILT for a call whose weights and state are on several devices. */
int32_t davit_cross_devices(DavitPlan *plan, const uint32_t *layers, DavitReport *report);

#endif
