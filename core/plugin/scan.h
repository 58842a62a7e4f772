/* SPDX-License-Identifier: Apache-2.0
 * Gates 1 to 4 for one file: from a path to a listed file and its components, without
 * running any of its code.
 */
#ifndef DAVIT_PLUGIN_SCAN_H
#define DAVIT_PLUGIN_SCAN_H

#include "plugin/registry_private.h"
#include "plugin/trust.h"

/* Appends to @registry's files and components, or adds an alias to a file seen before. */
void davit_scan_file(DavitRegistry *registry, const DavitCandidate *candidate, DavitTrust *trust);

#endif
