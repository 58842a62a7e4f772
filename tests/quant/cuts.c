/* SPDX-License-Identifier: Apache-2.0 */
#include "cuts.h"

#include <string.h>

#include <davit/help/quant.h>

#define N_BOXES 24

static float value_of(const davit_quant_codes *c, const davit_quant_out *out, uint64_t i,
                      uint64_t g)
{
    static const float e2m1[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    const uint8_t code = out->codes[i];
    float scale = out->scales[g];

    if (out->has_min)
        return (float)code * scale + out->zeros[g];
    if (c->scale_type == DAVIT_SCALE_E4M3)
        scale = out->divide ? scale / out->factor : scale * out->factor;
    if (c->kind == DAVIT_CODE_E2M1)
        return (code & 8 ? -e2m1[code & 7] : e2m1[code & 7]) * scale;
    if (c->kind == DAVIT_CODE_E4M3) {
        const int e = code >> 3 & 15, m = code & 7;
        const float v = e ? (float)(8 + m) * (float)(1 << e) / 1024.0f : (float)m / 512.0f;

        return (code & 128 ? -v : v) * scale;
    }
    if (c->kind != DAVIT_CODE_UINT)
        return davit_q_value(c->kind, code) * scale;
    return ((float)code - out->zeros[g]) * scale;
}

/* CODES of row @row against its float32 values. */
bool codes_agree(const davit_quant_iface *iface, void *self, const davit_quant_desc *d,
                 const davit_quant_bytes *parts, uint64_t row, const float *want)
{
    const uint64_t n_codes = d->codes.n_cols ? d->codes.n_cols : d->n_cols;
    const uint64_t group = d->codes.group ? d->codes.group : d->n_cols;
    const uint64_t n_groups = (n_codes + group - 1) / group;
    uint64_t n_inputs = 0;
    g_autofree uint8_t *codes = g_new0(uint8_t, n_codes);
    g_autofree float *scales = g_new0(float, n_groups);
    g_autofree float *zeros = g_new0(float, n_groups);
    g_autofree uint32_t *cols = g_new0(uint32_t, n_codes);
    g_autofree float *factors = g_new0(float, d->n_cols);
    const davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                                   .desc = d,
                                   .parts = parts,
                                   .row = row,
                                   .n_rows = 1,
                                   .n_cols = d->n_cols};
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, factors),
                           .form = DAVIT_FORM_CODES,
                           .codes = codes,
                           .scales = scales,
                           .zeros = zeros,
                           .cols = cols,
                           .factors = factors,
                           .stride = n_codes};

    iface->decode(self, &tile, &out);
    for (uint64_t i = 0; i < n_codes; i++) {
        const uint64_t col = d->codes.flags & DAVIT_CODES_MAP ? cols[i] : i;

        if (d->codes.n_cols && col == DAVIT_CODES_NONE)
            continue;
        g_assert_cmpuint(col, <, d->n_cols);
        n_inputs++;
        float is = value_of(&d->codes, &out, i, i / group);

        if (d->codes.flags & DAVIT_CODES_FACTORS)
            is *= factors[col];

        if (memcmp(&is, &want[col], sizeof is) != 0) {
            g_test_message("%s row %" G_GUINT64_FORMAT " column %" G_GUINT64_FORMAT
                           ": codes give %g, float32 %g",
                           d->layout, row, col, (double)is, (double)want[col]);
            return false;
        }
    }
    return n_inputs == d->n_cols;
}


/* ---- cuts ---- */

typedef struct Said {
    uint32_t n, n_complete; /* records; those that tell expected and found */
} Said;

static void count(void *ctx, const davit_refusal *r)
{
    Said *said = ctx;

    said->n++;
    said->n_complete += r->expected && r->found && r->code == DAVIT_R_QUANT_PARAMS;
}

/* (owned) The bytes of a range, in memory of exactly their size. */
static uint8_t *gather(const davit_quant_range *r, const uint8_t *tensor, uint64_t n_tensor,
                       uint64_t *out_n)
{
    const uint64_t n = r->n_bytes ? r->n_bytes * r->n_runs * r->n_planes : n_tensor;
    uint8_t *bytes = g_malloc(n), *to = bytes;

    *out_n = n;
    if (r->n_bytes == 0)
        return memcpy(bytes, tensor, n);
    for (uint64_t p = 0; p < r->n_planes; p++)
        for (uint64_t k = 0; k < r->n_runs; k++, to += r->n_bytes) {
            const uint64_t off = r->off + p * r->plane + k * r->stride;

            g_assert_cmpuint(off + r->n_bytes, <=, n_tensor);
            memcpy(to, tensor + off, r->n_bytes);
        }
    return bytes;
}

static bool box_decodes(const DavitModule *m, const davit_quant_cut *cut,
                        const davit_quant_box *box, const davit_quant_bytes *parts,
                        const float *values)
{
    const uint64_t k = m->desc->n_cols, n = box->n_rows * box->n_cols;
    g_autofree float *have = g_new0(float, n);
    const davit_quant_tile tile = {.struct_size = DAVIT_END(davit_quant_tile, n_cols),
                                   .desc = &cut->desc,
                                   .parts = parts,
                                   .n_rows = box->n_rows,
                                   .n_cols = box->n_cols};
    davit_quant_out out = {.struct_size = DAVIT_END(davit_quant_out, divide),
                           .form = DAVIT_FORM_F32,
                           .values = have,
                           .stride = box->n_cols};
    bool same = true;

    m->iface->decode(m->self, &tile, &out);
    for (uint64_t r = 0; same && r < box->n_rows; r++)
        same = memcmp(have + r * box->n_cols, values + (box->row + r) * k + box->col,
                      box->n_cols * sizeof *have) == 0;
    for (uint64_t r = 0; same && cut->desc.forms & DAVIT_FORM_CODES && r < box->n_rows; r++)
        same = codes_agree(m->iface, m->self, &cut->desc, parts, r, have + r * box->n_cols);
    return same;
}

/* Returns: true if the plugin takes @box. */
static bool check_box(const DavitModule *m, const DavitCheckpoint *c, const davit_quant_box *box,
                      const float *values)
{
    davit_quant_cut cut = {.struct_size = DAVIT_END(davit_quant_cut, ranges)};
    davit_quant_bytes parts[DAVIT_MAX_PARTS];
    uint8_t *bytes[DAVIT_MAX_PARTS] = {NULL};
    g_autoptr(DavitReport) report = davit_report_new();
    Said said = {0};
    const davit_sink sink = {.struct_size = sizeof sink, .ctx = &said, .refuse = count};
    const int32_t status = m->iface->cut(m->self, m->desc, box, &cut, &sink);

    if (status) {
        g_assert_cmpint(status, ==, DAVIT_E_UNSUPPORTED);
        g_assert_cmpuint(said.n, ==, 1);
        g_assert_cmpuint(said.n_complete, ==, 1);
        return false;
    }
    for (uint32_t p = 0; p < cut.desc.n_parts; p++) {
        const davit_tensor_info *t =
            davit_checkpoint_tensor(c, m->tensor[cut.desc.parts[p].index]);
        const uint8_t *tensor = NULL;

        g_assert_cmpint(davit_checkpoint_view(c, t->file, t->off, t->n_bytes, &tensor, report), ==,
                        DAVIT_OK);
        bytes[p] = gather(&cut.ranges[p], tensor, t->n_bytes, &parts[p].n_bytes);
        parts[p].ptr = bytes[p];
        if (cut.desc.parts[p].row_bytes)
            g_assert_cmpuint(cut.desc.parts[p].row_bytes * box->n_rows, ==, parts[p].n_bytes);
    }
    if (!box_decodes(m, &cut, box, parts, values)) {
        g_test_message("%s: rows %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                       ", columns %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " decode wrongly",
                       m->name, box->row, box->row + box->n_rows, box->col,
                       box->col + box->n_cols);
        g_test_fail();
    }
    for (uint32_t p = 0; p < cut.desc.n_parts; p++)
        g_free(bytes[p]);
    return true;
}

/* A part of @all, more often than not at multiples of what layouts have as units. */
static void draw(GRand *rand, uint64_t all, uint64_t *from, uint64_t *n)
{
    static const uint64_t units[] = {1, 2, 8, 10, 16, 32, 32, 64};
    const uint64_t unit = units[g_rand_int_range(rand, 0, G_N_ELEMENTS(units))];
    const uint64_t n_units = (all + unit - 1) / unit;

    *from = unit * (uint64_t)g_rand_int_range(rand, 0, (gint32)n_units);
    *n = unit * (uint64_t)g_rand_int_range(rand, 1, (gint32)(n_units - *from / unit) + 1);
    *n = MIN(*n, all - *from);
}

void check_cuts(const DavitModule *m, const DavitCheckpoint *c, const float *values, GRand *rand)
{
    unsigned n_taken = 0;

    g_assert_nonnull(m->iface->cut);
    for (int i = 0; i < N_BOXES; i++) {
        davit_quant_box box = {.struct_size = DAVIT_END(davit_quant_box, n_cols),
                               .n_experts = 1,
                               .n_rows = m->desc->n_rows,
                               .n_cols = m->desc->n_cols};

        if (i % 3 != 1)
            draw(rand, m->desc->n_rows, &box.row, &box.n_rows);
        if (i % 3 != 0)
            draw(rand, m->desc->n_cols, &box.col, &box.n_cols);
        n_taken += check_box(m, c, &box, values);
    }
    g_assert_cmpuint(n_taken, >, 0);
}
