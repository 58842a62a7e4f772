/* SPDX-License-Identifier: Apache-2.0
 * Gates 5 to 8: into this process, and never out of it again (no dlclose: destructors of
 * threads and of the C library may run plugin code much later).
 */
#ifndef DAVIT_PLUGIN_LOAD_H
#define DAVIT_PLUGIN_LOAD_H

#include "plugin/registry_private.h"

/* Load the component's file if needed, and create the component's instance. Done once;
 * later calls give the same answer. Findings go to the records of the file and of the
 * component. Returns: DAVIT_OK, or the status it ended with. [the loader's lock is held]
 */
int32_t davit_load_component(DavitComponent *component);

/* Gates 5 to 8 of the file alone, without instances; the same answer when called again.
 * Findings go to file->records. [the loader's lock is held] */
int32_t davit_load_file(DavitPluginFile *file);

/* Destroy instances and quiesce bundles, each in reverse order. */
void davit_load_shutdown(DavitRegistry *registry);

#endif
