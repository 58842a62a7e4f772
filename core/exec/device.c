/* SPDX-License-Identifier: Apache-2.0
 * Calls of a device's interface, with records. */
#include "exec/device.h"

/* ---- life ---- */

static int32_t open_one(DavitExecDevice *device, bool queue, const char *stage,
                        DavitReport *report)
{
    const davit_kernels_iface *kernels;
    DavitSink sink;
    int32_t status;

    if (!device->plan->kernels)
        return DAVIT_OK;
    status = davit_component_use(device->plan->kernels, (const void **)&kernels, &device->self,
                                 report);
    if (status)
        return status;
    device->iface = kernels->device_iface;
    if (!queue)
        return DAVIT_OK;
    davit_sink_init(&sink, report, device->plan->kernels->id, stage);
    return davit_sink_done(&sink, device->iface->queue_open(device->self, device->plan->index,
                                                            &device->queue, &sink.abi));
}

DavitExecDevice *davit_exec_devices_open(const DavitPlan *plan, bool queues, const char *stage,
                                         DavitReport *report)
{
    DavitExecDevice *devices = g_new0(DavitExecDevice, plan->n_devices);

    for (uint32_t d = 0; d < plan->n_devices; d++)
        devices[d].plan = &plan->devices[d];
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        if (open_one(&devices[d], queues, stage, report)) {
            davit_exec_devices_close(plan, devices);
            return NULL;
        }
    }
    return devices;
}

void davit_exec_devices_close(const DavitPlan *plan, DavitExecDevice *devices)
{
    for (uint32_t d = 0; devices && d < plan->n_devices; d++)
        if (devices[d].queue)
            devices[d].iface->queue_close(devices[d].self, devices[d].queue);
    g_free(devices);
}

/* ---- memory ---- */

bool davit_exec_alloc(const DavitExecDevice *device, uint64_t n_bytes, const char *what,
                      const char *stage, void **out, DavitReport *report)
{
    *out = n_bytes ? device->iface->alloc(device->self, device->plan->index, n_bytes) : NULL;
    if (*out || n_bytes == 0)
        return true;
    davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_MEMORY_SHORT,
                                .status = DAVIT_E_LIMIT,
                                .stage = stage,
                                .who = device->plan->kernels->id,
                                .subject = device->plan->name,
                                .expected = davit_report_text(
                                    report, "%" G_GUINT64_FORMAT " bytes for %s", n_bytes, what),
                                .message = "device memory could not be allocated",
                                .hint = "use a smaller --ctx, or place less on it"});
    return false;
}

void davit_exec_free(const DavitExecDevice *device, void *memory)
{
    if (memory)
        device->iface->free(device->self, device->plan->index, memory);
}

uint64_t davit_exec_free_bytes(const DavitPlan *plan, uint32_t device)
{
    const DavitPlanDevice *d = &plan->devices[device];
    davit_device_info info = {.struct_size = DAVIT_END(davit_device_info, queue_type)};
    g_autoptr(DavitReport) said = davit_report_new();
    const davit_kernels_iface *kernels;
    void *self;
    DavitSink sink;

    if (davit_component_use(d->kernels, (const void **)&kernels, &self, said))
        return 0;
    davit_sink_init(&sink, said, d->kernels->id, "run");
    return kernels->device_iface->info(self, d->index, &info, &sink.abi) ? 0 : info.free_bytes;
}

/* ---- work ---- */

/* The record of a device that failed: what it said, and which one it was, doing what. */
static int32_t lost(const DavitExecDevice *device, const DavitDoing *doing, int32_t status,
                    const DavitReport *said, DavitReport *report)
{
    const DavitRecord *r = davit_report_first_error(said, 0);

    return davit_report_add(
        report,
        &(DavitFinding){.code = r ? r->code : DAVIT_R_DEVICE_LOST,
                        .status = status,
                        .stage = doing->stage,
                        .who = device->plan->kernels->id,
                        .subject = device->plan->name,
                        .expected = r ? r->expected : NULL,
                        .found = doing->what ? doing->what : r ? r->found : NULL,
                        .message = r ? r->message : "the device does not answer any more",
                        .hint = r ? r->hint : NULL});
}

int32_t davit_exec_upload(const DavitExecDevice *device, void *to, const void *from,
                          uint64_t n_bytes, const DavitDoing *doing, DavitReport *report)
{
    g_autoptr(DavitReport) nothing = NULL;
    const int32_t status = device->iface->upload(device->self, device->queue, to, from, n_bytes);

    if (!status)
        return DAVIT_OK;
    nothing = davit_report_new();
    return lost(device, doing, status, nothing, report);
}

int32_t davit_exec_download(const DavitExecDevice *device, void *to, const void *from,
                            uint64_t n_bytes, const DavitDoing *doing, DavitReport *report)
{
    g_autoptr(DavitReport) nothing = NULL;
    const int32_t status =
        device->iface->download(device->self, device->queue, to, from, n_bytes);

    if (!status)
        return DAVIT_OK;
    nothing = davit_report_new();
    return lost(device, doing, status, nothing, report);
}

int32_t davit_exec_wait(const DavitExecDevice *device, const DavitDoing *doing,
                        DavitReport *report)
{
    g_autoptr(DavitReport) said = davit_report_new();
    DavitSink sink;
    int32_t status;

    davit_sink_init(&sink, said, device->plan->kernels->id, doing->stage);
    status = device->iface->wait(device->self, device->queue, &sink.abi);
    return status ? lost(device, doing, status, said, report) : DAVIT_OK;
}
