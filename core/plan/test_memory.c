/* SPDX-License-Identifier: Apache-2.0
 * Values that live together never share bytes; values that do not, do. */
#include "plan/memory.h"

static bool clash(const DavitValue *v, const uint64_t *off, size_t a, size_t b, uint64_t tokens)
{
    const bool together = v[a].first <= v[b].last && v[b].first <= v[a].last;
    const uint64_t na = v[a].width * 4 * tokens, nb = v[b].width * 4 * tokens;
    return together && off[a] < off[b] + nb && off[b] < off[a] + na;
}

static void test_no_overlap(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    for (int repeat = 0; repeat < 300; repeat++) {
        DavitValue values[40];
        uint64_t off[40];
        const size_t n = (size_t)g_rand_int_range(rand, 1, 40);
        for (size_t i = 0; i < n; i++) {
            const int32_t first = g_rand_int_range(rand, 0, 60);
            values[i] = (DavitValue){.rows = DAVIT_ROWS_T,
                                     .width = (uint64_t)g_rand_int_range(rand, 1, 300),
                                     .first = first,
                                     .last = first + g_rand_int_range(rand, 0, 10)};
        }
        const DavitProgram program = {.values = values, .n_values = n};
        const uint64_t total = davit_memory_place(&program, &(DavitMemoryFor){0, 5, 1, 64}, off);
        for (size_t a = 0; a < n; a++) {
            g_assert_cmpuint(off[a] % 64, ==, 0);
            g_assert_cmpuint(off[a] + values[a].width * 20, <=, total);
            for (size_t b = 0; b < a; b++)
                g_assert_false(clash(values, off, a, b, 5));
        }
    }
    g_rand_free(rand);
}

static void test_reuse(void)
{
    DavitValue values[3] = {{.width = 16, .first = 0, .last = 1},
                            {.width = 16, .first = 2, .last = 3},
                            {.width = 16, .first = 4, .last = 5}};
    uint64_t off[3];
    const DavitProgram program = {.values = values, .n_values = 3};
    g_assert_cmpuint(davit_memory_place(&program, &(DavitMemoryFor){0, 1, 1, 64}, off), ==, 64);
}

/* Each device has a block of its own, that holds its values only. */
static void test_devices(void)
{
    DavitValue values[4] = {{.width = 16, .first = 0, .last = 3},
                            {.width = 16, .first = 0, .last = 3, .device = 1},
                            {.width = 16, .first = 0, .last = 3},
                            {.width = 16, .first = 0, .last = 3, .device = 1}};
    uint64_t off[4] = {7, 7, 7, 7};
    const DavitProgram program = {.values = values, .n_values = 4};
    g_assert_cmpuint(davit_memory_place(&program, &(DavitMemoryFor){0, 1, 1, 64}, off), ==, 128);
    g_assert_cmpuint(off[0] + off[2], ==, 64);
    g_assert_cmpuint(off[1], ==, 7);
    g_assert_cmpuint(davit_memory_place(&program, &(DavitMemoryFor){1, 1, 1, 256}, off), ==, 512);
    g_assert_cmpuint(off[1] + off[3], ==, 256);
    g_assert_cmpuint(davit_memory_place(&program, &(DavitMemoryFor){2, 1, 1, 64}, off), ==, 0);
}

static void test_overflow(void)
{
    DavitValue value = {.width = UINT64_MAX / 8, .first = 0, .last = 1};
    uint64_t off;
    const DavitProgram program = {.values = &value, .n_values = 1};
    g_assert_cmpuint(davit_memory_place(&program, &(DavitMemoryFor){0, 1u << 20, 1, 64}, &off), ==,
                     UINT64_MAX);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/no-overlap-in-time", test_no_overlap);
    g_test_add_func("/memory/dead-values-are-reused", test_reuse);
    g_test_add_func("/memory/a-block-for-each-device", test_devices);
    g_test_add_func("/memory/overflow-is-refused", test_overflow);
    return g_test_run();
}
