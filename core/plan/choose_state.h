/* SPDX-License-Identifier: Apache-2.0
 * One kernels component per state: it keeps the layout, so all ops on the state are its
 * own.
 */
#ifndef DAVIT_PLAN_CHOOSE_STATE_H
#define DAVIT_PLAN_CHOOSE_STATE_H

#include "plan/entry.h"

/* Fill chooser->state_tool, and dtype and block bytes of the program's states. Errors:
 * OP_MISSING when no component keeps a state and computes its ops. */
int32_t davit_choose_states(DavitChooser *chooser);

#endif
