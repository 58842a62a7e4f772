/* SPDX-License-Identifier: Apache-2.0
 * Layouts as tables: part, dtype and shape by the sizes of the module. Facts: README.md of each quant
 * plugin. Random names and shapes alone would hardly ever meet. */
#include "fuzz/quant_parts.h"

#include <string.h>

#include <glib.h>

#include <davit/help/bytes.h>
#include <davit/help/quant.h>
#include <davit/help/ref.h>

#include "base/dtype.h"

/* Axes by the sizes of a module; / rounds up. */
typedef enum Axis {
    NO, /* no more axes */
    ONE,
    TWO,
    D16,
    D256,
    E,     /* experts */
    N,     /* rows */
    K,     /* columns */
    N_2,   /* N / 2 */
    K_2,   /* K / 2 */
    N_8,   /* N / 8: words of four bits */
    K_8,   /* K / 8 */
    NB_32, /* words of N codes */
    KB_32, /* words of K codes */
    K_G,   /* groups of a row */
    K_16,
    K_32,
    N_BL,   /* N / block */
    K_BL,   /* K / block */
    NK_2,   /* bytes of nibbles */
    NK_G,   /* groups of the whole */
    NK_G_G, /* groups of those, 256 each */
    GEMV,   /* words of zeros of a row, padded */
    GEMV_8, /* scales beside them */
    TEXT    /* bytes of bitsandbytes' state */
} Axis;

typedef struct Part {
    const char *suffix, *dtype; /* dtype NULL: a GGUF type, which the input chooses */
    uint8_t axes[4];
} Part;

#define STATE_NF4 "weight.quant_state.bitsandbytes__nf4"
#define STATE_FP4 "weight.quant_state.bitsandbytes__fp4"

static const Part layouts[][FUZZ_PARTS - 1] = {
    {{"qweight", "i32/1", {KB_32, N}}, /* gptq */
     {"scales", "f16/1", {K_G, N}},
     {"qzeros", "i32/1", {K_G, NB_32}},
     {"g_idx", "i32/1", {K}}},
    {{"qweight", "i32/1", {KB_32, N}}, {"scales", "bf16/1", {K_G, N}}}, /* symmetric */
    {{"qweight", "i32/1", {K, N_8}},                                    /* awq */
     {"scales", "f16/1", {K_G, N}},
     {"qzeros", "i32/1", {K_G, N_8}}},
    {{"qweight", "i32/1", {N, K_8}}, /* awq, gemv */
     {"scales", "f16/1", {N, GEMV_8}},
     {"qzeros", "i32/1", {N, GEMV}}},
    {{"weight_packed", "i32/1", {N, KB_32}}, /* compressed-tensors */
     {"weight_scale", "bf16/1", {N, K_G}},
     {"weight_shape", "i64/1", {TWO}},
     {"weight_zero_point", "i32/1", {NB_32, K_G}},
     {"weight_g_idx", "i32/1", {K}}},
    {{"weight_packed", "i32/1", {N, KB_32}},
     {"weight_scale", "f32/1", {N, K_G}},
     {"weight_shape", "i32/1", {TWO}}},
    {{"weight", "f8_e4m3/1", {N, K}}, /* fp8: blocks, rows, whole, stacked experts */
     {"weight_scale_inv", "f32/1", {N_BL, K_BL}},
     {"input_scale", "f32/1", {NO}}},
    {{"weight", "f8_e4m3/1", {N, K}}, {"weight_scale", "bf16/1", {N, ONE}}},
    {{"weight", "f8_e5m2/1", {N, K}},
     {"weight_scale", "f32/1", {NO}},
     {"input_scale", "f32/1", {ONE}},
     {"output_scale", "f32/1", {NO}}},
    {{"", "f8_e4m3/1", {E, N, K}}, {"_scale_inv", "f32/1", {E, N_BL, K_BL}}},
    {{"weight", "f8_e4m3/1", {N, K}}, {"scale", "f8_e8m0/1", {N_BL, K_BL}}},
    {{"weight", "f8_e4m3/1", {N, K}}, {"weight_scale", "u8/1", {N, K_32}}}, /* mxfp8 */
    {{"weight", "f8_e4m3/1", {N, K}}, {"weight_scale", "f32/1", {N_BL, ONE, K_BL, ONE}}},
    {{"weight", "i8/1", {N, K}}, /* int8 */
     {"weight_scale", "f32/1", {N, K_G}},
     {"weight_zero_point", "i8/1", {N, K_G}}},
    {{"weight", "i8/1", {N, K}}, {"weight_scale", "f32/1", {ONE}}},
    {{"weight", "u8/1", {N, K_2}}, /* nvfp4 */
     {"weight_scale", "f8_e4m3/1", {N, K_16}},
     {"weight_scale_2", "f32/1", {NO}},
     {"pre_quant_scale", "f32/1", {K}},
     {"input_scale", "f32/1", {NO}}},
    {{"weight", "f4/1", {E, N, K}},
     {"weight_scale", "f8_e4m3/1", {E, N, K_16}},
     {"weight_scale_2", "f32/1", {E}}},
    {{"weight_packed", "u8/1", {N, K_2}}, /* nvfp4 of compressed-tensors */
     {"weight_scale", "f8_e4m3/1", {N, K_16}},
     {"weight_global_scale", "f32/1", {ONE}},
     {"input_global_scale", "f32/1", {ONE}}},
    {{"weight_packed", "u8/1", {N, K_2}}, {"weight_scale", "u8/1", {N, K_32}}}, /* mxfp4 */
    {{"_blocks", "u8/1", {E, N, K_32, D16}}, {"_scales", "u8/1", {E, N, K_32}}},
    {{"blocks", "u8/1", {N, K_32, D16}}, {"scales", "u8/1", {N, K_32}}},
    {{"weight", "i8/1", {N, K_2}}, {"scale", "f8_e8m0/1", {N, K_32}}},
    {{"weight", "u8/1", {N_2, K}}, /* modelopt */
     {"weight_scale", "f32/1", {N, K_G}},
     {"pre_quant_scale", "bf16/1", {K}},
     {"weight_scale_2", "f32/1", {NO}},
     {"input_scale", "f32/1", {NO}}},
    {{"weight", NULL, {N, K}}}, /* gguf */
    {{"weight", NULL, {E, N, K}}},
    {{"weight", "gguf.nvfp4/1", {E, N, K}}, {"scale", "f32/1", {E}}},
    {{"weight", "u8/1", {NK_2, ONE}}, /* bitsandbytes: plain, nested, int8 */
     {"weight.absmax", "f32/1", {NK_G}},
     {"weight.quant_map", "f32/1", {D16}},
     {STATE_NF4, "u8/1", {TEXT}}},
    {{"weight", "u8/1", {NK_2, ONE}},
     {"weight.absmax", "u8/1", {NK_G}},
     {"weight.quant_map", "f32/1", {D16}},
     {"weight.nested_absmax", "f32/1", {NK_G_G}},
     {"weight.nested_quant_map", "f32/1", {D256}},
     {STATE_FP4, "u8/1", {TEXT}}},
    {{"weight", "i8/1", {N, K}}, {"SCB", "f32/1", {N}}, {"weight_format", "u8/1", {NO}}},
    {{"weight", "bf16/1", {N, K}}, {"bias", "bf16/1", {N}}},
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

/* ---- shapes ---- */

static uint64_t over(uint64_t n, uint64_t each)
{
    return n / each + (n % each != 0);
}

static uint64_t gemv_words(const FuzzModule *m)
{
    const uint64_t unit = m->group >= 128 ? 1 : m->group == 64 ? 2 : 4;

    return over(over(over(m->n_cols, m->group), 8), unit) * unit;
}

static uint64_t axis(const FuzzModule *m, uint8_t which)
{
    const uint64_t n = m->n_rows, k = m->n_cols;
    const uint64_t all[] = {[ONE] = 1,
                            [TWO] = 2,
                            [D16] = 16,
                            [D256] = 256,
                            [E] = m->n_experts,
                            [N] = n,
                            [K] = k,
                            [N_2] = over(n, 2),
                            [K_2] = over(k, 2),
                            [N_8] = over(n, 8),
                            [K_8] = over(k, 8),
                            [NB_32] = over(n * m->bits, 32),
                            [KB_32] = over(k * m->bits, 32),
                            [K_G] = over(k, m->group),
                            [K_16] = over(k, 16),
                            [K_32] = over(k, 32),
                            [N_BL] = over(n, m->block),
                            [K_BL] = over(k, m->block),
                            [NK_2] = over(n * k, 2),
                            [NK_G] = over(n * k, m->group),
                            [NK_G_G] = over(over(n * k, m->group), 256),
                            [GEMV] = gemv_words(m),
                            [GEMV_8] = 8 * gemv_words(m),
                            [TEXT] = strlen(m->state)};

    return all[which];
}

static const DavitDtype *any_dtype(FuzzInput *in, bool blocks)
{
    size_t n;
    const DavitDtype *all = davit_dtype_all(&n);
    const size_t first = fuzz_byte(in) % n;
    size_t at = first;

    while (blocks && all[at].class_ != DAVIT_DTYPE_BLOCK)
        at = (at + 1) % n;
    return &all[at];
}

/* Suffixes that no layout above has. */
static const char *const others[] = {"k_scale", "input_zero_point", "qweight_type", "bias",
                                     "weight_bogus", "", "weight", "_scale"};

static const char *any_suffix(FuzzInput *in)
{
    const uint8_t which = fuzz_byte(in);
    const char *suffix = NULL;

    if (which < 0xe0)
        suffix = layouts[which % G_N_ELEMENTS(layouts)][which / G_N_ELEMENTS(layouts) % 6].suffix;
    return suffix ? suffix : others[which % G_N_ELEMENTS(others)];
}

/* One of @own in the module; faults of it, by the first byte: most values are none. */
static void add_part(FuzzInput *in, FuzzModule *m, const Part *own)
{
    const uint8_t fault = fuzz_byte(in);
    davit_tensor_info *t = &m->tensor[m->n];
    const DavitDtype *dtype = own->dtype ? davit_dtype_find(own->dtype) : any_dtype(in, true);

    *t = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                             .name = own->suffix};
    if (fault >= 0xf8) /* absent */
        return;
    if (fault >= 0xf0)
        t->name = any_suffix(in);
    else if (fault >= 0xe0)
        dtype = any_dtype(in, false);
    for (; t->rank < 4 && own->axes[t->rank]; t->rank++)
        t->shape[t->rank] = axis(m, own->axes[t->rank]);
    if (fault >= 0xd8 && fault < 0xe0)
        t->rank = fuzz_byte(in) % 6;
    if (fault >= 0xc0 && fault < 0xe0) {
        uint64_t *dim = &t->shape[fault % 4];

        *dim = fault & 8 ? fuzz_size(in) : fault & 4 ? *dim + 1 : *dim / 2;
    }
    t->dtype = dtype->name;
    t->block_elems = dtype->block_elems;
    t->block_bytes = dtype->block_bytes;
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->tensor[i].name, t->name) == 0)
            return;
    if (davit_bytes_of_shape(t->shape, t->rank, t->block_elems, t->block_bytes, &t->n_bytes) ==
        DAVIT_SHAPE_OK)
        m->n++;
}

static void sort(FuzzModule *m)
{
    for (uint32_t i = 1; i < m->n; i++)
        for (uint32_t j = i; j > 0 && strcmp(m->tensor[j].name, m->tensor[j - 1].name) < 0; j--) {
            const davit_tensor_info t = m->tensor[j];

            m->tensor[j] = m->tensor[j - 1];
            m->tensor[j - 1] = t;
        }
}

void fuzz_module(FuzzInput *in, FuzzModule *out)
{
    static const uint8_t bits[] = {4, 8, 2, 3, 5, 6, 7, 1};
    const uint8_t which = fuzz_byte(in), how = fuzz_byte(in);
    const Part *own = layouts[which % G_N_ELEMENTS(layouts)];

    *out = (FuzzModule){.n_experts = 1 + how % 3, .wild = how >= 0xc0, .bits = bits[how / 4 % 8]};
    out->n_rows = sizes[fuzz_byte(in) % 12];
    out->n_cols = sizes[fuzz_byte(in) % 16];
    out->group = sizes[fuzz_byte(in) % 15];
    if (out->group == 1)
        out->group = out->n_cols;
    out->block = 16u << how / 32 % 4;
    g_snprintf(out->state, sizeof out->state,
               "{\"quant_type\": \"%s\", \"blocksize\": %u, \"shape\": [%u, %u], "
               "\"nested_blocksize\": 256, \"nested_offset\": 0.04}",
               strcmp(own[4].suffix ? own[4].suffix : "", "weight.nested_quant_map") == 0 ? "fp4"
                                                                                         : "nf4",
               (unsigned)out->group, (unsigned)out->n_rows, (unsigned)out->n_cols);
    for (uint32_t i = 0; i < FUZZ_PARTS - 1 && own[i].suffix; i++)
        add_part(in, out, &own[i]);
    if (in->at < in->end && *in->at >= 0xf0) /* one more */
        add_part(in, out, &(Part){any_suffix(in), "f32/1", {NO}});
    sort(out);
}

/* ---- payloads ---- */

static bool is_scale(const char *name)
{
    return strstr(name, "scale") || strstr(name, "absmax") || strcmp(name, "SCB") == 0;
}

/* Numbers that scales are: 1, 2, powers of a half, others, the least subnormal, 65504. */
static uint16_t plain_half(uint8_t byte)
{
    static const uint16_t halves[] = {0x3c00, 0x4000, 0x3800, 0x3400, 0x2000, 0x1419, 0x3555, 0x4248,
                                      0x3c00, 0x3c01, 0x0001, 0x03ff, 0x0400, 0x5640, 0x7bff, 0x2e66};

    return halves[byte % 16];
}

static void put(uint8_t *out, uint64_t value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static void put_float(uint8_t *out, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    put(out, bits, 4);
}

static void tame_floats(const davit_tensor_info *t, uint8_t *out)
{
    for (uint64_t at = 0; at + t->block_bytes <= t->n_bytes; at += t->block_bytes) {
        const uint16_t half = plain_half(out[at]);
        uint8_t wide[4];

        put_float(wide, davit_ref_f16_to_f32(half));
        if (t->block_bytes == 4)
            memcpy(out + at, wide, 4);
        else if (strcmp(t->dtype, "bf16/1") == 0)
            memcpy(out + at, wide + 2, 2);
        else
            put(out + at, half, 2);
    }
}

/* Eight bits: no NaN, and scales above 0. */
static void tame_bytes(const davit_tensor_info *t, uint8_t *out)
{
    const bool scale = is_scale(t->name), e5m2 = strcmp(t->dtype, "f8_e5m2/1") == 0;

    for (uint64_t i = 0; i < t->n_bytes; i++)
        out[i] = scale ? (out[i] & 0x3f) | 1 : e5m2 ? out[i] & 0xbb : out[i] & 0xbf;
}

/* Indices of groups: in order where the byte is low, else any. */
static void tame_order(const FuzzModule *m, const davit_tensor_info *t, uint8_t *out)
{
    const uint64_t n_groups = over(m->n_cols, m->group);

    for (uint64_t i = 0; i < t->n_bytes / 4; i++) {
        const uint8_t byte = out[4 * i];
        const uint64_t natural = i / m->group, turned = n_groups - 1 - natural % n_groups;

        put(out + 4 * i,
            byte < 0x80   ? natural
            : byte < 0xe0 ? turned
            : byte < 0xf8 ? byte % 9
                          : UINT64_MAX,
            4);
    }
}

/* The table of the type that the state names; for some bytes another. */
static void tame_table(const FuzzModule *m, const davit_tensor_info *t, uint8_t *out)
{
    const bool fp4 = (strstr(m->state, "fp4") != NULL) != (out[0] >= 0xf0);

    for (uint32_t i = 0; i < 16 && t->n_bytes == 64; i++)
        put_float(out + (size_t)4 * i,
                  davit_q_value(fp4 ? DAVIT_CODE_FP4 : DAVIT_CODE_NF4, (uint8_t)i));
}

static void fill(const FuzzInput *in, uint8_t *out, uint64_t n)
{
    const uint64_t step = (uint64_t)(in->end - in->at);

    if (step == 0) {
        memset(out, 0, n);
        return;
    }
    for (uint64_t at = 0; at < n; at += step)
        memcpy(out + at, in->at, MIN(step, n - at));
}

static bool is_plain_float(const char *dtype)
{
    return strcmp(dtype, "f32/1") == 0 || strcmp(dtype, "f16/1") == 0 ||
           strcmp(dtype, "bf16/1") == 0;
}

void fuzz_payload(const FuzzInput *in, const FuzzModule *m, const davit_tensor_info *t,
                  uint8_t *out)
{
    fill(in, out, t->n_bytes);
    if (m->wild)
        return;
    if (strcmp(t->name, "weight_shape") == 0 && t->n_bytes % 8 == 0) {
        const uint32_t each = (uint32_t)t->n_bytes / 2;

        put(out, m->n_rows, MIN(each, 8));
        put(out + each, m->n_cols, MIN(each, 8));
    } else if (g_str_has_suffix(t->name, "g_idx")) {
        tame_order(m, t, out);
    } else if (strcmp(t->name, "weight.quant_map") == 0) {
        tame_table(m, t, out);
    } else if (g_str_has_prefix(t->name, "weight.quant_state")) {
        memset(out, ' ', t->n_bytes);
        memcpy(out, m->state, MIN(strlen(m->state), t->n_bytes));
    } else if (strcmp(t->name, "weight_format") == 0) {
        memset(out, 0, t->n_bytes);
    } else if (is_plain_float(t->dtype)) {
        tame_floats(t, out);
    } else if (g_str_has_prefix(t->dtype, "f8_") ||
               (strcmp(t->dtype, "u8/1") == 0 && is_scale(t->name))) {
        tame_bytes(t, out);
    }
}
