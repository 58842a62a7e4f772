/* SPDX-License-Identifier: Apache-2.0
 * Format plugin for safetensors: the door, opening a file, and memory kept until close.
 * Format: u64 header length, JSON header, data (safetensors README, "Format"); the checks
 * follow the reference crate and go beyond it where README.md says so. */
#define _DEFAULT_SOURCE /* madvise */
#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <davit/help/bytes.h>

/* ---- small helpers ---- */

int st_is(davit_span span, const char *s)
{
    return span.len == strlen(s) && memcmp(span.ptr, s, span.len) == 0;
}

const char *st_type_name(uint32_t type)
{
    static const char *const names[] = {
        [DAVIT_JSON_OBJECT] = "an object", [DAVIT_JSON_ARRAY] = "an array",
        [DAVIT_JSON_STRING] = "a string",  [DAVIT_JSON_INT] = "a number",
        [DAVIT_JSON_REAL] = "a number",    [DAVIT_JSON_TRUE] = "true",
        [DAVIT_JSON_FALSE] = "false",      [DAVIT_JSON_NULL] = "null"};

    return type < sizeof names / sizeof names[0] && names[type] ? names[type] : "?";
}

int st_ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name);
    const size_t m = strlen(suffix);

    return n >= m && memcmp(name + n - m, suffix, m) == 0;
}

uint8_t *st_alloc(st_open *o, uint64_t n)
{
    st_block *block =
        n > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + (size_t)n);

    if (!block)
        return NULL;
    block->next = o->reader->blocks;
    o->reader->blocks = block;
    return block->bytes;
}

int32_t st_no_memory(st_open *o)
{
    o->status = davit_say(o->sink, DAVIT_E_LIMIT,
                          &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY,
                                           .subject = o->name,
                                           .message = "no memory for the header"});
    return o->status;
}

davit_span st_keep(st_open *o, davit_span span)
{
    const char *const text = o->reader->text;
    uint8_t *copy;

    if (span.ptr >= text && span.ptr <= text + o->reader->n_text)
        return span;
    copy = st_alloc(o, span.len);
    if (copy && span.len)
        memcpy(copy, span.ptr, (size_t)span.len);
    return (davit_span){(const char *)copy, span.len};
}

int32_t st_find(st_open *o, davit_span subject, int32_t status,
                const davit_refusal *record)
{
    davit_refusal r = *record;
    char name[256];
    const size_t n = subject.len < sizeof name ? (size_t)subject.len : sizeof name - 1;

    if (!o->status)
        o->status = status;
    o->n_findings++;
    if (o->n_findings > ST_MAX_FINDINGS)
        return status;
    if (n)
        memcpy(name, subject.ptr, n);
    name[n] = '\0';
    r.subject = subject.ptr ? name : o->name;
    if (o->n_findings == ST_MAX_FINDINGS) {
        r = (davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                            .subject = o->name,
                            .found = "more findings",
                            .message =
                                "there are more findings in this file than are shown"};
    }
    return davit_say(o->sink, status, &r);
}

/* ---- keys ---- */

static int32_t give_key(st_open *o, const char *key, uint64_t n_key, uint32_t type,
                        const uint8_t *data, uint64_t n_bytes)
{
    const davit_kv kv = {.struct_size = DAVIT_END(davit_kv, n_bytes),
                         .key = {key, n_key},
                         .type = type,
                         .count = 1,
                         .data = data,
                         .n_bytes = n_bytes};

    return o->out->key(o->out->ctx, &kv);
}

static void put_u64(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

int32_t st_give_text(st_open *o, const char *prefix, davit_span key, davit_span value)
{
    const uint64_t n_prefix = strlen(prefix);
    uint8_t *name = st_alloc(o, n_prefix + key.len);
    uint8_t *data = st_alloc(o, 8 + value.len);

    if (!name || !data)
        return st_no_memory(o);
    memcpy(name, prefix, (size_t)n_prefix);
    if (key.len)
        memcpy(name + n_prefix, key.ptr, (size_t)key.len);
    put_u64(data, value.len);
    if (value.len)
        memcpy(data + 8, value.ptr, (size_t)value.len);
    return give_key(o, (const char *)name, n_prefix + key.len, DAVIT_KV_STR, data,
                    8 + value.len);
}

int32_t st_give_u64(st_open *o, const char *key, uint64_t value)
{
    uint8_t *data = st_alloc(o, 8);

    if (!data)
        return st_no_memory(o);
    put_u64(data, value);
    return give_key(o, key, strlen(key), DAVIT_KV_U64, data, 8);
}

/* ---- open and close ---- */

#define HUGE_PAGE ((size_t)2 << 20)

/* Memory for @n bytes and a zero; a header of megabytes on huge pages, since each small one costs a
 * fault. */
static char *text_new(uint64_t n)
{
    void *p = NULL;

    if (n < HUGE_PAGE / 2)
        return malloc((size_t)n + 1);
    if (posix_memalign(&p, HUGE_PAGE, (size_t)n + 1))
        return NULL;
    madvise(p, (size_t)n + 1, MADV_HUGEPAGE); /* a hint */
    return p;
}

int32_t st_read_text(st_open *o, uint64_t off, uint64_t n)
{
    char *text = text_new(n); /* the caller has bounded @n */
    int32_t status;

    if (!text)
        return st_no_memory(o);
    text[n] = '\0';
    status = o->plugin->io->read(o->src, off, text, n, o->sink);
    o->reader->text = text;
    o->reader->n_text = n;
    return status;
}

static void st_close(void *self, void *reader)
{
    st_reader *r = reader;

    (void)self;
    if (!r)
        return;
    for (st_block *b = r->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(r->text);
    free(r);
}

/* Length of the header, checked against the format's bound and the file. */
static int32_t read_length(st_open *o, uint64_t size, uint64_t *out_n)
{
    uint8_t bytes[8];
    char found[64];
    char expected[64];
    uint64_t n;

    snprintf(found, sizeof found, "%" PRIu64 " bytes", size);
    if (size < 8)
        return st_find(
            o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_FILE_TRUNCATED,
                             .expected = "at least 8 bytes",
                             .found = found,
                             .message = "the file is too short for its length field"});
    if (o->plugin->io->read(o->src, 0, bytes, 8, o->sink))
        return DAVIT_E_IO;
    n = davit_bytes_u64le(bytes);
    snprintf(found, sizeof found, "%" PRIu64, n);
    if (n > ST_MAX_HEADER)
        return st_find(o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
                       &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                                        .expected = "a header of at most 100000000 bytes",
                                        .found = found,
                                        .message = "the header is too long",
                                        .hint = "is this really a safetensors file?"});
    if (n > size - 8) {
        snprintf(expected, sizeof expected, "%" PRIu64 " bytes", n + 8);
        snprintf(found, sizeof found, "%" PRIu64 " bytes", size);
        return st_find(o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
                       &(davit_refusal){.code = DAVIT_R_FILE_TRUNCATED,
                                        .expected = expected,
                                        .found = found,
                                        .message = "the file ends inside its header",
                                        .hint = "download the file again"});
    }
    *out_n = n;
    return DAVIT_OK;
}

static int32_t open_tensors(st_open *o)
{
    const uint64_t size = o->plugin->io->size(o->src);
    st_table table = {0};
    uint64_t n = 0;
    int32_t status = read_length(o, size, &n);

    if (!status)
        status = st_read_text(o, 8, n);
    if (!status && st_read_plain(o, 8 + n, size - 8 - n, &status))
        return status;
    if (!status)
        status = st_read_header(o, &table);
    if (!status)
        status = st_check_ranges(o, &table, 8 + n, size - 8 - n);
    free(table.tensors);
    return status ? status : o->status;
}

static int32_t st_open_file(void *self, davit_source *src, const davit_format_out *out,
                            void **out_reader, const davit_sink *sink)
{
    const st_plugin *plugin = self;
    st_open o = {.plugin = plugin,
                 .src = src,
                 .name = plugin->io->name(src),
                 .out = out,
                 .sink = sink,
                 .reader = calloc(1, sizeof(st_reader))};
    int32_t status;

    if (!o.reader)
        return st_no_memory(&o);
    status = st_ends_with(o.name, ".json") ? st_read_index(&o) : open_tensors(&o);
    plugin->json->close(o.json);
    if (status) {
        st_close(self, o.reader);
        return status;
    }
    *out_reader = o.reader;
    return DAVIT_OK;
}

/* ---- the door ---- */

static int32_t st_create(void *bundle_ctx, const davit_create_in *in, void **out_self,
                         const davit_sink *sink)
{
    const davit_host *host = in->host;
    st_plugin *plugin;
    const davit_io_suite *io = host->suite(host->ctx, "io", 1, 0);
    const davit_json_suite *json = host->suite(host->ctx, "json", 1, 0);

    (void)bundle_ctx;
    if (!io || !json)
        return davit_say(sink, DAVIT_E_UNSUPPORTED,
                         &(davit_refusal){.code = DAVIT_R_HOST_TOO_OLD,
                                          .subject = "org.davit.format.safetensors",
                                          .expected = "suites io 1.0 and json 1.0",
                                          .message = "the host lacks a suite"});
    plugin = malloc(sizeof *plugin);
    if (!plugin)
        return davit_say(sink, DAVIT_E_LIMIT,
                         &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY,
                                          .message = "no memory for the instance"});
    *plugin = (st_plugin){.host = host, .io = io, .json = json};
    *out_self = plugin;
    return DAVIT_OK;
}

static void st_destroy(void *self)
{
    free(self);
}

static const davit_format_iface safetensors_format = {
    .struct_size = DAVIT_END(davit_format_iface, close),
    .open = st_open_file,
    .close = st_close,
};

DAVIT_COMPONENT(safetensors, DAVIT_KIND_FORMAT, "org.davit.format.safetensors",
                "ext=safetensors|safetensors.index.json;magic=@8:7b",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .probe = st_probe,
                .create = st_create, .destroy = st_destroy, .iface = &safetensors_format);

DAVIT_PLUGIN("org.davit.format.safetensors", "safetensors", "davit", "1.0.0",
             "Apache-2.0", &safetensors);
