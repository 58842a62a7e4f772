/* SPDX-License-Identifier: Apache-2.0
 * What the plan printed is what happens: its bytes against the executor's counters and against
 * the kernel's own account, and the same weights for every access, window and thread count; of every
 * golden model, whole and of every rank. DAVIT_CROSS=all in the environment: every pair of access and
 * window also under sanitizers and of ranks. */
#include <string.h>

#include "base/sanitizer.h"
#include "exec/test_counts.h"
#include "exec/test_ranks.h"

#define PURPOSES (DAVIT_MAP | DAVIT_RUN)

/* ---- one process ---- */

static void load_as(const TestLoad *model, const DavitPlanOptions *options,
                    DavitCacheChoice cache, GHashTable *known)
{
    g_auto(TestLoad) m = test_load_again(model, options);
    g_assert_nonnull(m.plan);
    davit_weights_free(test_counts_load(&m, cache, known));
}

/* The windows of issue and plan, and one that holds less than a piece wants. */
static const struct {
    uint64_t window;
    unsigned lanes;
} sizes[] = {{64 << 10, 1}, {8 * MIB, 2}, {32 * MIB, 3}, {128 * MIB, 4}, {256 * MIB, 0}};

static const DavitAccessChoice accesses[] = {DAVIT_ACCESS_AUTO, DAVIT_ACCESS_FORCE_BORROW,
                                             DAVIT_ACCESS_FORCE_DIRECT, DAVIT_ACCESS_FORCE_STREAM};

/* Of sanitizers every access with two sizes and every size with two accesses. */
static bool is_tried(size_t a, size_t s)
{
    return !DAVIT_SANITIZED || g_getenv("DAVIT_CROSS") || (a + s) % 5 < 2;
}

static void load_every_way(const TestLoad *model, GHashTable *known)
{
    for (size_t a = 0; a < G_N_ELEMENTS(accesses); a++)
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            const DavitPlanOptions options = {.purposes = PURPOSES,
                                              .access = accesses[a],
                                              .window_bytes = sizes[s].window,
                                              .n_lanes = sizes[s].lanes};
            if (is_tried(a, s))
                load_as(model, &options, (a + s) % 2 ? DAVIT_CACHE_USE : DAVIT_CACHE_SKIP, known);
        }
}

static void plan_is_what_happens(const void *path)
{
    g_autoptr(GHashTable) known = test_counts_new();
    DavitPlanOptions options = {.purposes = PURPOSES};
    g_auto(TestLoad) model = test_load_open(path, &options);
    if (!model.plan)
        return; /* refused: test_golden.c of core/plan knows which may be */
    load_every_way(&model, known);
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s += 2) {
        options.layout = DAVIT_LAYOUT_PACKED;
        options.window_bytes = sizes[s].window;
        options.n_lanes = sizes[s].lanes;
        load_as(&model, &options, s ? DAVIT_CACHE_AUTO : DAVIT_CACHE_SKIP, known);
    }
    options.layout = DAVIT_LAYOUT_AUTO;
    for (DavitDtypeChoice d = DAVIT_DTYPE_F32; d <= DAVIT_DTYPE_BF16; d++) {
        options.dtype = d;
        load_as(&model, &options, DAVIT_CACHE_SKIP, known);
    }
}

/* ---- all golden models ---- */

static void add_model(const char *what, const char *name, const char *path, GTestDataFunc fn)
{
    g_autofree char *test = g_strdup_printf("/weights/%s/%s", what, name);
    g_test_add_data_func(test, path, fn);
}

/* Of each folder below @dir; paths go to @keep. */
static void add_models(const char *dir, GPtrArray *keep)
{
    g_autoptr(GDir) list = g_dir_open(dir, 0, NULL);
    const char *name;
    g_assert_nonnull(list);
    while ((name = g_dir_read_name(list))) {
        char *path = g_build_filename(dir, name, NULL);
        g_ptr_array_add(keep, path);
        if (!g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        add_model("plan", name, path, plan_is_what_happens);
        add_model("ranks", name, path, test_ranks_hold_the_whole);
        add_model("shares", name, path, test_ranks_share_every_byte);
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_test_init(&argc, &argv, NULL);
    add_models(DAVIT_SOURCE_DIR "/tests/golden/models", paths);
    add_models(DAVIT_SOURCE_DIR "/tests/golden/quant", paths);
    return g_test_run();
}
