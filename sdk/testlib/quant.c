/* SPDX-License-Identifier: Apache-2.0
 * A quant layout against expected values, tile by tile and form by form. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include <davit/help/bytes.h>

/* A module as core would show it, and what check said. */
typedef struct module {
    davit_quant_module in;
    const davit_test_part *part[DAVIT_MAX_PARTS]; /* sorted by suffix */
    davit_tensor_info info[DAVIT_MAX_PARTS];
    davit_quant_part_in part_in[DAVIT_MAX_PARTS];
    const davit_quant_part_in *list[DAVIT_MAX_PARTS];
    char *name[DAVIT_MAX_PARTS];
    davit_quant_desc desc;
    davit_quant_bytes bytes[DAVIT_MAX_PARTS];
} module;

static void sort_parts(module *m, const davit_test_part *parts, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = i;

        for (; at > 0 && strcmp(m->part[at - 1]->suffix, parts[i].suffix) > 0; at--)
            m->part[at] = m->part[at - 1];
        m->part[at] = &parts[i];
    }
}

static void make_module(davit_test *t, module *m, const davit_test_part *parts, uint64_t n)
{
    memset(m, 0, sizeof *m);
    if (!test_expect(t, n >= 1 && n <= DAVIT_MAX_PARTS, "a module has 1 to %d parts",
                     DAVIT_MAX_PARTS))
        n = n ? DAVIT_MAX_PARTS : 0;
    sort_parts(m, parts, n);
    for (uint64_t i = 0; i < n; i++) {
        const davit_test_part *p = m->part[i];

        m->name[i] = test_format_text("module%s%s", *p->suffix ? "." : "", p->suffix);
        m->info[i] = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                                         .name = m->name[i],
                                         .dtype = p->dtype,
                                         .rank = (uint32_t)p->rank,
                                         .n_bytes = p->n_bytes,
                                         .block_elems = 1,
                                         .block_bytes = 1};
        memcpy(m->info[i].shape, p->shape, sizeof p->shape);
        m->part_in[i] =
            (davit_quant_part_in){.struct_size = DAVIT_END(davit_quant_part_in, reserved),
                                  .suffix = p->suffix,
                                  .dtype = p->dtype,
                                  .rank = (uint32_t)p->rank};
        m->list[i] = &m->part_in[i];
    }
    m->in = (davit_quant_module){.struct_size = DAVIT_END(davit_quant_module, want_rank),
                                 .parts = m->list,
                                 .n_parts = n};
}

static void free_module(module *m)
{
    for (uint64_t i = 0; i < DAVIT_MAX_PARTS; i++)
        free(m->name[i]);
}

/* What core refuses of a description. */
static void check_desc(davit_test *t, const module *m)
{
    const davit_quant_desc *d = &m->desc;

    test_expect(t, d->scheme && strchr(d->scheme, '/') && d->layout && strchr(d->layout, '/'),
                "scheme and layout are names with a version");
    test_expect(t, d->n_experts >= 1 && d->n_rows >= 1 && d->n_cols >= 1, "an empty matrix");
    test_expect(t, d->row_unit >= 1, "row_unit is 0");
    test_expect(t, d->n_parts >= 1 && d->n_parts <= DAVIT_MAX_PARTS, "n_parts out of range");
    test_expect(t, d->forms & DAVIT_FORM_F32, "forms lacks F32");
    for (uint32_t i = 0; i < d->n_parts && i < DAVIT_MAX_PARTS; i++)
        test_expect(t, d->parts[i].role && d->parts[i].index < m->in.n_parts,
                    "part %u has no role or names no tensor", (unsigned)i);
}

static int32_t claim_and_check(davit_test *t, module *m, uint32_t *out_verdict)
{
    const davit_quant_iface *q = davit_test_iface(t);
    davit_verdict v = {.struct_size = DAVIT_END(davit_verdict, flags)};
    uint64_t before = t->records.n;
    int32_t status;

    test_expect(t, q->claim(t->self, &m->in, &v, &t->sink) == DAVIT_OK || v.verdict == 0,
                "claim fails");
    if (out_verdict)
        *out_verdict = v.verdict;
    test_expect(t, v.verdict != DAVIT_REFUSE || t->records.n > before,
                "claim refuses without a record");
    if (v.verdict != DAVIT_ACCEPT)
        return DAVIT_E_UNSUPPORTED;
    for (uint64_t i = 0; i < m->in.n_parts; i++)
        m->part_in[i].info = &m->info[i];
    m->in.name = "module";
    m->desc.struct_size = DAVIT_END(davit_quant_desc, codes);
    before = t->records.n;
    status = q->check(t->self, &m->in, &m->desc, &t->sink);
    test_expect(t, status == DAVIT_OK || t->records.n > before,
                "check fails with %d and no record", (int)status);
    if (status == DAVIT_OK)
        check_desc(t, m);
    return status;
}

int32_t davit_test_quant_check(davit_test *t, const davit_test_part *parts, uint64_t n_parts,
                               davit_quant_desc *out, uint32_t *out_verdict)
{
    module m;
    int32_t status;

    davit_test_forget(t);
    make_module(t, &m, parts, n_parts);
    status = claim_and_check(t, &m, out_verdict);
    if (status == DAVIT_OK && out)
        *out = m.desc;
    free_module(&m);
    return status;
}

/* ---- decoding ---- */

static davit_quant_tile tile_of(const module *m, uint64_t expert)
{
    return (davit_quant_tile){.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                              .desc = &m->desc,
                              .parts = m->bytes,
                              .expert = expert,
                              .n_rows = m->desc.n_rows,
                              .n_cols = m->desc.n_cols};
}

/* @values [tile.n_rows, stride] */
static void decode_f32(davit_test *t, const davit_quant_tile *tile, float *values,
                       uint64_t stride)
{
    const davit_quant_iface *q = davit_test_iface(t);
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = values,
                           .stride = stride};

    q->decode(t->self, tile, &out);
}

/* Put together what decode gave as codes, as quant.h says, into @got [N, K]. */
static void values_of_codes(const davit_quant_tile *tile, const davit_quant_out *out, float *got)
{
    const davit_quant_codes *codes = &tile->desc->codes;
    const uint64_t K = tile->n_cols, C = out->stride, group = out->group ? out->group : C;
    const uint64_t n_groups = (C + group - 1) / group;
    const int is_map = (codes->flags & DAVIT_CODES_MAP) != 0;

    for (uint64_t i = 0; i < tile->n_rows * C; i++) {
        const uint64_t col = i % C, g = i / C * n_groups + col / group;
        const uint64_t at = i / C * K + (is_map ? out->cols[col] : col);

        if (is_map && codes->n_cols && out->cols[col] == DAVIT_CODES_NONE)
            continue;
        const float code = (float)out->codes[i];

        got[at] = out->has_min ? out->scales[g] * code + out->zeros[g]
                               : out->scales[g] * (code - out->zeros[g]);
        if (codes->flags & DAVIT_CODES_FACTORS)
            got[at] *= out->factors[at % K];
    }
}

/* The form CODES must be the form F32. */
static void check_codes(davit_test *t, const module *m, const davit_quant_tile *tile,
                        const float *expected)
{
    const davit_quant_iface *q = davit_test_iface(t);
    const uint64_t N = tile->n_rows, K = tile->n_cols;
    const uint64_t C = m->desc.codes.n_cols ? m->desc.codes.n_cols : K;
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, factors),
                           .form = DAVIT_FORM_CODES,
                           .stride = C};
    float *got;

    if (!(m->desc.forms & DAVIT_FORM_CODES) || m->desc.codes.kind != DAVIT_CODE_UINT)
        return;
    out.codes = test_alloc(N * C);
    out.scales = test_alloc(N * C * sizeof(float));
    out.zeros = test_alloc(N * C * sizeof(float));
    out.cols = test_alloc(C * sizeof *out.cols);
    out.factors = test_alloc(K * sizeof *out.factors);
    got = test_alloc(N * K * sizeof *got);
    q->decode(t->self, tile, &out);
    if (test_expect(t, m->desc.codes.bits == 0 || m->desc.codes.group == out.group,
                    "decode sets group %llu, check said %llu", (unsigned long long)out.group,
                    (unsigned long long)m->desc.codes.group)) {
        values_of_codes(tile, &out, got);
        davit_test_compare(t, "CODES against F32", got, expected, N * K, 0);
    }
    free(out.codes);
    free(out.scales);
    free(out.zeros);
    free(out.cols);
    free(out.factors);
    free(got);
}

/* A random tile: the same values as in the whole, nothing written beside it. */
static void check_tile(davit_test *t, const module *m, uint64_t expert, const float *whole)
{
    const uint64_t N = m->desc.n_rows, K = m->desc.n_cols;
    const uint64_t unit = m->desc.col_unit ? m->desc.col_unit : K;
    davit_quant_tile tile = tile_of(m, expert);
    float *got;
    uint64_t stride;

    tile.row = davit_test_between(t, 0, N - 1);
    tile.n_rows = davit_test_between(t, 1, N - tile.row);
    tile.col = davit_test_between(t, 0, (K - 1) / unit) * unit;
    tile.n_cols = davit_test_between(t, 1, (K - tile.col + unit - 1) / unit) * unit;
    if (tile.n_cols > K - tile.col)
        tile.n_cols = K - tile.col;
    stride = tile.n_cols + davit_test_between(t, 0, 3);
    got = test_alloc(tile.n_rows * stride * sizeof *got);
    memset(got, 0xa5, tile.n_rows * stride * sizeof *got);
    decode_f32(t, &tile, got, stride);
    for (uint64_t r = 0; r < tile.n_rows; r++) {
        const uint8_t *gap = (const uint8_t *)(got + r * stride + tile.n_cols);

        davit_test_compare(t, "a tile against the whole", got + r * stride,
                           whole + (tile.row + r) * K + tile.col, tile.n_cols, 0);
        for (uint64_t i = 0; i < (stride - tile.n_cols) * sizeof(float); i++)
            if (gap[i] != 0xa5) {
                test_expect(t, 0, "decode writes past a tile's row");
                break;
            }
    }
    free(got);
}

static void check_values(davit_test *t, module *m, const float *expected, double tol)
{
    const davit_quant_iface *q = davit_test_iface(t);
    const uint64_t n = m->desc.n_rows * m->desc.n_cols;
    float *whole = test_alloc(n * sizeof *whole);

    for (uint32_t i = 0; i < m->desc.n_parts; i++) {
        const davit_test_part *p = m->part[m->desc.parts[i].index];
        m->bytes[i] = (davit_quant_bytes){p->bytes, p->n_bytes};
    }
    for (uint64_t e = 0; e < m->desc.n_experts; e++) {
        const davit_quant_tile tile = tile_of(m, e);

        test_expect(t, !q->verify || q->verify(t->self, &tile, &t->sink) == DAVIT_OK,
                    "verify refuses expert %llu", (unsigned long long)e);
        decode_f32(t, &tile, whole, m->desc.n_cols);
        davit_test_compare(t, "decoded values", whole, expected + e * n, n, tol);
        check_codes(t, m, &tile, whole);
        for (int r = 0; r < 20; r++)
            check_tile(t, m, e, whole);
    }
    free(whole);
    if (tol == 0)
        test_quant_cuts(t, &m->desc, m->bytes, expected, 40);
}

void davit_test_quant(davit_test *t, const davit_test_part *parts, uint64_t n_parts,
                      const float *expected, double tol)
{
    module m;

    davit_test_forget(t);
    make_module(t, &m, parts, n_parts);
    if (test_expect(t, claim_and_check(t, &m, NULL) == DAVIT_OK,
                    "the module is not claimed or fails check"))
        check_values(t, &m, expected, tol);
    free_module(&m);
}
