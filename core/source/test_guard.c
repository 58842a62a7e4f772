/* SPDX-License-Identifier: Apache-2.0
 * A mapped file that is cut reads as zeros and is counted, instead of ending the process. */
#include "source/guard.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "source/source.h"

#define N 40000u

static void test_cut_file(void)
{
    g_autofree char *path = NULL;
    g_autoptr(DavitReport) report = davit_report_new();
    const int fd = g_file_open_tmp("davit-guard-XXXXXX", &path, NULL);
    char bytes[N];
    memset(bytes, 7, sizeof bytes);
    g_assert_cmpint(write(fd, bytes, sizeof bytes), ==, sizeof bytes);
    DavitSource *source = davit_source_open(path, report);
    const uint8_t *view;
    g_assert_cmpint(davit_source_view(source, 0, N, &view, report), ==, 0);
    g_assert_cmpint(view[N - 1], ==, 7);

    const unsigned before = davit_guard_losses();
    g_assert_cmpint(ftruncate(fd, 5000), ==, 0);
    unsigned sum = 0;
    for (size_t i = 8192; i < N; i += 4096)
        sum += ((const volatile uint8_t *)view)[i];
    g_assert_cmpuint(sum, ==, 0);
    g_assert_cmpint(view[0], ==, 7); /* what is left stays */
    g_assert_cmpuint(davit_guard_losses(), >, before);
    g_assert_cmpint(davit_source_check(source, report), ==, DAVIT_E_IO);
    g_assert_cmpuint(davit_report_first_error(report, 0)->code, ==, DAVIT_R_FILE_CHANGED);
    davit_source_free(source);
    close(fd);
    g_unlink(path);
}

static void test_elsewhere_is_fatal(void)
{
    if (g_test_subprocess()) {
        raise(SIGBUS);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    davit_guard_install();
    g_test_add_func("/guard/cut-file-reads-zeros", test_cut_file);
    g_test_add_func("/guard/elsewhere-is-fatal", test_elsewhere_is_fatal);
    return g_test_run();
}
