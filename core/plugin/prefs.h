/* SPDX-License-Identifier: Apache-2.0
 * What the user decided about plugins: /etc/davit/plugins.json, then
 * $XDG_CONFIG_HOME/davit/plugins.json (not when privileged).
 *
 *   {"disabled": ["com.acme.*"],          globs of component or bundle ids
 *    "ranks": {"com.acme.quant.x": 10},   order among candidates before everything else; above
 *                                         0 = earlier, below 0 = later than all others
 *    "plugin_path": ["/opt/plugins"],     absolute directories, searched after the environment
 *    "trust": ["/srv/shared/plugins"],    as --trust-dir
 *    "kernel_ranks": {"linear": {"com.acme.kernels:name": 10}}}  see `plugin ops --measure`
 *
 * plugins.lock beside it: {"com.acme.pack": "<sha256 of the file>"}; with it, only the bundles
 * that it names are loaded, and only the file that it names (davit's own are exempt).
 *
 * A file that does not parse is an error, not a silence; a folder that this user may not enter is
 * somebody else's, and a warning.
 */
#ifndef DAVIT_PLUGIN_PREFS_H
#define DAVIT_PLUGIN_PREFS_H

#include "base/report.h"

typedef struct DavitPrefs {
    json_t *system, *user, *lock; /* objects; NULL = there is none */
    char *user_path;              /* where user's are written; NULL = nowhere */
    char *lock_path;              /* NULL = no lock file */
} DavitPrefs;

/* @dir: NULL = the usual places; "" = none; else the user's directory alone. */
DavitPrefs *davit_prefs_open(const char *dir, DavitReport *report);
void davit_prefs_free(DavitPrefs *prefs); /* NULL is fine */

/* The glob that disables @id, and in *out_path the file it stands in; NULL = none. Both
 * borrowed. */
const char *davit_prefs_disabled(const DavitPrefs *prefs, const char *id,
                                 const char **out_path);
/* 0 = not given. */
int32_t davit_prefs_rank(const DavitPrefs *prefs, const char *id);
/* Rank of kernel entry @entry of component @id for @op; 0 = not given. */
int32_t davit_prefs_kernel_rank(const DavitPrefs *prefs, const char *op, const char *id,
                                const char *entry);
/* (owned, char *) strings of the lists @key of both files. */
GPtrArray *davit_prefs_list(const DavitPrefs *prefs, const char *key);
/* (borrowed) sha256 that the lock file wants for bundle @id; "" = not listed; NULL = no lock
 * file. */
const char *davit_prefs_lock(const DavitPrefs *prefs, const char *id);

/* Add @id to the user's disabled list, or take it out. The file is read again and written whole,
 * by rename, under a lock (plugins.json.lock): runs at the same time lose no entry.
 * Errors: DAVIT_E_IO; DAVIT_E_USAGE if the entry cannot be taken out because another file or
 * a glob holds it. */
int32_t davit_prefs_set_disabled(DavitPrefs *prefs, const char *id, bool disabled,
                                 DavitReport *report);
/* Put @ranks ({entry: rank}) under kernel_ranks.@op of the user's file. @ranks is taken over. */
int32_t davit_prefs_set_kernel_ranks(DavitPrefs *prefs, const char *op, json_t *ranks,
                                     DavitReport *report);

#endif
