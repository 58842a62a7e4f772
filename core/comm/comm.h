/* SPDX-License-Identifier: Apache-2.0
 * The group that the ranks of one model are: a component of kind "comm" behind an address
 * "TRANSPORT:PLACE". Which component: the first whose capability lists the transport.
 *
 * Calls are collective (davit/comm.h): all ranks make the same ones in the same order. Once one
 * has failed all fail, and davit_comm_check says why.
 */
#ifndef DAVIT_COMM_COMM_H
#define DAVIT_COMM_COMM_H

#include <davit/comm.h>

#include "base/report.h"
#include "plugin/registry.h"

typedef struct DavitComm DavitComm;

typedef struct DavitCommPlace {
    const char *address; /* "shm:NAME" */
    unsigned rank, size;
    unsigned timeout_s; /* for the others to come, 0 = 60 */
    int (*cancelled)(void *ctx); /* asked while waiting, 1 = give up; NULL = never. [any thread] */
    void *ctx;
} DavitCommPlace;

/* (owned) An address for this process and children that it starts; NULL with a record. */
char *davit_comm_new_address(DavitRegistry *registry, unsigned size, DavitReport *report);

/* Meet the others; @registry outlives the group. Returns: (owned) NULL with a record. */
DavitComm *davit_comm_open(DavitRegistry *registry, const DavitCommPlace *place,
                           DavitReport *report);
void davit_comm_close(DavitComm *comm); /* the others notice; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitComm, davit_comm_close)
unsigned davit_comm_rank(const DavitComm *comm);
unsigned davit_comm_size(const DavitComm *comm);

/* On host memory; one call at a time, any thread. Returns: 0 or negative, without a record. */
int32_t davit_comm_all_reduce(DavitComm *comm, float *data, uint64_t n);
int32_t davit_comm_all_gather(DavitComm *comm, const void *mine, void *all, uint64_t n_bytes);
int32_t davit_comm_broadcast(DavitComm *comm, void *data, uint64_t n_bytes, unsigned root);

/* DAVIT_OK, or DAVIT_E_IO with a rank-lost record. */
int32_t davit_comm_check(const DavitComm *comm, DavitReport *report);

#endif
