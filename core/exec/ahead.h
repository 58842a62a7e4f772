/* SPDX-License-Identifier: Apache-2.0
 * Read-ahead of layers that stay on disk: while one is computed, a thread reads the next
 * into the page cache, so that its pages are there (or on their way) when kernels touch them.
 */
#ifndef DAVIT_EXEC_AHEAD_H
#define DAVIT_EXEC_AHEAD_H

#include "exec/exec.h"

typedef struct DavitAhead DavitAhead;

/* For the deferred slots of @plan (borrowed). Asks for the first such layer at once.
 * Returns: (owned) NULL when no slot is deferred or no thread can be had: pages then come when
 * they are touched. */
DavitAhead *davit_ahead_new(const DavitPlan *plan);
void davit_ahead_free(DavitAhead *ahead); /* NULL is fine; waits for the thread */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitAhead, davit_ahead_free)

/* Layer @layer begins: have the one behind it read, behind the last the first. One that has
 * not been begun when the next call comes is forgotten. NULL is fine. [one thread] */
void davit_ahead_begin(DavitAhead *ahead, int64_t layer);

/* Bytes that were asked for so far or found in the page cache. [any thread] */
uint64_t davit_ahead_bytes(DavitAhead *ahead);

#endif
