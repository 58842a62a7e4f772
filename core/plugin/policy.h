/* SPDX-License-Identifier: Apache-2.0
 * Gate 4: decisions from the manifest alone: ABI numbers, build facts, kinds and their
 * versions, reserved ids, the user's filters, and who shadows whom.
 */
#ifndef DAVIT_PLUGIN_POLICY_H
#define DAVIT_PLUGIN_POLICY_H

#include "plugin/manifest.h"
#include "plugin/prefs.h"
#include "plugin/registry.h"

/* Ids that belong to davit: only files of its own plugin directory may use them. */
#define DAVIT_RESERVED_PREFIX "org.davit."

/* The file as a whole. Errors: DAVIT_E_UNSUPPORTED abi-major, host-too-old, host-too-new,
 * build-fact, cpu-unsupported, duplicate-id (all findings). */
int32_t davit_policy_file(const DavitManifest *manifest, bool is_builtin,
                          const char *path, DavitReport *report);

/* One component. Errors: DAVIT_E_UNSUPPORTED kind-unknown, kind-version, duplicate-id, and
 * draft unless @allow_draft for a kind whose name ends with -draft. */
int32_t davit_policy_component(const DavitManifestComponent *component, bool is_builtin,
                               bool allow_draft, const char *path, DavitReport *report);

/* Do plugins.json, DAVIT_PLUGINS_DISABLE and DAVIT_PLUGINS_SELECT (comma-separated globs)
 * leave @id on? If not, a note "disabled" that names the file or variable. Privileged
 * processes look at the system's file alone. */
bool davit_policy_enabled(const char *id, const DavitPrefs *prefs, DavitReport *report);

/* With a lock file: is bundle @id in it? Errors: DAVIT_E_UNSUPPORTED not-in-lock. */
int32_t davit_policy_lock(const char *id, const char *path, const DavitPrefs *prefs,
                          DavitReport *report);
/* Has the file at @path the sha256 @want (NULL = any) that @by, "the lock file", names? Reads all
 * of it. Errors: DAVIT_E_UNSUPPORTED hash-mismatch; DAVIT_E_IO. */
int32_t davit_policy_hash(const char *want, const char *path, const char *by,
                          DavitReport *report);

/* Precedence of SemVer 2.0: negative, 0, positive. Text that is no version comes first.
 */
int davit_version_compare(const char *a, const char *b);

/* Value of @key in "key=value;..." (owned), NULL if absent. */
char *davit_build_fact(const char *build_tag, const char *key);

#endif
