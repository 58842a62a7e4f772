/* SPDX-License-Identifier: Apache-2.0
 * The smallest complete plugin: a format with one tensor. A .toy file is "TOY1", a
 * little-endian u32 count, and that many float32. */
#include <string.h>

#include <davit/format.h>
#include <davit/help/records.h>

static const davit_io_suite *io; /* set once in start, read-only afterwards */

static int32_t toy_start(const davit_host *host, void **out_ctx, const davit_sink *sink)
{
    (void)out_ctx;
    io = host->suite(host->ctx, "io", 1, 0);
    return io ? DAVIT_OK
              : davit_say(sink, DAVIT_E_UNSUPPORTED,
                          &(davit_refusal){.code = DAVIT_R_NEEDS_UNMET,
                                           .subject = "io",
                                           .expected = "suite io 1.0",
                                           .message = "this host has no io suite"});
}

/* Three verdicts. Reads only in->head, allocates nothing. [any thread] */
static int32_t toy_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    if (!in->head || in->head_len < 8 || memcmp(in->head, "TOY", 3) != 0)
        return davit_decline(out); /* not ours */
    if (in->head[3] != '1') {
        const char found[] = {(char)in->head[3], '\0'};
        davit_say(sink, DAVIT_E_UNSUPPORTED,
                  &(davit_refusal){.code = DAVIT_R_VERSION_UNSUPPORTED,
                                   .subject = in->name,
                                   .expected = "1",
                                   .found = found,
                                   .message = "this plugin reads version 1 only"});
        return davit_refuse(out, 0); /* ours, and no */
    }
    return davit_accept(out, 900, DAVIT_INSPECT | DAVIT_CONVERT);
}

static int32_t toy_open(void *self, davit_source *src, const davit_format_out *out,
                        void **out_reader, const davit_sink *sink)
{
    uint8_t head[8];
    (void)self;
    (void)out_reader;
    const int32_t status = io->read(src, 0, head, sizeof head, sink);
    if (status)
        return status;
    const uint64_t n = (uint64_t)head[4] | (uint64_t)head[5] << 8 | (uint64_t)head[6] << 16 |
                       (uint64_t)head[7] << 24;
    if (n == 0 || n > (io->size(src) - 8) / 4) /* remaining against needed */
        return davit_say(sink, DAVIT_E_CORRUPT,
                         &(davit_refusal){.code = DAVIT_R_TENSOR_OUT_OF_FILE,
                                          .subject = io->name(src),
                                          .expected = "a count that fits the file",
                                          .message = "the count passes the end of the file"});
    const davit_extent extent = {.struct_size = DAVIT_END(davit_extent, block_bytes),
                                 .name = {"toy.weight", 10},
                                 .dtype = "f32/1",
                                 .shape = {n},
                                 .rank = 1,
                                 .off = 8,
                                 .n_bytes = n * 4,
                                 .block_elems = 1,
                                 .block_bytes = 4};
    return out->tensor(out->ctx, &extent);
}

static void toy_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static const davit_format_iface toy_format = {
    .struct_size = DAVIT_END(davit_format_iface, close),
    .open = toy_open,
    .close = toy_close,
};

DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example.format.toy", "ext=toy;magic=@0:544f59",
                DAVIT_INSPECT | DAVIT_CONVERT, 50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN_START("org.example.toy", "Toy format", "Example", "1.0.0", "Apache-2.0", toy_start,
                   NULL, &toy);
