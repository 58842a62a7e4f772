/* SPDX-License-Identifier: Apache-2.0
 * Gate 5: the probe helper. A plugin that was never seen runs in a child process first.
 */
#ifndef DAVIT_PLUGIN_HELPER_H
#define DAVIT_PLUGIN_HELPER_H

#include "plugin/registry.h"

/* Called once per file, after gates 1 to 4 and before it is loaded into this process.
 * Returns: DAVIT_OK if the file may be loaded here. */
int32_t davit_helper_probe(const DavitPluginFile *file, DavitReport *report);

#endif
