/* SPDX-License-Identifier: Apache-2.0
 * D34: devices beside the processor. What the driver says of itself, and what the kernels
 * components that own devices answer. */
#include <string.h>

#include "doctor/doctor_private.h"
#include "plan/devices.h"

#define DRIVER "/proc/driver/nvidia"

/* (owned) "550.54.15" of the driver's version line, NULL = no driver. */
static char *driver_version(void)
{
    g_autofree char *text = NULL;
    const char *at;

    if (!g_file_get_contents(DRIVER "/version", &text, NULL, NULL))
        return NULL;
    at = strstr(text, "Kernel Module");
    at = at ? at + strlen("Kernel Module") : text;
    while (*at && !g_ascii_isdigit(*at))
        at++;
    return g_strndup(at, strspn(at, "0123456789."));
}

/* Cards that the driver has taken. */
static unsigned count_cards(void)
{
    g_autoptr(GDir) dir = g_dir_open(DRIVER "/gpus", 0, NULL);
    unsigned n = 0;

    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

/* (owned) "cuda:0 with 138.2 GiB free, ..." of all but the host. */
static char *devices_text(const GArray *devices)
{
    GString *text = g_string_new(NULL);

    for (guint i = 1; i < devices->len; i++) {
        const DavitDevice *device = &g_array_index(devices, DavitDevice, i);
        g_autofree char *bytes = davit_doctor_bytes(device->free_bytes);

        g_string_append_printf(text, "%s%s with %s free", i > 1 ? ", " : "", device->name, bytes);
    }
    return g_string_free(text, FALSE);
}

void davit_check_devices(DavitDoctor *d)
{
    g_autoptr(GArray) devices = davit_devices_find(d->patient.registry);
    g_autofree char *driver = driver_version();
    g_autofree char *text = devices_text(devices);
    const unsigned n_cards = driver ? count_cards() : 0;

    if (devices->len > 1) {
        davit_doctor_fact(d, "D34", "%s%s%s", text, driver ? "; NVIDIA driver " : "",
                          driver ? driver : "");
        return;
    }
    if (!driver) {
        davit_doctor_skip(d, "D34", "a device beside the processor: no NVIDIA driver, and no "
                                    "kernels plugin that owns one");
        return;
    }
    davit_doctor_fact(d, "D34", "NVIDIA driver %s, %u card%s, no kernels for them", driver,
                      n_cards, n_cards == 1 ? "" : "s");
    if (n_cards)
        davit_doctor_say(d, "D34",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "NVIDIA driver",
                                         .expected = "a kernels plugin for its cards",
                                         .found = davit_doctor_text(d, "%u cards, no plugin",
                                                                    n_cards),
                                         .message = "the driver is there, but no plugin of this "
                                                    "installation computes on its cards: the "
                                                    "model runs on the processor",
                                         .hint = "davit plugin list shows the kernels that are "
                                                 "there"});
}
