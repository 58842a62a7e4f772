/* SPDX-License-Identifier: Apache-2.0
 * MXFP4: 32 floats of four bits share a power of two. Byte j holds element 2j in its low
 * half and 2j + 1 in its high half (GGUF's MXFP4 pairs j with j + 16: ../gguf).
 *   w = e2m1(code) * 2^(scale - 127)
 * README.md has names, params and parts. */
#include <string.h>

#include <davit/help/quant.h>

#define GROUP 32
#define E8M0  "u8/1|f8_e8m0/1"

typedef struct Naming {
    const char *weight, *weight_types, *scale;
} Naming;

static const Naming namings[] = {
    {"_blocks", "u8/1", "_scales"},                  /* gpt-oss */
    {"blocks", "u8/1", "scales"},                    /* gpt-oss as released by OpenAI */
    {"weight_packed", "u8/1", "weight_scale"},       /* compressed-tensors */
    {"weight", "i8/1|u8/1|f4/1", "scale"},           /* DeepSeek-V4 experts */
    {"weight", "u8/1|f4/1", "weight_scale"},         /* ModelOpt */
};

static const Naming *naming_of(const davit_quant_module *m)
{
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (davit_q_has(m, namings[i].weight, namings[i].weight_types) &&
            davit_q_has(m, namings[i].scale, E8M0))
            return &namings[i];
    return NULL;
}

static int32_t mxfp4_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                           const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (!naming_of(signature) || davit_q_has(signature, "weight_global_scale", NULL) ||
        davit_q_has(signature, "weight_scale_2", NULL))
        return davit_decline(out);
    return davit_accept(out, 500, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

/* [.., N, K/32, 16] or [.., N, K/2], F4 counting elements, into E, N, K. */
static int read_shape(davit_q_check *c, const davit_tensor_info *w, const davit_tensor_info *s)
{
    davit_quant_desc *d = c->desc;
    const int blocks = w->rank == s->rank + 1 && w->rank > 0 && w->shape[w->rank - 1] == 16;
    const uint32_t rank = s->rank;
    uint64_t shape[DAVIT_MAX_RANK];

    if (rank < 2 || rank > 3)
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, s->name,
                            "a matrix of scales, or one per expert", "another rank",
                            "MXFP4 weights are matrices");
    d->n_experts = rank == 3 ? s->shape[0] : 1;
    d->n_rows = s->shape[rank - 2];
    if (!davit_q_product(s, 0, rank) || s->shape[rank - 1] > UINT64_MAX / 64)
        return davit_q_fail(c, DAVIT_E_MISMATCH, DAVIT_R_SHAPE_MISMATCH, s->name,
                            "no empty axis", "one", "the tensor is empty or too large");
    d->n_cols = s->shape[rank - 1] * GROUP;
    memcpy(shape, s->shape, sizeof shape);
    if (blocks) {
        shape[rank] = 16;
        return davit_q_shape(c, w, rank + 1, shape);
    }
    shape[rank - 1] = strcmp(w->dtype, "f4/1") == 0 ? d->n_cols : d->n_cols / 2;
    return davit_q_shape(c, w, rank, shape);
}

/* The compressor of 0.13 subtracted two from the exponent twice. */
static void check_writer(davit_q_check *c)
{
    const davit_quant_settings *set = davit_q_settings(c->module);

    if (set->method && strcmp(set->method, "compressed-tensors") == 0 && set->producer &&
        strncmp(set->producer, "0.13.", 5) == 0)
        davit_q_fail(c, DAVIT_E_UNSUPPORTED, DAVIT_R_QUANT_LAYOUT, NULL,
                     "MXFP4 of compressed-tensors 0.14 or later", set->producer,
                     "this version wrote exponents that are two too low");
}

static int32_t mxfp4_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                           const davit_sink *sink)
{
    const Naming *names = naming_of(module);
    const davit_tensor_info *w, *s;
    davit_q_check c;
    (void)self;

    davit_q_begin(&c, module, "mxfp4/1", out, sink);
    out->layout = "mxfp4/1";
    if (!names)
        return DAVIT_QUANT_OTHER;
    w = davit_q_need(&c, names->weight, names->weight_types);
    s = davit_q_need(&c, names->scale, E8M0);
    davit_q_activations(&c);
    check_writer(&c);
    davit_q_agree(&c, "group_size",
                  davit_q_settings(module)->group > 0 ? davit_q_settings(module)->group : 0,
                  GROUP);
    if (w && s && read_shape(&c, w, s)) {
        const uint64_t row = out->n_cols / 2, scales = out->n_cols / GROUP;

        out->col_unit = GROUP;
        davit_q_part(&c, "weight", w, row);
        davit_q_part(&c, "scale", s, scales);
        out->codes = (davit_quant_codes){.group = GROUP,
                                         .bits = 4,
                                         .kind = DAVIT_CODE_E2M1,
                                         .scale_type = DAVIT_SCALE_E8M0};
    }
    return davit_q_end(&c);
}

/* ---- tiles ---- */

static void codes(const davit_quant_tile *t, uint64_t row, uint64_t col, uint64_t n,
                  uint8_t *out)
{
    const davit_quant_desc *d = t->desc;

    davit_q_u4(t->parts[0].ptr + (t->expert * d->n_rows + row) * (d->n_cols / 2), col,
               n, out);
}

static float scale(const davit_quant_tile *t, uint64_t row, uint64_t group)
{
    const davit_quant_desc *d = t->desc;

    return davit_q_e8m0(
        t->parts[1].ptr[(t->expert * d->n_rows + row) * (d->n_cols / GROUP) + group]);
}

static void scales(const davit_quant_tile *t, uint64_t group, uint64_t n, float *out, float *zeros)
{
    const davit_quant_desc *d = t->desc;
    const uint64_t each = d->n_cols / GROUP;
    (void)zeros;

    davit_q_scales(&(davit_q_grid){.p = t->parts[1].ptr,
                                   .first = (t->expert * d->n_rows + t->row) * each + group,
                                   .row_step = each,
                                   .group_step = 1,
                                   .type = DAVIT_SCALE_E8M0},
                   t->n_rows, n, out);
}

static const davit_q_view view = {
    .codes = codes, .scale = scale, .group = GROUP, .scales = scales};

static int32_t mxfp4_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    const davit_quant_desc *d = tile->desc;
    const uint64_t each = d->n_cols / GROUP; /* scales of a row */
    (void)self;

    return davit_q_verify_bytes(&view, tile,
                                tile->parts[1].ptr + (tile->expert * d->n_rows + tile->row) * each,
                                (tile->n_rows ? tile->n_rows : 1) * each, sink);
}

static void mxfp4_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    (void)self;
    davit_q_decode(&view, tile, out);
}

static int32_t mxfp4_cut(void *self, const davit_quant_desc *d, const davit_quant_box *box,
                         davit_quant_cut *out, const davit_sink *sink)
{
    (void)self;
    return davit_q_cut_nibbles(d, box, GROUP, out, sink);
}

static const davit_quant_iface mxfp4_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = mxfp4_claim,
    .check = mxfp4_check,
    .verify = mxfp4_verify,
    .decode = mxfp4_decode,
    .cut = mxfp4_cut,
};

DAVIT_COMPONENT(mxfp4, DAVIT_KIND_QUANT, "org.davit.quant.mxfp4", "layout=mxfp4;part=_scales|scales|weight_scale|scale",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &mxfp4_quant);

DAVIT_PLUGIN("org.davit.quant.mxfp4", "MXFP4", "davit", "0.1.0", "Apache-2.0", &mxfp4);
