/* SPDX-License-Identifier: Apache-2.0
 * FILE.so.davit.json beside a plugin: what an administrator says of a file that cannot be
 * changed. Part of gates 3 and 4; trusted like the plugin itself.
 *
 *   beside a file with a manifest: {"disabled": true, "priority": 70, "sha256": "...",
 *                                   "comment": "..."}, each optional, and nothing else
 *   beside one without: the whole manifest: the members of the bundle's note and "components",
 *                       an array of component notes, each with "refuses" (davit/plugin.h)
 */
#ifndef DAVIT_PLUGIN_SIDECAR_H
#define DAVIT_PLUGIN_SIDECAR_H

#include "plugin/elf.h"
#include "plugin/trust.h"

typedef struct DavitSidecar {
    char *path;
    json_t *object;
    GPtrArray *texts; /* of notes */
    GArray *notes;    /* DavitElfNote made of the object; empty if it is no whole manifest */
} DavitSidecar;

/* Read what stands beside the plugin @real. Returns: (owned), or NULL: there is none, or it
 * cannot be used and a record says why (*out_status negative). @trust as for trust.h. */
DavitSidecar *davit_sidecar_read(const char *real, DavitTrust *trust,
                                 int32_t *out_status, DavitReport *report);
void davit_sidecar_free(DavitSidecar *sidecar); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitSidecar, davit_sidecar_free)

/* Beside a file that has a manifest: only the four settings? Errors: DAVIT_E_CORRUPT
 * bad-manifest, every other member. */
int32_t davit_sidecar_check_settings(const DavitSidecar *sidecar, DavitReport *report);
/* NULL sidecars say nothing. */
bool davit_sidecar_disables(const DavitSidecar *sidecar);
/* Returns: false if it sets none. */
bool davit_sidecar_priority(const DavitSidecar *sidecar, int32_t *out);
const char *davit_sidecar_sha256(const DavitSidecar *sidecar); /* (borrowed) NULL = any */

#endif
