/* SPDX-License-Identifier: Apache-2.0
 * Components that a plan calls, loaded from the registry in candidate order.
 */
#ifndef DAVIT_PLAN_TOOLS_H
#define DAVIT_PLAN_TOOLS_H

#include "plan/draft.h"

/* (owned) DavitTool: every quant component. None is loaded: a plain model needs one of a dozen, and
 * loading takes longer than asking. */
GArray *davit_tools_quants(DavitRegistry *registry);

/* Has @tool a say about modules of @signature? False where its capability names parts ("part", a
 * suffix or dtype) and the signature has none of them. */
bool davit_tool_may_claim(const DavitTool *tool, const davit_quant_module *signature);

/* Load @tool's component, if it is not: iface and self. False = it does not load, which costs only
 * itself; why stays with its component. */
bool davit_tool_load(DavitTool *tool);

/* (owned) DavitTool: kernels components of @device ("cpu", "cuda:1"; NULL = "cpu"). */
GArray *davit_tools_kernels(DavitRegistry *registry, const char *device);

/* Fill @out with the arch component that names the model. Errors: ALL_DECLINED with the
 * names asked for, NO_PLUGINS; a chosen component that does not load. */
int32_t davit_tools_arch(DavitRegistry *registry, const DavitSettings *settings,
                         DavitTool *out, DavitReport *report);

#endif
