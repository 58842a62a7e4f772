/* SPDX-License-Identifier: Apache-2.0
 * A load of a plan, held against what the plan says of it, against the kernel's own account of
 * reads and against the same weights of other loads.
 */
#ifndef DAVIT_EXEC_TEST_COUNTS_H
#define DAVIT_EXEC_TEST_COUNTS_H

#include "exec/test_load.h"

/* (owned) Digests of weights, for test_counts_load to remember. */
GHashTable *test_counts_new(void);

/* Load m->plan. Counters are the plan's; what the process read is what they add up to; a slot has
 * the bytes that @known has of it in the same layout. Returns: (owned). */
DavitWeights *test_counts_load(const TestLoad *m, DavitCacheChoice cache, GHashTable *known);

#endif
