/* SPDX-License-Identifier: Apache-2.0
 * Nothing left over: every stored tensor is taken by a slot or skipped by a named rule.
 */
#ifndef DAVIT_PLAN_COVERAGE_H
#define DAVIT_PLAN_COVERAGE_H

#include "plan/match.h"

/* After slots were made. Reports TENSOR_UNEXPECTED for what nobody takes, with the
 * nearest wanted name; one IGNORED_BY_RULE note per rule that skipped something, a
 * warning for layers past the last that the configuration does not speak of; rows of a
 * fused tensor that no slot takes; a quantisation block beside plain tensors (warning).
 */
void davit_coverage_check(DavitDraft *draft);

/* Names nearest to each other by insertions, deletions and changes. [pure] */
size_t davit_name_distance(const char *a, const char *b, size_t limit);

#endif
