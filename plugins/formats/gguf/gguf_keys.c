/* SPDX-License-Identifier: Apache-2.0
 * Key/values: types, lengths and the few keys that the container itself needs. Two equal
 * keys are found by the core, which sees them all. */
#include "gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/bytes.h>

#define TYPE_STRING 8u
#define TYPE_ARRAY  9u

/* Bytes of a value by type id; 0 = not of fixed size. */
static uint32_t type_bytes(uint32_t type)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

    return type < sizeof bytes ? bytes[type] : 0;
}

static int is_type(uint32_t type)
{
    return type <= DAVIT_KV_F64;
}

static int32_t bad_key(gguf_open *o, davit_span key, const char *expected,
                       uint64_t found_number, const char *message)
{
    char found[32];

    snprintf(found, sizeof found, "%" PRIu64, found_number);
    return gguf_find(o, key, DAVIT_E_CORRUPT,
                     &(davit_refusal){.code = DAVIT_R_HEADER_INVALID,
                                      .expected = expected,
                                      .found = found,
                                      .message = message});
}

static int32_t read_name(gguf_open *o, davit_span *out)
{
    static const davit_span none = {"key", 3};
    const int32_t status = gguf_string(o, GGUF_MAX_KEY, out, "key");

    if (status)
        return status;
    if (out->len == 0)
        return bad_key(o, none, "a name", 0, "a key has no name");
    for (uint64_t i = 0; i < out->len; i++) {
        const uint8_t c = (uint8_t)out->ptr[i];

        if (c < 0x20 || c > 0x7e)
            return bad_key(o, *out, "printable ASCII", c, "a key's name is not ASCII");
    }
    return DAVIT_OK;
}

/* @count values of a fixed size; the cursor goes past them. */
static int32_t skip_fixed(gguf_open *o, davit_span key, uint32_t type, uint64_t count)
{
    uint64_t n;
    int32_t status;

    if (!davit_bytes_mul(count, type_bytes(type), &n))
        return bad_key(o, key, "a smaller count", count, "an array is too long");
    status = gguf_need(o, n, "array");
    if (status)
        return status;
    for (uint64_t i = 0; type == DAVIT_KV_BOOL && i < n; i++) {
        const uint8_t b = o->c.base[o->c.pos + i];

        if (b > 1)
            return bad_key(o, key, "0 or 1", b, "a bool is neither true nor false");
    }
    o->c.pos += n;
    return DAVIT_OK;
}

static int32_t skip_strings(gguf_open *o, uint64_t count)
{
    davit_span unused;

    for (uint64_t i = 0; i < count; i++) {
        const int32_t status = gguf_string(o, GGUF_MAX_COUNT, &unused, "string");

        if (status)
            return status;
    }
    return DAVIT_OK;
}

/* Element type and count of an array, bounded. */
static int32_t read_array_head(gguf_open *o, davit_kv *kv)
{
    int32_t status = gguf_u32(o, &kv->type, "array type");

    if (!status)
        status = gguf_u64(o, &kv->count, "array count");
    if (status)
        return status;
    kv->is_array = 1;
    if (kv->type == TYPE_ARRAY)
        return bad_key(o, kv->key, "an array of plain values", kv->type,
                       "an array of arrays is not allowed");
    if (!is_type(kv->type))
        return bad_key(o, kv->key, "a type from 0 to 12", kv->type,
                       "the type of an array is not known");
    if (kv->count > GGUF_MAX_COUNT)
        return bad_key(o, kv->key, "at most 1073741824", kv->count,
                       "an array is too long");
    /* At least one byte per element, a length for strings; no overflow below 2^30. */
    return gguf_need(o, kv->count * (kv->type == TYPE_STRING ? 8 : 1), "array");
}

static int32_t read_value(gguf_open *o, davit_kv *kv)
{
    uint64_t start;
    int32_t status = gguf_u32(o, &kv->type, "value type");

    if (status)
        return status;
    kv->count = 1;
    if (kv->type == TYPE_ARRAY)
        status = read_array_head(o, kv);
    else if (!is_type(kv->type))
        status = bad_key(o, kv->key, "a type from 0 to 12", kv->type,
                         "the type of a value is not known");
    if (status)
        return status;
    start = o->c.pos;
    if (kv->type == TYPE_STRING)
        status = skip_strings(o, kv->count);
    else
        status = skip_fixed(o, kv->key, kv->type, kv->count);
    if (status)
        return status;
    status = gguf_need(o, 0, "value");
    kv->data = o->c.base + start;
    kv->n_bytes = o->c.pos - start;
    return status;
}

/* ---- keys that the container needs ---- */

static int is_key(const davit_kv *kv, const char *name)
{
    return kv->key.len == strlen(name) && memcmp(kv->key.ptr, name, kv->key.len) == 0;
}

static int32_t take_alignment(gguf_open *o, const davit_kv *kv)
{
    uint32_t align;

    if (kv->is_array || kv->type != DAVIT_KV_U32)
        return bad_key(o, kv->key, "type 4 (u32)", kv->is_array ? TYPE_ARRAY : kv->type,
                       "the alignment has a wrong type");
    align = davit_bytes_u32le(kv->data);
    if (align < GGUF_MIN_ALIGN || align > GGUF_MAX_ALIGN || (align & (align - 1)) != 0)
        return bad_key(o, kv->key, "a power of two from 8 to 1048576", align,
                       "the alignment is not usable");
    o->align = align;
    return DAVIT_OK;
}

/* Value of a split key; writers use u16, some tools other whole numbers. */
static int32_t take_split(gguf_open *o, const davit_kv *kv, int64_t *out)
{
    int64_t value = -1;

    if (!kv->is_array && (kv->type == DAVIT_KV_U16 || kv->type == DAVIT_KV_I16))
        value = davit_bytes_u16le(kv->data);
    else if (!kv->is_array && (kv->type == DAVIT_KV_U32 || kv->type == DAVIT_KV_I32))
        value = davit_bytes_u32le(kv->data);
    if (value < 0 || value > UINT16_MAX)
        return bad_key(o, kv->key, "a number of 16 bits", kv->type,
                       "a split key is not usable");
    *out = value;
    return DAVIT_OK;
}

static int32_t take_key(gguf_open *o, const davit_kv *kv)
{
    if (is_key(kv, "general.alignment"))
        return take_alignment(o, kv);
    if (is_key(kv, "split.no"))
        return take_split(o, kv, &o->split_no);
    if (is_key(kv, "split.count"))
        return take_split(o, kv, &o->split_count);
    return DAVIT_OK;
}

int32_t gguf_read_keys(gguf_open *o, uint64_t n_kv)
{
    for (uint64_t i = 0; i < n_kv; i++) {
        davit_kv kv = {.struct_size = DAVIT_END(davit_kv, n_bytes)};
        int32_t status = read_name(o, &kv.key);

        if (!status)
            status = read_value(o, &kv);
        if (!status)
            status = take_key(o, &kv);
        if (!status)
            status = o->out->key(o->out->ctx, &kv);
        if (status)
            return status;
    }
    return DAVIT_OK;
}
