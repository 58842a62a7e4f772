/* SPDX-License-Identifier: Apache-2.0
 * Path trust, component by component. */
#include "plugin/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static int32_t refuse(DavitReport *report, uint32_t code, const char *path,
                      const char *expected, const char *found, const char *hint)
{
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = DAVIT_E_UNSUPPORTED,
                                                    .stage = "file",
                                                    .subject = path,
                                                    .expected = expected,
                                                    .found = found,
                                                    .hint = hint});
}

static int32_t io_failed(DavitReport *report, const char *path, int error)
{
    return davit_report_add(report,
                            &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                            .status = DAVIT_E_IO,
                                            .stage = "file",
                                            .subject = path,
                                            .found = g_strerror(error),
                                            .message = "the file cannot be looked at",
                                            .hint = "remove the link or file, or make "
                                                    "it readable"});
}

static bool is_ours(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Can somebody else than the owner change it, by the mode bits? */
static bool others_can_write(const struct stat *st)
{
    return (st->st_mode & S_IWOTH) ||
           ((st->st_mode & S_IWGRP) && st->st_gid != st->st_uid);
}

static int32_t refuse_writable(DavitReport *report, const char *path,
                               const struct stat *st)
{
    return refuse(report, DAVIT_R_PERM_WRITABLE, path, "not writable by group or others",
                  davit_report_text(report, "mode %04o, owner %u, group %u",
                                    (unsigned)(st->st_mode & 07777), (unsigned)st->st_uid,
                                    (unsigned)st->st_gid),
                  davit_report_text(report, "chmod go-w '%s'", path));
}

/* Check the directories above @path, nearest first. @child is the stat of @path. */
static int32_t check_parents(const char *path, const struct stat *child,
                             DavitReport *report)
{
    g_autofree char *dir = g_path_get_dirname(path);
    struct stat below = *child;

    for (;;) {
        struct stat st;

        if (stat(dir, &st) != 0)
            return io_failed(report, dir, errno);
        if (others_can_write(&st)) {
            const bool kept = (st.st_mode & S_ISVTX) && is_ours(&st) && is_ours(&below);

            if (!kept)
                return refuse_writable(report, dir, &st);
        }
        if (strcmp(dir, "/") == 0)
            return DAVIT_OK;
        below = st;
        {
            char *up = g_path_get_dirname(dir);

            g_free(dir);
            dir = up;
        }
    }
}

static int32_t check_file(const char *path, const struct stat *st, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    if (!is_ours(st))
        status = refuse(report, DAVIT_R_WRONG_OWNER, path,
                        geteuid() == 0 ? "user 0 (root)"
                                       : davit_report_text(report, "user 0 (root) or %u",
                                                           (unsigned)geteuid()),
                        davit_report_text(report, "user %u", (unsigned)st->st_uid),
                        "install the plugin as the user that runs davit");
    if (others_can_write(st))
        status = refuse_writable(report, path, st);
    return status;
}

static bool is_below(const char *path, const char *const *dirs)
{
    for (size_t i = 0; dirs && dirs[i]; i++) {
        const size_t n = strlen(dirs[i]);

        if (strncmp(path, dirs[i], n) == 0 &&
            (path[n] == '/' || (n && dirs[i][n - 1] == '/')))
            return true;
    }
    return false;
}

/* The directory through which @path was named, when a link leads elsewhere. */
static int32_t check_link(const char *path, const char *real, DavitReport *report)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *real_dir = g_path_get_dirname(real);
    char *named = realpath(dir, NULL); /* malloc: freed below */
    struct stat st;
    int32_t status = DAVIT_OK;

    if (named && strcmp(named, real_dir) != 0) {
        g_autofree char *link = g_strdup_printf("%s/link", named);

        status = lstat(path, &st) == 0 ? check_parents(link, &st, report)
                                       : io_failed(report, path, errno);
    }
    free(named);
    return status;
}

int32_t davit_trust_check(const char *path, const char *const *trusted, char **out_real,
                          struct stat *out_stat, DavitReport *report)
{
    char *resolved = realpath(path, NULL);
    g_autofree char *real = g_strdup(resolved);
    struct stat st;
    int32_t status;

    free(resolved);
    if (!real || stat(real, &st) != 0)
        return io_failed(report, path, errno);
    if (!S_ISREG(st.st_mode))
        return refuse(report, DAVIT_R_NOT_REGULAR, path, "a regular file",
                      S_ISDIR(st.st_mode)    ? "a directory"
                      : S_ISFIFO(st.st_mode) ? "a FIFO"
                      : S_ISSOCK(st.st_mode) ? "a socket"
                                             : "a device",
                      NULL);
    if (!is_below(real, trusted)) {
        status = check_file(real, &st, report);
        status = MIN(status, check_parents(real, &st, report));
        status = MIN(status, check_link(path, real, report));
        if (status)
            return status;
    }
    *out_real = g_steal_pointer(&real);
    *out_stat = st;
    return DAVIT_OK;
}

bool davit_trust_privileged(void)
{
    return getauxval(AT_SECURE) != 0 || geteuid() != getuid() || getegid() != getgid();
}
