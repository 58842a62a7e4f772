/* SPDX-License-Identifier: Apache-2.0
 * Gate 3: the manifest of a plugin, from the JSON notes that the macros of davit/plugin.h
 * write. Nothing of the plugin runs.
 *
 * Members that this host does not know are skipped: a newer SDK may write more. Members
 * that are required are refused by name when absent or of a wrong type.
 */
#ifndef DAVIT_PLUGIN_MANIFEST_H
#define DAVIT_PLUGIN_MANIFEST_H

#include "plugin/elf.h"

#define DAVIT_MAX_MANIFEST (64 * 1024) /* bytes of all notes together */

/* A refusal known without input. All strings owned. */
typedef struct DavitManifestRefusal {
    uint32_t code;     /* 0 if the name is newer than this host */
    uint64_t purposes; /* 0 = all */
    char *subject, *message, *hint;
} DavitManifestRefusal;

typedef struct DavitManifestComponent {
    char *id, *kind, *capability;
    uint32_t kind_major, kind_minor;
    int32_t priority;
    uint64_t purposes;
    GPtrArray *refusals; /* DavitManifestRefusal, in file order */
} DavitManifestComponent;

typedef struct DavitManifest {
    char *id, *name, *vendor, *version, *license, *build;
    uint32_t abi_major, abi_minor, min_host_minor;
    uint32_t max_host_minor; /* UINT32_MAX if not stated */
    GPtrArray *components;   /* DavitManifestComponent, by id; at least one */
} DavitManifest;

/* Read @notes (DavitElfNote). @subject names the file in records.
 * Returns: (owned), or NULL with all findings in @report.
 * Errors: DAVIT_E_CORRUPT bad-manifest. */
DavitManifest *davit_manifest_read(const GArray *notes, const char *subject,
                                   DavitReport *report);
void davit_manifest_free(DavitManifest *manifest); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitManifest, davit_manifest_free)

/* Value of "DAVIT_MAP | DAVIT_RUN" or "3u". Purpose names that start with DAVIT_ and are
 * not known count as nothing (a newer SDK's). Returns: false if @text is something else.
 */
bool davit_purposes_parse(const char *text, uint64_t *out_purposes);

/* Number of "DAVIT_R_FORWARD_ABSENT" or "401", 0 if unknown. */
uint32_t davit_code_parse(const char *text);

#endif
