/* SPDX-License-Identifier: Apache-2.0
 * Devices that are here: the host, and those that kernels components own.
 */
#ifndef DAVIT_PLAN_DEVICES_H
#define DAVIT_PLAN_DEVICES_H

#include "plan/plan.h"

typedef struct DavitDevice {
    const char *name;     /* interned: "cpu", "cuda"; with a number where a component has several:
                           * "cuda:1" */
    const char *kind;     /* interned: without the number */
    uint64_t index;       /* of the component's devices */
    uint64_t free_bytes;  /* now; 0 for the host, which budget.h of exec knows */
} DavitDevice;

/* (owned) DavitDevice: the host first, then each component's devices in candidate order. A
 * component that does not load, or whose device does not answer, has none. */
GArray *davit_devices_find(DavitRegistry *registry);

/* (borrowed, @devices) NULL if there is none. @text: "cpu", "cuda", "cuda:0", "0" (the first that
 * is not the host). */
const DavitDevice *davit_devices_named(const GArray *devices, const char *text);

/* The parts of a device's name: "cuda:1" is number 1 of "cuda" (*out_kind, interned), "cuda" its
 * number 0. False, and all of it the kind, where something else stands behind the colon. */
bool davit_device_split(const char *name, const char **out_kind, uint64_t *out_index);

/* "cpu, cuda": what is here. (owned by @report) */
const char *davit_devices_text(const GArray *devices, DavitReport *report);

/* DEVICE_MISSING for @found. @subject says who asked. */
void davit_devices_refuse(const GArray *devices, const char *subject, const char *found,
                          DavitReport *report);

#endif
