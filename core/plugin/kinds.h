/* SPDX-License-Identifier: Apache-2.0
 * The kinds of component that this host knows: their interface version, the size of their
 * table and the slots that must be filled.
 */
#ifndef DAVIT_PLUGIN_KINDS_H
#define DAVIT_PLUGIN_KINDS_H

#include "plugin/registry.h"

/* A required slot of an interface table: a pointer that may not be NULL. */
typedef struct DavitKindSlot {
    const char *name;
    size_t off; /* from the start of the table */
} DavitKindSlot;

typedef struct DavitKindInfo {
    const char *name;
    uint32_t major, minor;     /* what this host implements */
    size_t oldest_end;         /* struct_size of the oldest table that is accepted */
    size_t size;               /* of this host's table */
    bool needs_probe;          /* the component's probe slot is required */
    DavitKindSlot required[8]; /* ends with name NULL */
} DavitKindInfo;

/* (static) */
const DavitKindInfo *davit_kind_info(DavitKind kind);
/* Returns: false if no kind has this name. */
bool davit_kind_find(const char *name, DavitKind *out_kind);

/* Does a component built for @major.@minor that needs a host of at least @min_minor fit?
 * 1.x kinds take any minor of their major; 0.x kinds must be equal.
 * Errors: DAVIT_E_UNSUPPORTED kind-version, with both numbers and who must act. */
int32_t davit_kind_check(DavitKind kind, uint32_t major, uint32_t minor,
                         uint32_t min_minor, const char *component, const char *stage,
                         DavitReport *report);

#endif
