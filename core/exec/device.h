/* SPDX-License-Identifier: Apache-2.0
 * The devices of a plan while it is executed. The one place that calls a device: every failure is
 * a record that names it, and a lost device stays lost.
 */
#ifndef DAVIT_EXEC_DEVICE_H
#define DAVIT_EXEC_DEVICE_H

#include "plan/plan.h"

typedef struct DavitExecDevice {
    const DavitPlanDevice *plan;     /* (borrowed) */
    const davit_device_iface *iface; /* (borrowed) NULL = the host */
    void *self;                      /* (borrowed) */
    void *queue;                     /* (owned) NULL = none was opened */
} DavitExecDevice;

/* Returns: (owned, davit_exec_devices_close) the devices of @plan, in its order; NULL with a
 * record. @queues: with a queue each. @stage (static) is that of all their records. */
DavitExecDevice *davit_exec_devices_open(const DavitPlan *plan, bool queues, const char *stage,
                                         DavitReport *report);
/* No copy or call is under way. NULL is fine. */
void davit_exec_devices_close(const DavitPlan *plan, DavitExecDevice *devices);

/* Of a device, not of the host. (owned, davit_exec_free) NULL for 0 bytes and when there is not
 * enough; only then false with MEMORY_SHORT, where @what says what for. */
bool davit_exec_alloc(const DavitExecDevice *device, uint64_t n_bytes, const char *what,
                      const char *stage, void **out, DavitReport *report);
void davit_exec_free(const DavitExecDevice *device, void *memory); /* NULL is fine */

/* What a device was doing, for the record if it is lost. */
typedef struct DavitDoing {
    const char *stage;
    const char *what; /* "layers 3 to 5" */
} DavitDoing;

/* Enqueue copies; host memory stays as it is until the wait. Errors: DEVICE_LOST, or what the
 * device says. */
int32_t davit_exec_upload(const DavitExecDevice *device, void *to, const void *from,
                          uint64_t n_bytes, const DavitDoing *doing, DavitReport *report);
int32_t davit_exec_download(const DavitExecDevice *device, void *to, const void *from,
                            uint64_t n_bytes, const DavitDoing *doing, DavitReport *report);
/* Until all that was enqueued is done. */
int32_t davit_exec_wait(const DavitExecDevice *device, const DavitDoing *doing,
                        DavitReport *report);

/* Bytes that are free on @device of @plan; 0 if it does not say. Not for the host. */
uint64_t davit_exec_free_bytes(const DavitPlan *plan, uint32_t device);

#endif
