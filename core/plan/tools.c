/* SPDX-License-Identifier: Apache-2.0
 * From the registry to what a plan calls. Architectures are asked by name: the lists in
 * their interface decide; a capability that names the model is only a reason to load it
 * first. */
#include "plan/tools.h"

#include <string.h>

#include "plan/devices.h"

/* ---- quant and kernels ---- */

GArray *davit_tools_quants(DavitRegistry *registry)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_QUANT);
    GArray *tools = g_array_new(FALSE, TRUE, sizeof(DavitTool));

    for (guint i = 0; i < list->len; i++) {
        const DavitTool tool = {.component = g_ptr_array_index(list, i)};

        g_array_append_val(tools, tool);
    }
    return tools;
}

/* Does @capability have the key at all? */
static bool has_key(const char *capability, const char *key)
{
    const size_t n = strlen(key);

    for (const char *p = capability; p && *p;) {
        if (strncmp(p, key, n) == 0 && p[n] == '=')
            return true;
        p = strchr(p, ';');
        p = p ? p + 1 : NULL;
    }
    return false;
}

bool davit_tool_may_claim(const DavitTool *tool, const davit_quant_module *signature)
{
    const char *capability = tool->component->capability;

    if (!has_key(capability, "part"))
        return true;
    for (uint64_t p = 0; p < signature->n_parts; p++) {
        const davit_quant_part_in *part = signature->parts[p];

        if (davit_capability_has(capability, "part", part->suffix) ||
            davit_capability_has(capability, "part", part->dtype))
            return true;
    }
    return false;
}

bool davit_tool_load(DavitTool *tool)
{
    g_autoptr(DavitReport) said = NULL;

    if (tool->iface)
        return true;
    said = davit_report_new();
    return davit_component_use(tool->component, &tool->iface, &tool->self, said) == DAVIT_OK;
}

GArray *davit_tools_kernels(DavitRegistry *registry, const char *device)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_KERNELS);
    GArray *tools = g_array_new(FALSE, TRUE, sizeof(DavitTool));
    const char *kind;
    uint64_t index;

    davit_device_split(device ? device : "cpu", &kind, &index);
    for (guint i = 0; i < list->len; i++) {
        DavitTool tool = {.component = g_ptr_array_index(list, i)};
        const char *capability = tool.component->capability;
        g_autoptr(DavitReport) said = davit_report_new();

        /* a component that names other devices is not loaded for this one */
        if (has_key(capability, "device") &&
            !davit_capability_has(capability, "device", kind))
            continue;
        if (davit_component_use(tool.component, &tool.iface, &tool.self, said))
            continue;
        if (strcmp(((const davit_kernels_iface *)tool.iface)->device, kind) == 0)
            g_array_append_val(tools, tool);
    }
    return tools;
}

/* ---- architectures ---- */

/* One list of names and where an architecture states its own. */
typedef struct Asking {
    const char *const *names; /* NULL-terminated; NULL = nothing to ask */
    const char *key;          /* of the capability */
    size_t field;             /* offset of the list in davit_arch_iface */
} Asking;

#define N_ASKINGS 3

static void fill_askings(const DavitSettings *settings, const char **gguf, Asking *out)
{
    gguf[0] = davit_settings_gguf_arch(settings);
    gguf[1] = NULL;
    out[0] =
        (Asking){davit_settings_hf_names(settings), "hf", offsetof(davit_arch_iface, hf)};
    out[1] = (Asking){davit_settings_model_types(settings), "model_type",
                      offsetof(davit_arch_iface, model_types)};
    out[2] = (Asking){gguf, "gguf", offsetof(davit_arch_iface, gguf)};
    if (davit_settings_is_gguf(settings))
        out[0].names = out[1].names = NULL;
}

static bool lists_name(const davit_arch_iface *iface, const Asking *asking,
                       const char *name)
{
    const char *list;

    memcpy(&list, (const uint8_t *)iface + asking->field, sizeof list);
    return davit_words_have(list, name);
}

/* First component that lists @name. @eager: load those too whose capability does not. */
static bool find_for_name(const GPtrArray *list, const Asking *asking, const char *name,
                          bool eager, DavitTool *out, DavitReport *said)
{
    for (guint i = 0; i < list->len; i++) {
        DavitTool tool = {.component = g_ptr_array_index(list, i)};

        if (!eager &&
            !davit_capability_has(tool.component->capability, asking->key, name))
            continue;
        if (davit_component_use(tool.component, &tool.iface, &tool.self, said))
            continue;
        if (lists_name(tool.iface, asking, name)) {
            *out = tool;
            return true;
        }
    }
    return false;
}

static const char *names_text(const Asking *askings, DavitReport *report)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (size_t a = 0; a < N_ASKINGS; a++) {
        for (size_t n = 0; askings[a].names && askings[a].names[n]; n++)
            g_string_append_printf(text, "%s%s", text->len ? ", " : "",
                                   askings[a].names[n]);
    }
    return text->len ? davit_report_text(report, "%s", text->str) : NULL;
}

static int32_t all_declined(const GPtrArray *list, const Asking *askings,
                            DavitReport *report)
{
    const char *names = names_text(askings, report);

    if (list->len == 0)
        return davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_NO_PLUGINS,
                            .status = DAVIT_E_UNSUPPORTED,
                            .purposes = DAVIT_MAP | DAVIT_RUN | DAVIT_CONVERT,
                            .stage = "plan",
                            .subject = "arch",
                            .found = names,
                            .message = "no architecture plugin was found",
                            .hint = "davit plugin list shows where plugins are looked "
                                    "for"});
    return davit_report_add(
        report, &(DavitFinding){
                    .code = DAVIT_R_ALL_DECLINED,
                    .status = DAVIT_E_UNSUPPORTED,
                    .purposes = DAVIT_MAP | DAVIT_RUN | DAVIT_CONVERT,
                    .stage = "plan",
                    .subject = names ? names : "config",
                    .expected = "an architecture that one of the plugins names",
                    .found = names ? names : "no architecture is named",
                    .message = davit_report_text(report,
                                                 "none of %u architecture plugins knows "
                                                 "this model",
                                                 list->len),
                    .hint = "davit why MODEL shows each answer; inspect and dump need no "
                            "architecture"});
}

int32_t davit_tools_arch(DavitRegistry *registry, const DavitSettings *settings,
                         DavitTool *out, DavitReport *report)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);
    g_autoptr(DavitReport) said = davit_report_new();
    Asking askings[N_ASKINGS];
    const char *gguf[2];

    fill_askings(settings, gguf, askings);
    for (int eager = 0; eager < 2; eager++) {
        for (size_t a = 0; a < N_ASKINGS; a++) {
            for (size_t n = 0; askings[a].names && askings[a].names[n]; n++) {
                if (find_for_name(list, &askings[a], askings[a].names[n], eager != 0, out,
                                  said))
                    return DAVIT_OK;
            }
        }
    }
    davit_report_append(report,
                        said); /* a plugin that would have been asked did not load */
    return all_declined(list, askings, report);
}

/* ---- why ---- */

static const char *first_listed(const davit_arch_iface *iface, const Asking *askings)
{
    for (size_t a = 0; a < N_ASKINGS; a++) {
        for (size_t n = 0; askings[a].names && askings[a].names[n]; n++) {
            if (lists_name(iface, &askings[a], askings[a].names[n]))
                return askings[a].names[n];
        }
    }
    return NULL;
}

static void explain_one(const DavitTool *tool, const Asking *askings,
                        const DavitTool *chosen, DavitReport *report)
{
    const davit_arch_iface *iface = tool->iface;
    const char *listed = first_listed(iface, askings);
    const char *message = "declines: none of the model's names is in its lists";

    if (listed)
        message = tool->component == chosen->component
                      ? "accepts, and is chosen"
                      : "accepts, but another comes first in candidate order";
    davit_report_add(
        report, &(DavitFinding){.code = listed ? DAVIT_R_SOURCE_CHOSEN
                                               : DAVIT_R_ALL_DECLINED,
                                .severity = DAVIT_NOTE,
                                .stage = "plan",
                                .who = tool->component->id,
                                .subject = listed ? listed : names_text(askings, report),
                                .expected = iface->hf,
                                .message = message});
}

void davit_plan_explain_archs(DavitRegistry *registry, const DavitSettings *settings,
                              DavitReport *report)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_ARCH);
    g_autoptr(DavitReport) quiet = davit_report_new();
    DavitTool chosen = {0};
    Asking askings[N_ASKINGS];
    const char *gguf[2];

    fill_askings(settings, gguf, askings);
    if (davit_tools_arch(registry, settings, &chosen, quiet))
        chosen.component = NULL;
    for (guint i = 0; i < list->len; i++) {
        DavitTool tool = {.component = g_ptr_array_index(list, i)};

        if (!davit_component_use(tool.component, &tool.iface, &tool.self, report))
            explain_one(&tool, askings, &chosen, report);
    }
}
