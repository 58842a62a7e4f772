/* SPDX-License-Identifier: Apache-2.0
 * Components that a plan calls, loaded from the registry in candidate order.
 */
#ifndef DAVIT_PLAN_TOOLS_H
#define DAVIT_PLAN_TOOLS_H

#include "plan/draft.h"

/* (owned) DavitTool: every quant component that loads. One that does not load costs only
 * itself; why stays with its component. */
GArray *davit_tools_quants(DavitRegistry *registry);

/* (owned) DavitTool: kernels components of @device ("cpu", "cuda:1"; NULL = "cpu"). */
GArray *davit_tools_kernels(DavitRegistry *registry, const char *device);

/* Fill @out with the arch component that names the model. Errors: ALL_DECLINED with the
 * names asked for, NO_PLUGINS; a chosen component that does not load. */
int32_t davit_tools_arch(DavitRegistry *registry, const DavitSettings *settings,
                         DavitTool *out, DavitReport *report);

#endif
