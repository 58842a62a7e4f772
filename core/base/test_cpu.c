/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#define ALL_BITS (~0ull)

static void cap_removes_what_lies_above(void)
{
    uint64_t bits = ALL_BITS;

    g_assert_true(davit_cpu_cap("avx512vnni", &bits));
    g_assert_true(bits & DAVIT_CPU_AVX512VNNI);
    g_assert_true(davit_cpu_cap("x86-64-v4", &bits));
    g_assert_true(bits & DAVIT_CPU_AVX512BW);
    g_assert_false(bits & DAVIT_CPU_AVX512VNNI);
    g_assert_true(davit_cpu_cap("x86-64-v3", &bits));
    g_assert_true(bits & DAVIT_CPU_AVX2);
    g_assert_false(bits & DAVIT_CPU_AVX512F);
    g_assert_true(davit_cpu_cap("x86-64-v2", &bits));
    g_assert_cmpuint(bits, ==, DAVIT_CPU_SSE42);
    g_assert_true(davit_cpu_cap("scalar", &bits));
    g_assert_cmpuint(bits, ==, 0);
    bits = ALL_BITS;
    g_assert_true(davit_cpu_cap("avxvnni", &bits));
    g_assert_true(bits & DAVIT_CPU_AVXVNNI);
    g_assert_false(bits & DAVIT_CPU_AVX512F);
}

static void unknown_level_is_refused(void)
{
    uint64_t bits = ALL_BITS;

    g_assert_false(davit_cpu_cap("x86-64-v9", &bits));
    g_assert_false(davit_cpu_cap("", &bits));
    g_assert_cmpuint(bits, ==, ALL_BITS);
}

static void environment_caps_the_suite(void)
{
    if (g_test_subprocess()) {
        g_autoptr(DavitReport) report = davit_report_new();

        g_assert_cmpuint(davit_cpu_suite_get()->features(NULL), ==, 0);
        g_assert_cmpstr(davit_cpu_level(), ==, "scalar");
        g_assert_cmpint(davit_cpu_check(report), ==, DAVIT_E_USAGE);
        g_assert_cmpstr(davit_report_get(report, 0)->found, ==, "skalar");
        return;
    }
    g_assert_true(g_setenv("DAVIT_CPU_LEVEL", "skalar", TRUE));
    g_test_trap_subprocess(NULL, 0, 0);
    g_unsetenv("DAVIT_CPU_LEVEL");
    g_test_trap_assert_passed();
}

static void higher_features_need_lower_ones(void)
{
    const uint64_t bits = davit_cpu_features();

    g_assert_cmpuint(bits, ==, davit_cpu_suite_get()->features(NULL));
    g_assert_true(!(bits & DAVIT_CPU_AVX2) || (bits & DAVIT_CPU_AVX));
    g_assert_true(!(bits & DAVIT_CPU_AVX512VNNI) || (bits & DAVIT_CPU_AVX512F));
    g_test_message("level %s, features 0x%" G_GINT64_MODIFIER "x", davit_cpu_level(),
                   bits);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu/cap", cap_removes_what_lies_above);
    g_test_add_func("/cpu/unknown_level", unknown_level_is_refused);
    g_test_add_func("/cpu/environment", environment_caps_the_suite);
    g_test_add_func("/cpu/order", higher_features_need_lower_ones);
    return g_test_run();
}
