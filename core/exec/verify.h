/* SPDX-License-Identifier: Apache-2.0
 * Payload checks of borrowed weights. What is copied, packed or decoded is checked on its way;
 * what stays in the file's mapping would have to be read for it, all of a file that may be larger
 * than the memory. So it is checked when there is a reason: a NaN scale makes a value NaN, every
 * kernel hands it on (tests/kernels), and logits that are not finite end the step, which asks
 * here which tensor it was.
 */
#ifndef DAVIT_EXEC_VERIFY_H
#define DAVIT_EXEC_VERIFY_H

#include "plan/plan.h"

/* By several threads, in file order; stops at the first faults. OK = the weights are sound.
 * Errors: what the quant plugins say, each record naming its module. */
int32_t davit_borrowed_verify(const DavitPlan *plan, DavitReport *report);

#endif
