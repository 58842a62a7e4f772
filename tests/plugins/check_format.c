/* SPDX-License-Identifier: Apache-2.0
 * A format of one tensor: "TOYF", a count, so many bytes. Sound as it is; FAULT (CMakeLists.txt)
 * makes it break one rule that only damaged input, little memory, several threads or a strange
 * host show. */
#include <davit/format.h>
#include <davit/help/bytes.h>
#include <davit/help/records.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NONE, OVER_READ, NO_RECORD, OUT_OF_FILE, DEAF, LEAK, NULL_MEMORY, WRONG_FREE, SHARED, NO_SUITE };

typedef struct toy {
    const davit_host *host;
    const davit_io_suite *io;
} toy;

static volatile uint64_t shared; /* SHARED: of the input that was asked about last */

static int32_t toy_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    (void)sink;
    if (FAULT == SHARED && in->head) {
        shared = in->head_len;
        usleep(50);
        if (shared != in->head_len)
            return davit_accept(out, 50, DAVIT_INSPECT);
    }
    if (!in->head || (FAULT != OVER_READ && in->head_len < 4) || memcmp(in->head, "TOYF", 4) != 0)
        return davit_decline(out);
    return davit_accept(out, 300, DAVIT_INSPECT);
}

static int32_t wrong(const davit_sink *sink, const char *subject, const char *message)
{
    if (FAULT == NO_RECORD)
        return DAVIT_E_CORRUPT;
    return davit_say(sink, DAVIT_E_CORRUPT,
                     &(davit_refusal){
                         .code = DAVIT_R_HEADER_INVALID, .subject = subject, .message = message});
}

static int32_t toy_open(void *self, davit_source *src, const davit_format_out *out,
                        void **out_reader, const davit_sink *sink)
{
    toy *t = self;
    const uint64_t size = t->io->size(src);
    uint8_t head[12];
    davit_extent e = {.struct_size = DAVIT_END(davit_extent, block_bytes),
                      .name = {"x", 1},
                      .dtype = "u8/1",
                      .rank = 1,
                      .off = sizeof head,
                      .block_elems = 1,
                      .block_bytes = 1};
    char *note;
    int32_t status;

    if (size < sizeof head)
        return wrong(sink, t->io->name(src), "the file is shorter than its header");
    if ((status = t->io->read(src, 0, head, sizeof head, sink)))
        return status;
    e.shape[0] = e.n_bytes = davit_bytes_u64le(head + 4);
    if (FAULT != OUT_OF_FILE && !davit_bytes_inside(e.off, e.n_bytes, size))
        return wrong(sink, t->io->name(src), "the count does not fit the file");
    note = t->host->alloc(t->host->ctx, 16, 8);
    if (!note && FAULT != NULL_MEMORY)
        return davit_say(sink, DAVIT_E_LIMIT,
                         &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY, .message = "no memory"});
    memset(note, 0, 16);
    status = out->tensor(out->ctx, &e);
    if (status == DAVIT_OK || FAULT == DEAF) {
        e.name.ptr = "y";
        e.shape[0] = e.n_bytes = 0;
        status = out->tensor(out->ctx, &e);
    }
    if (FAULT != LEAK)
        t->host->free(t->host->ctx, note);
    *out_reader = NULL;
    return FAULT == DEAF ? DAVIT_OK : status;
}

static void toy_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static const davit_format_iface toy_iface = {
    .struct_size = DAVIT_END(davit_format_iface, close), .open = toy_open, .close = toy_close};

static int32_t toy_create(void *ctx, const davit_create_in *in, void **out_self,
                          const davit_sink *sink)
{
    const davit_host *host = in->host;
    const davit_io_suite *io = host->suite(host->ctx, "io", 1, 0);
    toy *t;

    (void)ctx;
    if (FAULT != NO_SUITE && !io)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_NEEDS_UNMET,
                                          .subject = "io",
                                          .message = "the host has no such suite"});
    if (FAULT == NO_SUITE && io->struct_size == 0)
        return DAVIT_E_UNSUPPORTED;
    t = FAULT == WRONG_FREE ? malloc(sizeof *t) : host->alloc(host->ctx, sizeof *t, 8);
    if (!t)
        return davit_say(sink, DAVIT_E_LIMIT,
                         &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY, .message = "no memory"});
    *t = (toy){host, io};
    *out_self = t;
    return DAVIT_OK;
}

static void toy_destroy(void *self)
{
    toy *t = self;

    if (t)
        t->host->free(t->host->ctx, t);
}

DAVIT_COMPONENT(toy_format, DAVIT_KIND_FORMAT, "org.example.check_format." NAME,
                "ext=toyf;magic=@0:544f5946", DAVIT_INSPECT, 50, .probe = toy_probe,
                .create = toy_create, .destroy = toy_destroy, .iface = &toy_iface);
DAVIT_PLUGIN("org.example.bundle.check_format." NAME, NAME, "Example", "1.0.0", "MIT",
             &toy_format);
