/* SPDX-License-Identifier: Apache-2.0
 * Quantised weights as `davit inspect` shows them: modules that are stored alike, together.
 */
#ifndef DAVIT_CLI_INSPECT_QUANT_H
#define DAVIT_CLI_INSPECT_QUANT_H

#include <jansson.h>

#include "checkpoint/checkpoint.h"
#include "plugin/registry.h"

/* (owned) {"groups": [...], "unread": null or {...}}: scheme, layout, bits of a weight, modules,
 * suffixes with dtypes. Reads headers, and tensors of a few bytes that a check looks at. */
json_t *davit_inspect_quant(DavitRegistry *registry, const DavitCheckpoint *checkpoint);
/* The same on stdout; nothing where all weights are plain numbers. */
void davit_inspect_quant_print(const json_t *quantised);

#endif
