/* SPDX-License-Identifier: Apache-2.0
 * Gate 1: may this path bring code? Judged by mode bits and owners, never by access():
 * root may do everything and would trust everything.
 *
 *   file    regular after realpath; owned by root or the effective user (by root alone if
 *           that is root); not writable by group or others
 *   parents of the file, and of every link on the way named: not writable by group or
 * others. A sticky directory (/tmp) is fine if root or the effective user owns it and
 * what it holds on this path: nobody else can replace that.
 *
 * Writable by the group is fine where the group is the owner's private one (same number,
 * as Debian and Ubuntu give it): with their umask 002 every build tree looks like that.
 */
#ifndef DAVIT_PLUGIN_TRUST_H
#define DAVIT_PLUGIN_TRUST_H

#include <sys/stat.h>

#include "base/report.h"

/* One look round: directories are judged once, since all plugins lie in a few. What it has seen
 * holds for that moment only; make one for each scan and free it after. Not thread-safe. */
typedef struct DavitTrust DavitTrust;

/* @dirs: directories (real paths, NULL-terminated, may be NULL; borrowed) whose content the user
 * vouches for: only the kind of file is checked there. */
DavitTrust *davit_trust_new(const char *const *dirs);
void davit_trust_free(DavitTrust *trust); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitTrust, davit_trust_free)

/* @path absolute. On success *out_real is the (owned) real path and *out_stat what was seen.
 * Errors: DAVIT_E_UNSUPPORTED not-regular, perm-writable, wrong-owner (all findings);
 * DAVIT_E_IO io-failed. */
int32_t davit_trust_check(DavitTrust *trust, const char *path, char **out_real,
                          struct stat *out_stat, DavitReport *report);

/* Does the process run with more rights than its user (setuid, AT_SECURE)? Then arguments
 * and environment bring no code. */
bool davit_trust_privileged(void);

#endif
