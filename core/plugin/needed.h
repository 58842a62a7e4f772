/* SPDX-License-Identifier: Apache-2.0
 * Is a library that a plugin needs on this machine? Answered from paths alone, as ld.so(8)
 * would look, without loading anything: an absent one is a refusal at every run until it is
 * installed, and never a reason for quarantine.
 */
#ifndef DAVIT_PLUGIN_NEEDED_H
#define DAVIT_PLUGIN_NEEDED_H

#include "base/report.h"
#include "plugin/elf.h"

/* Libraries that were looked for; one per registry. */
typedef struct DavitLibraries DavitLibraries;
DavitLibraries *davit_libraries_new(void);
void davit_libraries_free(DavitLibraries *libraries); /* NULL is fine */

/* Looks in the object's RUNPATH, LD_LIBRARY_PATH, the loader's cache and the usual
 * directories. A machine whose loader cache cannot be read counts as having everything.
 * Errors: DAVIT_E_UNSUPPORTED missing-dep, one per absent library. */
int32_t davit_needed_check(DavitLibraries *libraries, const GPtrArray *needed,
                           const char *runpath, const char *path, DavitReport *report);

/* After @path was loaded: a library of @needed that @runpath finds beside it, but that the loader
 * took from elsewhere, because one of that name was there first. A warning "library-clash" for
 * each. Returns: how many. */
size_t davit_needed_clashes(const GPtrArray *needed, const char *runpath, const char *path,
                            DavitReport *report);

#endif
