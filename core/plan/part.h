/* SPDX-License-Identifier: Apache-2.0
 * Bytes of a module's parts: whole tensors, or the runs that a cut takes of them. A
 * position counts the part's own bytes, run after run, as the quant plugin and the
 * kernels see them.
 */
#ifndef DAVIT_PLAN_PART_H
#define DAVIT_PLAN_PART_H

#include "plan/draft.h"

/* (borrowed, checkpoint) The stored tensor behind @part of the module's desc. */
const davit_tensor_info *davit_part_tensor(const DavitPlan *plan,
                                           const DavitModule *module, size_t part);
uint64_t davit_part_bytes(const DavitPlan *plan, const DavitModule *module, size_t part);

/* Where byte @pos of the part lies in its file; *out_run = bytes from there that follow
 * without a gap. @pos < davit_part_bytes. */
uint64_t davit_part_off(const DavitPlan *plan, const DavitModule *module, size_t part,
                        uint64_t pos, uint64_t *out_run);

/* Does every part lie in its file without a gap? Then kernels may read it there. */
bool davit_module_in_place(const DavitModule *module);

/* @box of @module as a module of its own. Without a cut of the plugin: rows that lie one
 * after another. *out (owned by draft->plan) on success; NULL = only ask. Errors: the
 * plugin's, and QUANT_PARAMS where what it says does not fit the stored tensors. */
int32_t davit_module_cut(const DavitDraft *draft, const DavitModule *module,
                         const davit_quant_box *box, const DavitModule **out,
                         DavitReport *report);
void davit_cut_module_free(void *module);

#endif
