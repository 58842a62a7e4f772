/* SPDX-License-Identifier: Apache-2.0
 * Modes and owners. Runs as root too: nothing here asks access(). */
#include "plugin/trust.h"

#include "plugins/fixture.h"

typedef struct Place {
    char *dir;  /* scratch */
    char *sub;  /* dir/sub, mode 0755 */
    char *file; /* dir/sub/x.so, mode 0644 */
} Place;

static void place_set_up(Place *p, gconstpointer data)
{
    (void)data;
    p->dir = scratch_new();
    p->sub = g_build_filename(p->dir, "sub", NULL);
    g_assert_cmpint(g_mkdir(p->sub, 0755), ==, 0);
    p->file = scratch_write(p->sub, "x.so", "x", 1);
}

static void place_tear_down(Place *p, gconstpointer data)
{
    (void)data;
    g_assert_cmpint(g_chmod(p->sub, 0755), ==, 0);
    g_free(p->sub);
    g_free(p->file);
    scratch_free(p->dir);
}

/* @code NULL = trusted; else the first record has it, about @subject. */
static void expect(const char *path, const char *const *trusted, const char *code,
                   const char *subject)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autofree char *real = NULL;
    struct stat st;
    g_autoptr(DavitTrust) trust = davit_trust_new(trusted);
    const int32_t status = davit_trust_check(trust, path, &real, &st, report);

    show_records(report);
    if (!code) {
        g_assert_cmpint(status, ==, DAVIT_OK);
        g_assert_nonnull(real);
        return;
    }
    g_assert_cmpint(status, <, 0);
    g_assert_cmpstr(davit_code_name(davit_report_get(report, 0)->code), ==, code);
    if (subject)
        g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, subject);
}

static void ordinary_file_is_trusted(Place *p, gconstpointer data)
{
    (void)data;
    expect(p->file, NULL, NULL, NULL);
}

static void writable_file_is_refused(Place *p, gconstpointer data)
{
    (void)data;
    g_assert_cmpint(g_chmod(p->file, 0646), ==, 0);
    expect(p->file, NULL, "perm-writable", p->file);
}

static void writable_parent_is_refused(Place *p, gconstpointer data)
{
    const char *trusted[] = {p->dir, NULL};

    (void)data;
    g_assert_cmpint(g_chmod(p->sub, 0757), ==, 0);
    expect(p->file, NULL, "perm-writable", p->sub);
    expect(p->file, trusted, NULL, NULL); /* unless the user vouches for it */
}

static void trusted_name_is_no_prefix(Place *p, gconstpointer data)
{
    g_autofree char *half = g_strndup(p->sub, strlen(p->sub) - 1);
    const char *trusted[] = {half, NULL};

    (void)data;
    g_assert_cmpint(g_chmod(p->file, 0646), ==, 0);
    expect(p->file, trusted, "perm-writable", p->file);
}

static void sticky_parent_keeps_our_files(Place *p, gconstpointer data)
{
    (void)data;
    g_assert_cmpint(g_chmod(p->sub, 01777), ==, 0);
    expect(p->file, NULL, NULL, NULL);
}

static void link_through_writable_directory_is_refused(Place *p, gconstpointer data)
{
    g_autofree char *open_dir = g_build_filename(p->dir, "open", NULL);
    g_autofree char *link = g_build_filename(open_dir, "link.so", NULL);

    (void)data;
    g_assert_cmpint(g_mkdir(open_dir, 0755), ==, 0);
    g_assert_cmpint(symlink(p->file, link), ==, 0);
    expect(link, NULL, NULL, NULL);
    g_assert_cmpint(g_chmod(open_dir, 0777), ==, 0);
    expect(link, NULL, "perm-writable", open_dir);
}

static void what_is_no_file_is_refused(Place *p, gconstpointer data)
{
    g_autofree char *fifo = g_build_filename(p->dir, "fifo.so", NULL);
    g_autofree char *dangling = g_build_filename(p->dir, "dangling.so", NULL);

    (void)data;
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_cmpint(symlink("nowhere", dangling), ==, 0);
    expect(fifo, NULL, "not-regular", fifo);
    expect(p->sub, NULL, "not-regular", p->sub);
    expect("/dev/null", NULL, "not-regular", "/dev/null");
    expect(dangling, NULL, "io-failed", dangling);
}

/* Group-writable: fine for the owner's private group, refused for any other. */
static void foreign_group_and_owner_are_refused(Place *p, gconstpointer data)
{
    (void)data;
    if (geteuid() != 0) {
        g_test_skip("changing owners needs root");
        return;
    }
    g_assert_cmpint(g_chmod(p->file, 0664), ==, 0);
    expect(p->file, NULL, NULL, NULL); /* root:root */
    g_assert_cmpint(chown(p->file, 0, 100), ==, 0);
    expect(p->file, NULL, "perm-writable", p->file);
    g_assert_cmpint(g_chmod(p->file, 0644), ==, 0);
    expect(p->file, NULL, NULL, NULL);
    g_assert_cmpint(chown(p->file, 1, 1), ==, 0);
    expect(p->file, NULL, "wrong-owner", p->file);
}

/* A stranger's directory inside a sticky one: the stranger can put anything there. */
static void foreign_child_of_sticky_is_refused(Place *p, gconstpointer data)
{
    (void)data;
    if (geteuid() != 0) {
        g_test_skip("changing owners needs root");
        return;
    }
    g_assert_cmpint(g_chmod(p->dir, 01777), ==, 0);
    expect(p->file, NULL, NULL, NULL);
    g_assert_cmpint(chown(p->sub, 1, 1), ==, 0);
    expect(p->file, NULL, "perm-writable", p->dir);
}

/* What one look has learnt of a directory says nothing of the next file in it. */
static void each_file_is_judged_in_known_directories(Place *p, gconstpointer data)
{
    g_autofree char *other = scratch_write(p->sub, "y.so", "y", 1);
    g_autofree char *link = g_build_filename(p->sub, "z.so", NULL);
    g_autofree char *open_dir = g_build_filename(p->dir, "open", NULL);
    g_autofree char *behind = NULL;
    const char *const paths[] = {p->file, p->file, other, link, p->file};
    const bool fine[] = {true, true, false, false, true};
    g_autoptr(DavitTrust) trust = davit_trust_new(NULL);

    (void)data;
    g_assert_cmpint(g_mkdir(open_dir, 0755), ==, 0);
    behind = scratch_write(open_dir, "x.so", "x", 1);
    g_assert_cmpint(symlink(behind, link), ==, 0);
    g_assert_cmpint(g_chmod(open_dir, 0777), ==, 0);
    g_assert_cmpint(g_chmod(other, 0666), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *real = NULL;
        struct stat st;

        g_assert_cmpint(davit_trust_check(trust, paths[i], &real, &st, report) == DAVIT_OK, ==,
                        fine[i]);
        show_records(report);
        g_assert_cmpuint(davit_report_count(report), ==, !fine[i]);
    }
}

/* A sticky directory is fine for our file and not for a stranger's, in either order. */
static void sticky_is_judged_by_what_it_holds(Place *p, gconstpointer data)
{
    g_autofree char *other = scratch_write(p->sub, "y.so", "y", 1);
    const char *const paths[] = {p->file, other, p->file, other};
    g_autoptr(DavitTrust) trust = davit_trust_new(NULL);

    (void)data;
    if (geteuid() != 0) {
        g_test_skip("changing owners needs root");
        return;
    }
    g_assert_cmpint(g_chmod(p->sub, 01777), ==, 0);
    g_assert_cmpint(chown(other, 1, 1), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autofree char *real = NULL;
        struct stat st;

        g_assert_cmpint(davit_trust_check(trust, paths[i], &real, &st, report) == DAVIT_OK, ==,
                        i % 2 == 0);
        if (i % 2) /* the file's owner, and the directory that lets the owner replace it */
            g_assert_cmpuint(davit_report_count(report), ==, 2);
    }
}

#define ADD(path, test)                                                                  \
    g_test_add("/trust/" path, Place, NULL, place_set_up, test, place_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("ordinary", ordinary_file_is_trusted);
    ADD("writable_file", writable_file_is_refused);
    ADD("writable_parent", writable_parent_is_refused);
    ADD("trusted_name", trusted_name_is_no_prefix);
    ADD("sticky_parent", sticky_parent_keeps_our_files);
    ADD("link", link_through_writable_directory_is_refused);
    ADD("no_file", what_is_no_file_is_refused);
    ADD("foreign_owner", foreign_group_and_owner_are_refused);
    ADD("foreign_child_of_sticky", foreign_child_of_sticky_is_refused);
    ADD("known_directories", each_file_is_judged_in_known_directories);
    ADD("known_sticky", sticky_is_judged_by_what_it_holds);
    return g_test_run();
}
