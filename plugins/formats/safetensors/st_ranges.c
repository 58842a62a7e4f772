/* SPDX-License-Identifier: Apache-2.0
 * Ranges of a header: every size follows from dtype and shape, and together they cover
 * the data without hole, overlap or rest. Each formula is checked on its own arithmetic.
 */
#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

static int compare_ranges(const void *a, const void *b)
{
    const st_tensor *x = a;
    const st_tensor *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return 0;
}

/* Most writers list tensors in the order of their bytes: then there is nothing to move.
 */
static void sort_ranges(st_table *table)
{
    for (uint64_t i = 1; i < table->n; i++) {
        if (compare_ranges(&table->tensors[i - 1], &table->tensors[i]) > 0) {
            qsort(table->tensors, (size_t)table->n, sizeof *table->tensors,
                  compare_ranges);
            return;
        }
    }
}

/* "[2, 3]" into @buf. */
static void write_shape(const st_tensor *t, char *buf, size_t cap)
{
    size_t at = (size_t)snprintf(buf, cap, "[");

    for (uint32_t i = 0; i < t->rank && at < cap; i++)
        at += (size_t)snprintf(buf + at, cap - at, i ? ", %" PRIu64 : "%" PRIu64,
                               t->shape[i]);
    if (at < cap)
        snprintf(buf + at, cap - at, "]");
}

/* The range's length against shape and dtype. */
static void check_size(st_open *o, const st_tensor *t)
{
    uint64_t n_bytes = 0;
    char found[256];
    char expected[64];
    const char *message = "the tensor's range is not as long as dtype and shape say";
    int why;

    if (!t->dtype)
        return; /* reported already */
    why =
        davit_bytes_of_shape(t->shape, t->rank, t->block_elems, t->block_bytes, &n_bytes);
    if (why == DAVIT_SHAPE_OK && n_bytes == t->end - t->begin)
        return;
    snprintf(found, sizeof found, "%" PRIu64 " bytes", t->end - t->begin);
    snprintf(expected, sizeof expected, "%" PRIu64 " bytes", n_bytes);
    if (why == DAVIT_SHAPE_OVERFLOW) {
        message = "the tensor's shape overflows";
        snprintf(expected, sizeof expected, "a size of at most 63 bits");
        write_shape(t, found, sizeof found);
    } else if (why == DAVIT_SHAPE_BLOCK) {
        message = "the tensor's rows are not whole bytes";
        snprintf(expected, sizeof expected, "a multiple of %" PRIu32 " elements in a row",
                 t->block_elems);
        write_shape(t, found, sizeof found);
    }
    st_find(o, t->name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_TENSOR_SIZE,
                             .expected = expected,
                             .found = found,
                             .message = message});
}

/* @t must start where the range before it ended. */
static void check_start(st_open *o, const st_tensor *t, uint64_t prev_end)
{
    char found[64];
    char expected[64];

    if (t->begin == prev_end)
        return;
    snprintf(expected, sizeof expected, "start %" PRIu64, prev_end);
    snprintf(found, sizeof found, "start %" PRIu64, t->begin);
    st_find(
        o, t->name, DAVIT_E_CORRUPT,
        &(davit_refusal){.code = DAVIT_R_TENSOR_OVERLAP,
                         .expected = expected,
                         .found = found,
                         .message = t->begin < prev_end
                                        ? "the tensor shares bytes with the one before it"
                                        : "there is a hole before the tensor"});
}

static void check_inside(st_open *o, const st_tensor *t, uint64_t data_bytes)
{
    char found[64];
    char expected[64];

    if (t->end <= data_bytes)
        return;
    snprintf(expected, sizeof expected, "end <= %" PRIu64 " (bytes of data)", data_bytes);
    snprintf(found, sizeof found, "end %" PRIu64, t->end);
    st_find(o, t->name, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_TENSOR_OUT_OF_FILE,
                             .expected = expected,
                             .found = found,
                             .message = "the tensor's bytes lie outside the file"});
}

/* The file ends before the last of @table, which is sorted, does: one finding for all that lie
 * past its end. */
static void report_cut(st_open *o, const st_table *table, uint64_t total, uint64_t data_off,
                       uint64_t data_bytes)
{
    char found[160];
    char expected[64];
    uint64_t n = 0;

    while (n < table->n && table->tensors[table->n - 1 - n].end > data_bytes)
        n++;
    snprintf(expected, sizeof expected, "%" PRIu64 " bytes", total);
    snprintf(found, sizeof found, "%" PRIu64 " bytes; %" PRIu64 " of %" PRIu64
             " tensors end past them, first ", data_off + data_bytes, n, table->n);
    if (n) {
        const davit_span name = table->tensors[table->n - n].name;
        const size_t at = strlen(found);

        snprintf(found + at, sizeof found - at, "%.*s", (int)(name.len < 64 ? name.len : 64),
                 name.ptr);
    }
    st_find(o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_FILE_TRUNCATED,
                             .expected = expected,
                             .found = found,
                             .message = "the file is shorter than its header says",
                             .hint = "the file is cut short: resume its download, or "
                                     "download it again"});
}

/* What the header covers against what the file holds. */
static void check_cover(st_open *o, const st_table *table, uint64_t covered, uint64_t data_off,
                        uint64_t data_bytes)
{
    char found[64];
    char expected[64];
    uint64_t total;

    if (covered == data_bytes || !davit_bytes_add(data_off, covered, &total))
        return;
    if (covered > data_bytes) {
        report_cut(o, table, total, data_off, data_bytes);
        return;
    }
    snprintf(expected, sizeof expected, "%" PRIu64 " bytes", total);
    snprintf(found, sizeof found, "%" PRIu64 " bytes", data_off + data_bytes);
    st_find(o, (davit_span){NULL, 0}, DAVIT_E_CORRUPT,
            &(davit_refusal){.code = DAVIT_R_TENSOR_OVERLAP,
                             .expected = expected,
                             .found = found,
                             .message = "the file is longer than its tensors"});
}

static int32_t deliver(st_open *o, const st_table *table, uint64_t data_off)
{
    for (uint64_t i = 0; i < table->n; i++) {
        const st_tensor *t = &table->tensors[i];
        davit_extent extent = {.struct_size = DAVIT_END(davit_extent, block_bytes),
                               .name = t->name,
                               .dtype = t->dtype,
                               .rank = t->rank,
                               .off = data_off + t->begin,
                               .n_bytes = t->end - t->begin,
                               .block_elems = t->block_elems,
                               .block_bytes = t->block_bytes};
        int32_t status;

        memcpy(extent.shape, t->shape, sizeof extent.shape);
        status = o->out->tensor(o->out->ctx, &extent);
        if (status)
            return status;
    }
    return DAVIT_OK;
}

int32_t st_check_ranges(st_open *o, st_table *table, uint64_t data_off,
                        uint64_t data_bytes)
{
    uint64_t covered = 0;

    sort_ranges(table);
    for (uint64_t i = 0; i < table->n; i++) {
        const st_tensor *t = &table->tensors[i];

        check_size(o, t);
        check_start(o, t, covered);
        if (t->end > covered)
            covered = t->end;
    }
    /* One unbroken run: it is as long as the data, or one record says which is too short.
     * Otherwise each range stands for itself. */
    if (!o->status)
        check_cover(o, table, covered, data_off, data_bytes);
    else
        for (uint64_t i = 0; i < table->n; i++)
            check_inside(o, &table->tensors[i], data_bytes);
    return o->status ? o->status : deliver(o, table, data_off);
}
