/* SPDX-License-Identifier: Apache-2.0
 * Devices by asking kernels components. */
#include "plan/devices.h"

#include <inttypes.h>
#include <string.h>

#include "plan/tools.h"

#define MAX_DEVICES 64u /* of one component; more is no answer */

static void add_component(DavitComponent *component, GArray *out)
{
    g_autoptr(DavitReport) said = davit_report_new();
    const davit_kernels_iface *iface = NULL;
    void *self = NULL;
    uint64_t n;

    if (davit_component_use(component, (const void **)&iface, &self, said) ||
        !iface->device_iface)
        return;
    n = MIN(iface->device_iface->count(self), MAX_DEVICES);
    for (uint64_t i = 0; i < n; i++) {
        davit_device_info info = {.struct_size = DAVIT_END(davit_device_info, queue_type)};
        DavitDevice device = {.kind = davit_intern(iface->device), .index = i};
        DavitSink sink;

        davit_sink_init(&sink, said, component->id, "plan");
        if (davit_sink_done(&sink, iface->device_iface->info(self, i, &info, &sink.abi)))
            continue;
        device.free_bytes = info.free_bytes;
        device.name = device.kind;
        if (n > 1) {
            g_autofree char *name = g_strdup_printf("%s:%" PRIu64, iface->device, i);

            device.name = davit_intern(name);
        }
        g_array_append_val(out, device);
    }
}

GArray *davit_devices_find(DavitRegistry *registry)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_KERNELS);
    GArray *out = g_array_new(FALSE, TRUE, sizeof(DavitDevice));
    const DavitDevice host = {.name = davit_intern("cpu"), .kind = davit_intern("cpu")};

    g_array_append_val(out, host);
    for (guint i = 0; i < list->len; i++)
        add_component(g_ptr_array_index(list, i), out);
    return out;
}

/* "0" to "63", nothing else. */
static bool number_of(const char *text, uint64_t *out)
{
    guint64 n = 0;

    if (!g_ascii_string_to_unsigned(text, 10, 0, MAX_DEVICES - 1, &n, NULL))
        return false;
    *out = n;
    return true;
}

bool davit_device_split(const char *name, const char **out_kind, uint64_t *out_index)
{
    const char *colon = strrchr(name, ':');

    *out_index = 0;
    *out_kind = davit_intern(name);
    if (!colon)
        return true;
    if (!number_of(colon + 1, out_index))
        return false;
    g_autofree char *kind = g_strndup(name, (gsize)(colon - name));
    *out_kind = davit_intern(kind);
    return true;
}

const DavitDevice *davit_devices_named(const GArray *devices, const char *text)
{
    const char *kind;
    uint64_t n = 0;

    if (number_of(text, &n))
        return n + 1 < devices->len ? &g_array_index(devices, DavitDevice, n + 1) : NULL;
    if (!davit_device_split(text, &kind, &n))
        return NULL;
    for (guint i = 0; i < devices->len; i++) {
        const DavitDevice *device = &g_array_index(devices, DavitDevice, i);

        if (device->index == n && device->kind == kind)
            return device;
    }
    return NULL;
}

const char *davit_devices_text(const GArray *devices, DavitReport *report)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < devices->len; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "",
                               g_array_index(devices, DavitDevice, i).name);
    return davit_report_text(report, "%s", text->str);
}

void davit_devices_refuse(const GArray *devices, const char *subject, const char *found,
                          DavitReport *report)
{
    const char *here = davit_devices_text(devices, report);

    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_DEVICE_MISSING,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "plan",
            .subject = subject,
            .expected = davit_report_text(report, "one of %s, disk", here),
            .found = found,
            .message = "there is no such device here",
            .hint = "give a device that is here, cpu or disk; davit plugin list shows the kernels "
                    "that bring devices"});
}
