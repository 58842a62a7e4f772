/* SPDX-License-Identifier: Apache-2.0
 * A format of a minor that does not exist yet (later.sh): it fills a slot that today's hosts
 * do not know, and uses the host's new function where there is one. Built twice: as plugins
 * should be, needing 1.0 only, and with DAVIT_TARGET_MINOR 1. */
#include <davit/format.h>

static const char *word = "without"; /* set in start */

static int32_t later_start(const davit_host *host, void **out_ctx, const davit_sink *sink)
{
    (void)out_ctx;
    (void)sink;
    if (DAVIT_HAS(host, davit_host, later_host) && host->later_host(host->ctx) == 42)
        word = "with";
    return DAVIT_OK;
}

static int32_t later_probe(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink)
{
    (void)in;
    (void)sink;
    if (DAVIT_HAS(out, davit_verdict, later_verdict))
        out->later_verdict = 42;
    return DAVIT_OK;
}

/* One tensor without bytes; its name tells what the host has. */
static int32_t later_open(void *self, davit_source *src, const davit_format_out *out,
                          void **out_reader, const davit_sink *sink)
{
    const davit_extent extent = {.struct_size = DAVIT_END(davit_extent, block_bytes),
                                 .name = {word, word[4] ? 7 : 4},
                                 .dtype = "u8/1",
                                 .shape = {0},
                                 .rank = 1,
                                 .block_elems = 1,
                                 .block_bytes = 1};

    (void)self;
    (void)src;
    (void)out_reader;
    (void)sink;
    return out->tensor(out->ctx, &extent);
}

static void later_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

static int32_t later_extra(void *self)
{
    (void)self;
    return 42;
}

static const davit_format_iface later_format = {
    .struct_size = DAVIT_END(davit_format_iface, later_slot),
    .open = later_open,
    .close = later_close,
    .later_slot = later_extra,
};

DAVIT_COMPONENT(later, DAVIT_KIND_FORMAT, "org.example.later." VARIANT, "ext=later", DAVIT_INSPECT,
                50, .probe = later_probe, .iface = &later_format, .later_component = 42);
DAVIT_PLUGIN_START("org.example.later." VARIANT, "Format of 1.1", "Example", "1.0.0", "Apache-2.0",
                   later_start, NULL, &later);
