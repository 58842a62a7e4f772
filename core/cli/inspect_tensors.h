/* SPDX-License-Identifier: Apache-2.0
 * The list of tensors of `davit inspect`: a line or an object for each.
 */
#ifndef DAVIT_CLI_INSPECT_TENSORS_H
#define DAVIT_CLI_INSPECT_TENSORS_H

#include "base/json_write.h"
#include "checkpoint/checkpoint.h"

/* Those whose name matches @glob, NULL = all; one line each on stdout. */
void davit_inspect_tensors_print(const DavitCheckpoint *c, const char *glob);
/* The same as the elements of an array. */
void davit_inspect_tensors_write(const DavitCheckpoint *c, const char *glob, DavitJsonWriter *w);

#endif
