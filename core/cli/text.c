/* SPDX-License-Identifier: Apache-2.0
 * Small pieces that several commands print or open. */
#include <string.h>

#include "cli/command.h"

DavitRegistry *davit_call_registry(DavitCall *call)
{
    g_autofree const char **paths = davit_call_list(call, "plugin-path");
    g_autofree const char **trusted = davit_call_list(call, "trust-dir");
    const DavitRegistryOptions where = {.plugin_paths = paths, .trust_dirs = trusted,
                                        .allow_draft = davit_call_has(call, "allow-draft")};
    DavitRegistry *registry = davit_registry_open(&where, call->report);
    if (davit_report_failed(call->report))
        g_clear_pointer(&registry, davit_registry_free);
    return registry;
}

json_t *davit_json_text(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return json_string(valid);
}

const char *davit_shown(const char *text)
{
    static char *kept[16]; /* the program prints from one thread */
    static unsigned at;
    at = (at + 1) % G_N_ELEMENTS(kept);
    g_free(kept[at]);
    kept[at] = davit_escape(text, strlen(text), 4096);
    return kept[at];
}

char *davit_bytes_text(uint64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)n;
    size_t u = 0;
    while (x >= 1024 && u + 1 < G_N_ELEMENTS(units)) {
        x /= 1024;
        u++;
    }
    return u == 0 ? g_strdup_printf("%" G_GUINT64_FORMAT " bytes", n)
                  : g_strdup_printf("%.1f %s", x, units[u]);
}
