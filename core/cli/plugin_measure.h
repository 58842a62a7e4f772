/* SPDX-License-Identifier: Apache-2.0
 * davit plugin ops --measure.
 */
#ifndef DAVIT_CLI_PLUGIN_MEASURE_H
#define DAVIT_CLI_PLUGIN_MEASURE_H

#include "checkpoint/checkpoint.h"
#include "cli/command.h"
#include "config/config.h"
#include "plan/plan.h"

/* Time the able entries of @op (NULL = all) on @checkpoint, print the times and the order that
 * they suggest and, with --write, write it as the user's ranks. @options as the command's flags
 * give them. Returns: an exit code. */
int davit_ops_measure(DavitCall *call, DavitRegistry *registry, DavitCheckpoint *checkpoint,
                      const DavitSettings *settings, const DavitPlanOptions *options,
                      const char *op);
/* Does @wanted ("linear" or "linear/1") mean the op @name? */
bool davit_ops_is(const char *name, const char *wanted);

#endif
