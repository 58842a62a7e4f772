/* SPDX-License-Identifier: Apache-2.0
 * Eight-bit floats with scales per tensor, row or block: DeepSeek's fp8, fbgemm_fp8, MXFP8,
 * and the same tensors of compressed-tensors and ModelOpt. One layout: a grid of scales.
 *   w = f32(code) * f32(scale[row / bn][col / bk])
 * Despite its name weight_scale_inv multiplies. README.md has params and parts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/quant.h>

#define F8    "f8_e4m3/1|f8_e5m2/1"
#define SCALE "f32/1|bf16/1|f16/1|f8_e8m0/1|u8/1"

/* params; ROW0, COL0: of a cut, how far into a block it begins */
enum { BN, BK, SCALE_TYPE, GRID_COLS, GRID_ROWS, ROW0, COL0 };

/* Names of the scales beside "weight", and joined to a tensor that is the module itself. */
static const char *const beside[] = {"weight_scale_inv", "weight_scale", "scale", NULL};
static const char *const joined[] = {"_scale_inv", "_scales_inv", "_scale", NULL};

static const char *scale_name(const davit_quant_module *m)
{
    const int stacked = davit_q_has(m, "", F8);
    const char *const *names = stacked ? joined : beside;

    if (!stacked && !davit_q_has(m, "weight", F8))
        return NULL;
    for (size_t i = 0; names[i]; i++)
        if (davit_q_has(m, names[i], SCALE))
            return names[i];
    return NULL;
}

static int32_t fp8_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                         const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!scale_name(signature))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

/* Scales as an expert's grid of @rows x @cols cells of @bn x @bk weights. */
typedef struct Grid {
    uint64_t bn, bk, rows, cols;
    int shared; /* one number for all rows */
} Grid;

static uint64_t cells(uint64_t n, uint64_t block)
{
    return (n - 1) / block + 1;
}

/* Axes of the scales behind the expert axis, ModelOpt's [ob, 1, ib, 1] without its ones. */
static uint32_t grid_axes(const davit_tensor_info *s, uint64_t n_experts, uint64_t axes[4])
{
    const uint32_t from = n_experts > 1 && s->rank > 0 && s->shape[0] == n_experts ? 1 : 0;
    uint32_t n = 0;

    if (s->rank > 4 + from)
        return 5;
    for (uint32_t i = from; i < s->rank; i++)
        axes[n++] = s->shape[i];
    if (n == 4 && axes[1] == 1 && axes[3] == 1) {
        axes[1] = axes[2];
        return 2;
    }
    return n;
}

static int no_grid(davit_q_check *c, const davit_tensor_info *s, uint64_t rows, uint64_t cols,
                   uint64_t bn, uint64_t bk)
{
    char want[128], have[96];
    uint64_t axes[4] = {0, 0, 0, 0};

    snprintf(want, sizeof want, "[%llu, %llu] for blocks of [%llu, %llu]",
             (unsigned long long)rows, (unsigned long long)cols, (unsigned long long)bn,
             (unsigned long long)bk);
    grid_axes(s, c->desc->n_experts, axes);
    snprintf(have, sizeof have, "rank %u, [%llu, %llu]", s->rank,
             (unsigned long long)axes[0], (unsigned long long)axes[1]);
    return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, s->name, want, have,
                        "the grid of scales does not cover the weight");
}

/* Nobody says what the blocks are, and they are not the usual ones. */
static int no_block(davit_q_check *c, const davit_tensor_info *s, const uint64_t *axes,
                    uint64_t rows, uint64_t cols)
{
    char want[128], have[64];

    snprintf(want, sizeof want, "weight_block_size in the configuration; 128 x 128 would be [%llu, %llu]",
             (unsigned long long)rows, (unsigned long long)cols);
    snprintf(have, sizeof have, "[%llu, %llu]", (unsigned long long)axes[0],
             (unsigned long long)axes[1]);
    return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_CONFIG_MISSING, s->name, want, have,
                        "the configuration does not state the blocks of these scales, and they are "
                        "not the usual ones");
}

/* A grid of blocks. The block comes from the configuration; 128 x 128, which nearly all files
 * have, where it says nothing. Never from the division of shapes: the last block is ragged. */
static int block_grid(davit_q_check *c, const davit_tensor_info *s, const uint64_t *axes,
                      Grid *out)
{
    const davit_quant_desc *d = c->desc;
    const davit_quant_settings *set = davit_q_settings(c->module);
    const int padded = (set->allow & DAVIT_QUANT_ALLOW_PADDED_GRID) != 0;
    const uint64_t bn = set->block_rows ? (uint64_t)set->block_rows : 128;
    const uint64_t bk = set->block_cols ? (uint64_t)set->block_cols : 128;
    const uint64_t rows = cells(d->n_rows, bn), cols = cells(d->n_cols, bk);

    if (axes[0] < rows || axes[1] < cols ||
        (!padded && (axes[0] != rows || axes[1] != cols)))
        return set->block_rows ? no_grid(c, s, rows, cols, bn, bk)
                               : no_block(c, s, axes, rows, cols);
    *out = (Grid){bn, bk, axes[0], axes[1], 0};
    return 1;
}

/* What the shape of the scales says. */
static int read_grid(davit_q_check *c, const davit_tensor_info *s, Grid *out)
{
    const davit_quant_desc *d = c->desc;
    const davit_quant_settings *set = davit_q_settings(c->module);
    uint64_t axes[5] = {1, 1, 1, 1, 1};
    const uint32_t n = grid_axes(s, d->n_experts, axes);
    const uint64_t all = davit_q_product(s, 0, s->rank);
    const int power =
        strcmp(s->dtype, "u8/1") == 0 || strcmp(s->dtype, "f8_e8m0/1") == 0;

    if (all == d->n_experts && !power && !(set->block_rows && n == 2)) {
        *out = (Grid){d->n_rows, d->n_cols, 1, 1, 1};
        return d->n_experts > 1 || davit_q_one_number(c, s);
    }
    if (d->n_experts > 1 && s->rank > 0 && s->shape[0] != d->n_experts)
        return no_grid(c, s, d->n_experts, d->n_rows, 1, d->n_cols);
    if (power && n == 2 && axes[0] == d->n_rows && d->n_cols % 32 == 0 &&
        axes[1] == d->n_cols / 32) { /* MXFP8 */
        *out = (Grid){1, 32, axes[0], axes[1], 0};
        return 1;
    }
    if (n == 1 || (n == 2 && axes[1] == 1 && axes[0] == d->n_rows)) {
        if (set->block_rows && (cells(d->n_rows, (uint64_t)set->block_rows) != axes[0] || n == 1))
            return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_CONFIG_CONFLICT, s->name,
                                "a grid of blocks, as the configuration says",
                                "a scale per row",
                                "the scales' rank and the block setting disagree");
        if (d->n_experts > 1 && d->n_rows == d->n_cols)
            return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_SCALE_ARITY, s->name,
                                "an axis that tells rows from columns", "square experts",
                                "scales per row or per column cannot be told apart");
        if (axes[0] != d->n_rows)
            return no_grid(c, s, d->n_rows, 1, 1, d->n_cols);
        *out = (Grid){1, d->n_cols, d->n_rows, 1, 0};
        return 1;
    }
    if (n == 2)
        return block_grid(c, s, axes, out);
    return no_grid(c, s, cells(d->n_rows, 128), cells(d->n_cols, 128), 128, 128);
}

static void describe(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *s,
                     const Grid *g)
{
    davit_quant_desc *d = c->desc;
    const uint32_t type = (uint32_t)davit_q_scale_type(s->dtype);

    d->row_unit = g->shared ? 1 : g->bn;
    d->col_unit = g->bk < d->n_cols ? g->bk : 1;
    d->params[BN] = g->bn;
    d->params[BK] = g->bk;
    d->params[SCALE_TYPE] = type;
    d->params[GRID_COLS] = g->cols;
    d->params[GRID_ROWS] = g->rows;
    davit_q_part(c, "weight", w, d->n_cols);
    davit_q_part(c, "scale", s, !g->shared && g->bn == 1 ? g->cols * davit_q_scale_bytes(type) : 0);
    d->codes = (davit_quant_codes){
        .group = g->bk < d->n_cols ? g->bk : 0,
        .scale_rows = g->shared ? d->n_rows : g->bn,
        .bits = 8,
        .kind = strcmp(w->dtype, "f8_e5m2/1") == 0 ? DAVIT_CODE_E5M2 : DAVIT_CODE_E4M3,
        .scale_type = type};
}

static int32_t fp8_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                         const davit_sink *sink)
{
    const char *name = scale_name(module);
    const davit_tensor_info *w, *s;
    davit_q_check c;
    Grid grid = {0};
    (void)self;

    davit_q_begin(&c, module, "fp8/1", out, sink);
    out->layout = "fp8_grid/1";
    w = davit_q_need(&c, davit_q_has(module, "", F8) ? "" : "weight", F8);
    s = davit_q_need(&c, name ? name : "weight_scale", SCALE);
    davit_q_activations(&c);
    if (!w || !s)
        return davit_q_end(&c);
    if (w->rank < 2 || w->rank > 3 || davit_q_product(w, 0, w->rank) == 0) {
        davit_q_fail(&c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, w->name,
                     "a matrix or stacked matrices", "another rank, or an empty axis",
                     "FP8 weights are matrices");
        return davit_q_end(&c);
    }
    out->n_experts = w->rank == 3 ? w->shape[0] : 1;
    out->n_rows = w->shape[w->rank - 2];
    out->n_cols = w->shape[w->rank - 1];
    if (read_grid(&c, s, &grid))
        describe(&c, w, s, &grid);
    if (strcmp(s->dtype, "u8/1") == 0 && c.status == 0 && grid.bk != 32 &&
        (!davit_q_settings(module)->scale_fmt ||
         strcmp(davit_q_settings(module)->scale_fmt, "ue8m0") != 0))
        davit_q_fail(&c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_DTYPE, s->name,
                     "f32/1, bf16/1 or f8_e8m0/1; u8/1 where scale_fmt is ue8m0", s->dtype,
                     "bytes as scales are read only when the configuration says what they are");
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static const uint8_t *bytes(const davit_quant_tile *t, uint64_t row)
{
    return t->parts[0].ptr + (t->expert * t->desc->n_rows + row) * t->desc->n_cols;
}

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    memcpy(out, bytes(t, row) + col, n);
}

/* Columns that share a scale, from column 0 on: less than a block where a cut begins inside one. */
static uint64_t group_of(const davit_quant_desc *d)
{
    return d->codes.group ? d->codes.group : d->params[BK];
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const davit_quant_desc *d = t->desc;
    const uint64_t *p = d->params;
    const uint64_t line = t->expert * p[GRID_ROWS] + (row + p[ROW0]) / p[BN];
    const uint64_t cell = (group * group_of(d) + p[COL0]) / p[BK];

    return davit_q_scale(t->parts[1].ptr, (uint32_t)p[SCALE_TYPE], line * p[GRID_COLS] + cell);
}

/* Rows of a block have the same scales; where a group is a cell they lie side by side. */
static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const uint64_t *p = t->desc->params;
    const int cells_only = group_of(t->desc) == p[BK] && p[COL0] == 0;
    (void)zeros;

    for (uint64_t r = 0; r < t->n_rows; r++) {
        const uint64_t line = (t->row + r + p[ROW0]) / p[BN];

        if (r && line == (t->row + r - 1 + p[ROW0]) / p[BN])
            memcpy(out + r * n, out + (r - 1) * n, n * sizeof *out);
        else if (cells_only)
            davit_q_scales(
                &(davit_q_grid){.p = t->parts[1].ptr,
                                .first = (t->expert * p[GRID_ROWS] + line) * p[GRID_COLS] + group,
                                .group_step = 1,
                                .type = (uint32_t)p[SCALE_TYPE]},
                1, n, out + r * n);
        else
            for (uint64_t g = 0; g < n; g++)
                out[r * n + g] = scale(t, t->row + r, group + g);
    }
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes,
                          .scale = scale,
                          .group = group_of(d),
                          .scales = scales,
                          .bytes = bytes};
}

static int32_t fp8_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    return davit_q_verify(&view, tile, sink);
}

static void fp8_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    davit_q_decode(&view, tile, out);
}

/* Any rows, and columns by sixteens where a packed layout takes its blocks (quant.h): blocks that
 * the box cuts are in it with their scale, and how far into them it begins is carried along. */
static int32_t fp8_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                       davit_quant_cut *out, const davit_sink *sink)
{
    const uint64_t *p = d->params;
    const uint64_t size = davit_q_scale_bytes((uint32_t)p[SCALE_TYPE]);
    const uint64_t row = box->row / p[BN], col = box->col / p[BK];
    const uint64_t rows = cells(box->row + box->n_rows, p[BN]) - row;
    const uint64_t cols = cells(box->col + box->n_cols, p[BK]) - col;
    davit_quant_codes *codes = &out->desc.codes;
    (void)self;

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_cols_fit(d, box, d->codes.group && d->codes.group % 16 == 0 ? 16 : 1, sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_by_row(d, box, 0, box->col, box->n_cols, out);
    if (d->parts[1].row_bytes)
        davit_q_cut_by_row(d, box, 1, col * size, cols * size, out);
    else
        davit_q_cut_lines(box, 1,
                          &(davit_q_lines){p[GRID_ROWS], p[GRID_COLS] * size, row, rows,
                                           col * size, cols * size},
                          out);
    out->desc.params[ROW0] = box->row % p[BN];
    out->desc.params[COL0] = box->col % p[BK];
    out->desc.params[GRID_ROWS] = rows;
    out->desc.params[GRID_COLS] = cols;
    out->desc.row_unit = out->desc.col_unit = 1; /* of tiles */
    codes->group = cols > 1 ? davit_q_divisor(out->desc.params[COL0], p[BK]) : 0;
    codes->scale_rows = rows > 1 ? davit_q_divisor(out->desc.params[ROW0], p[BN]) : box->n_rows;
    return DAVIT_OK;
}

static const davit_quant_iface fp8_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = fp8_claim,
    .check = fp8_check,
    .verify = fp8_verify,
    .decode = fp8_decode,
    .cut = fp8_cut,
};

DAVIT_COMPONENT(fp8, DAVIT_KIND_QUANT, "org.davit.quant.fp8", "layout=fp8_grid;"
                "part=weight_scale_inv|weight_scale|scale|_scale_inv|_scales_inv|_scale",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &fp8_quant);

DAVIT_PLUGIN("org.davit.quant.fp8", "8-bit floats with scales", "davit", "0.1.0", "Apache-2.0",
             &fp8);
