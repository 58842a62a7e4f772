/* SPDX-License-Identifier: Apache-2.0
 * Which files are looked at, in which order. Never: the current directory, the directory
 * of the program, the model's directory, or any path named by a checkpoint.
 *
 *   option   --plugin-path DIR or FILE          not when privileged; an error if missing
 *   env      DAVIT_PLUGIN_PATH, absolute parts  not when privileged; a bad part is an error
 *   config   plugin_path of plugins.json        privileged: the system's alone
 *   user     $XDG_DATA_HOME/davit/plugins-1     not when privileged, not for root
 *   local    /usr/local/lib/davit/plugins-1
 *   builtin  <directory of libdavit>/davit/plugins-1
 *
 * One level, *.so, no hidden files, sorted by name.
 */
#ifndef DAVIT_PLUGIN_SEARCH_H
#define DAVIT_PLUGIN_SEARCH_H

#include "plugin/prefs.h"
#include "plugin/registry.h"

typedef struct DavitCandidate {
    char *path;       /* absolute */
    const char *tier; /* (static) "option" ... "builtin" */
    int rank;         /* 0 = first tier */
    bool is_named;    /* the user named this very file */
    bool is_builtin;  /* lies in davit's own directory, however it was found */
} DavitCandidate;

/* Returns: (owned) DavitCandidate in order. Directories that were read, and davit's own
 * even if it is absent, are appended to @dirs (char *). */
GPtrArray *davit_search(const DavitRegistryOptions *options, const DavitPrefs *prefs,
                        GPtrArray *dirs, DavitReport *report);

#endif
