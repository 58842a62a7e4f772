/* SPDX-License-Identifier: Apache-2.0
 * A stored output head against the embedding.
 */
#ifndef DAVIT_EXEC_HEAD_H
#define DAVIT_EXEC_HEAD_H

#include "exec/exec.h"

/* When the checkpoint stores a head of its own beside the embedding: one DAVIT_R_HEAD_COMPARED
 * record, a note when both hold the same bytes, a warning when they differ although the
 * config says that they are tied. Stops at the first byte that differs. Nothing is said when
 * the two are stored in different layouts. What is read is counted. Errors: those of
 * reading. */
int32_t davit_head_compare(const DavitPlan *plan, DavitLoadStats *stats, DavitReport *report);

#endif
