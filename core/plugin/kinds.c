/* SPDX-License-Identifier: Apache-2.0
 * The table of kinds. A new required slot or a longer table is one edit here. */
#include "plugin/kinds.h"

#include <string.h>

#include <davit/comm.h>

#define SLOT(T, f)                                                                       \
    {                                                                                    \
        DAVIT_STR(f), offsetof(T, f)                                                     \
    }

static const DavitKindInfo kinds[DAVIT_N_KINDS] = {
    [DAVIT_KIND_ID_FORMAT] = {DAVIT_KIND_FORMAT,
                              DAVIT_END(davit_format_iface, close),
                              sizeof(davit_format_iface),
                              true,
                              {SLOT(davit_format_iface, open),
                               SLOT(davit_format_iface, close)}},
    [DAVIT_KIND_ID_ARCH] = {DAVIT_KIND_ARCH,
                            DAVIT_END(davit_arch_iface, build),
                            sizeof(davit_arch_iface),
                            false,
                            {SLOT(davit_arch_iface, config),
                             SLOT(davit_arch_iface, slots)}},
    [DAVIT_KIND_ID_QUANT] = {DAVIT_KIND_QUANT,
                             DAVIT_END(davit_quant_iface, decode),
                             sizeof(davit_quant_iface),
                             false,
                             {SLOT(davit_quant_iface, claim),
                              SLOT(davit_quant_iface, check),
                              SLOT(davit_quant_iface, decode)}},
    [DAVIT_KIND_ID_TOKENIZER] = {DAVIT_KIND_TOKENIZER,
                                 DAVIT_END(davit_tokenizer_iface, shapes),
                                 sizeof(davit_tokenizer_iface),
                                 false,
                                 {SLOT(davit_tokenizer_iface, shapes)}},
    [DAVIT_KIND_ID_KERNELS] = {DAVIT_KIND_KERNELS,
                               DAVIT_END(davit_kernels_iface, state_size),
                               sizeof(davit_kernels_iface),
                               false,
                               {SLOT(davit_kernels_iface, device),
                                SLOT(davit_kernels_iface, entries)}},
    [DAVIT_KIND_ID_COMM] = {DAVIT_KIND_COMM,
                            DAVIT_END(davit_comm_iface, window),
                            sizeof(davit_comm_iface),
                            false,
                            {SLOT(davit_comm_iface, open), SLOT(davit_comm_iface, close),
                             SLOT(davit_comm_iface, status),
                             SLOT(davit_comm_iface, all_reduce),
                             SLOT(davit_comm_iface, all_gather),
                             SLOT(davit_comm_iface, broadcast),
                             SLOT(davit_comm_iface, barrier)}},
};

const DavitKindInfo *davit_kind_info(DavitKind kind)
{
    return &kinds[kind];
}

bool davit_kind_find(const char *name, DavitKind *out_kind)
{
    for (size_t i = 0; i < DAVIT_N_KINDS; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out_kind = (DavitKind)i;
            return true;
        }
    }
    return false;
}

int32_t davit_kind_check(DavitKind kind, uint32_t major, uint32_t minor,
                         uint32_t min_minor, const char *component, const char *stage,
                         DavitReport *report)
{
    const DavitKindInfo *info = &kinds[kind];
    const bool exact = info->major == 0;
    const bool newer = major > info->major ||
                       (major == info->major && minor > info->minor) ||
                       min_minor > info->minor;

    if (exact ? major == 0 && minor == info->minor
              : major == info->major && min_minor <= info->minor)
        return DAVIT_OK;
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_KIND_VERSION,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = stage,
            .subject = component,
            .expected = davit_report_text(report, "%s %u.%u%s", info->name, info->major,
                                          info->minor, exact ? " exactly" : ""),
            .found = davit_report_text(report, "%s %u.%u", info->name, major, minor),
            .message = exact ? "an interface 0.x of this host loads its own minor only"
                             : "the component is built for another version of its kind",
            .hint =
                newer
                    ? "update davit, or ask the plugin's author for a build with the SDK "
                      "of this davit"
                    : "the plugin's author must rebuild it with the SDK of this davit"});
}
