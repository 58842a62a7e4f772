/* SPDX-License-Identifier: Apache-2.0
 * The ops of plan/ranks.h as kernel entries of the core: one task, done by whichever worker takes
 * it while the others wait at the phase's barrier. A call's self is the group.
 */
#ifndef DAVIT_EXEC_COLLECTIVE_H
#define DAVIT_EXEC_COLLECTIVE_H

#include <davit/kernels.h>

#include "comm/comm.h"

/* (static) NULL if @op is none of them. A failed call leaves its output as it was: the group's
 * status is looked at when the step is over. */
const davit_kernel_entry *davit_collective_entry(const char *op);

#endif
