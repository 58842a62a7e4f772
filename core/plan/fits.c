/* SPDX-License-Identifier: Apache-2.0
 * A plan with each architecture in turn. */
#include "plan/fits.h"

#include "plan/tools.h"

DavitComponent *davit_plan_other_fit(DavitRegistry *registry, const DavitCheckpoint *checkpoint,
                                     const DavitSettings *settings)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(GArray) quants = davit_tools_quants(registry);
    g_autoptr(GArray) kernels = g_array_new(FALSE, TRUE, sizeof(DavitTool));
    DavitTool named = {0};

    if (davit_tools_arch(registry, settings, &named, aside))
        return NULL; /* an unknown name has its own finding */
    for (guint i = 0; i < list->len; i++) {
        DavitToolbox tools = {.arch = {.component = g_ptr_array_index(list, i)},
                              .quants = quants,
                              .kernels = kernels};
        g_autoptr(DavitPlan) plan = NULL;

        if (tools.arch.component == named.component ||
            davit_component_use(tools.arch.component, &tools.arch.iface, &tools.arch.self,
                                aside))
            continue;
        plan = davit_plan_draft(&tools, checkpoint, settings, &options, aside);
        if (plan)
            return tools.arch.component;
    }
    return NULL;
}
