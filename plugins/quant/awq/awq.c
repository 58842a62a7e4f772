/* SPDX-License-Identifier: Apache-2.0
 * AWQ of AutoAWQ, 4 bits: GEMM (packed along the outputs in an interleaved order) and GEMV
 * (packed along the inputs in natural order).
 *   W[o][k] = (q[k][o] - z[k / g][o]) * scales[k / g][o]
 * Zeros are stored as they are, not less one as in GPTQ. README.md has params and parts. */
#include <string.h>

#include <davit/help/bytes.h>
#include <davit/help/quant.h>

#define SCALES "f16/1|bf16/1|f32/1"

/* params; of a cut of GEMV: GROUP0, groups of another rank in its first word of zeros, and CUT */
enum { GROUP, SCALE_TYPE, GEMV, N_OUT, ZERO_WORDS, GROUP0, CUT };

static int32_t awq_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                         const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!davit_q_has(signature, "qweight", "i32/1") ||
        !davit_q_has(signature, "scales", SCALES) || davit_q_has(signature, "g_idx", NULL))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

/* Words of zeros per row of GEMV: padded, so that the kernel reads whole vectors. */
static uint64_t gemv_words(uint64_t k, uint64_t group)
{
    const uint64_t unit = group >= 128 ? 1 : group == 64 ? 2 : 4;
    const uint64_t n = ((k - 1) / group + 8) / 8;

    return (n + unit - 1) / unit * unit;
}

static int read_group(davit_q_check *c, uint64_t n_groups)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    const uint64_t k = c->desc->n_cols;

    if (n_groups == 0 || k % n_groups)
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, NULL,
                            "groups that divide the inputs", "others",
                            "AWQ's groups are all of one size");
    davit_q_agree(c, "group_size", set->group > 0 ? set->group : 0, (int64_t)(k / n_groups));
    davit_q_agree(c, "bits", set->bits, 4);
    c->desc->params[GROUP] = k / n_groups;
    return c->status == 0;
}

static void describe(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *s,
                     const davit_tensor_info *z)
{
    davit_quant_desc *d = c->desc;
    const uint32_t type = (uint32_t)davit_q_scale_type(s->dtype);
    const uint64_t size = davit_q_scale_bytes(type);

    d->params[SCALE_TYPE] = type;
    d->params[N_OUT] = d->n_rows;
    d->col_unit = d->params[GROUP];
    if (d->params[GEMV]) {
        davit_q_part(c, "weight", w, d->n_cols / 2);
        davit_q_part(c, "scale", s, s->shape[1] * size);
        davit_q_part(c, "zero", z, z->shape[1] * 4);
    } else {
        d->row_unit = 8;
        davit_q_part(c, "weight", w, 0);
        davit_q_part(c, "scale", s, 0);
        davit_q_part(c, "zero", z, 0);
    }
    d->codes = (davit_quant_codes){.group = d->params[GROUP] < d->n_cols ? d->params[GROUP] : 0,
                                   .bits = 4,
                                   .scale_type = type,
                                   .zero_type = DAVIT_ZERO_U4};
}

static void check_gemm(davit_q_check *c, const davit_tensor_info *w,
                       const davit_tensor_info *s, const davit_tensor_info *z)
{
    const uint64_t zeros[] = {s->shape[0], w->shape[1]};

    c->desc->layout = "awq_gemm/1";
    c->desc->n_rows = s->shape[1];
    c->desc->n_cols = w->shape[0];
    if (read_group(c, s->shape[0]) && davit_q_shape(c, z, 2, zeros))
        describe(c, w, s, z);
}

static void check_gemv(davit_q_check *c, const davit_tensor_info *w,
                       const davit_tensor_info *s, const davit_tensor_info *z)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    const uint64_t k = w->shape[1] * 8;
    const uint64_t group = set->group > 0 ? (uint64_t)set->group : set->group ? k : 0;
    uint64_t shape[2] = {w->shape[0], 0};

    c->desc->layout = "awq_gemv/1";
    c->desc->n_rows = w->shape[0];
    c->desc->n_cols = k;
    c->desc->params[GEMV] = 1;
    if (group == 0) {
        davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_CONFIG_MISSING, s->name, "group_size",
                     "not stated", "padded scales do not tell the group size");
        return;
    }
    if (!read_group(c, (k - 1) / group + 1))
        return;
    shape[1] = c->desc->params[ZERO_WORDS] = gemv_words(k, group);
    if (!davit_q_shape(c, z, 2, shape))
        return;
    shape[1] *= 8;
    if (davit_q_shape(c, s, 2, shape))
        describe(c, w, s, z);
}

/* Shapes of GEMV, which small GPTQ tensors have as well: then the configuration decides. */
static int is_gemv(const davit_quant_module *m, const davit_tensor_info *w,
                   const davit_tensor_info *s)
{
    const char *method = davit_q_settings(m)->method;

    return w->shape[0] == s->shape[0] &&
           (w->shape[1] != s->shape[1] || (method && strcmp(method, "awq") == 0));
}

static int32_t awq_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                         const davit_sink *sink)
{
    const davit_tensor_info *w, *s, *z;
    davit_q_check c;
    (void)self;

    davit_q_begin(&c, module, "awq/1", out, sink);
    out->layout = "awq_gemm/1";
    w = davit_q_need(&c, "qweight", "i32/1");
    s = davit_q_need(&c, "scales", SCALES);
    if (!w || !s || w->rank != 2 || s->rank != 2 || !w->shape[0] || !w->shape[1] ||
        (w->shape[1] * 8 != s->shape[1] && !is_gemv(module, w, s)))
        return c.status ? c.status : DAVIT_QUANT_OTHER;
    z = davit_q_need(&c, "qzeros", "i32/1");
    if (z && w->shape[1] * 8 == s->shape[1])
        check_gemm(&c, w, s, z);
    else if (z)
        check_gemv(&c, w, s, z);
    return davit_q_end(&c);
}

/* ---- tiles ---- */

/* Nibble of logical column j of eight: the words hold columns 0 2 4 6 1 3 5 7. */
static const uint8_t nibble[] = {0, 4, 1, 5, 2, 6, 3, 7};

static uint8_t gemm_nibble(const uint8_t *line, uint64_t row)
{
    return (uint8_t)(davit_bytes_u32le(line + row / 8 * 4) >> 4 * nibble[row % 8] & 15);
}

static void gemm_codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                       uint8_t *out)
{
    const uint64_t line = t->desc->n_rows / 2;

    for (uint64_t i = 0; i < n; i++)
        out[i] = gemm_nibble(t->parts[0].ptr + (col + i) * line, row);
}

#define LINES 16 /* columns that are taken apart at a time */

/* Of one register, whatever the processor calls it: loops over bytes are made into worse. */
typedef uint8_t line16 __attribute__((vector_size(LINES)));

static inline line16 zip_low(line16 a, line16 b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline line16 zip_high(line16 a, line16 b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}

/* LINES lines of LINES bytes turned: zipping the halves moves the highest bit of a byte's place to the
 * lowest, so that four times put the number of the byte in its line where that of the line was. */
static inline void turn(line16 v[LINES])
{
    line16 w[LINES];

    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < LINES / 2; k++) {
            w[2 * k] = zip_low(v[k], v[k + LINES / 2]);
            w[2 * k + 1] = zip_high(v[k], v[k + LINES / 2]);
        }
        for (int k = 0; k < LINES / 2; k++) {
            v[2 * k] = zip_low(w[k], w[k + LINES / 2]);
            v[2 * k + 1] = zip_high(w[k], w[k + LINES / 2]);
        }
    }
}

/* 32 rows of LINES columns: lines of words, @line bytes apart, are read once, side by side, and turned. */
static void gemm_block(const uint8_t *p, uint64_t line, uint8_t *out, uint64_t stride)
{
    line16 v[LINES];

    for (uint64_t k = 0; k < LINES; k++)
        memcpy(&v[k], p + k * line, LINES);
    turn(v);
    for (uint64_t r = 0; r < 32; r++) {
        const line16 from = v[r / 8 * 4 + nibble[r % 8] / 2];
        const line16 codes = nibble[r % 8] % 2 ? from >> 4 : from & 15;

        memcpy(out + r * stride, &codes, LINES);
    }
}

#define AHEAD 64 /* columns after which a line is asked for: lines lie far apart */

static void gemm_rows(const davit_quant_tile *t, uint8_t *out, uint64_t stride)
{
    const uint64_t line = t->desc->n_rows / 2;
    const uint64_t whole = t->n_cols / LINES * LINES;

    for (uint64_t r = 0, n; r < t->n_rows; r += n) {
        const uint64_t row = t->row + r;
        const uint8_t *p = t->parts[0].ptr + t->col * line;
        const uint64_t from = row % 8 || t->n_rows - r < 32 ? 0 : whole; /* what is left one by one */

        n = from ? 32 : 1;
        for (uint64_t k = 0; k < from; k += LINES) {
            for (uint64_t i = k + AHEAD; i < k + AHEAD + LINES && i < t->n_cols; i++)
                __builtin_prefetch(p + i * line + row / 2);
            gemm_block(p + k * line + row / 2, line, out + r * stride + k, stride);
        }
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t k = from; k < t->n_cols; k++)
                out[(r + i) * stride + k] = gemm_nibble(p + k * line, row + i);
    }
}

static float gemm_scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return davit_q_scale(t->parts[1].ptr, (uint32_t)t->desc->params[SCALE_TYPE],
                         group * t->desc->n_rows + row);
}

static float gemm_zero(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return gemm_nibble(t->parts[2].ptr + group * (t->desc->n_rows / 2), row);
}

static void gemm_scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *scales,
                        float *zeros)
{
    const uint64_t n_out = t->desc->n_rows;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = group * n_out + t->row,
                                   .row_step = 1,
                                   .group_step = n_out,
                                   .type = (uint32_t)t->desc->params[SCALE_TYPE]},
                   t->n_rows, n, scales);
    for (uint64_t g = 0; g < n; g++)
        for (uint64_t r = 0; r < t->n_rows; r++)
            zeros[r * n + g] = gemm_zero(t, t->row + r, group + g);
}

static void gemv_codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                       uint8_t *out)
{
    davit_q_u4(t->parts[0].ptr + row * (t->desc->n_cols / 2), col, n, out);
}

static float gemv_scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    return davit_q_scale(t->parts[1].ptr, (uint32_t)t->desc->params[SCALE_TYPE],
                         row * t->desc->params[ZERO_WORDS] * 8 + t->desc->params[GROUP0] + group);
}

static float gemv_zero(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const uint8_t *p = t->parts[2].ptr + (row * t->desc->params[ZERO_WORDS]) * 4;

    group += t->desc->params[GROUP0];
    return (float)(p[group / 2] >> 4 * (group % 2) & 15);
}

static void gemv_scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *scales,
                        float *zeros)
{
    const uint64_t *p = t->desc->params;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = t->row * p[ZERO_WORDS] * 8 + p[GROUP0] + group,
                                   .row_step = p[ZERO_WORDS] * 8,
                                   .group_step = 1,
                                   .type = (uint32_t)p[SCALE_TYPE]},
                   t->n_rows, n, scales);
    for (uint64_t r = 0; r < t->n_rows; r++)
        for (uint64_t g = 0; g < n; g++)
            zeros[r * n + g] = gemv_zero(t, t->row + r, group + g);
}

/* ---- cuts ---- */

static void cut_gemm(const davit_quant_desc *d, const davit_quant_box *box, uint64_t group,
                     uint64_t n_groups, davit_quant_cut *out)
{
    const uint64_t size = davit_q_scale_bytes((uint32_t)d->params[SCALE_TYPE]);
    const uint64_t n = d->n_rows, all = d->n_cols / d->params[GROUP];

    davit_q_cut_lines(
        box, 0,
        &(davit_q_lines){d->n_cols, n / 2, box->col, box->n_cols, box->row / 2, box->n_rows / 2},
        out);
    davit_q_cut_lines(
        box, 1,
        &(davit_q_lines){all, n * size, group, n_groups, box->row * size, box->n_rows * size},
        out);
    davit_q_cut_lines(
        box, 2, &(davit_q_lines){all, n / 2, group, n_groups, box->row / 2, box->n_rows / 2},
        out);
}

/* Whole words of zeros, and the eight scales that belong to each. */
static void cut_gemv(const davit_quant_desc *d, const davit_quant_box *box, uint64_t group,
                     uint64_t n_groups, davit_quant_cut *out)
{
    const uint64_t size = davit_q_scale_bytes((uint32_t)d->params[SCALE_TYPE]);
    const uint64_t word = group / 8, n_words = (group + n_groups + 7) / 8 - word;

    davit_q_cut_by_row(d, box, 0, box->col / 2, box->n_cols / 2, out);
    davit_q_cut_by_row(d, box, 1, word * 8 * size, n_words * 8 * size, out);
    davit_q_cut_by_row(d, box, 2, word * 4, n_words * 4, out);
    out->desc.params[ZERO_WORDS] = n_words;
    out->desc.params[GROUP0] = group % 8;
    out->desc.params[CUT] = 1;
}

static int32_t awq_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                       davit_quant_cut *out, const davit_sink *sink)
{
    const int one = d->params[GROUP] == d->n_cols; /* group for all inputs */
    const uint64_t word = d->params[GEMV] ? 8 : 1; /* columns that cannot be parted */
    const uint64_t unit = one ? word : davit_q_multiple(word, d->params[GROUP]);
    const uint64_t group = one ? 0 : box->col / d->params[GROUP];
    const uint64_t n_groups = one ? 1 : box->n_cols / d->params[GROUP];
    (void)self;

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_rows_fit(d, box, d->params[GEMV] ? 1 : 8, sink) ||
        !davit_q_cut_cols_fit(d, box, unit, sink))
        return DAVIT_E_UNSUPPORTED;
    if (d->params[GEMV])
        cut_gemv(d, box, group, n_groups, out);
    else
        cut_gemm(d, box, group, n_groups, out);
    out->desc.params[N_OUT] = box->n_rows;
    if (one)
        out->desc.params[GROUP] = out->desc.col_unit = box->n_cols;
    if (n_groups == 1)
        out->desc.codes.group = 0;
    return DAVIT_OK;
}

static davit_q_view view_of(const davit_quant_desc *d)
{
    if (d->params[GEMV])
        return (davit_q_view){.codes = gemv_codes,
                              .scale = gemv_scale,
                              .zero = gemv_zero,
                              .group = d->params[GROUP],
                              .scales = gemv_scales};
    return (davit_q_view){.codes = gemm_codes,
                          .scale = gemm_scale,
                          .zero = gemm_zero,
                          .group = d->params[GROUP],
                          .rows = gemm_rows,
                          .scales = gemm_scales};
}

/* GEMV pads the groups of a row to whole words: their zeros and scales are 0. */
static int padding_is_clear(const davit_quant_tile *t, uint64_t row)
{
    const uint64_t *p = t->desc->params;
    const uint64_t n = t->desc->n_cols / p[GROUP], all = 8 * p[ZERO_WORDS];
    const uint64_t size = 8 * davit_q_scale_bytes((uint32_t)p[SCALE_TYPE]);

    return davit_q_bits_clear(t->parts[2].ptr + row * all / 2, 4 * n, 4 * (all - n)) &&
           davit_q_bits_clear(t->parts[1].ptr + row * all * size / 8, n * size, (all - n) * size);
}

static int32_t awq_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_q_view view = view_of(tile->desc);
    const uint64_t *p = tile->desc->params;
    const int32_t status = davit_q_verify(&view, tile, sink);
    (void)self;

    for (uint64_t r = 0; p[GEMV] && !p[CUT] && !status && r < tile->n_rows; r++) {
        if (padding_is_clear(tile, tile->row + r))
            continue;
        davit_q_warn_padding(tile, tile->row + r, "groups past the last", sink);
        break; /* one says it */
    }
    return status;
}

static void awq_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const davit_q_view view = view_of(tile->desc);
    (void)self;

    davit_q_decode(&view, tile, out);
}

static const davit_quant_iface awq_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = awq_claim,
    .check = awq_check,
    .verify = awq_verify,
    .decode = awq_decode,
    .cut = awq_cut,
};

DAVIT_COMPONENT(awq, DAVIT_KIND_QUANT, "org.davit.quant.awq", "layout=awq_gemm|awq_gemv;part=qweight",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &awq_quant);

DAVIT_PLUGIN("org.davit.quant.awq", "AWQ", "davit", "0.1.0", "Apache-2.0", &awq);
