/* SPDX-License-Identifier: Apache-2.0
 * Headers as the reference writer leaves them: no blanks but at the end, no escapes, fields
 * in one order, tensors in the order of their bytes. They are read without the JSON reader's
 * events, of which a tensor takes fifteen. One walk proves that the header is so and has no
 * fault, the next delivers. Everything else is st_header.c's, which alone says what is wrong:
 * nothing here makes a record, and a blank before any field changes the way and nothing else
 * (test_checkpoint, blank_changes_nothing). */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

#define MAX_META   8u         /* pairs of __metadata__ that are compared one with another */
#define MAX_PROBES 64u        /* of the set of names: more are no accident */
#define MAX_SET    (1u << 20) /* names whose numbers fit beside 12 bits of hash */

#define ONES  0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* A place in the header, and the entry that was read last. */
typedef struct walk {
    const char *p;
    const char *end;
    davit_span name;
    const st_dtype *dtype;
    uint64_t shape[DAVIT_MAX_RANK];
    uint32_t rank;
    uint64_t begin; /* from the start of the data */
    uint64_t stop;
} walk;

/* Names seen so far. A slot is number + 1 in the low 20 bits and the hash's top 12. */
typedef struct name_set {
    uint32_t *slots;
    uint64_t mask;
    davit_span *names;
    uint32_t n;
} name_set;

/* ---- pieces of text ---- */

/* Go past @text; 0 if something else stands there. */
static inline int take(walk *w, const char *text, size_t n)
{
    if ((size_t)(w->end - w->p) < n || memcmp(w->p, text, n) != 0)
        return 0;
    w->p += n;
    return 1;
}
#define TAKE(w, text) take(w, text, sizeof(text) - 1)

/* Text up to the quote, which is gone past: ASCII without controls and escapes. */
static inline int take_text(walk *w, davit_span *out)
{
    const char *p = w->p;
    uint64_t v, quote, slash;

    for (; w->end - p >= 8; p += 8) {
        memcpy(&v, p, 8);
        quote = v ^ (ONES * '"');
        slash = v ^ (ONES * '\\');
        if ((((v - ONES * 0x20) & ~v) | ((quote - ONES) & ~quote) |
             ((slash - ONES) & ~slash) | v) & HIGHS)
            break; /* in one of these eight bytes */
    }
    while (p < w->end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 &&
           *p != '"' && *p != '\\')
        p++;
    if (p == w->end || *p != '"')
        return 0;
    *out = (davit_span){w->p, (uint64_t)(p - w->p)};
    w->p = p + 1;
    return 1;
}

/* Up to 15 digits, no zero in front of others. */
static inline int take_number(walk *w, uint64_t *out)
{
    const char *p = w->p;
    uint64_t n = 0;

    while (p < w->end && *p >= '0' && *p <= '9' && p - w->p < 15)
        n = n * 10 + (uint64_t)(*p++ - '0');
    if (p == w->p || (*w->p == '0' && p - w->p > 1) || p == w->end ||
        (*p >= '0' && *p <= '9'))
        return 0;
    *out = n;
    w->p = p;
    return 1;
}

/* ---- one entry ---- */

/* The dtype's name and its quote; most tensors have that of the one before. */
static int take_dtype(walk *w)
{
    const char *p = w->p;
    davit_span name;

    if (!take_text(w, &name))
        return 0;
    if (!w->dtype || strncmp(w->dtype->name, p, (size_t)name.len) != 0 ||
        w->dtype->name[name.len])
        w->dtype = st_find_dtype(name);
    return w->dtype != NULL;
}

static int take_shape(walk *w)
{
    memset(w->shape, 0, sizeof w->shape);
    w->rank = 0;
    if (TAKE(w, "]"))
        return 1;
    while (w->rank < DAVIT_MAX_RANK && take_number(w, &w->shape[w->rank])) {
        w->rank++;
        if (TAKE(w, "]"))
            return 1;
        if (!TAKE(w, ","))
            return 0;
    }
    return 0;
}

static int take_entry(walk *w)
{
    return TAKE(w, "\"") && take_text(w, &w->name) && TAKE(w, ":{\"dtype\":\"") &&
           take_dtype(w) && TAKE(w, ",\"shape\":[") && take_shape(w) &&
           TAKE(w, ",\"data_offsets\":[") && take_number(w, &w->begin) && TAKE(w, ",") &&
           take_number(w, &w->stop) && TAKE(w, "]}");
}

/* The entry's range follows the one before, which ended at @covered, and is as long as
 * dtype and shape say. */
static int fits(const walk *w, uint64_t covered)
{
    uint64_t n = 0;

    return w->begin == covered && w->stop >= w->begin &&
           davit_bytes_of_shape(w->shape, w->rank, w->dtype->block_elems,
                                w->dtype->block_bytes, &n) == DAVIT_SHAPE_OK &&
           n == w->stop - w->begin;
}

/* ---- names are given once ---- */

static int set_init(name_set *set, const char *p, const char *end)
{
    uint64_t n = 0, n_slots = 64;

    /* an entry opens at least one brace */
    while ((p = memchr(p, '{', (size_t)(end - p)))) {
        n++;
        p++;
    }
    if (n >= MAX_SET)
        return 0;
    while (n_slots < 2 * n)
        n_slots *= 2;
    set->slots = calloc((size_t)n_slots, sizeof *set->slots);
    set->names = malloc((size_t)(n + 1) * sizeof *set->names);
    set->mask = n_slots - 1;
    return set->slots && set->names;
}

static void set_clear(name_set *set)
{
    free(set->slots);
    free(set->names);
}

static uint64_t hash_of(davit_span name)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ name.len, word = 0;
    const char *p = name.ptr;
    uint64_t n = name.len;

    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, p, (size_t)n);
    h = (h ^ word) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 32;
}

/* 0 if @name is there already, is none of a tensor, or meets too many others. */
static int set_add(name_set *set, davit_span name)
{
    const uint64_t h = hash_of(name);
    const uint32_t tag = (uint32_t)(h >> 32) & ~(MAX_SET - 1);
    uint64_t at = h & set->mask;

    if (st_is(name, "__metadata__"))
        return 0;
    for (uint32_t i = 0; set->slots[at]; i++, at = (at + 1) & set->mask) {
        const davit_span *other;

        if (i == MAX_PROBES)
            return 0;
        if ((set->slots[at] & ~(MAX_SET - 1)) != tag)
            continue;
        other = &set->names[(set->slots[at] & (MAX_SET - 1)) - 1];
        if (other->len == name.len && memcmp(other->ptr, name.ptr, (size_t)name.len) == 0)
            return 0;
    }
    set->names[set->n++] = name;
    set->slots[at] = tag | set->n;
    return 1;
}

/* ---- metadata ---- */

/* Pairs up to the brace and the comma behind it. */
static int take_metadata(walk *w, davit_span (*out)[2], uint32_t *out_n)
{
    *out_n = 0;
    if (TAKE(w, "},"))
        return 1;
    while (*out_n < MAX_META && TAKE(w, "\"") && take_text(w, &out[*out_n][0]) &&
           TAKE(w, ":\"") && take_text(w, &out[*out_n][1])) {
        for (uint32_t i = 0; i < *out_n; i++)
            if (out[i][0].len == out[*out_n][0].len &&
                memcmp(out[i][0].ptr, out[*out_n][0].ptr, (size_t)out[i][0].len) == 0)
                return 0;
        ++*out_n;
        if (TAKE(w, "},"))
            return 1;
        if (!TAKE(w, ","))
            return 0;
    }
    return 0;
}

/* ---- both walks ---- */

/* Is the header from @start on plain, its ranges one run as long as the data? */
static int prove(walk w, uint64_t data_bytes)
{
    name_set set = {0};
    uint64_t covered = 0;
    int good = set_init(&set, w.p, w.end);

    while (good) {
        good = take_entry(&w) && fits(&w, covered) && set_add(&set, w.name);
        covered = w.stop;
        if (!good || !TAKE(&w, ","))
            break;
    }
    good = good && covered == data_bytes && TAKE(&w, "}");
    while (good && w.p < w.end && *w.p == ' ')
        w.p++;
    set_clear(&set);
    return good && w.p == w.end;
}

static int32_t deliver(st_open *o, walk w, uint64_t data_off)
{
    davit_extent extent = {.struct_size = DAVIT_END(davit_extent, block_bytes)};
    int32_t status;

    do {
        take_entry(&w);
        extent.name = w.name;
        extent.dtype = w.dtype->dtype;
        memcpy(extent.shape, w.shape, sizeof extent.shape);
        extent.rank = w.rank;
        extent.off = data_off + w.begin;
        extent.n_bytes = w.stop - w.begin;
        extent.block_elems = w.dtype->block_elems;
        extent.block_bytes = w.dtype->block_bytes;
        status = o->out->tensor(o->out->ctx, &extent);
    } while (!status && TAKE(&w, ","));
    return status;
}

int st_read_plain(st_open *o, uint64_t data_off, uint64_t data_bytes, int32_t *out_status)
{
    walk w = {.p = o->reader->text, .end = o->reader->text + o->reader->n_text};
    davit_span meta[MAX_META + 1][2];
    uint32_t n_meta = 0;

    if (!TAKE(&w, "{") ||
        (TAKE(&w, "\"__metadata__\":{") && !take_metadata(&w, meta, &n_meta)) ||
        !prove(w, data_bytes))
        return 0;
    *out_status = DAVIT_OK;
    for (uint32_t i = 0; i < n_meta && !*out_status; i++)
        *out_status = st_give_text(o, "__metadata__.", meta[i][0], meta[i][1]);
    if (!*out_status)
        *out_status = deliver(o, w, data_off);
    return 1;
}
