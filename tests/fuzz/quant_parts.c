/* SPDX-License-Identifier: Apache-2.0
 * Names, dtypes and shapes of real layouts as choices of a few bytes: random names alone would
 * hardly ever meet. */
#include "fuzz/quant_parts.h"

#include <string.h>

#include <glib.h>

#include <davit/help/bytes.h>

static const char *const suffixes[] = {
    "weight", "", "qweight", "weight_packed", "blocks", "_blocks", "scales", "weight_scale",
    "weight_scale_inv", "scale", "_scale", "_scale_inv", "_scales", "qzeros", "g_idx",
    "weight_shape", "weight_zero_point", "weight_g_idx", "weight_scale_2",
    "weight_global_scale", "input_scale", "pre_quant_scale", "SCB", "weight_format",
    "weight.absmax", "weight.quant_map", "weight.quant_state.bitsandbytes__nf4",
    "weight.nested_absmax", "weight.nested_quant_map"};
static const struct {
    const char *name;
    uint32_t elems, bytes;
} dtypes[] = {{"f32/1", 1, 4},      {"f16/1", 1, 2},     {"bf16/1", 1, 2},
              {"i32/1", 1, 4},      {"i64/1", 1, 8},     {"u8/1", 1, 1},
              {"i8/1", 1, 1},       {"f8_e4m3/1", 1, 1}, {"f8_e5m2/1", 1, 1},
              {"f8_e8m0/1", 1, 1},  {"f4/1", 2, 1},      {"iq4_nl/1", 32, 18},
              {"iq4_xs/1", 256, 136}, {"tq1_0/1", 256, 54}, {"tq2_0/1", 256, 66},
              {"gguf.mxfp4/1", 32, 17}, {"gguf.nvfp4/1", 64, 36}, {"q1_0/1", 128, 18},
              {"q2_0/1", 64, 18}};
/* Suffix and dtype of the parts of real layouts, as indices into the two lists above. */
static const uint8_t layouts[][FUZZ_PARTS][2] = {
    {{2, 3}, {6, 1}, {13, 3}, {14, 3}, {20, 0}},  /* gptq, awq */
    {{3, 3}, {7, 2}, {15, 4}, {16, 3}, {17, 3}},  /* pack-quantized */
    {{0, 7}, {8, 0}, {20, 0}, {7, 5}, {9, 9}},    /* fp8 */
    {{0, 6}, {7, 0}, {16, 6}, {9, 9}, {20, 0}},   /* int8 */
    {{0, 5}, {7, 7}, {18, 0}, {20, 0}, {21, 0}},  /* nvfp4 */
    {{3, 5}, {7, 7}, {19, 0}, {20, 0}, {7, 5}},   /* nvfp4, mxfp4 of compressed-tensors */
    {{5, 5}, {12, 5}, {4, 5}, {6, 5}, {20, 0}},   /* mxfp4 */
    {{0, 5}, {7, 0}, {20, 0}, {21, 0}, {18, 0}},  /* modelopt int4 */
    {{0, 11}, {9, 0}, {20, 0}, {0, 16}, {0, 13}}, /* gguf */
    {{0, 5}, {24, 0}, {25, 0}, {26, 5}, {27, 0}},  /* bitsandbytes nf4 */
    {{0, 6}, {22, 0}, {23, 5}, {24, 5}, {28, 0}},  /* bitsandbytes int8 */
};
static const uint64_t sizes[] = {1,  2,  3,  4,   7,   8,   16, 24,         32,        33,
                                 48, 64, 96, 128, 256, 512, 0,  1ull << 40, UINT64_MAX};

uint8_t fuzz_byte(FuzzInput *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

uint64_t fuzz_size(FuzzInput *in)
{
    return sizes[fuzz_byte(in) % G_N_ELEMENTS(sizes)];
}

uint64_t fuzz_small_size(FuzzInput *in)
{
    return sizes[fuzz_byte(in) % 12];
}

void fuzz_fill(const FuzzInput *in, uint8_t *out, uint64_t n)
{
    const uint64_t step = (uint64_t)(in->end - in->at);

    if (step == 0) {
        memset(out, 0, n);
        return;
    }
    for (uint64_t at = 0; at < n; at += step)
        memcpy(out + at, in->at, MIN(step, n - at));
}

bool fuzz_part(FuzzInput *in, uint8_t layout, uint32_t part, davit_tensor_info *out)
{
    const uint8_t *own = layouts[layout % G_N_ELEMENTS(layouts)][part];
    const uint8_t other = fuzz_byte(in); /* mostly the layout's own */
    const size_t type = other < 0xe0 ? own[1] : fuzz_byte(in) % G_N_ELEMENTS(dtypes);
    const size_t name = other < 0xd0 ? own[0] : fuzz_byte(in) % G_N_ELEMENTS(suffixes);

    *out = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                               .name = suffixes[name],
                               .dtype = dtypes[type].name,
                               .rank = other & 1 ? 2 : fuzz_byte(in) % 6,
                               .block_elems = dtypes[type].elems,
                               .block_bytes = dtypes[type].bytes};
    for (uint32_t i = 0; i < out->rank; i++)
        out->shape[i] = fuzz_size(in);
    return davit_bytes_of_shape(out->shape, out->rank, dtypes[type].elems,
                                dtypes[type].bytes, &out->n_bytes) == DAVIT_SHAPE_OK;
}
