/* SPDX-License-Identifier: Apache-2.0
 * Cuts of a quant layout: what a box takes lies inside the tensors, and decodes to that part of the
 * whole. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

#define MOST_BYTES (1u << 20) /* of a part, and of values */

/* Bytes of a range; 0 = it does not lie inside a tensor of @n_tensor bytes. */
static uint64_t range_bytes(const davit_quant_range *r, uint64_t n_tensor)
{
    uint64_t last = 0, runs = 0, n = 0;

    if (r->n_bytes == 0)
        return n_tensor;
    if (r->n_runs == 0 || r->n_planes == 0 || (r->n_runs > 1 && r->stride < r->n_bytes) ||
        !davit_bytes_mul(r->n_runs - 1, r->stride, &runs) ||
        !davit_bytes_mul(r->n_planes - 1, r->plane, &last) || last > n_tensor ||
        runs > n_tensor - last || r->off > n_tensor - last - runs ||
        r->n_bytes > n_tensor - last - runs - r->off ||
        !davit_bytes_mul(r->n_bytes, r->n_runs, &n) || !davit_bytes_mul(n, r->n_planes, &n))
        return 0;
    return n;
}

/* (owned, test_exact_free) NULL if there is too much of it. */
static uint8_t *gather(const davit_quant_range *r, const davit_quant_bytes *tensor, uint64_t n)
{
    uint8_t *bytes, *to, *exact;

    if (n > MOST_BYTES)
        return NULL;
    to = bytes = test_alloc(n);
    if (r->n_bytes == 0)
        memcpy(bytes, tensor->ptr, n);
    for (uint64_t p = 0; r->n_bytes && p < r->n_planes; p++)
        for (uint64_t k = 0; k < r->n_runs; k++, to += r->n_bytes)
            memcpy(to, tensor->ptr + r->off + p * r->plane + k * r->stride, r->n_bytes);
    exact = test_exact(bytes, n);
    free(bytes);
    return exact;
}

static void decode(davit_test *t, const davit_quant_cut *cut, const davit_quant_box *box,
                   const davit_quant_bytes *parts, const davit_quant_desc *d, const float *whole)
{
    const davit_quant_iface *q = davit_test_iface(t);
    const uint64_t n = box->n_rows * box->n_cols;
    float *nothing = test_alloc(n * sizeof *nothing);
    uint8_t *to = test_exact(nothing, n * sizeof *nothing);

    for (uint64_t e = 0; e < box->n_experts; e++) {
        const davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                                       .desc = &cut->desc,
                                       .parts = parts,
                                       .expert = e,
                                       .n_rows = box->n_rows,
                                       .n_cols = box->n_cols};
        davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                               .form = DAVIT_FORM_F32,
                               .values = (float *)(void *)to,
                               .stride = box->n_cols};

        q->decode(davit_test_self(t), &tile, &out);
        for (uint64_t r = 0; whole && r < box->n_rows; r++)
            davit_test_compare(t, "a cut against the whole", out.values + r * box->n_cols,
                               whole +
                                   ((box->expert + e) * d->n_rows + box->row + r) * d->n_cols +
                                   box->col,
                               box->n_cols, 0);
    }
    test_exact_free(to, n * sizeof *nothing);
    free(nothing);
}

/* A cut that the plugin made. */
static void check_cut(davit_test *t, const davit_quant_desc *d, const davit_quant_bytes *parts,
                      const davit_quant_box *box, const davit_quant_cut *cut, const float *whole)
{
    davit_quant_bytes part[DAVIT_MAX_PARTS] = {{0}};
    uint8_t *bytes[DAVIT_MAX_PARTS] = {NULL};
    int is_whole = 1;

    if (!test_expect(t, cut->desc.n_experts == box->n_experts &&
                            cut->desc.n_rows == box->n_rows && cut->desc.n_cols == box->n_cols &&
                            cut->desc.n_parts == d->n_parts && cut->desc.layout == d->layout,
                     "a cut is described as another matrix or layout"))
        return;
    for (uint32_t p = 0; p < d->n_parts; p++) {
        const uint64_t n = range_bytes(&cut->ranges[p], parts[p].n_bytes);

        if (!test_expect(t, n > 0, "a cut takes bytes outside of part %u", (unsigned)p)) {
            is_whole = 0;
            break;
        }
        test_expect(t,
                    cut->desc.parts[p].row_bytes == 0 ||
                        cut->desc.parts[p].row_bytes == n / box->n_experts / box->n_rows,
                    "row_bytes of part %u are not those of the cut", (unsigned)p);
        bytes[p] = gather(&cut->ranges[p], &parts[p], n);
        is_whole = is_whole && bytes[p];
        part[p] = (davit_quant_bytes){bytes[p], n};
    }
    if (is_whole)
        decode(t, cut, box, part, d, whole);
    for (uint32_t p = 0; p < d->n_parts; p++)
        if (bytes[p])
            test_exact_free(bytes[p], part[p].n_bytes);
}

/* Some of @all, mostly from and to a multiple of a power of two or ten. */
static void draw(davit_test *t, uint64_t all, uint64_t *from, uint64_t *n)
{
    static const uint64_t units[] = {1, 2, 8, 10, 32, 128};
    const uint64_t unit = units[davit_test_between(t, 0, 5)];

    *from = davit_test_between(t, 0, (all - 1) / unit) * unit;
    *n = davit_test_between(t, 1, (all - *from + unit - 1) / unit) * unit;
    if (*n > all - *from)
        *n = all - *from;
}

void test_quant_cuts(davit_test *t, const davit_quant_desc *d, const davit_quant_bytes *parts,
                     const float *whole, uint64_t rounds)
{
    const davit_quant_iface *q = davit_test_iface(t);

    if (!DAVIT_HAS(q, davit_quant_iface, cut) || !q->cut)
        return;
    for (uint64_t i = 0; i < rounds; i++) {
        davit_quant_box box = {.struct_size = DAVIT_END(davit_quant_box, n_cols),
                               .n_experts = d->n_experts,
                               .n_rows = d->n_rows,
                               .n_cols = d->n_cols};
        davit_quant_cut cut = {.struct_size = DAVIT_END(davit_quant_cut, ranges)};
        const uint64_t before = t->records.n;
        int32_t status;
        uint64_t n = 0;

        if (i % 4 == 3)
            draw(t, d->n_experts, &box.expert, &box.n_experts);
        if (i % 3 != 1)
            draw(t, d->n_rows, &box.row, &box.n_rows);
        if (i % 3 != 2)
            draw(t, d->n_cols, &box.col, &box.n_cols);
        status = q->cut(davit_test_self(t), d, &box, &cut, &t->sink);
        test_expect(t, status == DAVIT_OK || t->records.n > before,
                    "cut fails with %d and no record", (int)status);
        if (status == DAVIT_OK && davit_bytes_mul(box.n_rows, box.n_cols, &n) && n <= MOST_BYTES)
            check_cut(t, d, parts, &box, &cut, whole);
    }
}
