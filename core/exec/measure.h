/* SPDX-License-Identifier: Apache-2.0
 * Times kernel entries on a loaded model: one instruction of its program at a time, with the
 * model's weights and made-up inputs. Host memory only.
 */
#ifndef DAVIT_EXEC_MEASURE_H
#define DAVIT_EXEC_MEASURE_H

#include "exec/exec.h"

typedef struct DavitMeasure DavitMeasure;

/* Prepare for steps of at most @max_tokens tokens of one sequence, whose context is that long
 * for a step of one token, too. @plan (with a program, on the CPU) and @weights outlive it.
 * Returns: (owned) or NULL after a record: memory. */
DavitMeasure *davit_measure_new(const DavitPlan *plan, const DavitWeights *weights,
                                unsigned n_threads, uint64_t max_tokens, DavitReport *report);
void davit_measure_free(DavitMeasure *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitMeasure, davit_measure_free)

/* Nanoseconds that @entry (which the plan found able) takes for instruction @index and
 * @n_tokens tokens: the mean of as many calls in a row as fill @min_ns, at least one. 0 = memory is gone,
 * with a record. [one thread] */
double davit_measure_time(DavitMeasure *m, size_t index, const davit_kernel_entry *entry,
                          void *self, uint64_t n_tokens, uint64_t min_ns, DavitReport *report);

#endif
