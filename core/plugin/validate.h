/* SPDX-License-Identifier: Apache-2.0
 * Gate 7: what the entry returned, checked field by field and against the manifest. Only
 * copies are kept: min(size of theirs, size of ours), zeros behind.
 */
#ifndef DAVIT_PLUGIN_VALIDATE_H
#define DAVIT_PLUGIN_VALIDATE_H

#include "plugin/registry_private.h"

/* Fill file->load->bundle and, for each component, desc and iface. A component that fails
 * is REFUSED alone, with its records. Returns: DAVIT_OK, or DAVIT_E_UNSUPPORTED if the
 * file as a whole is refused, with records in file->records. Codes: bad-magic bad-size
 * missing-field manifest-mismatch kind-version. */
int32_t davit_validate_bundle(DavitPluginFile *file, const davit_bundle *theirs);

#endif
