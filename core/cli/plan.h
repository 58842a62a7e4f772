/* SPDX-License-Identifier: Apache-2.0
 * Printing plan documents (core/plan/document.h).
 */
#ifndef DAVIT_CLI_PLAN_H
#define DAVIT_CLI_PLAN_H

#include "cli/command.h"

/* (owned, g_free) "attn.q" of "layers 0-29": numbers as ranges, "0-2,5". @layers: ascending
 * GArray of uint64_t. */
char *davit_layers_text(const GArray *layers);

/* The plan for people: layers that are alike are one group. To stdout. One that is refused begins
 * with the errors of @report, and has slots only if @all_slots. */
void davit_plan_print(const json_t *document, const DavitReport *report, bool all_slots);

/* (owned) What differs from @a to @b: {"fields": [{"field","from","to"}], "slots":
 * [{"slot","layers","field","from","to"}], "added", "removed"}; equal changes of several
 * layers are one entry. */
json_t *davit_plan_diff(const json_t *a, const json_t *b);
void davit_plan_diff_print(const json_t *diff);

#endif
