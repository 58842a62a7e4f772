/* SPDX-License-Identifier: Apache-2.0
 * Worked vectors of the layouts: stored bytes as a file has them, and the values that the
 * layout's definition gives, calculated by hand and by two independent programs. */
#include <dlfcn.h>
#include <string.h>

#include <glib.h>
#include <jansson.h>

#include <davit/help/quant.h>

#include "quant/tall.h"

#define MAX_PARTS 4

typedef struct Part {
    const char *suffix, *dtype;
    uint64_t shape[4];
    uint32_t rank;
    const char *hex;
} Part;

typedef struct Vector {
    const char *name, *plugin;
    Part parts[MAX_PARTS];
    davit_quant_settings settings;
    uint64_t n_rows, n_cols;
    float values[96];
} Vector;

#define GPTQ_SET(v) {.source = "test", .method = "gptq", .format = v, .bits = 4, .group = 4,  \
                     .symmetric = 0, .act_order = 1, .quantized = 1}
#define NONE {.symmetric = -1, .act_order = -1, .quantized = -1}
#define ANY_SCALE {.symmetric = -1, .act_order = -1, .quantized = -1, \
                   .allow = DAVIT_QUANT_ALLOW_SCALE_DTYPE}
#define GPTQ_W "3096fc5285eb41a7da3096fc2f85eb4174da3096c92f85eb1e74da3063c92f85"
#define GPTQ_S "00380038003800380038003800380038" "00340034003400340034003400340034"
#define GPTQ_I "0100000000000000000000000100000001000000000000000100000000000000"

static const Vector vectors[] = {
    {"awq_gemm", "awq",
     {{"qweight", "i32/1", {2, 1}, 2, "20643175df9bce8a"},
      {"qzeros", "i32/1", {1, 1}, 2, "7730884f"},
      {"scales", "f16/1", {1, 8}, 2, "003c003800400034003c00300044003c"}},
     NONE, 8, 2,
     {-7, 8, -3.5f, 3, -10, 12, -1.25f, 1, 4, 11, -1.25f, -0.625f, 12, 24, 3, 4}},
    {"gptq_v1", "gptq",
     {{"qweight", "i32/1", {1, 8}, 2, GPTQ_W},
      {"qzeros", "i32/1", {2, 1}, 2, "7777777710325476"},
      {"scales", "f16/1", {2, 8}, 2, GPTQ_S},
      {"g_idx", "i32/1", {8}, 1, GPTQ_I}},
     GPTQ_SET("gptq"), 1, 8, {-0.25f, -2.5f, -1, 2, 2.75f, 3.5f, 0.25f, -1.5f}},
    {"gptq_v2", "gptq",
     {{"qweight", "i32/1", {1, 8}, 2, GPTQ_W},
      {"qzeros", "i32/1", {2, 1}, 2, "8888888821436587"},
      {"scales", "f16/1", {2, 8}, 2, GPTQ_S},
      {"g_idx", "i32/1", {8}, 1, GPTQ_I}},
     GPTQ_SET("gptq_v2"), 1, 8, {-0.25f, -2.5f, -1, 2, 2.75f, 3.5f, 0.25f, -1.5f}},
    {"ct_4bit", "compressed_tensors",
     {{"weight_packed", "i32/1", {1, 1}, 2, "70f8a9d5"},
      {"weight_scale", "f32/1", {1, 1}, 2, "0000803f"},
      {"weight_shape", "i64/1", {2}, 1, "01000000000000000800000000000000"}},
     {.source = "test", .bits = 4, .symmetric = -1, .act_order = -1, .quantized = 1},
     1, 8, {-8, -1, 0, 7, 1, 2, -3, 5}},
    {"ct_3bit_dense", "compressed_tensors",
     {{"weight_packed", "i32/1", {1, 2}, 2, "88c6fa380e000000"},
      {"weight_scale", "f32/1", {1, 1}, 2, "0000803f"},
      {"weight_shape", "i64/1", {2}, 1, "01000000000000000c00000000000000"}},
     {.source = "test", .bits = 3, .producer = "0.17.0", .symmetric = 1, .act_order = -1,
      .quantized = 1},
     1, 12, {-4, -3, -2, -1, 0, 1, 2, 3, -4, 3, -4, 3}},
    {"ct_3bit_padded", "compressed_tensors",
     {{"weight_packed", "i32/1", {1, 2}, 2, "88c6fa3838000000"},
      {"weight_scale", "f32/1", {1, 1}, 2, "0000803f"},
      {"weight_shape", "i64/1", {2}, 1, "01000000000000000c00000000000000"}},
     {.source = "test", .bits = 3, .producer = "0.13.0", .symmetric = 1, .act_order = -1,
      .quantized = 1},
     1, 12, {-4, -3, -2, -1, 0, 1, 2, 3, -4, 3, -4, 3}},
    {"ct_asym", "compressed_tensors",
     {{"weight_packed", "i32/1", {8, 1}, 2,
       "3096fc5241a70d6352b81e7463c92f8574da309685eb41a796fc52b8a70d63c9"},
      {"weight_scale", "f32/1", {8, 2}, 2,
       "0000003f0000803e0000003f0000803e0000003f0000803e0000003f0000803e"
       "0000003f0000803e0000003f0000803e0000003f0000803e0000003f0000803e"},
      {"weight_shape", "i64/1", {2}, 1, "08000000000000000800000000000000"},
      {"weight_zero_point", "i32/1", {1, 2}, 2, "98f0a74b809fd6c5"}},
     {.source = "test", .bits = 4, .symmetric = -1, .act_order = -1, .quantized = 1},
     1, 8, {-4, -2.5f, -1, 0.5f, 3, 3.75f, 0.5f, 1.25f}},
    {"fp8_ragged", "fp8",
     {{"weight", "f8_e4m3/1", {3, 3}, 2, "3840b87e013cfe3008"},
      {"weight_scale_inv", "f32/1", {2, 2}, 2, "000000400000003f0000803e00008040"}},
     {.source = "test", .block_rows = 2, .block_cols = 2, .symmetric = -1, .act_order = -1,
      .quantized = 1},
     3, 3, {2, 4, -0.5f, 896, 0.00390625f, 0.75f, -112, 0.125f, 0.0625f}},
    {"mxfp8", "fp8",
     {{"weight", "f8_e4m3/1", {1, 32}, 2,
       "3840b87e00000000000000000000000000000000000000000000000000000000"},
      {"weight_scale", "u8/1", {1, 1}, 2, "7e"}},
     {.source = "test", .scale_fmt = "ue8m0", .symmetric = -1, .act_order = -1, .quantized = 1},
     1, 4, {0.5f, 1, -0.5f, 224}},
    {"nvfp4_modelopt", "nvfp4",
     {{"weight", "u8/1", {1, 8}, 2, "1032547698badcfe"},
      {"weight_scale", "f8_e4m3/1", {1, 1}, 2, "3c"},
      {"weight_scale_2", "f32/1", {0}, 0, "0000003f"}},
     NONE, 1, 8, {0, .375f, .75f, 1.125f, 1.5f, 2.25f, 3, 4.5f}},
    {"nvfp4_f16_global", "nvfp4", /* --scale-dtype any */
     {{"weight", "u8/1", {1, 8}, 2, "1032547698badcfe"},
      {"weight_scale", "f8_e4m3/1", {1, 1}, 2, "3c"},
      {"weight_scale_2", "f16/1", {0}, 0, "0038"}},
     ANY_SCALE, 1, 8, {0, .375f, .75f, 1.125f, 1.5f, 2.25f, 3, 4.5f}},
    {"nvfp4_bf16_global", "nvfp4",
     {{"weight", "u8/1", {1, 8}, 2, "1032547698badcfe"},
      {"weight_scale", "f8_e4m3/1", {1, 1}, 2, "3c"},
      {"weight_scale_2", "bf16/1", {0}, 0, "003f"}},
     ANY_SCALE, 1, 8, {0, .375f, .75f, 1.125f, 1.5f, 2.25f, 3, 4.5f}},
    {"nvfp4_ct_divides", "nvfp4",
     {{"weight_packed", "u8/1", {1, 8}, 2, "1032547698badcfe"},
      {"weight_scale", "f8_e4m3/1", {1, 1}, 2, "3c"},
      {"weight_global_scale", "f32/1", {1}, 1, "00000040"}},
     NONE, 1, 8, {0, .375f, .75f, 1.125f, 1.5f, 2.25f, 3, 4.5f}},
    {"nvfp4_subnormal_scale", "nvfp4",
     {{"weight", "u8/1", {1, 8}, 2, "1032547698badcfe"},
      {"weight_scale", "f8_e4m3/1", {1, 1}, 2, "01"},
      {"weight_scale_2", "f32/1", {0}, 0, "0000803f"}},
     NONE, 1, 3, {0, 0.0009765625f, 0.001953125f}},
    {"mxfp4", "mxfp4",
     {{"weight_packed", "u8/1", {1, 16}, 2, "0b30557a9fc4e90e33587da2c7ec1136"},
      {"weight_scale", "u8/1", {1, 1}, 2, "7d"}},
     NONE, 1, 32,
     {-.375f, 0, 0, .375f, .75f, .75f, -.25f, 1.5f, -1.5f, -.125f, .5f, -.5f, -.125f, -1, -1, 0,
      .375f, .375f, -0.0f, .75f, -.75f, 1.5f, .25f, -.25f, 1.5f, -.5f, -.5f, -1, .125f, .125f, 1,
      .375f}},
    {"int8_channel", "compressed_tensors",
     {{"weight", "i8/1", {2, 4}, 2, "807f000501ff40c0"},
      {"weight_scale", "f32/1", {2, 1}, 2, "0000003f0000803e"}},
     NONE, 2, 4, {-64, 63.5f, 0, 2.5f, 0.25f, -0.25f, 16, -16}},
    {"modelopt_int4", "modelopt",
     {{"weight", "u8/1", {1, 4}, 2, "38c7015f"},
      {"weight_scale", "f32/1", {2, 1}, 2, "0000003f0000803e"}},
     NONE, 2, 4, {-4, 3.5f, 0.5f, -0.5f, 0.75f, -1, 0, 1.25f}},
};

/* ---- running ---- */

const davit_quant_iface *tall_plugin(const char *name)
{
    g_autofree char *file = g_strdup_printf("davit-quant-%s.so", name);
    g_autofree char *path = g_build_filename(DAVIT_PLUGIN_DIR, file, NULL);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    davit_entry_v1_fn entry = NULL;
    void *symbol;

    if (!so)
        g_error("%s", dlerror());
    symbol = dlsym(so, "davit_plugin_entry_v1");
    memcpy(&entry, &symbol, sizeof entry);
    return entry(NULL, NULL)->components[0]->iface;
}

static void print(void *ctx, const davit_refusal *r)
{
    (void)ctx;
    g_test_message("%u %s: %s (found %s, expected %s)", r->code, r->subject ? r->subject : "",
                   r->message, r->found ? r->found : "-", r->expected ? r->expected : "-");
}

typedef struct Stored {
    davit_tensor_info info[MAX_PARTS];
    davit_quant_part_in part[MAX_PARTS];
    const davit_quant_part_in *parts[MAX_PARTS];
    GByteArray *bytes[MAX_PARTS];
    uint64_t n;
} Stored;

static GByteArray *from_hex(const char *hex)
{
    GByteArray *bytes = g_byte_array_new();

    for (; *hex; hex += 2) {
        const guint8 b =
            (guint8)(g_ascii_xdigit_value(hex[0]) << 4 | g_ascii_xdigit_value(hex[1]));
        g_byte_array_append(bytes, &b, 1);
    }
    return bytes;
}

static const uint8_t *peek(void *ctx, uint64_t part, uint64_t *out_bytes)
{
    const Stored *s = ctx;

    *out_bytes = s->bytes[part]->len;
    return s->bytes[part]->data;
}

static void store(const Vector *v, Stored *s)
{
    for (s->n = 0; s->n < MAX_PARTS && v->parts[s->n].suffix; s->n++) {
        const Part *p = &v->parts[s->n];
        davit_tensor_info *info = &s->info[s->n];

        s->bytes[s->n] = from_hex(p->hex);
        *info = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                                    .name = p->suffix,
                                    .dtype = p->dtype,
                                    .rank = p->rank,
                                    .n_bytes = s->bytes[s->n]->len};
        memcpy(info->shape, p->shape, sizeof p->shape);
        s->part[s->n] = (davit_quant_part_in){DAVIT_END(davit_quant_part_in, reserved),
                                              p->suffix, info, p->dtype, p->rank, 0};
        s->parts[s->n] = &s->part[s->n];
    }
}

static void run_vector(gconstpointer data)
{
    const Vector *v = data;
    const davit_quant_iface *iface = tall_plugin(v->plugin);
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), NULL, print};
    Stored s = {0};
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                       .name = "m",
                                       .parts = s.parts,
                                       .n_parts = (store(v, &s), s.n),
                                       .settings = &v->settings,
                                       .peek = peek,
                                       .peek_ctx = &s};
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    davit_quant_bytes parts[MAX_PARTS];
    g_autofree float *out = NULL;

    g_assert_cmpint(iface->claim(NULL, &module, &verdict, &sink), ==, 0);
    g_assert_cmpuint(verdict.verdict, ==, DAVIT_ACCEPT);
    g_assert_cmpint(iface->check(NULL, &module, &desc, &sink), ==, 0);
    for (uint32_t p = 0; p < desc.n_parts; p++)
        parts[p] = (davit_quant_bytes){s.bytes[desc.parts[p].index]->data,
                                       s.bytes[desc.parts[p].index]->len};
    out = g_new(float, desc.n_rows * desc.n_cols);
    const davit_quant_tile tile = {DAVIT_END(davit_quant_tile, n_cols), &desc, parts, 0, 0,
                                   desc.n_rows, 0, desc.n_cols};
    davit_quant_out to = {.struct_size = DAVIT_END(davit_quant_out, divide),
                          .form = DAVIT_FORM_F32,
                          .values = out,
                          .stride = desc.n_cols};
    g_assert_cmpint(iface->verify(NULL, &tile, &sink), ==, 0);
    iface->decode(NULL, &tile, &to);
    for (uint64_t r = 0; r < v->n_rows; r++)
        for (uint64_t c = 0; c < v->n_cols; c++)
            g_assert_cmpfloat(out[r * desc.n_cols + c], ==, v->values[r * v->n_cols + c]);
    for (uint64_t i = 0; i < s.n; i++)
        g_byte_array_unref(s.bytes[i]);
}

/* ---- blocks of GGUF: bytes 37 i + 11, scales set, values by their CRC ---- */

typedef struct Block {
    const char *dtype;
    uint64_t elems, bytes;
    uint32_t half_at; /* of the f16 scale, set to 0.25; ~0 = none */
    uint32_t crc;
} Block;

static const Block blocks[] = {
    {"iq4_nl/1", 32, 18, 0, 0xa700b6cc},        {"iq4_xs/1", 256, 136, 0, 0xd58f833b},
    {"tq1_0/1", 256, 54, 52, 0x80cc8cbf},       {"tq2_0/1", 256, 66, 64, 0x9b2ca32e},
    {"gguf.mxfp4/1", 32, 17, ~0u, 0x22b4b7ca},  {"gguf.nvfp4/1", 64, 36, ~0u, 0x7e5187fb},
    {"q1_0/1", 128, 18, 0, 0x042e7de6},         {"q2_0/1", 64, 18, 0, 0xcc9ee1f2},
};

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

static void fill_block(const Block *b, uint8_t *out)
{
    static const uint8_t nvfp4[] = {0x38, 0x3c, 0x01, 0x7e};

    for (uint64_t i = 0; i < b->bytes; i++)
        out[i] = (uint8_t)(37 * i + 11);
    if (b->half_at != ~0u) {
        out[b->half_at] = 0x00;
        out[b->half_at + 1] = 0x34;
    } else if (b->elems == 32) {
        out[0] = 0x7d;
    } else {
        memcpy(out, nvfp4, sizeof nvfp4);
    }
}

static void run_block(gconstpointer data)
{
    const Block *b = data;
    const davit_quant_iface *iface = tall_plugin("gguf");
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), NULL, print};
    uint8_t bytes[256];
    float out[256];
    const davit_tensor_info info = {.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                                    .name = "m",
                                    .dtype = b->dtype,
                                    .rank = 2,
                                    .shape = {1, b->elems},
                                    .n_bytes = b->bytes};
    const davit_quant_part_in part = {DAVIT_END(davit_quant_part_in, reserved), "weight", &info,
                                      b->dtype, 2, 0};
    const davit_quant_part_in *const parts[] = {&part};
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                       .name = "m",
                                       .parts = parts,
                                       .n_parts = 1};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    const davit_quant_bytes stored = {bytes, b->bytes};

    fill_block(b, bytes);
    g_assert_cmpint(iface->check(NULL, &module, &desc, &sink), ==, 0);
    const davit_quant_tile tile = {DAVIT_END(davit_quant_tile, n_cols), &desc, &stored, 0, 0, 1,
                                   0, b->elems};
    davit_quant_out to = {.struct_size = DAVIT_END(davit_quant_out, divide),
                          .form = DAVIT_FORM_F32,
                          .values = out,
                          .stride = b->elems};
    iface->decode(NULL, &tile, &to);
    for (uint64_t i = 0; i < b->elems; i++)
        out[i] += 0.0f; /* -0 counts as +0 in the reference */
    g_assert_cmphex(crc32_of((const uint8_t *)out, b->elems * sizeof *out), ==, b->crc);
}

/* ---- random blocks of GGUF against the gguf package: tests/golden/gguf_more ---- */

static json_t *golden_blocks(void)
{
    return json_load_file(DAVIT_SOURCE_DIR "/tests/golden/gguf_more/index.json", 0, NULL);
}

static uint64_t number_of(const json_t *type, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(type, key));
}

/* Codes and scales of @tile give @want again. */
static void codes_give(const davit_quant_iface *iface, const davit_quant_tile *tile,
                       const float *want)
{
    const davit_quant_desc *d = tile->desc;
    const uint64_t n = d->n_rows * d->n_cols, n_groups = n / d->codes.group;
    g_autofree uint8_t *codes = g_new(uint8_t, n);
    g_autofree float *scales = g_new(float, n_groups);
    g_autofree float *zeros = g_new(float, n_groups);
    davit_quant_out to = {.struct_size = DAVIT_END(davit_quant_out, divide),
                          .form = DAVIT_FORM_CODES,
                          .codes = codes,
                          .scales = scales,
                          .zeros = zeros,
                          .stride = d->n_cols};

    iface->decode(NULL, tile, &to);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t g = i / d->codes.group;
        const float value = d->codes.kind == DAVIT_CODE_UINT ? (float)codes[i] - zeros[g]
                                                             : davit_q_value(d->codes.kind, codes[i]);
        const float is = value * (scales[g] * to.factor);

        g_assert_cmpuint(codes[i] >> d->codes.bits, ==, 0);
        g_assert_cmpint(memcmp(&is, &want[i], sizeof is), ==, 0);
    }
}

static void run_golden_blocks(gconstpointer data)
{
    const char *name = data;
    json_t *all = golden_blocks();
    const json_t *type = json_object_get(all, name);
    const uint64_t elems = number_of(type, "elems"), n = number_of(type, "blocks");
    const davit_quant_iface *iface = tall_plugin("gguf");
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), NULL, print};
    g_autofree char *file = g_strconcat(DAVIT_SOURCE_DIR "/tests/golden/gguf_more/", name, ".bin", NULL);
    g_autofree char *bytes = NULL;
    g_autofree float *out = g_new(float, n * elems);
    g_autofree char *crc = NULL;
    gsize n_bytes = 0;

    g_assert_true(g_file_get_contents(file, &bytes, &n_bytes, NULL));
    g_assert_cmpuint(n_bytes, ==, n * number_of(type, "bytes"));
    const davit_tensor_info info = {.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                                    .name = "m",
                                    .dtype = json_string_value(json_object_get(type, "dtype")),
                                    .rank = 2,
                                    .shape = {n / 2, 2 * elems}, /* two blocks a row */
                                    .n_bytes = n_bytes};
    const davit_quant_part_in part = {DAVIT_END(davit_quant_part_in, reserved), "weight", &info,
                                      info.dtype, 2, 0};
    const davit_quant_part_in *const parts[] = {&part};
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                       .name = "m",
                                       .parts = parts,
                                       .n_parts = 1};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    const davit_quant_bytes stored = {(const uint8_t *)bytes, n_bytes};

    g_assert_cmpint(iface->check(NULL, &module, &desc, &sink), ==, 0);
    const davit_quant_tile tile = {DAVIT_END(davit_quant_tile, n_cols), &desc, &stored, 0, 0,
                                   n / 2, 0, 2 * elems};
    davit_quant_out to = {.struct_size = DAVIT_END(davit_quant_out, divide),
                          .form = DAVIT_FORM_F32,
                          .values = out,
                          .stride = 2 * elems};
    g_assert_cmpint(iface->verify(NULL, &tile, &sink), ==, 0);
    iface->decode(NULL, &tile, &to);
    if (desc.codes.bits) /* the others are multiplied as they lie */
        codes_give(iface, &tile, out);
    for (uint64_t i = 0; i < n * elems; i++)
        out[i] += 0.0f; /* -0 counts as +0, as in the script */
    crc = g_strdup_printf("%08x", crc32_of((const uint8_t *)out, n * elems * sizeof *out));
    g_assert_cmpstr(crc, ==, json_string_value(json_object_get(type, "crc")));
    json_decref(all);
}

/* Codes read many at a time, words side by side or lines apart, against one at a time. */
static void words_differ_from_single_codes(void)
{
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());

    for (int round = 0; round < 400; round++) {
        const uint32_t bits = (uint32_t)g_rand_int_range(rand, 1, 9);
        const uint64_t stride = g_rand_boolean(rand) ? 4 : 4 * (uint64_t)g_rand_int_range(rand, 2, 6);
        const uint64_t first = (uint64_t)g_rand_int_range(rand, 0, 70);
        const uint64_t n = (uint64_t)g_rand_int_range(rand, 0, 900);
        const uint64_t n_words = ((first + n) * bits + 31) / 32;
        const uint64_t n_bytes = n_words ? (n_words - 1) * stride + 4 : 0;
        g_autofree uint8_t *words = g_malloc(n_bytes + 1), *got = g_malloc(n + 1);

        for (uint64_t i = 0; i < n_bytes; i++)
            words[i] = (uint8_t)g_rand_int(rand);
        got[n] = 0xa5;
        davit_q_words(words, stride, bits, first, n, got);
        for (uint64_t i = 0; i < n; i++)
            g_assert_cmpuint(got[i], ==, davit_q_bits(words, stride, (first + i) * bits, bits));
        g_assert_cmpuint(got[n], ==, 0xa5);
    }
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    json_t *all = golden_blocks(), *type;
    const char *name;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/words_differ_from_single_codes", words_differ_from_single_codes);
    json_object_foreach(all, name, type)
    {
        g_autofree char *path = g_strdup_printf("/gguf/%s", name);
        g_test_add_data_func(path, name, run_golden_blocks);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
        g_autofree char *path = g_strdup_printf("/vectors/%s", vectors[i].name);
        g_test_add_data_func(path, &vectors[i], run_vector);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(blocks); i++) {
        g_autofree char *path = g_strdup_printf("/blocks/%s", blocks[i].dtype);
        g_test_add_data_func(path, &blocks[i], run_block);
    }
    tall_add_tests();
    const int status = g_test_run();
    json_decref(all); /* the names are its */
    return status;
}
