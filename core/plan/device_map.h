/* SPDX-License-Identifier: Apache-2.0
 * The file of --device-map: which module goes to which device.
 *
 * The form is Transformers' device map: an object from module names, as they stand in the
 * checkpoint or in the Hugging Face model, to "cpu", "disk", a device's name ("cuda:0") or its
 * number. A name stands for everything below it, the longest that fits counts, and "" stands for
 * everything.
 */
#ifndef DAVIT_PLAN_DEVICE_MAP_H
#define DAVIT_PLAN_DEVICE_MAP_H

#include "plan/plan.h"

typedef struct DavitMapEntry {
    char *name;       /* (owned) "model.layers.0" */
    const char *home; /* interned: a device's name, or "disk" */
    bool known;       /* the model has something of that name */
} DavitMapEntry;

typedef struct DavitDeviceMap {
    char *file;          /* (owned) how it is called in records */
    GPtrArray *entries;  /* (owned) DavitMapEntry, in the file's order */
    GHashTable *by_name; /* name (borrowed) -> DavitMapEntry (borrowed) */
} DavitDeviceMap;

/* Read @path, its devices resolved among @devices (DavitDevice). Returns: (owned) the map, or NULL
 * with every fault of the file and every device that is not here. */
DavitDeviceMap *davit_device_map_read(const char *path, const GArray *devices,
                                      DavitReport *report);
/* The same from @text of @n bytes; @file names it. */
DavitDeviceMap *davit_device_map_parse(const char *file, const char *text, size_t n,
                                       const GArray *devices, DavitReport *report);
void davit_device_map_free(DavitDeviceMap *map); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitDeviceMap, davit_device_map_free)

/* (borrowed) The entry that counts for the dotted @name, NULL if none does. All entries that stand
 * above @name or are it become known, but "", which needs no module. */
DavitMapEntry *davit_device_map_find(const DavitDeviceMap *map, const char *name);

/* Is @entry the one for everything? */
bool davit_map_entry_is_rest(const DavitMapEntry *entry);

#endif
