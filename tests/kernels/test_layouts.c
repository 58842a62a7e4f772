/* SPDX-License-Identifier: Apache-2.0
 * The stored layouts of the reference against GGUF's own decoder (tests/golden/gguf_blocks),
 * to the bit; codes against values; half floats against all 65536. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include <davit/help/ref.h>

/* "q4_k/1" as "Q4_K". (owned) */
static char *gguf_name(const davit_ref_layout *layout)
{
    char *name = g_ascii_strup(layout->name, -1);

    name[strlen(name) - 2] = '\0';
    return name;
}

/* (owned) or NULL and the test skipped by name */
static char *read_golden(const char *name, const char *end, gsize *out_len)
{
    g_autofree char *file = g_strconcat(name, end, NULL);
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/gguf_blocks", file, NULL);
    char *data = NULL;

    if (!g_file_get_contents(path, &data, out_len, NULL)) {
        g_autofree char *why = g_strconcat(path, " is not there", NULL);
        g_test_skip(why);
    }
    return data;
}

static void decodes_as_gguf(const void *data)
{
    const davit_ref_layout *layout = data;
    g_autofree char *name = gguf_name(layout);
    gsize n_stored, n_values;
    g_autofree char *stored = read_golden(name, ".bin", &n_stored);
    g_autofree char *values = stored ? read_golden(name, ".f32.bin", &n_values) : NULL;
    g_autofree float *out = NULL;

    if (!values)
        return;
    const uint64_t n_blocks = n_stored / layout->block_bytes;
    g_assert_cmpuint(n_values, ==, n_blocks * layout->block_elems * sizeof(float));
    out = g_malloc(n_values);
    layout->decode((const uint8_t *)stored, n_blocks, out);
    g_assert_cmpint(memcmp(out, values, n_values), ==, 0);
}

static void codes_give_the_values(const void *data)
{
    const davit_ref_layout *layout = data;
    uint8_t block[DAVIT_REF_MAX_BLOCK * 4], codes[DAVIT_REF_MAX_BLOCK];
    float values[DAVIT_REF_MAX_BLOCK], scales[16], zeros[16];

    g_assert_cmpuint(layout->block_bytes, <=, sizeof block);
    for (int round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < layout->block_bytes; i++)
            block[i] = (uint8_t)g_test_rand_int();
        for (int i = 0; i < 2 && layout->half_at[i] != UINT32_MAX; i++)
            block[layout->half_at[i] + 1] &= 0x3f; /* finite */
        if (layout->half_at[0] == UINT32_MAX)
            block[layout->block_bytes - 1] &= 0x3f; /* iq1_m: the top of its float16 */
        layout->decode(block, 1, values);
        layout->codes(block, 1, codes, scales, zeros);
        for (uint32_t i = 0; i < layout->block_elems; i++) {
            const float s = scales[i / layout->group], z = zeros[i / layout->group];
            const float code = (float)codes[i];
            const float product = s * (layout->has_min ? code : code - z);
            g_assert_cmpfloat(values[i], ==, layout->has_min ? product + z : product);
        }
    }
}

static void halves_go_round(void)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float f = davit_ref_f16_to_f32((uint16_t)bits);
        if (isnan(f))
            g_assert_true(isnan(davit_ref_f16_to_f32(davit_ref_f32_to_f16(f))));
        else
            g_assert_cmphex(davit_ref_f32_to_f16(f), ==, bits);
    }
    /* ties go to even; the last value that does not become infinity */
    g_assert_cmphex(davit_ref_f32_to_f16(1.0f + 0x1p-11f), ==, 0x3c00);
    g_assert_cmphex(davit_ref_f32_to_f16(1.0f + 3 * 0x1p-11f), ==, 0x3c02);
    g_assert_cmphex(davit_ref_f32_to_f16(65519.0f), ==, 0x7bff);
    g_assert_cmphex(davit_ref_f32_to_f16(65520.0f), ==, 0x7c00);
    g_assert_cmphex(davit_ref_f32_to_f16(-0x1p-25f), ==, 0x8000);
    g_assert_cmphex(davit_ref_f32_to_f16(-0x1.8p-25f), ==, 0x8001);
}

static void list_names_every_layout(void)
{
    g_auto(GStrv) names = g_strsplit(DAVIT_REF_LAYOUTS, "|", -1);

    for (uint64_t i = 0; davit_ref_layout_get(i) || names[i]; i++) {
        g_assert_nonnull(names[i]);
        g_assert_true(davit_ref_layout_find(names[i]) == davit_ref_layout_get(i));
    }
    g_assert_null(davit_ref_layout_find("q4_k"));
    g_assert_null(davit_ref_layout_find(NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (uint64_t i = 0; davit_ref_layout_get(i); i++) {
        const davit_ref_layout *layout = davit_ref_layout_get(i);
        g_autofree char *golden = g_strdup_printf("/layouts/golden/%s", layout->name);
        g_autofree char *codes = g_strdup_printf("/layouts/codes/%s", layout->name);

        /* f32 has no golden: its bytes are it; those of IQ are in tests/golden/gguf_more */
        if (strcmp(layout->name, "f32/1") != 0 && !strstr(DAVIT_REF_IQ, layout->name))
            g_test_add_data_func(golden, layout, decodes_as_gguf);
        if (layout->codes)
            g_test_add_data_func(codes, layout, codes_give_the_values);
    }
    g_test_add_func("/layouts/halves", halves_go_round);
    g_test_add_func("/layouts/names", list_names_every_layout);
    return g_test_run();
}
