/* SPDX-License-Identifier: Apache-2.0
 * Loads under limits: of memory, of patience, of files that do not stay as they were. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/sanitizer.h"
#include "exec/ahead.h"
#include "exec/budget.h"
#include "exec/test_load.h"
#include "exec/verify.h"

/* ---- peak memory ---- */

static const DavitPlanOptions direct = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                        .access = DAVIT_ACCESS_FORCE_DIRECT};

static uint64_t data_bytes(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    return g_ascii_strtoull(strstr(text, "VmData:") + strlen("VmData:"), NULL, 10) * 1024;
}

/* In a child: plan, limit private memory to the predicted peak and @more, load. */
static int load_limited(const char *path, uint64_t window, int64_t more)
{
    const pid_t child = fork();
    int status = 0;
    if (child != 0) {
        g_assert_cmpint(waitpid(child, &status, 0), ==, child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    DavitPlanOptions options = direct;
    options.window_bytes = window;
    TestLoad m = test_load_open(path, &options);
    const uint64_t most = data_bytes() + m.plan->peak_bytes - m.plan->constant_bytes;
    const struct rlimit limit = {(rlim_t)((int64_t)most + more), RLIM_INFINITY};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        _exit(99);
    if (davit_budget_check(m.plan, m.report))
        _exit(test_load_says(m.report, DAVIT_R_MEMORY_SHORT) ? 3 : 98);
    _exit(davit_weights_load(m.plan, NULL, m.report) ? 0 : 97);
}

static void peak_is_predicted(void)
{
    if (DAVIT_SANITIZED) {
        g_test_skip("sanitizers map more than the limit");
        return;
    }
    char *dir = test_large_model(4400000); /* 537 MiB */
    static const uint64_t windows[] = {8, 32, 128, 256};
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        if (i % 3 == 0)
            g_assert_cmpint(load_limited(dir, windows[i] * MIB, 16 * MIB), ==, 0);
        g_assert_cmpint(load_limited(dir, windows[i] * MIB, -64 * (int64_t)MIB), ==, 3);
    }
    test_model_remove(dir);
}

/* ---- what goes wrong ---- */

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    ++*(int *)ctx;
    return false;
}

static void cancel_ends_the_load(void)
{
    char *dir = test_large_model(400000);
    g_auto(TestLoad) m = test_load_open(dir, &direct);
    int calls = 0;
    const DavitLoadOptions options = {.progress = stop_at_once, .ctx = &calls};
    g_assert_nonnull(m.plan);
    g_assert_null(davit_weights_load(m.plan, &options, m.report));
    g_assert_true(test_load_says(m.report, DAVIT_R_CANCELLED));
    g_assert_cmpint(calls, ==, 1);
    test_model_remove(dir);
}

static void changed_file_is_refused(const void *data)
{
    static const DavitAccessChoice accesses[] = {DAVIT_ACCESS_AUTO, DAVIT_ACCESS_FORCE_DIRECT,
                                                 DAVIT_ACCESS_FORCE_STREAM};
    const bool cut = strcmp(data, "cut") == 0;
    for (size_t a = 0; a < G_N_ELEMENTS(accesses); a++) {
        char *dir = test_large_model(1000);
        g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
        DavitPlanOptions options = direct;
        options.access = accesses[a];
        g_auto(TestLoad) m = test_load_open(dir, &options);
        g_assert_nonnull(m.plan);
        const int fd = g_open(file, O_WRONLY, 0);
        if (cut)
            g_assert_cmpint(ftruncate(fd, 4096), ==, 0);
        else
            g_assert_cmpint(pwrite(fd, "x", 1, 5000), ==, 1);
        close(fd);
        if (!cut) { /* a clock tick may be shared */
            const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
            g_assert_cmpint(utimensat(AT_FDCWD, file, times, 0), ==, 0);
        }
        g_assert_null(davit_weights_load(m.plan, NULL, m.report));
        g_assert_true(test_load_says(m.report, DAVIT_R_FILE_CHANGED));
        test_model_remove(dir);
    }
}

/* A scale that is NaN in a file whose weights stay where they are. */
static void borrowed_nan_is_named(void)
{
    static const char from[] = DAVIT_SOURCE_DIR "/tests/golden/models/gguf_q4_0/model.gguf";
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .access = DAVIT_ACCESS_FORCE_BORROW};
    g_autofree char *dir = g_dir_make_tmp("davit-nan-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "model.gguf", NULL);
    g_autofree char *bytes = NULL;
    gsize n;
    const DavitRecord *said;

    g_assert_true(g_file_get_contents(from, &bytes, &n, NULL));
    {
        g_auto(TestLoad) whole = test_load_open(from, &options);
        const davit_tensor_info *t =
            davit_checkpoint_find(whole.checkpoint, "blk.0.ffn_down.weight");
        const uint64_t second_row = t->n_bytes / t->shape[0];
        g_assert_cmpstr(t->dtype, ==, "q4_0/1");
        g_assert_cmpint(davit_borrowed_verify(whole.plan, whole.report), ==, DAVIT_OK);
        bytes[t->off + second_row] = 0x00; /* float16 NaN */
        bytes[t->off + second_row + 1] = 0x7e;
    }
    g_assert_true(g_file_set_contents(file, bytes, (gssize)n, NULL));
    {
        g_auto(TestLoad) m = test_load_open(file, &options);

        g_assert_nonnull(m.plan);
        g_assert_cmpint(davit_borrowed_verify(m.plan, m.report), ==, DAVIT_E_CORRUPT);
        said = davit_report_first_error(m.report, 0);
        g_assert_nonnull(said);
        g_assert_cmpuint(said->code, ==, DAVIT_R_VALUE_NOT_FINITE);
        g_assert_true(g_str_has_prefix(said->subject, "blk.0.ffn_down: "));
        g_assert_nonnull(strstr(said->subject, "row 1"));
    }
    g_unlink(file);
    g_rmdir(dir);
}

/* An open file that loses its name keeps its bytes. */
static void removed_file_still_loads(void)
{
    char *dir = test_large_model(1000);
    g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
    g_auto(TestLoad) m = test_load_open(dir, &direct);
    g_unlink(file);
    g_autoptr(DavitWeights) weights = davit_weights_load(m.plan, NULL, m.report);
    g_assert_nonnull(weights);
    test_model_remove(dir);
}

/* ---- a budget ---- */

static uint64_t file_pages(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    return g_ascii_strtoull(strstr(text, "RssFile:") + strlen("RssFile:"), NULL, 10) * 1024;
}

static void dropped_pages_are_given_back(void)
{
    char *dir = test_large_model(262144); /* 32 MiB */
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN};
    g_auto(TestLoad) m = test_load_open(dir, &options);
    const davit_tensor_info *t =
        davit_checkpoint_find(m.checkpoint, "model.embed_tokens.weight");
    const DavitSource *source = davit_checkpoint_file(m.checkpoint, t->file).source;
    const uint8_t *bytes;
    volatile uint8_t sum = 0;
    g_assert_cmpint(davit_checkpoint_view(m.checkpoint, t->file, t->off, t->n_bytes, &bytes,
                                          m.report),
                    ==, 0);
    const uint64_t before = file_pages();
    for (uint64_t i = 0; i < t->n_bytes; i += 4096)
        sum = (uint8_t)(sum + bytes[i]);
    g_assert_cmpuint(file_pages(), >=, before + 30 * MIB);
    davit_source_drop(source, t->off, t->n_bytes);
    g_assert_cmpuint(file_pages(), <=, before + 2 * MIB);
    g_assert_cmpuint(bytes[4096], ==, 0); /* and come again */
    test_model_remove(dir);
}

static void budget_decides(void)
{
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models/llama_mini", NULL);
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN, .n_lanes = 1};
    g_auto(TestLoad) all = test_load_open(path, &options);
    options.memory_bytes = all.plan->resident_bytes;
    g_auto(TestLoad) fits = test_load_open(path, &options);
    options.memory_bytes--;
    g_auto(TestLoad) less = test_load_open(path, &options);
    options.memory_bytes = less.plan->resident_bytes;
    g_auto(TestLoad) least = test_load_open(path, &options);
    options.memory_bytes--;
    g_auto(TestLoad) none = test_load_open(path, &options);
    uint64_t n_deferred[2] = {0};
    for (size_t i = 0; i < all.plan->n_slots; i++) {
        n_deferred[0] += fits.plan->slots[i].way == DAVIT_WAY_DEFER;
        n_deferred[1] += least.plan->slots[i].way == DAVIT_WAY_DEFER;
    }
    g_assert_cmpuint(n_deferred[0], ==, 0);
    g_assert_cmpuint(n_deferred[1], >, 0);
    g_assert_cmpuint(less.plan->resident_bytes, <, all.plan->resident_bytes);
    g_assert_null(none.plan);
    g_assert_true(test_load_says(none.report, DAVIT_R_MEMORY_SHORT));
}

/* ---- read-ahead ---- */

/* Bytes of one layer's deferred slots, that its files are asked for. */
static uint64_t deferred_bytes(const DavitPlan *plan, int64_t layer)
{
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].layer == layer && plan->slots[i].way == DAVIT_WAY_DEFER)
            n += plan->slots[i].borrowed_bytes;
    return n;
}

static void wait_for(DavitAhead *ahead, uint64_t n)
{
    while (davit_ahead_bytes(ahead) < n)
        g_thread_yield(); /* ctest ends a test that never comes here */
    g_assert_cmpuint(davit_ahead_bytes(ahead), ==, n);
}

/* The first layer at once, then the one behind the one that runs; behind the last the first. */
static void next_layer_is_read_ahead(void)
{
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models/llama_mini", NULL);
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN, .n_lanes = 1};
    g_auto(TestLoad) all = test_load_open(path, &options);
    g_assert_null(davit_ahead_new(all.plan)); /* nothing is on disk */
    for (size_t i = 0; i < all.plan->n_slots; i++)
        if (all.plan->slots[i].way == DAVIT_WAY_BORROW && all.plan->slots[i].layer >= 0)
            all.plan->slots[i].way = DAVIT_WAY_DEFER; /* whatever a budget would keep */
    const uint64_t n[] = {deferred_bytes(all.plan, 0), deferred_bytes(all.plan, 1)};
    g_assert_cmpuint(all.plan->n_layers, ==, 2);
    g_assert_cmpuint(MIN(n[0], n[1]), >, 0);
    g_autoptr(DavitAhead) ahead = davit_ahead_new(all.plan);
    g_assert_nonnull(ahead);
    wait_for(ahead, n[0]);
    davit_ahead_begin(ahead, -1); /* globals are no layer */
    davit_ahead_begin(ahead, 0);
    wait_for(ahead, n[0] + n[1]);
    davit_ahead_begin(ahead, 1);
    wait_for(ahead, 2 * n[0] + n[1]);
}

/* ---- again and again ---- */

static unsigned count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned n = 0;
    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

/* LOADS=10000 in the environment for the long run. */
static void loads_leave_nothing(void)
{
    const char *asked = g_getenv("LOADS");
    const int n = asked ? atoi(asked) : 100;
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models/llama_mini", NULL);
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .access = DAVIT_ACCESS_FORCE_STREAM};
    unsigned fds = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        g_auto(TestLoad) m = test_load_open(path, &options);
        g_autoptr(DavitWeights) weights = davit_weights_load(m.plan, NULL, m.report);
        g_assert_nonnull(weights);
        if (i == 20) { /* caches of the C library are warm */
            fds = count_fds();
            bytes = data_bytes();
        }
        if (i > 20)
            g_assert_cmpuint(count_fds(), ==, fds);
    }
    if (!DAVIT_SANITIZED)
        g_assert_cmpuint(data_bytes(), <=, bytes + 1 * MIB);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/limits/peak", peak_is_predicted);
    g_test_add_func("/limits/cancel", cancel_ends_the_load);
    g_test_add_data_func("/limits/cut", "cut", changed_file_is_refused);
    g_test_add_data_func("/limits/written", "written", changed_file_is_refused);
    g_test_add_func("/limits/borrowed_nan", borrowed_nan_is_named);
    g_test_add_func("/limits/removed", removed_file_still_loads);
    g_test_add_func("/limits/dropped", dropped_pages_are_given_back);
    g_test_add_func("/limits/budget", budget_decides);
    g_test_add_func("/limits/ahead", next_layer_is_read_ahead);
    g_test_add_func("/limits/again", loads_leave_nothing);
    return g_test_run();
}
