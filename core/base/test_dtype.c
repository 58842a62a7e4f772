/* SPDX-License-Identifier: Apache-2.0
 * Dtype table, and the one way from shape to bytes. */
#include <string.h>

#include <glib.h>

#include "base/bytes.h"
#include "base/dtype.h"

static void names_are_unique_and_sound(void)
{
    size_t n;
    const DavitDtype *all = davit_dtype_all(&n);

    for (size_t i = 0; i < n; i++) {
        g_assert_true(davit_dtype_find(all[i].name) == &all[i]);
        g_assert_true(g_str_has_suffix(all[i].name, "/1"));
        g_assert_cmpuint(all[i].block_elems, >, 0);
        g_assert_cmpuint(all[i].block_bytes, >, 0);
    }
    g_assert_null(davit_dtype_find("f9/1"));
    g_assert_null(davit_dtype_find(NULL));
}

/* Sizes that another reader has wrong (spec: quant.md 11.1). */
static void block_sizes(void)
{
    g_assert_cmpuint(davit_dtype_find("q2_k/1")->block_bytes, ==, 84);
    g_assert_cmpuint(davit_dtype_find("q8_1/1")->block_bytes, ==, 36);
    g_assert_cmpuint(davit_dtype_find("iq1_s/1")->block_bytes, ==, 50);
    g_assert_cmpuint(davit_dtype_find("iq4_nl/1")->block_elems, ==, 32);
    g_assert_cmpuint(davit_dtype_find("q6_k/1")->block_bytes, ==, 210);
}

static void shape_to_bytes(void)
{
    const uint64_t matrix[] = {4, 512};
    const uint64_t zero[] = {4, 0};
    const uint64_t odd[] = {4, 896};
    const uint64_t wraps[] = {1ull << 32, 1ull << 32, 2};
    uint64_t n = 7;

    g_assert_cmpint(davit_bytes_of_shape(matrix, 2, 1, 2, &n), ==, DAVIT_SHAPE_OK);
    g_assert_cmpuint(n, ==, 4096);
    g_assert_cmpint(davit_bytes_of_shape(matrix, 2, 256, 144, &n), ==, DAVIT_SHAPE_OK);
    g_assert_cmpuint(n, ==, 4 * 2 * 144);
    g_assert_cmpint(davit_bytes_of_shape(NULL, 0, 1, 4, &n), ==, DAVIT_SHAPE_OK);
    g_assert_cmpuint(n, ==, 4);
    g_assert_cmpint(davit_bytes_of_shape(zero, 2, 32, 18, &n), ==, DAVIT_SHAPE_OK);
    g_assert_cmpuint(n, ==, 0);
    n = 7;
    g_assert_cmpint(davit_bytes_of_shape(odd, 2, 256, 144, &n), ==, DAVIT_SHAPE_BLOCK);
    g_assert_cmpint(davit_bytes_of_shape(wraps, 3, 1, 1, &n), ==, DAVIT_SHAPE_OVERFLOW);
    g_assert_cmpint(davit_bytes_of_shape(wraps, 1, 1, 1u << 31, &n), ==,
                    DAVIT_SHAPE_OVERFLOW);
    g_assert_cmpuint(n, ==, 7);
}

static void checked_arithmetic(void)
{
    uint64_t n = 7;

    g_assert_false(davit_bytes_add(UINT64_MAX, 1, &n));
    g_assert_true(davit_bytes_add(UINT64_MAX, 0, &n));
    g_assert_false(davit_bytes_mul(1ull << 32, 1ull << 32, &n));
    g_assert_true(davit_bytes_mul(0, UINT64_MAX, &n));
    g_assert_cmpuint(n, ==, 0);
    g_assert_true(davit_bytes_align(33, 32, &n));
    g_assert_cmpuint(n, ==, 64);
    g_assert_true(davit_bytes_align(64, 32, &n));
    g_assert_cmpuint(n, ==, 64);
    g_assert_false(davit_bytes_align(UINT64_MAX - 3, 32, &n));
    g_assert_true(davit_bytes_inside(8, 0, 8));
    g_assert_false(davit_bytes_inside(9, 0, 8));
    g_assert_false(davit_bytes_inside(1, UINT64_MAX, 8));
}

static void little_endian(void)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 0x88};

    g_assert_cmpuint(davit_bytes_u16le(bytes), ==, 0x0201);
    g_assert_cmpuint(davit_bytes_u32le(bytes), ==, 0x04030201);
    g_assert_true(davit_bytes_u64le(bytes) == 0x8807060504030201u);
    g_assert_cmpuint(davit_bytes_u32le(bytes + 1), ==, 0x05040302);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dtype/names_are_unique_and_sound", names_are_unique_and_sound);
    g_test_add_func("/dtype/block_sizes", block_sizes);
    g_test_add_func("/bytes/shape_to_bytes", shape_to_bytes);
    g_test_add_func("/bytes/checked_arithmetic", checked_arithmetic);
    g_test_add_func("/bytes/little_endian", little_endian);
    return g_test_run();
}
