/* SPDX-License-Identifier: Apache-2.0
 * Typed reads of key/values. Bounds were checked when the key was collected, so that
 * reads here are plain; encodings: davit/format.h. */
#include <math.h>
#include <string.h>

#include <davit/help/bytes.h>

#include "checkpoint/checkpoint_private.h"

/* ---- lookup ---- */

size_t davit_checkpoint_n_keys(const DavitCheckpoint *ckpt)
{
    const DavitPart *first = ckpt->parts->len ? g_ptr_array_index(ckpt->parts, 0) : NULL;

    return (ckpt->index ? ckpt->index->keys->len : 0) + (first ? first->keys->len : 0);
}

const davit_kv *davit_checkpoint_key(const DavitCheckpoint *ckpt, size_t index)
{
    const size_t n_index = ckpt->index ? ckpt->index->keys->len : 0;
    const DavitPart *part;

    g_assert(index < davit_checkpoint_n_keys(ckpt));
    if (index < n_index)
        return &g_array_index(ckpt->index->keys, davit_kv, index);
    part = g_ptr_array_index(ckpt->parts, 0);
    return &g_array_index(part->keys, davit_kv, index - n_index);
}

const davit_kv *davit_checkpoint_find_key(const DavitCheckpoint *ckpt, const char *key)
{
    const davit_kv *kv = ckpt->index ? davit_part_key(ckpt->index, key) : NULL;

    if (!kv && ckpt->parts->len)
        kv = davit_part_key(g_ptr_array_index(ckpt->parts, 0), key);
    return kv;
}

/* ---- types ---- */

const char *davit_kv_type_name(uint32_t type)
{
    static const char *const names[] = {"u8",  "i8",  "u16",  "i16", "u32",
                                        "i32", "f32", "bool", "str", "array",
                                        "u64", "i64", "f64"};

    return type < G_N_ELEMENTS(names) ? names[type] : "?";
}

uint32_t davit_kv_type_bytes(uint32_t type)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

    return type < G_N_ELEMENTS(bytes) ? bytes[type] : 0;
}

/* ---- numbers ---- */

/* A whole number as sign and size. */
typedef struct Whole {
    bool negative;
    uint64_t bits; /* two's complement of 64 bits */
} Whole;

static Whole from_signed(int64_t v)
{
    return (Whole){v < 0, (uint64_t)v};
}

static bool read_whole(const davit_kv *kv, uint64_t index, Whole *out)
{
    const uint32_t each = davit_kv_type_bytes(kv->type);
    const uint8_t *p;

    if (index >= kv->count || each == 0)
        return false;
    p = kv->data + index * each;
    switch (kv->type) {
    case DAVIT_KV_U8:
    case DAVIT_KV_BOOL:
        *out = (Whole){false, p[0]};
        return true;
    case DAVIT_KV_I8:
        *out = from_signed((int8_t)p[0]);
        return true;
    case DAVIT_KV_U16:
        *out = (Whole){false, davit_bytes_u16le(p)};
        return true;
    case DAVIT_KV_I16:
        *out = from_signed((int16_t)davit_bytes_u16le(p));
        return true;
    case DAVIT_KV_U32:
        *out = (Whole){false, davit_bytes_u32le(p)};
        return true;
    case DAVIT_KV_I32:
        *out = from_signed((int32_t)davit_bytes_u32le(p));
        return true;
    case DAVIT_KV_U64:
        *out = (Whole){false, davit_bytes_u64le(p)};
        return true;
    case DAVIT_KV_I64:
        *out = from_signed((int64_t)davit_bytes_u64le(p));
        return true;
    default:
        return false;
    }
}

bool davit_kv_i64(const davit_kv *kv, uint64_t index, int64_t *out)
{
    Whole w;

    if (!read_whole(kv, index, &w) || (!w.negative && w.bits > INT64_MAX))
        return false;
    *out = (int64_t)w.bits;
    return true;
}

bool davit_kv_u64(const davit_kv *kv, uint64_t index, uint64_t *out)
{
    Whole w;

    if (!read_whole(kv, index, &w) || w.negative)
        return false;
    *out = w.bits;
    return true;
}

bool davit_kv_f64(const davit_kv *kv, uint64_t index, double *out)
{
    Whole w;

    if (index >= kv->count)
        return false;
    if (kv->type == DAVIT_KV_F32) {
        const uint32_t bits = davit_bytes_u32le(kv->data + index * 4);
        float f;

        memcpy(&f, &bits, sizeof f);
        *out = (double)f;
        return true;
    }
    if (kv->type == DAVIT_KV_F64) {
        const uint64_t bits = davit_bytes_u64le(kv->data + index * 8);

        memcpy(out, &bits, sizeof *out);
        return true;
    }
    if (kv->type == DAVIT_KV_BOOL || !read_whole(kv, index, &w))
        return false;
    *out = w.negative ? (double)(int64_t)w.bits : (double)w.bits;
    return true;
}

bool davit_kv_bool(const davit_kv *kv, bool *out)
{
    if (kv->is_array || kv->type != DAVIT_KV_BOOL)
        return false;
    *out = kv->data[0] != 0;
    return true;
}

/* ---- strings ---- */

DavitKvCursor davit_kv_strings(const davit_kv *kv)
{
    if (kv->type != DAVIT_KV_STR)
        return (DavitKvCursor){0};
    return (DavitKvCursor){kv->data, kv->data + kv->n_bytes, kv->count};
}

bool davit_kv_next(DavitKvCursor *cursor, davit_span *out)
{
    uint64_t n;

    if (cursor->left == 0 || cursor->end - cursor->p < 8)
        return false;
    n = davit_bytes_u64le(cursor->p);
    if (n > (uint64_t)(cursor->end - cursor->p) - 8)
        return false;
    *out = (davit_span){(const char *)cursor->p + 8, n};
    cursor->p += 8 + n;
    cursor->left--;
    return true;
}

bool davit_kv_text(const davit_kv *kv, davit_span *out)
{
    DavitKvCursor cursor = davit_kv_strings(kv);

    return !kv->is_array && davit_kv_next(&cursor, out);
}
