/* SPDX-License-Identifier: Apache-2.0
 * The three quant plugins together, opened as files: who takes what, descriptions, tiles,
 * refusals with their codes. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include <davit/help/ref.h>

#define MODULE_PARTS 4

/* A module of up to four tensors, written by hand. */
typedef struct Module {
    davit_tensor_info info[MODULE_PARTS];
    davit_quant_part_in part[MODULE_PARTS];
    const davit_quant_part_in *parts[MODULE_PARTS];
    davit_quant_module module;
} Module;

typedef struct Said {
    uint32_t code;
    char found[64], subject[64];
    int n;
} Said;

static const davit_quant_iface *dense, *gguf, *known;

static const davit_quant_iface *open_plugin(const char *name)
{
    g_autofree char *path = g_build_filename(DAVIT_PLUGIN_DIR, name, NULL);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    davit_entry_v1_fn entry = NULL;
    void *symbol;

    if (!so)
        g_error("%s", dlerror());
    symbol = dlsym(so, "davit_plugin_entry_v1");
    memcpy(&entry, &symbol, sizeof entry);
    return entry(NULL, NULL)->components[0]->iface;
}

static void note(void *ctx, const davit_refusal *r)
{
    Said *said = ctx;

    said->n++;
    said->code = r->code;
    g_strlcpy(said->found, r->found ? r->found : "", sizeof said->found);
    g_strlcpy(said->subject, r->subject ? r->subject : "", sizeof said->subject);
}

static davit_sink sink_of(Said *said)
{
    *said = (Said){0};
    return (davit_sink){DAVIT_END(davit_sink, refuse), said, note};
}

/* Adds one tensor; @shape ends with 0. */
static void add(Module *m, const char *suffix, const char *dtype, const uint64_t *shape,
                uint64_t n_bytes)
{
    const uint64_t i = m->module.n_parts++;
    davit_tensor_info *info = &m->info[i];

    info->struct_size = DAVIT_END(davit_tensor_info, block_bytes);
    info->name = "m.weight";
    info->dtype = dtype;
    info->n_bytes = n_bytes;
    for (info->rank = 0; shape[info->rank]; info->rank++)
        info->shape[info->rank] = shape[info->rank];
    m->part[i] = (davit_quant_part_in){DAVIT_END(davit_quant_part_in, reserved), suffix, info,
                                       dtype, info->rank, 0};
    m->parts[i] = &m->part[i];
    m->module.parts = m->parts;
    m->module.name = "m";
}

static uint32_t claim(const davit_quant_iface *iface, const Module *m, Said *said)
{
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    const davit_sink sink = sink_of(said);

    g_assert_cmpint(iface->claim(NULL, &m->module, &verdict, &sink), ==, DAVIT_OK);
    g_assert_cmpint(said->n > 0, ==, verdict.verdict == DAVIT_REFUSE);
    return verdict.verdict;
}

static int32_t check(const davit_quant_iface *iface, const Module *m, davit_quant_desc *out,
                     Said *said)
{
    const davit_sink sink = sink_of(said);

    *out = (davit_quant_desc){.struct_size = DAVIT_END(davit_quant_desc, codes)};
    return iface->check(NULL, &m->module, out, &sink);
}

static const uint64_t matrix[] = {3, 512, 0}, vector[] = {7, 0}, stacked[] = {4, 3, 512, 0};

static void each_takes_its_own(void)
{
    Module bf16 = {0}, q4_k = {0}, both = {0};
    Said said;

    add(&bf16, "weight", "bf16/1", matrix, 3072);
    add(&q4_k, "", "q4_k/1", matrix, 864);
    add(&both, "weight", "bf16/1", matrix, 3072);
    add(&both, "weight_scale_inv", "f32/1", vector, 28);
    g_assert_cmpuint(claim(dense, &bf16, &said), ==, DAVIT_ACCEPT);
    g_assert_cmpuint(claim(gguf, &bf16, &said), ==, DAVIT_DECLINE);
    g_assert_cmpuint(claim(known, &bf16, &said), ==, DAVIT_DECLINE);
    g_assert_cmpuint(claim(gguf, &q4_k, &said), ==, DAVIT_ACCEPT);
    g_assert_cmpuint(claim(dense, &q4_k, &said), ==, DAVIT_DECLINE);
    g_assert_cmpuint(claim(known, &q4_k, &said), ==, DAVIT_DECLINE);
    g_assert_cmpuint(claim(dense, &both, &said), ==, DAVIT_DECLINE);
}

/* A plain weight beside scales: plain where the settings say that nobody applied them, else nobody's. */
static void scales_that_were_not_applied(void)
{
    static const char *const status[] = {NULL, "compressed", "frozen", "dense"};
    Module both = {0};
    Said said;

    add(&both, "input_scale", "f32/1", vector, 28);
    add(&both, "weight", "bf16/1", matrix, 3072);
    add(&both, "weight_scale", "f32/1", vector, 28);
    g_assert_cmpuint(claim(dense, &both, &said), ==, DAVIT_ACCEPT);
    for (size_t i = 0; i < G_N_ELEMENTS(status); i++) {
        const davit_quant_settings settings = {.struct_size =
                                                   DAVIT_END(davit_quant_settings, ambiguous),
                                               .status = status[i]};
        davit_quant_desc desc;

        both.module.settings = &settings;
        if (i < 2) {
            g_assert_cmpint(check(dense, &both, &desc, &said), ==, DAVIT_QUANT_OTHER);
            continue;
        }
        g_assert_cmpint(check(dense, &both, &desc, &said), ==, DAVIT_OK);
        g_assert_cmpuint(desc.n_parts, ==, 1);
        g_assert_cmpuint(desc.parts[0].index, ==, 1);
        g_assert_cmpstr(desc.layout, ==, "bf16/1");
        g_assert_cmpuint(said.code, ==, DAVIT_R_QUANT_ORPHAN);
        g_assert_cmpstr(said.found, ==, status[i]);
    }
}

static void descriptions_follow_the_shape(void)
{
    davit_quant_desc desc;
    Module v = {0}, m = {0}, e = {0};
    Said said;

    add(&v, "", "f32/1", vector, 28);
    g_assert_cmpint(check(dense, &v, &desc, &said), ==, DAVIT_OK);
    g_assert_cmpuint(desc.n_experts, ==, 1);
    g_assert_cmpuint(desc.n_rows, ==, 7);
    g_assert_cmpuint(desc.n_cols, ==, 1);
    add(&m, "weight", "q4_k/1", matrix, 3 * 288);
    g_assert_cmpint(check(gguf, &m, &desc, &said), ==, DAVIT_OK);
    g_assert_cmpuint(desc.n_rows, ==, 3);
    g_assert_cmpuint(desc.n_cols, ==, 512);
    g_assert_cmpuint(desc.col_unit, ==, 256);
    g_assert_cmpuint(desc.parts[0].row_bytes, ==, 288);
    g_assert_cmpstr(desc.layout, ==, "q4_k/1");
    add(&e, "", "f16/1", stacked, 4 * 3 * 1024);
    g_assert_cmpint(check(dense, &e, &desc, &said), ==, DAVIT_OK);
    g_assert_cmpuint(desc.n_experts, ==, 4);
}

static void bad_shapes_are_refused(void)
{
    static const uint64_t ragged[] = {3, 300, 0}, empty[] = {3, 0};
    static const uint64_t huge[] = {UINT64_MAX / 2, 4, 512, 0};
    davit_quant_desc desc;
    Module a = {0}, b = {0}, c = {0}, d = {0}, e = {0};
    Said said;

    add(&a, "weight", "q4_k/1", ragged, 864);
    g_assert_cmpint(check(gguf, &a, &desc, &said), ==, DAVIT_E_MISMATCH);
    g_assert_cmpuint(said.code, ==, DAVIT_R_SHAPE_MISMATCH);
    g_assert_cmpstr(said.found, ==, "300");
    add(&b, "weight", "bf16/1", matrix, 3070);
    g_assert_cmpint(check(dense, &b, &desc, &said), ==, DAVIT_E_MISMATCH);
    g_assert_cmpstr(said.found, ==, "3070");
    add(&c, "weight", "bf16/1", huge, 4096);
    g_assert_cmpint(check(dense, &c, &desc, &said), ==, DAVIT_E_MISMATCH);
    add(&d, "weight", "q8_0/1", vector, 34);
    g_assert_cmpint(check(gguf, &d, &desc, &said), ==, DAVIT_E_UNSUPPORTED);
    add(&e, "weight", "bf16/1", empty, 0);
    e.info[0].rank = 2; /* [3, 0] */
    g_assert_cmpint(check(dense, &e, &desc, &said), ==, DAVIT_E_MISMATCH);
}

static void tiles_decode_from_the_middle(void)
{
    uint8_t bytes[4 * 3 * 512 * 2];
    const davit_quant_bytes part = {bytes, sizeof bytes};
    davit_quant_desc desc;
    Module m = {0};
    Said said;
    float out[2 * 5];

    add(&m, "", "f16/1", stacked, sizeof bytes);
    for (uint64_t i = 0; i < 4 * 3 * 512; i++) {
        const uint16_t half = davit_ref_f32_to_f16((float)(i % 2048));
        memcpy(bytes + 2 * i, &half, 2);
    }
    g_assert_cmpint(check(dense, &m, &desc, &said), ==, DAVIT_OK);
    const davit_quant_tile tile = {DAVIT_END(davit_quant_tile, n_cols), &desc, &part, 2, 1, 2,
                                   7, 3};
    davit_quant_out to = {.struct_size = DAVIT_END(davit_quant_out, divide),
                          .form = DAVIT_FORM_F32, .values = out, .stride = 5};
    dense->decode(NULL, &tile, &to);
    for (uint64_t r = 0; r < 2; r++)
        for (uint64_t c = 0; c < 3; c++)
            g_assert_cmpfloat(out[r * 5 + c], ==,
                              (float)(((2 * 3 + 1 + r) * 512 + 7 + c) % 2048));
}

static void non_finite_scale_is_found(void)
{
    uint8_t bytes[864] = {0};
    const davit_quant_bytes part = {bytes, sizeof bytes};
    davit_quant_desc desc;
    Module m = {0};
    Said said;

    add(&m, "weight", "q4_k/1", matrix, sizeof bytes);
    g_assert_cmpint(check(gguf, &m, &desc, &said), ==, DAVIT_OK);
    const davit_quant_tile tile = {DAVIT_END(davit_quant_tile, n_cols), &desc, &part, 0, 0, 3,
                                   0, 512};
    davit_sink sink = sink_of(&said);
    g_assert_cmpint(gguf->verify(NULL, &tile, &sink), ==, DAVIT_OK);
    bytes[288 + 144 + 3] = 0x7c; /* dmin of row 1, block 1 */
    sink = sink_of(&said);
    g_assert_cmpint(gguf->verify(NULL, &tile, &sink), ==, DAVIT_E_CORRUPT);
    g_assert_cmpuint(said.code, ==, DAVIT_R_VALUE_NOT_FINITE);
    g_assert_cmpstr(said.subject, ==, "expert 0, row 1, block 1");
}

typedef struct NamedCase {
    const char *suffix[3], *dtype[3];
    uint32_t code;
    const char *found;
} NamedCase;

static void layouts_are_refused_by_name(void)
{
    static const NamedCase cases[] = {
        {{"qweight", "scales", "g_idx"}, {"i32/1", "f16/1", "i32/1"}, DAVIT_R_QUANT_UNKNOWN,
         "GPTQ (act order)"},
        {{"qweight", "scales"}, {"i32/1", "f16/1"}, DAVIT_R_QUANT_UNKNOWN, "AWQ or GPTQ"},
        {{"weight", "weight_scale_inv"}, {"f8_e4m3/1", "f32/1"}, DAVIT_R_QUANT_UNKNOWN,
         "FP8 with block scales"},
        {{"_blocks", "_scales"}, {"u8/1", "u8/1"}, DAVIT_R_QUANT_UNKNOWN, "MXFP4 as in gpt-oss"},
        {{"weight", "weight_scale", "weight_scale_2"}, {"u8/1", "f8_e4m3/1", "f32/1"},
         DAVIT_R_QUANT_UNKNOWN, "ModelOpt NVFP4"},
        {{"weight"}, {"q8_k/1"}, DAVIT_R_QUANT_UNKNOWN, "GGUF Q8_K (made at run time only)"},
        {{"weight"}, {"f8_e4m3/1"}, DAVIT_R_TENSOR_MISSING,
         "a weight without its scales: weight f8_e4m3/1"},
        {{"weight_scale"}, {"f32/1"}, DAVIT_R_TENSOR_MISSING,
         "scales without a weight: weight_scale f32/1"},
    };
    Said said;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Module m = {0};
        for (int p = 0; p < 3 && cases[i].suffix[p]; p++)
            add(&m, cases[i].suffix[p], cases[i].dtype[p], matrix, 1);
        g_assert_cmpuint(claim(known, &m, &said), ==, DAVIT_REFUSE);
        g_assert_cmpuint(said.code, ==, cases[i].code);
        g_assert_cmpstr(said.found, ==, cases[i].found);
    }
}

static void plain_numbers_that_are_no_weights(void)
{
    Module f64 = {0}, i32 = {0};
    Said said;

    add(&f64, "weight", "f64/1", matrix, 12288);
    g_assert_cmpuint(claim(dense, &f64, &said), ==, DAVIT_REFUSE);
    g_assert_cmpuint(said.code, ==, DAVIT_R_QUANT_UNKNOWN);
    g_assert_cmpstr(said.found, ==, "f64/1");
    add(&i32, "", "i32/1", vector, 28);
    g_assert_cmpuint(claim(dense, &i32, &said), ==, DAVIT_REFUSE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    dense = open_plugin("davit-quant-dense.so");
    gguf = open_plugin("davit-quant-gguf.so");
    known = open_plugin("davit-quant-known.so");
    g_test_add_func("/quant/claim", each_takes_its_own);
    g_test_add_func("/quant/frozen", scales_that_were_not_applied);
    g_test_add_func("/quant/description", descriptions_follow_the_shape);
    g_test_add_func("/quant/bad_shapes", bad_shapes_are_refused);
    g_test_add_func("/quant/tiles", tiles_decode_from_the_middle);
    g_test_add_func("/quant/non_finite_scale", non_finite_scale_is_found);
    g_test_add_func("/quant/known", layouts_are_refused_by_name);
    g_test_add_func("/quant/not_weights", plain_numbers_that_are_no_weights);
    return g_test_run();
}
