/* SPDX-License-Identifier: Apache-2.0
 * A model loaded, asked and freed many times leaves nothing: no descriptor, mapping, thread or
 * heap. 100 times here; DAVIT_LOADS=10000 for more (scripts/many-loads.sh). */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>
#include <libdavit.h>

#include "base/sanitizer.h"

#define WARM_UP    10u
/* Parts of libc and GLib come and go by a few small pieces. main turns the allocator's caches of
 * each thread off, which count as used. */
#define HEAP_SLACK (4u << 10)
#define MODELS     DAVIT_SOURCE_DIR "/tests/golden/models/"

typedef struct Held {
    unsigned fds, threads, maps;
    size_t heap;
} Held;

static unsigned entries_of(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    unsigned n = 0;

    g_assert_nonnull(dir);
    while (g_dir_read_name(dir))
        n++;
    return n;
}

/* Mappings of files: those of the heap come and go with the allocator. */
static unsigned file_maps(void)
{
    g_autofree char *text = NULL;
    unsigned n = 0;

    g_assert_true(g_file_get_contents("/proc/self/maps", &text, NULL, NULL));
    for (const char *at = text; (at = strstr(at, DAVIT_SOURCE_DIR "/tests/")) != NULL; at++)
        n++;
    return n;
}

static Held held(void)
{
    return (Held){.fds = entries_of("/proc/self/fd"),
                  .threads = entries_of("/proc/self/task"),
                  .maps = file_maps(),
                  .heap = DAVIT_SANITIZED ? 0 : mallinfo2().uordblks};
}

static void load_and_ask(const char *path)
{
    static const int32_t prompt[] = {1, 5, 9};
    const davit_model_params params = {
        .struct_size = sizeof params, .model = path, .no_tokenizer = 1};
    const davit_engine_params engine_params = {
        .struct_size = sizeof engine_params, .n_threads = 2, .ctx = 16};
    const davit_request_params request_params = {.struct_size = sizeof request_params,
                                                 .prompt = prompt,
                                                 .n_prompt = G_N_ELEMENTS(prompt),
                                                 .max_tokens = 2,
                                                 .ignore_eos = 1,
                                                 .top_p = 1,
                                                 .repeat_penalty = 1};
    davit_records *records = NULL;
    davit_model *model = NULL;
    davit_engine *engine = NULL;
    davit_request *request = NULL;

    g_assert_cmpint(davit_model_load(&params, &model, &records), ==, 0);
    davit_records_free(records);
    g_assert_cmpint(davit_engine_new(model, &engine_params, &engine, NULL), ==, 0);
    g_assert_cmpint(davit_request_submit(engine, &request_params, &request, NULL), ==, 0);
    g_assert_cmpint(davit_request_wait(engine, request, NULL, NULL), ==, 0);
    davit_request_free(request);
    davit_engine_free(engine);
    davit_model_free(model);
}

static void refuse(const char *path)
{
    const davit_model_params params = {.struct_size = sizeof params, .model = path};
    davit_records *records = NULL;
    davit_model *model = NULL;

    g_assert_cmpint(davit_model_load(&params, &model, &records), <, 0);
    g_assert_cmpuint(davit_records_count(records), >, 0);
    davit_records_free(records);
}

static void one_of(unsigned i)
{
    static const char *const good[] = {MODELS "llama_mini", MODELS "gguf_q4_0/model.gguf"};

    load_and_ask(good[i % G_N_ELEMENTS(good)]);
    if (i % 5 == 0)
        refuse(MODELS "stablelm");
}

static void loads_leave_something(void)
{
    const char *asked = g_getenv("DAVIT_LOADS");
    const unsigned n = asked ? (unsigned)strtoul(asked, NULL, 10) : DAVIT_SANITIZED ? 25u : 100u;
    Held before, after;

    for (unsigned i = 0; i < WARM_UP; i++) /* plugins stay, caches fill */
        one_of(i);
    before = held();
    for (unsigned i = 0; i < n; i++)
        one_of(i);
    after = held();
    g_test_message("%u loads: heap %zu -> %zu", n, before.heap, after.heap);
    g_assert_cmpuint(after.fds, ==, before.fds);
    g_assert_cmpuint(after.threads, ==, before.threads);
    g_assert_cmpuint(after.maps, ==, before.maps);
    g_assert_cmpuint(after.heap, <=, before.heap + HEAP_SLACK);
}

int main(int argc, char **argv)
{
    /* Read before main. One arena: how many more the threads open differs from run to run, and
     * the head of each counts as used. */
    if (!g_getenv("GLIBC_TUNABLES")) {
        g_setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", TRUE);
        execv("/proc/self/exe", argv);
        g_error("execv: %s", g_strerror(errno));
    }
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loads/leave_nothing", loads_leave_something);
    return g_test_run();
}
