/* SPDX-License-Identifier: Apache-2.0
 * Tensor infos: names, shapes, types and where the bytes lie. ggml counts dimensions from
 * the contiguous one; shapes leave here outermost first, [out, in]. */
#include "gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

typedef struct info {
    davit_span name;
    const gguf_type *type;         /* NULL after a finding */
    uint64_t shape[GGUF_MAX_DIMS]; /* outermost first */
    uint32_t rank;
    uint64_t off; /* from the start of the data */
    uint64_t n_bytes;
} info;

static int32_t bad(gguf_open *o, davit_span name, uint32_t code, const char *expected,
                   const char *found, const char *message)
{
    return gguf_find(
        o, name, DAVIT_E_CORRUPT,
        &(davit_refusal){
            .code = code, .expected = expected, .found = found, .message = message});
}

/* ---- one info ---- */

static int32_t read_name(gguf_open *o, info *t)
{
    const int32_t status = gguf_string(o, GGUF_MAX_NAME - 1, &t->name, "tensor name");

    if (!status && t->name.len == 0)
        return bad(o, (davit_span){"tensor name", 11}, DAVIT_R_HEADER_INVALID, "a name",
                   "nothing", "a tensor has no name");
    return status;
}

static int32_t read_shape(gguf_open *o, info *t)
{
    char found[32];
    int32_t status = gguf_u32(o, &t->rank, "dimension count");

    if (status)
        return status;
    if (t->rank > GGUF_MAX_DIMS) {
        snprintf(found, sizeof found, "%" PRIu32, t->rank);
        return bad(o, t->name, DAVIT_R_HEADER_INVALID, "at most 4 dimensions", found,
                   "the tensor has too many dimensions");
    }
    for (uint32_t i = 0; i < t->rank && !status; i++)
        status = gguf_u64(o, &t->shape[t->rank - 1 - i], "dimension");
    return status;
}

/* A type that cannot be used is a finding, not the end. */
static void find_type(gguf_open *o, info *t, uint32_t id)
{
    char found[48];

    t->type = gguf_type_find(id);
    if (t->type && t->type->dtype)
        return;
    snprintf(found, sizeof found, "type %" PRIu32 "%s%s", id, t->type ? " " : "",
             t->type ? t->type->name : "");
    if (t->type)
        gguf_find(o, t->name, DAVIT_E_UNSUPPORTED,
                  &(davit_refusal){.code = DAVIT_R_QUANT_UNKNOWN,
                                   .expected = "a type that GGUF still has",
                                   .found = found,
                                   .message = "the tensor's type was removed from GGUF",
                                   .hint = t->type->instead});
    else
        bad(o, t->name, DAVIT_R_DTYPE_UNKNOWN, "a type from 0 to 42", found,
            "the tensor's type is not known");
    t->type = NULL;
}

static void check_size(gguf_open *o, info *t)
{
    char found[32];
    char expected[64];
    const uint64_t last = t->rank ? t->shape[t->rank - 1] : 1;
    int why;

    if (!t->type)
        return;
    why = davit_bytes_of_shape(t->shape, t->rank, t->type->block_elems,
                               t->type->block_bytes, &t->n_bytes);
    if (why == DAVIT_SHAPE_OK)
        return;
    snprintf(found, sizeof found, "%" PRIu64, last);
    snprintf(expected, sizeof expected, "a multiple of %" PRIu32 " (%s)",
             t->type->block_elems, t->type->name);
    if (why == DAVIT_SHAPE_BLOCK)
        bad(o, t->name, DAVIT_R_TENSOR_SIZE, expected, found,
            "the tensor's row is not a whole number of blocks");
    else
        bad(o, t->name, DAVIT_R_TENSOR_SIZE, "a size of at most 63 bits", found,
            "the tensor's shape overflows");
    t->type = NULL;
}

static int32_t read_info(gguf_open *o, info *t)
{
    char found[32];
    char expected[48];
    uint32_t type = 0;
    int32_t status = read_name(o, t);

    if (!status)
        status = read_shape(o, t);
    if (!status)
        status = gguf_u32(o, &type, "tensor type");
    if (!status)
        status = gguf_u64(o, &t->off, "tensor offset");
    if (status)
        return status;
    find_type(o, t, type);
    check_size(o, t);
    if (t->off % o->align != 0) { /* a power of two from 8, see gguf_keys.c */
        snprintf(found, sizeof found, "%" PRIu64, t->off);
        snprintf(expected, sizeof expected, "a multiple of %" PRIu32, o->align);
        bad(o, t->name, DAVIT_R_HEADER_INVALID, expected, found,
            "the tensor's offset is not aligned");
    }
    return DAVIT_OK;
}

/* ---- all infos together ---- */

/* What lies past the end of the file. A file that was cut loses all that is behind the cut, so
 * that is one finding, not one for each tensor. */
typedef struct beyond {
    const info *first; /* of them, in the order of the file; NULL = none */
    uint64_t n;
    uint64_t end; /* bytes that the file would have with them */
} beyond;

/* @data_off is at most 8 bytes short of 2^64 and offsets are anything: each sum is checked. */
static void check_inside(gguf_open *o, const info *t, uint64_t data_off, beyond *out)
{
    char found[96];
    uint64_t off, end;

    if (!t->type)
        return;
    if (!davit_bytes_add(data_off, t->off, &off) || !davit_bytes_add(off, t->n_bytes, &end)) {
        snprintf(found, sizeof found, "%" PRIu64 " bytes at %" PRIu64 " + %" PRIu64, t->n_bytes,
                 data_off, t->off);
        bad(o, t->name, DAVIT_R_TENSOR_OUT_OF_FILE, "an end of at most 64 bits", found,
            "the tensor's bytes lie outside the file");
        return;
    }
    if (end <= o->c.size)
        return;
    out->n++;
    if (!out->first || t->off < out->first->off)
        out->first = t;
    if (end > out->end)
        out->end = end;
}

static void report_beyond(gguf_open *o, const beyond *b, uint64_t n_tensors)
{
    char found[160];
    char expected[64];

    if (!b->n)
        return;
    snprintf(expected, sizeof expected, "%" PRIu64 " bytes", b->end);
    snprintf(found, sizeof found,
             "%" PRIu64 " bytes; %" PRIu64 " of %" PRIu64 " tensors end past them, first %.*s",
             o->c.size, b->n, n_tensors, (int)(b->first->name.len < 64 ? b->first->name.len : 64),
             b->first->name.ptr);
    gguf_find(o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
              &(davit_refusal){.code = DAVIT_R_FILE_TRUNCATED,
                               .expected = expected,
                               .found = found,
                               .message = "the file is shorter than its header says",
                               .hint = "the file is cut short: resume its download, or "
                                     "download it again"});
}

static int compare_offsets(const void *a, const void *b)
{
    const info *x = a;
    const info *y = b;

    if (x->off != y->off)
        return x->off < y->off ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

static void report_overlap(gguf_open *o, const info *a, const info *b)
{
    char found[160];
    char expected[64];

    snprintf(found, sizeof found, "start %" PRIu64 ", inside %.*s", b->off,
             (int)(a->name.len < 80 ? a->name.len : 80), a->name.ptr);
    snprintf(expected, sizeof expected, "start >= %" PRIu64, a->off + a->n_bytes);
    bad(o, b->name, DAVIT_R_TENSOR_OVERLAP, expected, found,
        "the tensor shares bytes with another");
}

/* Sorted by offset: overlaps are errors, holes one warning (the reference refuses holes;
 * the bytes of every tensor are certain all the same). */
static void check_overlaps(gguf_open *o, const info *infos, uint64_t n)
{
    const info *prev = NULL;
    const info *hole = NULL;
    char found[48];

    for (uint64_t i = 0; i < n; i++) {
        const info *t = &infos[i];
        uint64_t expected = 0;

        if (!t->type || t->n_bytes == 0)
            continue;
        if (prev && t->off < prev->off + prev->n_bytes)
            report_overlap(o, prev, t);
        else if ((!prev ||
                  davit_bytes_align(prev->off + prev->n_bytes, o->align, &expected)) &&
                 t->off != expected && !hole)
            hole = t;
        prev = t;
    }
    if (!hole || o->status)
        return;
    snprintf(found, sizeof found, "offset %" PRIu64, hole->off);
    gguf_find(o, hole->name, DAVIT_OK,
              &(davit_refusal){.code = DAVIT_R_TENSOR_OVERLAP,
                               .flags = DAVIT_REFUSAL_WARNING,
                               .expected = "no hole before it",
                               .found = found,
                               .message = "unused bytes lie before the tensor"});
}

static int32_t deliver(gguf_open *o, const info *infos, uint64_t n, uint64_t data_off)
{
    for (uint64_t i = 0; i < n; i++) {
        const info *t = &infos[i];
        davit_extent extent = {.struct_size = DAVIT_END(davit_extent, block_bytes),
                               .name = t->name,
                               .dtype = t->type->dtype,
                               .rank = t->rank,
                               .off = data_off + t->off,
                               .n_bytes = t->n_bytes,
                               .block_elems = t->type->block_elems,
                               .block_bytes = t->type->block_bytes};
        int32_t status;

        memcpy(extent.shape, t->shape, sizeof t->shape);
        status = o->out->tensor(o->out->ctx, &extent);
        if (status)
            return status;
    }
    return DAVIT_OK;
}

/* All infos are in @infos; the cursor stands at their end. */
static int32_t check_all(gguf_open *o, info *infos, uint64_t n)
{
    uint64_t data_off = 0;
    beyond past = {0};

    if (!davit_bytes_align(o->c.pos, o->align, &data_off)) /* pos is inside the file */
        return bad(o, (davit_span){NULL, 0}, DAVIT_R_HEADER_INVALID, NULL, NULL,
                   "the header's end overflows");
    for (uint64_t i = 0; i < n; i++)
        check_inside(o, &infos[i], data_off, &past);
    report_beyond(o, &past, n);
    /* Sums below are safe only for tensors inside the file. */
    if (o->status)
        return o->status;
    qsort(infos, (size_t)n, sizeof *infos, compare_offsets);
    check_overlaps(o, infos, n);
    return o->status ? o->status : deliver(o, infos, n, data_off);
}

int32_t gguf_read_tensors(gguf_open *o, uint64_t n_tensors)
{
    info *infos;
    int32_t status = DAVIT_OK;

    if (n_tensors == 0)
        return DAVIT_OK; /* and no padding */
    /* 24 bytes of file per info at least, checked by the caller: memory stays in
     * proportion. */
    infos = n_tensors > SIZE_MAX / sizeof *infos
                ? NULL
                : calloc((size_t)n_tensors, sizeof *infos);
    if (!infos) {
        o->status =
            davit_say(o->sink, DAVIT_E_LIMIT,
                      &(davit_refusal){.code = DAVIT_R_OUT_OF_MEMORY,
                                       .subject = o->name,
                                       .message = "no memory for the tensor list"});
        return o->status;
    }
    for (uint64_t i = 0; i < n_tensors && !status; i++)
        status = read_info(o, &infos[i]);
    if (!status)
        status = check_all(o, infos, n_tensors);
    free(infos);
    return status;
}
