/* SPDX-License-Identifier: Apache-2.0
 * A format as it was written for SDK 1.0: compiled against sdk/abi/1.0 alone, without the helper
 * archive. It stays as it is. */
#include <string.h>

#include <davit/format.h>

static const davit_io_suite *io;

static int32_t old_start(const davit_host *host, void **out_ctx, const davit_sink *sink)
{
    (void)out_ctx;
    (void)sink;
    io = host->suite(host->ctx, "io", 1, 0);
    return io && host->suite(host->ctx, "json", 1, 0) && host->suite(host->ctx, "cpu", 1, 0)
               ? DAVIT_OK
               : DAVIT_E_UNSUPPORTED;
}

static int32_t old_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    static const davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, url),
                                     .code = DAVIT_R_VERSION_UNSUPPORTED,
                                     .subject = "version",
                                     .expected = "1",
                                     .found = "2",
                                     .message = "version 1 only"};

    if (!in->head || in->head_len < 4 || memcmp(in->head, "OLD", 3) != 0)
        return DAVIT_OK; /* the verdict is 0, DECLINE */
    if (in->head[3] == '2') {
        sink->refuse(sink->ctx, &no);
        out->verdict = DAVIT_REFUSE;
        return DAVIT_OK;
    }
    out->verdict = DAVIT_ACCEPT;
    out->score = 800;
    out->purposes = DAVIT_INSPECT;
    return DAVIT_OK;
}

/* One tensor of two bytes behind the magic, and one key. */
static int32_t old_open(void *self, davit_source *src, const davit_format_out *out,
                        void **out_reader, const davit_sink *sink)
{
    static const uint8_t value[4] = {7, 0, 0, 0};
    const davit_extent extent = {.struct_size = DAVIT_END(davit_extent, block_bytes),
                                 .name = {"old", 3},
                                 .dtype = "u8/1",
                                 .shape = {2},
                                 .rank = 1,
                                 .off = 4,
                                 .n_bytes = 2,
                                 .block_elems = 1,
                                 .block_bytes = 1};
    const davit_kv kv = {.struct_size = DAVIT_END(davit_kv, n_bytes),
                         .key = {"old.key", 7},
                         .type = DAVIT_KV_U32,
                         .count = 1,
                         .data = value,
                         .n_bytes = sizeof value};
    uint8_t head[6];
    int32_t status = io->read(src, 0, head, sizeof head, sink);

    (void)self;
    (void)out_reader;
    if (status == DAVIT_OK)
        status = out->tensor(out->ctx, &extent);
    return status == DAVIT_OK ? out->key(out->ctx, &kv) : status;
}

static void old_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static const davit_format_iface old_format = {
    .struct_size = DAVIT_END(davit_format_iface, close), .open = old_open, .close = old_close};

DAVIT_COMPONENT(old, DAVIT_KIND_FORMAT, "org.example.old.format", "ext=old", DAVIT_INSPECT, 50,
                .probe = old_probe, .iface = &old_format);
DAVIT_PLUGIN_START("org.example.old.format", "Format of 1.0", "Example", "1.0.0", "Apache-2.0",
                   old_start, NULL, &old);
