/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/protobuf.h"

#include <stdbool.h>
#include <string.h>

static bool read_varint(davit_span *rest, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && rest->len > 0; shift += 7) {
        const uint8_t byte = (uint8_t)*rest->ptr;

        rest->ptr++;
        rest->len--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

int davit_protobuf_next(davit_span *rest, DavitProtobufField *out)
{
    uint64_t key, len = 0;

    *out = (DavitProtobufField){0};
    if (rest->len == 0)
        return 0;
    if (!read_varint(rest, &key) || key >> 3 == 0 || key >> 3 > 536870911)
        return -1;
    out->number = (uint32_t)(key >> 3);
    out->wire = key & 7;
    if (out->wire == 0)
        return read_varint(rest, &out->value) ? 1 : -1;
    if (out->wire == 1)
        len = 8;
    else if (out->wire == 5)
        len = 4;
    else if (out->wire != 2 || !read_varint(rest, &len))
        return -1;
    if (len > rest->len)
        return -1;
    out->bytes = (davit_span){rest->ptr, len};
    rest->ptr += len;
    rest->len -= len;
    return 1;
}

float davit_protobuf_float(davit_span bytes)
{
    const uint8_t *p = (const uint8_t *)bytes.ptr;
    const uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                          (uint32_t)p[3] << 24;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}
