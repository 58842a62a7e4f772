/* SPDX-License-Identifier: Apache-2.0
 * What is read many at a time against one at a time: codes, scales and zeros of tiles of many rows against
 * the float32 values of each number, in every bit; scales of every type; faults among many healthy numbers. */
#include "quant/tall.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <davit/help/quant.h>

#define PARTS 4

typedef struct Tall {
    GRand *rand;
    uint64_t N, K, group;
    davit_tensor_info info[PARTS];
    davit_quant_part_in part[PARTS];
    const davit_quant_part_in *list[PARTS];
    uint8_t *bytes[PARTS];
    uint64_t n;
} Tall;

static uint64_t between(Tall *t, uint64_t lo, uint64_t hi)
{
    return lo + (uint64_t)g_rand_int_range(t->rand, 0, (gint32)(hi - lo + 1));
}

/* ---- modules of random bytes that pass check and verify ---- */

static void put_u16(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
}

/* Numbers of @dtype that may stand there: scales above 0, codes that are numbers. */
static void fill(Tall *t, const char *dtype, bool is_scale, uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (strcmp(dtype, "f16/1") == 0 || strcmp(dtype, "bf16/1") == 0)
            put_u16(p + 2 * i, (uint32_t)between(t, 0x1000, 0x6fff));
        else if (strcmp(dtype, "f32/1") == 0)
            put_u16(p + 4 * i, (uint32_t)between(t, 0, 0xffff)),
                put_u16(p + 4 * i + 2, (uint32_t)between(t, 0x3a00, 0x40ff));
        else if (strcmp(dtype, "f8_e4m3/1") == 0)
            p[i] = (uint8_t)(between(t, 1, 0x7e) | (is_scale ? 0 : between(t, 0, 1) << 7));
        else if (strcmp(dtype, "u8/1") == 0 && is_scale)
            p[i] = (uint8_t)between(t, 90, 150);
        else
            p[i] = (uint8_t)g_rand_int(t->rand);
    }
}

static uint8_t *add(Tall *t, const char *suffix, const char *dtype, uint64_t rows, uint64_t cols)
{
    const uint64_t size = g_str_has_prefix(dtype, "i32") || g_str_has_prefix(dtype, "f32") ? 4
                          : g_str_has_prefix(dtype, "i64")                                 ? 8
                          : strstr(dtype, "f16")                                           ? 2
                                                                                           : 1;
    const uint64_t i = t->n++, all = rows * (cols ? cols : 1);
    const bool plain = strcmp(dtype, "i32/1") == 0 || strcmp(dtype, "i64/1") == 0;

    t->bytes[i] = g_malloc(all * size);
    fill(t, dtype, strstr(suffix, "scale") != NULL, t->bytes[i], plain ? all * size : all);
    t->info[i] = (davit_tensor_info){.struct_size = DAVIT_END(davit_tensor_info, block_bytes),
                                     .name = suffix,
                                     .dtype = dtype,
                                     .rank = cols ? 2 : 1,
                                     .shape = {rows, cols},
                                     .n_bytes = all * size};
    t->part[i] = (davit_quant_part_in){DAVIT_END(davit_quant_part_in, reserved), suffix,
                                       &t->info[i], dtype, t->info[i].rank, 0};
    t->list[i] = &t->part[i];
    return t->bytes[i];
}

static void awq_gemm(Tall *t)
{
    t->N = (t->N + 7) / 8 * 8;
    add(t, "qweight", "i32/1", t->K, t->N / 8);
    add(t, "qzeros", "i32/1", t->K / t->group, t->N / 8);
    add(t, "scales", "f16/1", t->K / t->group, t->N);
}

static void awq_gemv(Tall *t)
{
    t->K += t->K == 32 ? t->group : 0; /* or its shapes are those of GEMM */
    const uint64_t unit = t->group >= 128 ? 1 : t->group == 64 ? 2 : 4;
    const uint64_t words = ((t->K / t->group + 7) / 8 + unit - 1) / unit * unit;

    add(t, "qweight", "i32/1", t->N, t->K / 8);
    add(t, "qzeros", "i32/1", t->N, words);
    add(t, "scales", "f16/1", t->N, words * 8);
}

static void gptq(Tall *t, uint64_t bits, bool ordered)
{
    t->N = (t->N + 31) / 32 * 32;
    uint8_t *order = ordered ? add(t, "g_idx", "i32/1", t->K, 0) : NULL;

    for (uint64_t k = 0; ordered && k < t->K; k++) { /* every group is full */
        put_u16(order + 4 * k, (uint32_t)(k % (t->K / t->group)));
        put_u16(order + 4 * k + 2, 0);
    }
    add(t, "qweight", "i32/1", t->K * bits / 32, t->N);
    add(t, "qzeros", "i32/1", t->K / t->group, t->N * bits / 32);
    add(t, "scales", between(t, 0, 1) ? "f16/1" : "bf16/1", t->K / t->group, t->N);
}

static void gptq_3(Tall *t) { gptq(t, 3, false); }
static void gptq_4(Tall *t) { gptq(t, 4, false); }
static void gptq_8(Tall *t) { gptq(t, 8, false); }
static void gptq_4_ordered(Tall *t) { gptq(t, 4, true); }
static void gptq_8_ordered(Tall *t) { gptq(t, 8, true); }

static void fp8_block(Tall *t)
{
    t->K -= between(t, 0, t->group - 1); /* ragged */
    add(t, "weight", "f8_e4m3/1", t->N, t->K);
    add(t, "weight_scale_inv", between(t, 0, 1) ? "f32/1" : "bf16/1", (t->N + 15) / 16,
        (t->K + t->group - 1) / t->group);
}

static void ct_int8(Tall *t)
{
    add(t, "weight", "i8/1", t->N, t->K);
    add(t, "weight_scale", "f32/1", t->N, t->K / t->group);
    add(t, "weight_zero_point", "i8/1", t->N, t->K / t->group);
}

static void ct_pack(Tall *t)
{
    t->N = (t->N + 7) / 8 * 8;
    add(t, "weight_packed", "i32/1", t->N, t->K / 8);
    add(t, "weight_scale", "bf16/1", t->N, t->K / t->group);
    uint8_t *shape = add(t, "weight_shape", "i64/1", 2, 0);
    memset(shape, 0, 16);
    put_u16(shape, (uint32_t)t->N);
    put_u16(shape + 8, (uint32_t)t->K);
    add(t, "weight_zero_point", "i32/1", t->N / 8, t->K / t->group);
}

static void modelopt(Tall *t)
{
    t->N += t->N % 2;
    add(t, "weight", "u8/1", t->N / 2, t->K);
    add(t, "weight_scale", "f32/1", t->N, t->K / t->group);
}

static void mxfp4(Tall *t)
{
    add(t, "weight_packed", "u8/1", t->N, t->K / 2);
    add(t, "weight_scale", "u8/1", t->N, t->K / 32);
}

static void nvfp4(Tall *t)
{
    uint8_t *g;

    g = add(t, "weight_global_scale", "f32/1", 1, 0);
    add(t, "weight_packed", "u8/1", t->N, t->K / 2);
    put_u16(g + 2, 0x4480); /* near 1024 */
    add(t, "weight_scale", "f8_e4m3/1", t->N, t->K / 16);
}

#define SET(...) {.source = "test", .quantized = 1, __VA_ARGS__}
#define UNSET .symmetric = -1, .act_order = -1
static const struct Kind {
    const char *name, *plugin;
    void (*make)(Tall *t);
    davit_quant_settings settings; /* group is the case's */
} kinds[] = {
    {"awq_gemm", "awq", awq_gemm, SET(UNSET, .method = "awq", .bits = 4)},
    {"awq_gemv", "awq", awq_gemv, SET(UNSET, .method = "awq", .bits = 4)},
    {"gptq_3", "gptq", gptq_3, SET(.format = "gptq", .bits = 3)},
    {"gptq_4", "gptq", gptq_4, SET(.format = "gptq", .bits = 4)},
    {"gptq_8", "gptq", gptq_8, SET(.format = "gptq_v2", .bits = 8)},
    {"gptq_4_ordered", "gptq", gptq_4_ordered, SET(.format = "gptq_v2", .bits = 4, .act_order = 1)},
    {"gptq_8_ordered", "gptq", gptq_8_ordered, SET(.format = "gptq", .bits = 8, .act_order = 1)},
    {"fp8_block", "fp8", fp8_block, SET(UNSET, .block_rows = 16)},
    {"ct_int8", "compressed_tensors", ct_int8, SET(UNSET, .bits = 8)},
    {"ct_pack", "compressed_tensors", ct_pack, SET(UNSET, .bits = 4)},
    {"modelopt", "modelopt", modelopt, SET(UNSET, .bits = 4)},
    {"mxfp4", "mxfp4", mxfp4, SET(UNSET)},
    {"nvfp4", "nvfp4", nvfp4, SET(UNSET)},
};

/* ---- comparing ---- */

static const uint8_t *peek(void *ctx, uint64_t part, uint64_t *out_bytes)
{
    const Tall *t = ctx;

    *out_bytes = t->info[part].n_bytes;
    return t->bytes[part];
}

static void say(void *ctx, const davit_refusal *r)
{
    if (r->flags & DAVIT_REFUSAL_WARNING)
        return; /* padding of random bytes */
    g_test_message("%u %s: %s (found %s, expected %s)", r->code, r->subject ? r->subject : "",
                   r->message, r->found ? r->found : "-", r->expected ? r->expected : "-");
    if (ctx)
        ++*(int *)ctx;
}

static int by_suffix(const void *a, const void *b)
{
    const davit_quant_part_in *const *x = a, *const *y = b;

    return strcmp((*x)->suffix, (*y)->suffix);
}

/* Value of a code as quant.h says. */
static float value(const davit_quant_codes *c, const davit_quant_out *o, uint8_t code, uint64_t i)
{
    const float scale = c->scale_type != DAVIT_SCALE_E4M3 ? o->scales[i]
                        : o->divide                      ? o->scales[i] / o->factor
                                                         : o->scales[i] * o->factor;

    return c->kind == DAVIT_CODE_UINT ? ((float)code - o->zeros[i]) * scale
                                      : davit_q_value(c->kind, code) * scale;
}

/* Rows [row, row + n) as codes, which must give the values that each row has alone. */
static void compare_rows(const davit_quant_iface *iface, const davit_quant_tile *all, uint64_t row,
                         uint64_t n)
{
    const davit_quant_desc *d = all->desc;
    const uint64_t K = d->n_cols, stride = K + 3;
    const uint64_t group = d->codes.group ? d->codes.group : K, G = (K + group - 1) / group;
    g_autofree uint8_t *codes = g_malloc(n * stride);
    g_autofree float *scales = g_new(float, n * G), *zeros = g_new(float, n * G), *one = g_new(float, K);
    g_autofree uint32_t *cols = g_new(uint32_t, K);
    davit_quant_out got = {.struct_size = DAVIT_END(davit_quant_out, factors),
                           .form = DAVIT_FORM_CODES,
                           .codes = codes,
                           .scales = scales,
                           .zeros = zeros,
                           .stride = stride,
                           .cols = d->codes.flags & DAVIT_CODES_MAP ? cols : NULL};
    davit_quant_out want = {.struct_size = DAVIT_END(davit_quant_out, factors),
                            .form = DAVIT_FORM_F32,
                            .values = one,
                            .stride = K};
    davit_quant_tile tile = *all;

    memset(codes, 0xa5, n * stride);
    tile.row = row;
    tile.n_rows = n;
    iface->decode(NULL, &tile, &got);
    tile.n_rows = 1;
    for (uint64_t r = 0; r < n; r++, tile.row++) {
        iface->decode(NULL, &tile, &want);
        for (uint64_t j = 0; j < K; j++) {
            const uint64_t k = got.cols ? cols[j] : j;
            const float is = value(&d->codes, &got, codes[r * stride + j], r * G + j / group);

            g_assert_cmpuint(k, <, K);
            g_assert_cmpint(memcmp(&is, &one[k], sizeof is), ==, 0);
        }
        for (uint64_t j = K; j < stride; j++)
            g_assert_cmpuint(codes[r * stride + j], ==, 0xa5);
    }
}

/* A scale of the tile spoilt: it is found, and the file is whole again. */
static void spoil_scale(Tall *t, const davit_quant_iface *iface, const davit_quant_tile *tile)
{
    const davit_quant_desc *d = tile->desc;
    int n_said = 0;
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), &n_said, say};
    const uint64_t i = d->parts[1].index, size = davit_q_scale_bytes(d->codes.scale_type);
    uint64_t n = t->info[i].n_bytes / size;

    if (strcmp(d->layout, "awq_gemv/1") == 0) /* scales behind the last group are not read */
        n = d->n_cols / d->params[0] ? d->n_cols / d->params[0] : 1;
    uint8_t *at = t->bytes[i] + between(t, 0, n - 1) * size;
    uint8_t was[4];

    memcpy(was, at, size);
    memset(at, 0xff, size); /* not a number in all types */
    g_assert_cmpint(iface->verify(NULL, tile, &sink), ==, DAVIT_E_CORRUPT);
    g_assert_cmpint(n_said, ==, 1);
    memcpy(at, was, size);
    g_assert_cmpint(iface->verify(NULL, tile, &sink), ==, DAVIT_OK);
    if (d->codes.kind != DAVIT_CODE_E4M3)
        return;
    at = t->bytes[0] + between(t, 0, t->info[0].n_bytes - 1); /* the same of a code */
    was[0] = *at;
    *at = 0xff;
    g_assert_cmpint(iface->verify(NULL, tile, &sink), ==, DAVIT_E_CORRUPT);
    *at = was[0];
}

static void run_case(const struct Kind *kind, GRand *rand)
{
    const davit_quant_iface *iface = tall_plugin(kind->plugin);
    Tall t = {.rand = rand};
    davit_quant_settings settings = kind->settings;
    const davit_sink sink = {DAVIT_END(davit_sink, refuse), NULL, say};
    davit_quant_desc desc = {.struct_size = DAVIT_END(davit_quant_desc, codes)};
    davit_quant_bytes parts[DAVIT_MAX_PARTS];

    t.group = 32 * between(&t, 1, 3);
    t.N = between(&t, 1, 150);
    t.K = t.group * between(&t, 1, 9);
    kind->make(&t);
    settings.group = (int64_t)(strcmp(kind->plugin, "mxfp4") && strcmp(kind->plugin, "nvfp4") ? t.group : 0);
    settings.block_cols = settings.block_rows ? (int64_t)t.group : 0;
    qsort(t.list, t.n, sizeof *t.list, by_suffix);
    for (uint64_t i = 0; i < t.n; i++) { /* parts and bytes in that order */
        const uint64_t from = (uint64_t)(t.list[i] - t.part);
        if (from != i)
            g_error("%s: parts are added in the order of their suffixes", kind->name);
    }
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, peek_ctx),
                                       .name = "m",
                                       .parts = t.list,
                                       .n_parts = t.n,
                                       .settings = &settings,
                                       .peek = peek,
                                       .peek_ctx = &t};
    g_test_message("%s: %u x %u, groups of %u", kind->name, (unsigned)t.N, (unsigned)t.K,
                   (unsigned)t.group);
    g_assert_cmpint(iface->check(NULL, &module, &desc, &sink), ==, 0);
    for (uint32_t p = 0; p < desc.n_parts; p++)
        parts[p] = (davit_quant_bytes){t.bytes[desc.parts[p].index], t.info[desc.parts[p].index].n_bytes};
    const davit_quant_tile all = {DAVIT_END(davit_quant_tile, n_cols), &desc, parts, 0, 0, desc.n_rows,
                                  0, desc.n_cols};
    g_assert_cmpint(iface->verify(NULL, &all, &sink), ==, 0);
    compare_rows(iface, &all, 0, desc.n_rows);
    for (int i = 0; i < 3; i++) {
        const uint64_t row = between(&t, 0, desc.n_rows - 1);
        compare_rows(iface, &all, row, between(&t, 1, desc.n_rows - row));
    }
    spoil_scale(&t, iface, &all);
    for (uint64_t i = 0; i < t.n; i++)
        g_free(t.bytes[i]);
}

static void run_kind(gconstpointer data)
{
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());

    for (int i = 0; i < 12; i++)
        run_case(data, rand);
    g_rand_free(rand);
}

/* Every half number and every byte, as scales of each type. */
static void numbers_differ_from_single_ones(void)
{
    static const uint64_t sizes[] = {1, 7, 65536};
    g_autofree uint8_t *bytes = g_malloc(4 * 65536);
    g_autofree float *got = g_new(float, 65536);

    for (uint32_t i = 0; i < 65536; i++)
        put_u16(bytes + 2 * i, i);
    for (uint32_t i = 65536; i < 2 * 65536; i++)
        put_u16(bytes + 2 * i, i * 40503u);
    for (uint32_t type = DAVIT_SCALE_F32; type <= DAVIT_SCALE_E4M3; type++)
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            davit_q_numbers(bytes, type, sizes[s], got);
            for (uint64_t i = 0; i < sizes[s]; i++) {
                const float want = davit_q_scale(bytes, type, i);
                g_assert_cmpint(memcmp(&got[i], &want, sizeof want), ==, 0);
            }
        }
}

void tall_add_tests(void)
{
    g_test_add_func("/tall/numbers_differ_from_single_ones", numbers_differ_from_single_ones);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *path = g_strdup_printf("/tall/%s", kinds[i].name);
        g_test_add_data_func(path, &kinds[i], run_kind);
    }
}
