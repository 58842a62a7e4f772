/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include <string.h>

#define DEFAULT_TIMEOUT_S 60u
#define OWN_TRANSPORT     "shm" /* of ranks that davit starts itself: they are on this machine */

struct DavitComm {
    DavitComponent *component; /* (borrowed, registry) */
    const davit_comm_iface *iface;
    void *group;
    unsigned rank, size;
    int (*cancelled)(void *ctx);
    void *ctx;
};

static int32_t no_transport(const char *transport, DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_NO_PLUGINS,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "ranks",
                                .subject = transport,
                                .expected = "a component of kind comm with this transport",
                                .message = "nothing connects the ranks",
                                .hint = "davit plugin list shows the transports"});
}

/* First component of @transport that can be used. */
static int32_t find(DavitRegistry *registry, const char *transport, DavitComponent **out,
                    const davit_comm_iface **out_iface, void **out_self, DavitReport *report)
{
    const GPtrArray *list = davit_registry_kind(registry, DAVIT_KIND_ID_COMM);

    for (guint i = 0; i < list->len; i++) {
        DavitComponent *c = g_ptr_array_index(list, i);
        const void *iface;

        if (!davit_capability_has(c->capability, "transport", transport) ||
            davit_component_use(c, &iface, out_self, report))
            continue;
        *out = c;
        *out_iface = iface;
        return DAVIT_OK;
    }
    return no_transport(transport, report);
}

char *davit_comm_new_address(DavitRegistry *registry, unsigned size, DavitReport *report)
{
    char place[DAVIT_COMM_ADDRESS] = "";
    DavitComponent *component;
    const davit_comm_iface *iface;
    void *self;
    DavitSink sink;

    if (find(registry, OWN_TRANSPORT, &component, &iface, &self, report))
        return NULL;
    if (!iface->new_address) {
        no_transport(OWN_TRANSPORT, report);
        return NULL;
    }
    davit_sink_init(&sink, report, component->id, "ranks");
    if (davit_sink_done(&sink, iface->new_address(self, size, place, &sink.abi)))
        return NULL;
    return g_strdup_printf("%s:%.*s", OWN_TRANSPORT, (int)sizeof place - 1, place);
}

static int32_t ask_cancelled(void *ctx)
{
    const DavitComm *comm = ctx;

    return comm->cancelled && comm->cancelled(comm->ctx);
}

static bool address_fits(const DavitCommPlace *place, DavitReport *report)
{
    const char *colon = place->address ? strchr(place->address, ':') : NULL;

    if (colon && colon > place->address && strlen(colon) <= DAVIT_COMM_ADDRESS &&
        place->size >= 1 && place->size <= DAVIT_COMM_MAX_RANKS && place->rank < place->size)
        return true;
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                             .status = DAVIT_E_USAGE,
                                             .stage = "ranks",
                                             .subject = "--comm",
                                             .expected = "TRANSPORT:PLACE, 1 to 64 ranks and one "
                                                         "of them",
                                             .found = place->address,
                                             .message = "the ranks cannot meet"});
    return false;
}

DavitComm *davit_comm_open(DavitRegistry *registry, const DavitCommPlace *place,
                           DavitReport *report)
{
    g_autofree char *transport = NULL;
    g_autoptr(DavitComm) comm = g_new0(DavitComm, 1);
    void *self;
    DavitSink sink;

    if (!address_fits(place, report))
        return NULL;
    transport = g_strndup(place->address, strcspn(place->address, ":"));
    if (find(registry, transport, &comm->component, &comm->iface, &self, report))
        return NULL;
    comm->rank = place->rank;
    comm->size = place->size;
    comm->cancelled = place->cancelled;
    comm->ctx = place->ctx;
    const davit_comm_open_in in = {
        .struct_size = DAVIT_END(davit_comm_open_in, ctx),
        .address = place->address + strlen(transport) + 1,
        .rank = place->rank,
        .size = place->size,
        .timeout_ms = 1000ull * (place->timeout_s ? place->timeout_s : DEFAULT_TIMEOUT_S),
        .cancelled = ask_cancelled,
        .ctx = comm};
    davit_sink_init(&sink, report, comm->component->id, "ranks");
    if (davit_sink_done(&sink, comm->iface->open(self, &in, &comm->group, &sink.abi)))
        return NULL;
    return g_steal_pointer(&comm);
}

void davit_comm_close(DavitComm *comm)
{
    if (!comm)
        return;
    if (comm->group)
        comm->iface->close(comm->group);
    g_free(comm);
}

unsigned davit_comm_rank(const DavitComm *comm)
{
    return comm->rank;
}

unsigned davit_comm_size(const DavitComm *comm)
{
    return comm->size;
}

int32_t davit_comm_all_reduce(DavitComm *comm, float *data, uint64_t n)
{
    return comm->iface->all_reduce(comm->group, data, n, NULL);
}

int32_t davit_comm_all_gather(DavitComm *comm, const void *mine, void *all, uint64_t n_bytes)
{
    return comm->iface->all_gather(comm->group, mine, all, n_bytes, NULL);
}

int32_t davit_comm_broadcast(DavitComm *comm, void *data, uint64_t n_bytes, unsigned root)
{
    return comm->iface->broadcast(comm->group, data, n_bytes, root, NULL);
}

int32_t davit_comm_check(const DavitComm *comm, DavitReport *report)
{
    DavitSink sink;

    davit_sink_init(&sink, report, comm->component->id, "run");
    return davit_sink_done(&sink, comm->iface->status(comm->group, &sink.abi));
}
