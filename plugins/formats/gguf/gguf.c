/* SPDX-License-Identifier: Apache-2.0
 * Format plugin for GGUF versions 2 and 3, little-endian: the door and the fixed header.
 * Format: ggml's docs/gguf.md; where the reference reader (ggml/src/gguf.cpp) is
 * stricter, it decides. See README.md for what is stricter still. */
#include "gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t gguf_find(gguf_open *o, davit_span subject, int32_t status,
                  const davit_refusal *record)
{
    davit_refusal r = *record;
    char name[256];
    const size_t n = subject.len < sizeof name ? (size_t)subject.len : sizeof name - 1;

    if (!o->status && !(r.flags & DAVIT_REFUSAL_WARNING))
        o->status = status;
    o->n_findings++;
    if (o->n_findings > GGUF_MAX_FINDINGS)
        return status;
    if (n)
        memcpy(name, subject.ptr, n);
    name[n] = '\0';
    r.subject = subject.ptr ? name : o->name;
    if (o->n_findings == GGUF_MAX_FINDINGS)
        r = (davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                            .flags = r.flags,
                            .subject = o->name,
                            .found = "more findings",
                            .message =
                                "there are more findings in this file than are shown"};
    return davit_say(o->sink, status, &r);
}

/* ---- the fixed header ---- */

static int32_t refuse_version(gguf_open *o, uint32_t version)
{
    char found[32];
    davit_refusal no = {.code = DAVIT_R_VERSION_UNSUPPORTED,
                        .expected = "2 or 3",
                        .found = found,
                        .message = "this GGUF version is not read",
                        .hint = "convert the model again with a current llama.cpp"};

    snprintf(found, sizeof found, "%" PRIu32, version);
    if (version != 0 && (version & 0xffff) == 0) {
        snprintf(found, sizeof found, "big-endian");
        no.code = DAVIT_R_FORMAT_UNSUPPORTED;
        no.expected = "little-endian";
        no.message = "the file was written for a big-endian machine";
        no.hint = "convert the model again, or byte-swap it with gguf_convert_endian.py";
    } else if (version == 0) {
        no.code = DAVIT_R_HEADER_INVALID;
        no.hint = NULL;
        return gguf_find(o, (davit_span){"version", 7}, DAVIT_E_CORRUPT, &no);
    } else if (version > 3) {
        no.hint = "update davit";
    }
    return gguf_find(o, (davit_span){"version", 7}, DAVIT_E_UNSUPPORTED, &no);
}

/* @n entries of at least @least bytes each must fit into what is left of the file. */
static int32_t check_count(gguf_open *o, const char *what, uint64_t n, uint64_t least)
{
    const uint64_t left = o->c.size - o->c.pos;
    char found[32];
    char expected[80];

    if (n <= left / least)
        return DAVIT_OK;
    snprintf(found, sizeof found, "%" PRIu64, n);
    snprintf(expected, sizeof expected,
             "at most %" PRIu64 " (what %" PRIu64 " bytes can hold)", left / least, left);
    return gguf_find(
        o, (davit_span){what, strlen(what)}, DAVIT_E_CORRUPT,
        &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                         .expected = expected,
                         .found = found,
                         .message = "the header counts more than the file holds"});
}

static int32_t read_header(gguf_open *o)
{
    uint32_t magic;
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_kv;
    int32_t status = gguf_u32(o, &magic, "magic");

    if (!status && magic != 0x46554747u) /* "GGUF" */
        return gguf_find(
            o, (davit_span){"magic", 5}, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                             .expected = "GGUF",
                             .message = "the file does not start with GGUF"});
    if (!status)
        status = gguf_u32(o, &version, "version");
    if (!status && version != 2 && version != 3)
        return refuse_version(o, version);
    if (!status)
        status = gguf_u64(o, &n_tensors, "tensor count");
    if (!status)
        status = gguf_u64(o, &n_kv, "key count");
    /* Least key: length, type, one value byte. Least tensor info: length, number of
     * dimensions, type, offset. */
    if (!status)
        status = check_count(o, "key count", n_kv, 8 + 4 + 1);
    if (!status)
        status = check_count(o, "tensor count", n_tensors, 8 + 4 + 4 + 8);
    if (!status)
        status = gguf_read_keys(o, n_kv);
    if (!status)
        status = gguf_check_split(o);
    if (!status)
        status = gguf_read_tensors(o, n_tensors);
    return status ? status : o->status;
}

static int32_t gguf_open_file(void *self, davit_source *src, const davit_format_out *out,
                              void **out_reader, const davit_sink *sink)
{
    const gguf_plugin *plugin = self;
    gguf_open o = {.plugin = plugin,
                   .src = src,
                   .name = plugin->io->name(src),
                   .out = out,
                   .sink = sink,
                   .c = {.size = plugin->io->size(src)},
                   .align = GGUF_ALIGN,
                   .split_no = -1,
                   .split_count = -1};
    const int32_t status = read_header(&o);

    if (!status)
        *out_reader =
            NULL; /* values point into views, which live as long as the source */
    return status;
}

static void gguf_close(void *self, void *reader)
{
    (void)self;
    (void)reader;
}

/* ---- the door ---- */

static int32_t gguf_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                           const davit_sink *sink)
{
    const davit_io_suite *io = in->host->suite(in->host->ctx, "io", 1, 0);
    gguf_plugin *plugin;

    (void)bundle_ctx;
    if (!io)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_HOST_TOO_OLD,
                                          .subject = "org.davit.format.gguf",
                                          .expected = "suite io 1.0",
                                          .message = "the host lacks a suite"});
    plugin = malloc(sizeof *plugin);
    if (!plugin)
        return davit_say(sink, DAVIT_E_LIMIT,
                         &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY,
                                          .message = "no memory for the instance"});
    *plugin = (gguf_plugin){.host = in->host, .io = io};
    *out_self = plugin;
    return DAVIT_OK;
}

static void gguf_destroy(void *self)
{
    free(self);
}

static const davit_format_iface gguf_format = {
    .struct_size = DAVIT_END(davit_format_iface, close),
    .open = gguf_open_file,
    .close = gguf_close,
};

DAVIT_COMPONENT(gguf, DAVIT_KIND_FORMAT, "org.davit.format.gguf",
                "ext=gguf;magic=@0:47475546;version=2|3",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .probe = gguf_probe,
                .create = gguf_create, .destroy = gguf_destroy, .iface = &gguf_format);

DAVIT_PLUGIN("org.davit.format.gguf", "GGUF", "davit", "1.0.0", "Apache-2.0", &gguf);
