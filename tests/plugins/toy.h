/* SPDX-License-Identifier: Apache-2.0
 * A format that declines everything: the working part of most fixture plugins. */
#ifndef TEST_PLUGINS_TOY_H
#define TEST_PLUGINS_TOY_H

#include <davit/format.h>
#include <davit/help/records.h>

static int32_t toy_probe(const davit_probe_in *in, davit_verdict *out,
                         const davit_sink *sink)
{
    (void)in;
    (void)sink;
    return davit_decline(out);
}

static int32_t toy_open(void *self, davit_source *src, const davit_format_out *out,
                        void **out_reader, const davit_sink *sink)
{
    (void)self;
    (void)src;
    (void)out;
    *out_reader = NULL;
    return davit_say(sink, DAVIT_E_UNSUPPORTED,
                     &(davit_refusal){.code = DAVIT_R_FORMAT_UNSUPPORTED,
                                      .message = "a toy reads nothing"});
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

#endif
