/* SPDX-License-Identifier: Apache-2.0
 * A weight layout of its own: four-bit codes with scale and minimum for each 32 columns, in three
 * tensors of a module (README.md). Kernels that pack codes multiply it without knowing it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <davit/help/quant.h>
#include <davit/help/records.h>

#define GROUP 32
#define NAME  "org.example.quant4/1"

enum { CODES, MIN, SCALE, N_PARTS }; /* sorted by suffix, as core shows them */

static const struct {
    const char *suffix, *dtype, *role;
    uint64_t per_row; /* columns of the matrix behind one column of the tensor */
} parts[N_PARTS] = {
    [CODES] = {"weight_q4", "u8/1", "weight", 2},
    [MIN] = {"weight_q4_min", "f32/1", "min", GROUP},
    [SCALE] = {"weight_q4_scale", "f32/1", "scale", GROUP},
};

static int32_t quant4_claim(void *self, const davit_quant_module *signature, davit_verdict *out,
                            const davit_sink *sink)
{
    (void)self;
    (void)sink;
    if (signature->n_parts != N_PARTS)
        return davit_decline(out);
    for (int i = 0; i < N_PARTS; i++)
        if (strcmp(signature->parts[i]->suffix, parts[i].suffix) != 0 ||
            strcmp(signature->parts[i]->dtype, parts[i].dtype) != 0)
            return davit_decline(out);
    return davit_accept(out, 900, DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN);
}

static int32_t misfit(const davit_tensor_info *info, uint64_t rows, uint64_t cols,
                      const davit_sink *sink)
{
    char expected[64], found[64];

    snprintf(expected, sizeof expected, "[%llu, %llu]", (unsigned long long)rows,
             (unsigned long long)cols);
    snprintf(found, sizeof found, "rank %u, [%llu, %llu]", (unsigned)info->rank,
             (unsigned long long)info->shape[0], (unsigned long long)info->shape[1]);
    return davit_say(sink, DAVIT_E_MISMATCH,
                     &(davit_refusal){.code = DAVIT_R_SHAPE_MISMATCH,
                                      .subject = info->name,
                                      .expected = expected,
                                      .found = found,
                                      .message = "a part of a quant4 weight does not fit its codes"});
}

static int32_t quant4_check(void *self, const davit_quant_module *module, davit_quant_desc *out,
                            const davit_sink *sink)
{
    const davit_tensor_info *codes = module->parts[CODES]->info;
    const uint64_t N = codes->shape[0], half = codes->shape[1];

    (void)self;
    if (codes->rank != 2 || N == 0 || half == 0 || half % (GROUP / 2) != 0)
        return misfit(codes, N ? N : 1, (half / (GROUP / 2) + 1) * (GROUP / 2), sink);
    *out = (davit_quant_desc){.struct_size = out->struct_size,
                              .scheme = NAME,
                              .layout = NAME,
                              .n_experts = 1,
                              .n_rows = N,
                              .n_cols = 2 * half,
                              .row_unit = 1,
                              .col_unit = GROUP,
                              .params = {GROUP},
                              .n_parts = N_PARTS,
                              .forms = DAVIT_FORM_F32 | DAVIT_FORM_CODES,
                              .codes = {.group = GROUP,
                                        .bits = 4,
                                        .kind = DAVIT_CODE_UINT,
                                        .scale_type = DAVIT_SCALE_F32,
                                        .zero_type = DAVIT_MIN_F32}};
    for (uint32_t i = 0; i < N_PARTS; i++) {
        const davit_tensor_info *info = module->parts[i]->info;
        const uint64_t cols = out->n_cols / parts[i].per_row;

        if (info->rank != 2 || info->shape[0] != N || info->shape[1] != cols)
            return misfit(info, N, cols, sink);
        out->parts[i] = (davit_quant_part){.struct_size = DAVIT_END(davit_quant_part, row_bytes),
                                           .role = parts[i].role,
                                           .index = i,
                                           .row_bytes = info->n_bytes / N};
    }
    return DAVIT_OK;
}

/* Value of group @group of row @row of a part of floats. Stored bytes have no alignment. */
static float float_at(const davit_quant_tile *tile, int part, uint64_t row, uint64_t group)
{
    float x;

    memcpy(&x, tile->parts[part].ptr + row * tile->desc->parts[part].row_bytes + 4 * group, 4);
    return x;
}

static int32_t quant4_verify(void *self, const davit_quant_tile *tile, const davit_sink *sink)
{
    char where[48];

    (void)self;
    for (uint64_t r = tile->row; r < tile->row + tile->n_rows; r++)
        for (uint64_t g = tile->col / GROUP; g < (tile->col + tile->n_cols) / GROUP; g++) {
            if (isfinite(float_at(tile, SCALE, r, g)) && isfinite(float_at(tile, MIN, r, g)))
                continue;
            snprintf(where, sizeof where, "row %llu, group %llu", (unsigned long long)r,
                     (unsigned long long)g);
            return davit_say(sink, DAVIT_E_CORRUPT,
                             &(davit_refusal){.code = DAVIT_R_VALUE_NOT_FINITE,
                                              .subject = where,
                                              .expected = "finite scale and minimum",
                                              .message = "a quant4 weight is damaged"});
        }
    return DAVIT_OK;
}

static void quant4_decode(void *self, const davit_quant_tile *tile, davit_quant_out *out)
{
    const uint64_t n_groups = tile->n_cols / GROUP;

    (void)self;
    out->group = GROUP;
    out->has_min = 1;
    for (uint64_t r = 0; r < tile->n_rows; r++) {
        const uint8_t *bytes = tile->parts[CODES].ptr +
                               (tile->row + r) * tile->desc->parts[CODES].row_bytes + tile->col / 2;

        for (uint64_t g = 0; g < n_groups; g++) {
            const float scale = float_at(tile, SCALE, tile->row + r, tile->col / GROUP + g);
            const float min = float_at(tile, MIN, tile->row + r, tile->col / GROUP + g);

            if (out->form == DAVIT_FORM_CODES) {
                out->scales[r * n_groups + g] = scale;
                out->zeros[r * n_groups + g] = min;
            }
            for (uint64_t i = g * GROUP; i < (g + 1) * GROUP; i++) {
                const uint8_t code = bytes[i / 2] >> 4 * (i % 2) & 15;

                if (out->form == DAVIT_FORM_CODES)
                    out->codes[r * out->stride + i] = code;
                else
                    out->values[r * out->stride + i] = scale * (float)code + min;
            }
        }
    }
}

static int32_t quant4_cut(void *self, const davit_quant_desc *desc, const davit_quant_box *box,
                          davit_quant_cut *out, const davit_sink *sink)
{
    (void)self;
    davit_q_cut_begin(desc, box, out);
    if (!davit_q_cut_cols_fit(desc, box, GROUP, sink))
        return DAVIT_E_UNSUPPORTED;
    for (uint32_t p = 0; p < N_PARTS; p++) {
        const uint64_t group_bytes = desc->parts[p].row_bytes / (desc->n_cols / GROUP);

        davit_q_cut_by_row(desc, box, p, box->col / GROUP * group_bytes,
                           box->n_cols / GROUP * group_bytes, out);
    }
    return DAVIT_OK;
}

static const davit_quant_iface quant4_quant = {
    .struct_size = DAVIT_END(davit_quant_iface, cut),
    .claim = quant4_claim,
    .check = quant4_check,
    .verify = quant4_verify,
    .decode = quant4_decode,
    .cut = quant4_cut,
};

DAVIT_COMPONENT(quant4, DAVIT_KIND_QUANT, "org.example.quant.quant4", "layout=org.example.quant4",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 50,
                .flags = DAVIT_COMPONENT_CONCURRENT, .iface = &quant4_quant);
DAVIT_PLUGIN("org.example.quant.quant4", "Four bits with minimum", "Example", "1.0.0", "Apache-2.0",
             &quant4);
