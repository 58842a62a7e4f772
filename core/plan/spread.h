/* SPDX-License-Identifier: Apache-2.0
 * A plan over several places: devices and the disk.
 *
 * With a device map the file says where slots go. Left to the program ("auto"), devices are filled
 * in order, each as far as weights, keys and values of the context, values and scratch fit what is
 * free or --memory gives it: those that kernels components own first, then the host, then the
 * disk. Embedding and tied head are one piece, and so is each layer. A value that is read on
 * another device than the one that wrote it crosses (cross.h); what that takes is part of the
 * places' sums.
 */
#ifndef DAVIT_PLAN_SPREAD_H
#define DAVIT_PLAN_SPREAD_H

#include "plan/draft.h"

/* @tools: arch and quants; kernels are looked up for each device. Returns and errors: as
 * davit_plan_make; and DEVICE_MISSING for devices that are not here, MEMORY_SHORT for a device
 * whose budget is too small, NOT_BUILT for a call whose weights lie on several devices. */
DavitPlan *davit_spread_plan(DavitRegistry *registry, const DavitToolbox *tools,
                             const DavitCheckpoint *checkpoint, const DavitSettings *settings,
                             const DavitPlanOptions *options, DavitReport *report);

#endif
