/* SPDX-License-Identifier: Apache-2.0
 * Bounded reads along the header. Every length is checked against what is left of the
 * file before anything is read or multiplied. */
#include "gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/bytes.h>

/* First window; it doubles, so a remote header is fetched in few requests. */
#define WINDOW (64u * 1024u)

int32_t gguf_need(gguf_open *o, uint64_t n, const char *what)
{
    gguf_cursor *c = &o->c;
    uint64_t want;

    if (n <= c->have - c->pos)
        return DAVIT_OK;
    if (n > c->size - c->pos) {
        char found[96];
        char expected[96];

        snprintf(found, sizeof found, "%" PRIu64 " bytes left at %" PRIu64,
                 c->size - c->pos, c->pos);
        snprintf(expected, sizeof expected, "%" PRIu64 " bytes for the %s", n, what);
        return gguf_find(o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
                         &(davit_refusal){.code = DAVIT_R_FILE_TRUNCATED,
                                          .expected = expected,
                                          .found = found,
                                          .message = "the file ends inside its header",
                                          .hint = "download the file again"});
    }
    want = c->have > c->size / 2 ? c->size : c->have * 2;
    if (want < WINDOW)
        want = WINDOW < c->size ? WINDOW : c->size;
    if (want < c->pos + n) /* at most size, checked above */
        want = c->pos + n;
    if (o->plugin->io->view(o->src, 0, want, &c->base, o->sink)) {
        o->status = DAVIT_E_IO;
        return DAVIT_E_IO;
    }
    c->have = want;
    return DAVIT_OK;
}

int32_t gguf_u32(gguf_open *o, uint32_t *out, const char *what)
{
    const int32_t status = gguf_need(o, 4, what);

    if (status)
        return status;
    *out = davit_bytes_u32le(o->c.base + o->c.pos);
    o->c.pos += 4;
    return DAVIT_OK;
}

int32_t gguf_u64(gguf_open *o, uint64_t *out, const char *what)
{
    const int32_t status = gguf_need(o, 8, what);

    if (status)
        return status;
    *out = davit_bytes_u64le(o->c.base + o->c.pos);
    o->c.pos += 8;
    return DAVIT_OK;
}

int32_t gguf_string(gguf_open *o, uint64_t max, davit_span *out, const char *what)
{
    uint64_t n;
    int32_t status = gguf_u64(o, &n, what);

    if (status)
        return status;
    if (n > max) {
        char found[32];
        char expected[32];

        snprintf(found, sizeof found, "%" PRIu64 " bytes", n);
        snprintf(expected, sizeof expected, "at most %" PRIu64, max);
        return gguf_find(o, (davit_span){what, strlen(what)}, DAVIT_E_CORRUPT,
                         &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                                          .expected = expected,
                                          .found = found,
                                          .message = "a string is too long"});
    }
    status = gguf_need(o, n, what);
    if (status)
        return status;
    *out = (davit_span){(const char *)o->c.base + o->c.pos, n};
    o->c.pos += n;
    return DAVIT_OK;
}
