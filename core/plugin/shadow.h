/* SPDX-License-Identifier: Apache-2.0
 * The part of gate 4 that looks at all files together: who provides an id when several
 * do.
 */
#ifndef DAVIT_PLUGIN_SHADOW_H
#define DAVIT_PLUGIN_SHADOW_H

#include "plugin/registry_private.h"

/* Mark losers SHADOWED with a note that names the winner: variants NAME.LEVEL.so of NAME.so
 * (the highest LEVEL of base/cpu.h that this processor has), copies of one build, equal ids
 * (earlier tier, higher version, earlier file). A variant that does not fit and stands alone is
 * refused as cpu-unsupported. */
void davit_shadow(DavitRegistry *registry);

/* Note with each of @components (DavitComponent of one kind, in candidate order) whether
 * another claims the same thing. */
void davit_shadow_conflicts(const GPtrArray *components);

#endif
