/* SPDX-License-Identifier: Apache-2.0
 * nf4 and fp4 of bitsandbytes: the whole matrix row after row as one line of four-bit codes,
 * the first of two in the *high* half of a byte; one absmax for each block of the line.
 *   w = table[code] * absmax[i / block]
 * With double quantisation absmax itself is coded in bytes:
 *   absmax[b] = nested_map[byte] * nested_absmax[b / nested_block] + offset
 * A block may end inside a row: codes then share scales by the greatest common divisor of row
 * and block. bitsandbytes rounds the product to the model's dtype; it is float32 here. */
#include <math.h>
#include <string.h>

#include <davit/help/bytes.h>

#include "bnb.h"

#define NESTED_MAP 256
#define TYPES      "u8/1|i8/1|bf16/1|f16/1|f32/1" /* quant_storage: the same bytes */

/* params; OFFSET: bits of a float. Of a cut: PHASE, elements of other ranks in its first block;
 * NESTED_PHASE, blocks of others in its first nested block; ROW_BLOCKS, blocks of a whole row
 * where it has only some of them, else 0. */
enum { BLOCK, NESTED_BLOCK, OFFSET, GROUP, PHASE, NESTED_PHASE, ROW_BLOCKS };
enum { WEIGHT, ABSMAX, NESTED_ABSMAX, NESTED_CODES }; /* parts */

static const char *const states[] = {"weight.quant_state.bitsandbytes__nf4",
                                     "weight.quant_state.bitsandbytes__fp4", NULL};

const char *bnb_nibbles_state(const davit_quant_module *m)
{
    for (size_t i = 0; states[i]; i++)
        if (davit_q_has(m, states[i], NULL))
            return states[i];
    return NULL;
}

/* ---- check ---- */

static const char *type_of(const char *state)
{
    return state + strlen(state) - 3;
}

static int read_state(davit_q_check *c, const davit_json_suite *json, void *host_ctx,
                      const char *suffix, bnb_state *out)
{
    const davit_quant_settings *set = davit_q_settings(c->module);
    const davit_tensor_info *t = davit_q_need(c, suffix, "u8/1");
    uint64_t n_bytes = 0;
    const uint8_t *text = t ? davit_q_peek(c, suffix, &n_bytes) : NULL;
    int32_t status;

    if (!t)
        return 0;
    if (!json || !text)
        return davit_q_fail(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, t->name,
                            "readable text of at most 1 MiB", "none",
                            "the state of a quantised weight cannot be read");
    status = bnb_state_read(json, host_ctx, t->name, text, n_bytes, out, c->sink);
    if (status) {
        c->status = c->status ? c->status : status; /* the first counts */
        return 0;
    }
    if (strcmp(out->type, type_of(suffix)) != 0)
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_CONFIG_CONFLICT, t->name,
                            type_of(suffix), *out->type ? out->type : "no quant_type",
                            "the state's name and its quant_type disagree");
    if (set->format && strcmp(set->format, out->type) != 0)
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_QUANT_CONFIG_CONFLICT, t->name,
                            set->format, out->type,
                            "bnb_4bit_quant_type and the weight's state disagree");
    if (out->rank == 2 && out->block)
        return 1;
    return davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_CONFIG_VALUE, t->name,
                        "shape and blocksize", "one of them is absent",
                        "the state of a quantised weight is incomplete");
}

/* Cells of @each elements that hold @n; the last may be short. */
static uint64_t cells(uint64_t n, uint64_t each)
{
    return (n - 1) / each + 1;
}

static const davit_tensor_info *need_n(davit_q_check *c, const char *suffix,
                                       const char *dtypes, uint64_t n)
{
    const davit_tensor_info *t = davit_q_need(c, suffix, dtypes);

    if (t && davit_q_product(t, 0, t->rank) != n) {
        davit_q_shape(c, t, 1, &n);
        return NULL;
    }
    return t;
}

/* Another table than the one of the name? */
static void check_table(davit_q_check *c, uint32_t kind)
{
    const davit_tensor_info *t = need_n(c, "weight.quant_map", "f32/1", 16);
    uint64_t n_bytes = 0;
    const uint8_t *p = t ? davit_q_peek(c, "weight.quant_map", &n_bytes) : NULL;

    for (uint64_t i = 0; p && n_bytes == 64 && i < 16; i++)
        if (davit_q_scale(p, DAVIT_SCALE_F32, i) != davit_q_value(kind, (uint8_t)i)) {
            davit_q_fail(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, t->name,
                         "the table of nf4 or fp4", "another",
                         "a table of one's own is not read");
            return;
        }
}

/* absmax, and what it is coded with. */
static void read_scales(davit_q_check *c, const bnb_state *s, const davit_tensor_info **out)
{
    const uint64_t n = c->desc->n_rows * c->desc->n_cols, blocks = cells(n, s->block);
    const int nested = davit_q_has(c->module, "weight.nested_absmax", NULL);

    out[ABSMAX] = need_n(c, "weight.absmax", nested ? "u8/1" : "f32/1", blocks);
    if (!nested)
        return;
    if (!s->nested_block) {
        davit_q_fail(c, DAVIT_E_CORRUPT, DAVIT_R_QUANT_CONFIG_VALUE, NULL, "nested_blocksize",
                     "none", "the state of a quantised weight is incomplete");
        return;
    }
    out[NESTED_ABSMAX] =
        need_n(c, "weight.nested_absmax", "f32/1", cells(blocks, s->nested_block));
    out[NESTED_CODES] = need_n(c, "weight.nested_quant_map", "f32/1", NESTED_MAP);
    c->desc->params[NESTED_BLOCK] = s->nested_block;
}

static void describe(davit_q_check *c, const bnb_state *s, const davit_tensor_info *const *t)
{
    davit_quant_desc *d = c->desc;
    const uint64_t k = d->n_cols, each = d->params[NESTED_BLOCK] ? 1 : 4;
    const int whole = k % s->block == 0; /* rows begin blocks */
    uint32_t offset;

    memcpy(&offset, &s->nested_offset, sizeof offset);
    d->params[BLOCK] = s->block;
    d->params[OFFSET] = offset;
    d->params[GROUP] = davit_q_divisor(k, s->block);
    d->col_unit = d->params[GROUP];
    davit_q_part(c, "weight", t[WEIGHT], k % 2 ? 0 : k / 2);
    davit_q_part(c, "scale", t[ABSMAX], whole ? k / s->block * each : 0);
    if (d->params[NESTED_BLOCK]) {
        davit_q_part(c, "scale_scale", t[NESTED_ABSMAX], 0);
        davit_q_part(c, "scale_table", t[NESTED_CODES], 0);
    }
    d->codes = (davit_quant_codes){
        .group = d->params[GROUP] < k ? d->params[GROUP] : 0,
        .bits = 4,
        .kind = strcmp(s->type, "nf4") == 0 ? DAVIT_CODE_NF4 : DAVIT_CODE_FP4,
        .scale_type = DAVIT_SCALE_F32};
    if (d->codes.group && d->codes.group % 16)
        d->forms = DAVIT_FORM_F32; /* nearly a scale for every weight */
}

int32_t bnb_nibbles_check(const davit_json_suite *json, void *host_ctx,
                          const davit_quant_module *module, davit_quant_desc *out,
                          const davit_sink *sink)
{
    const char *suffix = bnb_nibbles_state(module);
    const davit_tensor_info *t[4] = {NULL, NULL, NULL, NULL};
    davit_q_check c;
    bnb_state s;

    davit_q_begin(&c, module, "bitsandbytes/1", out, sink);
    out->layout = "bnb_4bit/1";
    t[WEIGHT] = davit_q_need(&c, "weight", TYPES);
    if (!suffix)
        suffix = states[0];
    if (!read_state(&c, json, host_ctx, suffix, &s) || !t[WEIGHT])
        return davit_q_end(&c);
    out->n_rows = s.shape[0];
    out->n_cols = s.shape[1];
    if (t[WEIGHT]->n_bytes < (out->n_rows * out->n_cols + 1) / 2 ||
        t[WEIGHT]->n_bytes > (out->n_rows * out->n_cols + 1) / 2 + 3) { /* up to a float32 */
        davit_q_fail(&c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, t[WEIGHT]->name,
                     "half a byte for each element of the state's shape", "another size",
                     "a quantised weight does not fit its state");
        return davit_q_end(&c);
    }
    check_table(&c, strcmp(s.type, "nf4") == 0 ? DAVIT_CODE_NF4 : DAVIT_CODE_FP4);
    read_scales(&c, &s, t);
    if (c.status == 0)
        describe(&c, &s, t);
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const uint64_t from = row * t->desc->n_cols + col;
    const uint8_t *p = t->parts[WEIGHT].ptr + (from + 1) / 2;
    uint64_t pairs;

    if (n && from % 2) {
        *out++ = p[-1] & 15;
        n--;
    }
    pairs = n / 2;
    for (uint64_t i = 0; i < pairs; i++) {
        out[2 * i] = p[i] >> 4;
        out[2 * i + 1] = p[i] & 15;
    }
    if (n % 2)
        out[n - 1] = p[pairs] >> 4;
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const uint64_t *p = t->desc->params;
    const uint64_t block = (p[PHASE] + row * t->desc->n_cols + group * p[GROUP]) / p[BLOCK];
    const uint64_t own = t->desc->n_cols / p[BLOCK]; /* blocks of a row */
    const uint64_t nested = p[NESTED_PHASE] + (p[ROW_BLOCKS] ? block / own * p[ROW_BLOCKS] +
                                                                   block % own
                                                             : block);
    const uint32_t bits = (uint32_t)p[OFFSET];
    float offset, product;

    if (!p[NESTED_BLOCK])
        return davit_q_scale(t->parts[ABSMAX].ptr, DAVIT_SCALE_F32, block);
    memcpy(&offset, &bits, sizeof offset);
    product = davit_q_scale(t->parts[NESTED_CODES].ptr, DAVIT_SCALE_F32,
                            t->parts[ABSMAX].ptr[block]);
    product *= davit_q_scale(t->parts[NESTED_ABSMAX].ptr, DAVIT_SCALE_F32, nested / p[NESTED_BLOCK]);
    return product + offset;
}

davit_q_view bnb_nibbles_view(const davit_quant_desc *d)
{
    return (davit_q_view){.codes = codes, .scale = scale, .group = d->params[GROUP]};
}

int bnb_nibbles_nested(const davit_quant_desc *d)
{
    return d->params[NESTED_BLOCK] != 0;
}

/* ---- cuts ---- */

/* The nested scales of blocks [first, last] of the module. */
static void cut_nested(const davit_quant_desc *d, const davit_quant_box *box, uint64_t first,
                       uint64_t last, davit_quant_cut *out)
{
    const uint64_t each = d->params[NESTED_BLOCK];
    uint64_t all;

    if (!each)
        return;
    all = cells(cells(d->n_rows * d->n_cols, d->params[BLOCK]), each);
    davit_q_cut_lines(box, NESTED_ABSMAX,
                      &(davit_q_lines){1, 4 * all, 0, 1, first / each * 4,
                                       (last / each - first / each + 1) * 4},
                      out);
    out->desc.params[NESTED_PHASE] = first % each;
}

/* Columns: whole blocks of rows that begin with one. */
static int32_t cut_columns(const davit_quant_desc *d, const davit_quant_box *box,
                           davit_quant_cut *out, const davit_sink *sink)
{
    const uint64_t block = d->params[BLOCK], per_row = d->n_cols / block;
    const uint64_t first = box->row * per_row + box->col / block;
    const uint64_t size = d->params[NESTED_BLOCK] ? 1 : 4;

    if (!davit_q_cut_cols_fit(d, box, d->n_cols % block ? 0 : block, sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_by_row(d, box, WEIGHT, box->col / 2, box->n_cols / 2, out);
    davit_q_cut_by_row(d, box, ABSMAX, box->col / block * size, box->n_cols / block * size, out);
    cut_nested(d, box, first, first + (box->n_rows - 1) * per_row + box->n_cols / block - 1, out);
    out->desc.params[ROW_BLOCKS] = per_row;
    out->desc.params[GROUP] = out->desc.col_unit = block;
    out->desc.codes.group = block < box->n_cols ? block : 0;
    return DAVIT_OK;
}

/* Rows are a part of the line of codes, from a whole byte on; a block that it begins inside of
 * comes along. */
int32_t bnb_nibbles_cut(const davit_quant_desc *d, const davit_quant_box *box,
                        davit_quant_cut *out, const davit_sink *sink)
{
    const uint64_t *p = d->params;
    const uint64_t from = box->row * d->n_cols, n = box->n_rows * d->n_cols;
    const uint64_t all = d->n_rows * d->n_cols, size = p[NESTED_BLOCK] ? 1 : 4;
    const uint64_t first = from / p[BLOCK], last = (from + n - 1) / p[BLOCK];

    davit_q_cut_begin(d, box, out);
    if (!davit_q_cut_rows_fit(d, box, d->n_cols % 2 ? 2 : 1, sink))
        return DAVIT_E_UNSUPPORTED;
    if (box->n_cols != d->n_cols)
        return cut_columns(d, box, out, sink);
    davit_q_cut_lines(box, WEIGHT,
                      &(davit_q_lines){1, (all + 1) / 2, 0, 1, from / 2, (n + 1) / 2}, out);
    davit_q_cut_lines(box, ABSMAX,
                      &(davit_q_lines){1, cells(all, p[BLOCK]) * size, 0, 1, first * size,
                                       (last - first + 1) * size},
                      out);
    cut_nested(d, box, first, last, out);
    out->desc.params[PHASE] = from % p[BLOCK];
    return DAVIT_OK;
}
