/* SPDX-License-Identifier: Apache-2.0
 * Bytes through and past the page cache are the same, at every offset, also from file systems
 * that cannot and descriptors that fail half way. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/reader.h"
#include "exec/test_load.h"

#define MODEL  DAVIT_SOURCE_DIR "/tests/golden/models/llama_mini"
#define BUFFER (512u << 10)

typedef struct Fixture {
    TestLoad m;
    DavitLoadStats stats;
    char *want; /* bytes of the first file */
    gsize n;
    uint8_t *mem, *to; /* memory of a read, and of a copy */
} Fixture;

static void fixture_clear(Fixture *f)
{
    test_load_clear(&f->m);
    g_free(f->want);
    free(f->mem);
    g_free(f->to);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, fixture_clear)

static Fixture fixture(void)
{
    const DavitPlanOptions options = {.purposes = DAVIT_MAP};
    Fixture f = {.m = test_load_open(MODEL, &options), .to = g_malloc(BUFFER)};
    void *mem = NULL;
    g_assert_true(g_file_get_contents(
        davit_source_path(davit_checkpoint_file(f.m.checkpoint, 0).source), &f.want, &f.n, NULL));
    g_assert_cmpuint(f.n, >, 8 * DAVIT_DIRECT_ALIGN);
    g_assert_cmpuint(f.n + DAVIT_READ_SLACK, <, BUFFER);
    g_assert_cmpint(posix_memalign(&mem, DAVIT_DIRECT_ALIGN, BUFFER), ==, 0);
    f.mem = mem;
    return f;
}

static void check_read(Fixture *f, DavitReader *reader, uint64_t off, uint64_t n)
{
    const uint8_t *at = NULL;
    g_assert_cmpint(davit_reader_stage(reader, 0, off, n, f->mem, &at, &f->stats, f->m.report), ==,
                    DAVIT_OK);
    g_assert_true(at >= f->mem && at + n <= f->mem + n + DAVIT_READ_SLACK);
    g_assert_true(memcmp(at, f->want + off, n) == 0);
    /* through a bounce of 1, 2, ... blocks, and one that is too small to be used */
    for (uint64_t blocks = 0; blocks < 7; blocks += 2) {
        const DavitBounce bounce = {f->mem, blocks * DAVIT_DIRECT_ALIGN};
        memset(f->to, 0x5a, n + 1);
        g_assert_cmpint(davit_reader_read(reader, 0, off, n, f->to, &bounce, &f->stats,
                                          f->m.report),
                        ==, DAVIT_OK);
        g_assert_true(memcmp(f->to, f->want + off, n) == 0);
        g_assert_cmpuint(f->to[n], ==, 0x5a);
    }
}

/* Blocks' borders from both sides, the file's end, and random places. */
static void check_reads(Fixture *f, DavitReader *reader)
{
    const uint64_t b = DAVIT_DIRECT_ALIGN;
    const uint64_t ends[] = {1, b - 1, b, b + 1, 3 * b - 1, 3 * b, f->n - 1, f->n};
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++)
        for (size_t j = 0; j < i; j++)
            check_read(f, reader, ends[j], ends[i] - ends[j]);
    check_read(f, reader, 0, f->n);
    check_read(f, reader, f->n, 0);
    for (int i = 0; i < 50; i++) {
        const uint64_t off = (uint64_t)g_test_rand_int_range(0, (gint32)f->n);
        check_read(f, reader, off, (uint64_t)g_test_rand_int_range(0, (gint32)(f->n - off) + 1));
    }
}

static void past_the_cache(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_SKIP, NULL, &f.stats);
    check_reads(&f, reader);
    g_assert_cmpuint(f.stats.direct_files + f.stats.direct_refused, ==, 1);
    if (f.stats.direct_refused)
        g_test_skip("this file system has no O_DIRECT");
    else
        g_assert_cmpuint(f.stats.direct_bytes, >, f.n);
}

static void through_the_cache(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_USE, NULL, &f.stats);
    check_reads(&f, reader);
    g_assert_cmpuint(f.stats.direct_bytes + f.stats.direct_files + f.stats.beside_bytes, ==, 0);
}

/* The test has just read the file: it is cached, and auto leaves it there. */
static void cached_files_stay(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_AUTO, NULL, &f.stats);
    check_reads(&f, reader);
    g_assert_cmpuint(f.stats.probed_pages, >, 0);
    g_assert_cmpuint(f.stats.direct_bytes, ==, 0);
}

static int open_nothing(const DavitSource *source)
{
    (void)source;
    return -1;
}

static int open_directory(const DavitSource *source)
{
    (void)source;
    return open(DAVIT_SOURCE_DIR, O_RDONLY | O_CLOEXEC); /* reads fail: EISDIR */
}

/* As if the end of the file were lost: two blocks and a half. */
static int open_short(const DavitSource *source)
{
    const size_t n = 2 * DAVIT_DIRECT_ALIGN + DAVIT_DIRECT_ALIGN / 2;
    g_autofree char *bytes = NULL;
    gsize all;
    char name[] = "davit-reader-XXXXXX";
    const int fd = g_mkstemp(name);
    g_assert_true(g_file_get_contents(davit_source_path(source), &bytes, &all, NULL));
    g_assert_cmpint(write(fd, bytes, n), ==, (gssize)n);
    unlink(name);
    return fd;
}

static void refused_file_system(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_SKIP, open_nothing, &f.stats);
    check_reads(&f, reader);
    g_assert_cmpuint(f.stats.direct_refused, ==, 1);
    g_assert_cmpuint(f.stats.direct_bytes, ==, 0);
}

static void failing_descriptor(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_SKIP, open_directory, &f.stats);
    check_reads(&f, reader);
    g_assert_cmpuint(f.stats.direct_files, ==, 1);
    g_assert_cmpuint(f.stats.direct_bytes, ==, 0);
}

static void short_descriptor(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_SKIP, open_short, &f.stats);
    check_reads(&f, reader);
    g_assert_cmpuint(f.stats.direct_bytes, >, 0); /* what was there */
}

/* A range past the end is the same record whichever way is taken. */
static void past_the_end(void)
{
    g_auto(Fixture) f = fixture();
    g_autoptr(DavitReader) reader =
        davit_reader_new(f.m.checkpoint, DAVIT_CACHE_SKIP, NULL, &f.stats);
    const uint8_t *at;
    g_assert_cmpint(davit_reader_stage(reader, 0, f.n - 4, 5, f.mem, &at, &f.stats, f.m.report), ==,
                    DAVIT_E_CORRUPT);
    g_assert_true(test_load_says(f.m.report, DAVIT_R_TENSOR_OUT_OF_FILE));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reader/past", past_the_cache);
    g_test_add_func("/reader/through", through_the_cache);
    g_test_add_func("/reader/cached", cached_files_stay);
    g_test_add_func("/reader/refused", refused_file_system);
    g_test_add_func("/reader/failing", failing_descriptor);
    g_test_add_func("/reader/short", short_descriptor);
    g_test_add_func("/reader/end", past_the_end);
    return g_test_run();
}
