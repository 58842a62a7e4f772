/* SPDX-License-Identifier: Apache-2.0
 * Sources: exact reads, ranges past the end, files that change under the reader. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "source/source.h"

typedef struct Fixture {
    char *dir;
    char *path;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    (void)data;
    f->dir = g_dir_make_tmp("davit-source-XXXXXX", NULL);
    f->path = g_build_filename(f->dir, "weights.bin", NULL);
    g_assert_true(g_file_set_contents(f->path, "0123456789", 10, NULL));
}

static void tear_down(Fixture *f, gconstpointer data)
{
    (void)data;
    g_unlink(f->path);
    g_rmdir(f->dir);
    g_free(f->path);
    g_free(f->dir);
}

static void assert_record(const DavitReport *report, uint32_t code, const char *found)
{
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    g_assert_cmpuint(davit_report_get(report, 0)->code, ==, code);
    g_assert_cmpstr(davit_report_get(report, 0)->found, ==, found);
}

static void reads_and_views_agree(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSource) source = davit_source_open(f->path, report);
    const uint8_t *view = NULL;
    char buf[4] = "";

    (void)data;
    g_assert_nonnull(source);
    g_assert_cmpuint(davit_source_size(source), ==, 10);
    g_assert_cmpstr(davit_source_name(source), ==, "weights.bin");
    g_assert_cmpint(davit_source_read(source, 3, buf, 3, report), ==, DAVIT_OK);
    g_assert_cmpstr(buf, ==, "345");
    g_assert_cmpint(davit_source_view(source, 3, 7, &view, report), ==, DAVIT_OK);
    g_assert_cmpmem(view, 7, "3456789", 7);
    g_assert_cmpint(davit_source_view(source, 10, 0, &view, report), ==, DAVIT_OK);
    g_assert_cmpuint(davit_report_count(report), ==, 0);
}

static void read_past_the_end(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSource) source = davit_source_open(f->path, report);
    char buf[16];

    (void)data;
    g_assert_cmpint(davit_source_read(source, 8, buf, 3, report), ==, DAVIT_E_CORRUPT);
    assert_record(report, DAVIT_R_TENSOR_OUT_OF_FILE, "3 bytes at 8");
    g_assert_cmpint(davit_source_read(source, UINT64_MAX, buf, 2, report), ==,
                    DAVIT_E_CORRUPT);
    g_assert_cmpint(davit_source_read(source, 2, buf, UINT64_MAX, report), ==,
                    DAVIT_E_CORRUPT);
}

static void file_cut_after_open(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSource) source = davit_source_open(f->path, report);
    const uint8_t *view = NULL;
    char buf[10];

    (void)data;
    g_assert_cmpint(truncate(f->path, 4), ==, 0);
    g_assert_cmpint(davit_source_view(source, 0, 10, &view, report), ==, DAVIT_E_IO);
    assert_record(report, DAVIT_R_FILE_CHANGED, "4 bytes");
    g_assert_null(view);
    g_assert_cmpint(davit_source_read(source, 0, buf, 10, report), ==, DAVIT_E_IO);
    g_assert_cmpuint(davit_report_get(report, 1)->code, ==, DAVIT_R_FILE_CHANGED);
}

static void file_written_after_open(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSource) source = davit_source_open(f->path, report);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    (void)data;
    g_assert_cmpint(davit_source_check(source, report), ==, DAVIT_OK);
    g_assert_cmpint(utimensat(AT_FDCWD, f->path, times, 0), ==, 0);
    g_assert_cmpint(davit_source_check(source, report), ==, DAVIT_E_IO);
    assert_record(report, DAVIT_R_FILE_CHANGED, "another time of writing");
}

static void absent_file(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = g_build_filename(f->dir, "nosuch", NULL);

    (void)data;
    g_assert_null(davit_source_open(path, report));
    assert_record(report, DAVIT_R_NOT_FOUND, "No such file or directory");
}

static void directory_is_no_source(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();

    (void)data;
    g_assert_null(davit_source_open(f->dir, report));
    assert_record(report, DAVIT_R_NOT_REGULAR, "directory");
}

/* Opening must not wait for a writer. */
static void pipe_is_no_source(Fixture *f, gconstpointer data)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *path = g_build_filename(f->dir, "fifo", NULL);

    (void)data;
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    g_assert_null(davit_source_open(path, report));
    assert_record(report, DAVIT_R_NOT_REGULAR, "FIFO");
    g_unlink(path);
}

static void bytes_are_a_source(void)
{
    static const uint8_t bytes[] = "abcdef";
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitSource) source = davit_source_from_bytes("x", bytes, 6);
    const uint8_t *view = NULL;
    char buf[3] = "";

    g_assert_cmpint(davit_source_fd(source), ==, -1);
    g_assert_cmpint(davit_source_read(source, 2, buf, 2, report), ==, DAVIT_OK);
    g_assert_cmpstr(buf, ==, "cd");
    g_assert_cmpint(davit_source_view(source, 5, 1, &view, report), ==, DAVIT_OK);
    g_assert_true(view == bytes + 5);
    g_assert_cmpint(davit_source_view(source, 5, 2, &view, report), ==, DAVIT_E_CORRUPT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name) g_test_add("/source/" #name, Fixture, NULL, set_up, name, tear_down)
    ADD(reads_and_views_agree);
    ADD(read_past_the_end);
    ADD(file_cut_after_open);
    ADD(file_written_after_open);
    ADD(absent_file);
    ADD(directory_is_no_source);
    ADD(pipe_is_no_source);
#undef ADD
    g_test_add_func("/source/bytes_are_a_source", bytes_are_a_source);
    return g_test_run();
}
