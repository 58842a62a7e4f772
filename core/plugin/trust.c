/* SPDX-License-Identifier: Apache-2.0
 * Path trust, component by component. */
#include "plugin/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct DavitTrust {
    const char *const *dirs; /* the user vouches for them; borrowed */
    GHashTable *real;        /* directory as named -> its real path, "" = there is none */
    GHashTable *sound;       /* real directories that nobody else can change, nor those above */
};

DavitTrust *davit_trust_new(const char *const *dirs)
{
    DavitTrust *trust = g_new0(DavitTrust, 1);

    trust->dirs = dirs;
    trust->real = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    trust->sound = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return trust;
}

void davit_trust_free(DavitTrust *trust)
{
    if (!trust)
        return;
    g_hash_table_unref(trust->real);
    g_hash_table_unref(trust->sound);
    g_free(trust);
}

/* (owned) NULL: there is none, errno says why. */
static char *real_path(const char *path)
{
    char *resolved = realpath(path, NULL); /* malloc: freed below */
    const int error = errno;
    char *real = g_strdup(resolved);

    free(resolved);
    errno = error;
    return real;
}

/* (borrowed) real path of the directory @dir, NULL if there is none. */
static const char *real_dir(DavitTrust *trust, const char *dir)
{
    const char *real = g_hash_table_lookup(trust->real, dir);

    if (!real) {
        char *found = real_path(dir);

        real = found ? found : g_strdup("");
        g_hash_table_insert(trust->real, g_strdup(dir), (gpointer)(uintptr_t)real);
    }
    return *real ? real : NULL;
}

/* (owned) real path of the file @path and what it is, as realpath and stat have it; NULL: errno
 * says why. */
static char *real_file(DavitTrust *trust, const char *path, struct stat *out)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    const char *above = g_str_has_suffix(path, name) ? real_dir(trust, dir) : NULL;
    g_autofree char *real = NULL;

    if (above && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        real = g_build_filename(above, name, NULL);
        if (lstat(real, out) != 0)
            return NULL;
        if (!S_ISLNK(out->st_mode))
            return g_steal_pointer(&real);
        g_free(real);
    }
    real = real_path(path);
    return real && stat(real, out) == 0 ? g_steal_pointer(&real) : NULL;
}

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

/* May @dir hold something of the state @below? Sticky directories may, if both are ours. */
static bool can_hold(const struct stat *dir, const struct stat *below)
{
    return !others_can_write(dir) ||
           ((dir->st_mode & S_ISVTX) && is_ours(dir) && is_ours(below));
}

/* Check the directories above @path (real), nearest first. @child is the stat of @path. */
static int32_t check_parents(DavitTrust *trust, const char *path, const struct stat *child,
                             DavitReport *report)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autoptr(GPtrArray) walked = g_ptr_array_new_with_free_func(g_free);
    struct stat below = *child;

    while (!g_hash_table_contains(trust->sound, dir)) {
        struct stat st;
        char *up;

        if (stat(dir, &st) != 0)
            return io_failed(report, dir, errno);
        if (!can_hold(&st, &below))
            return refuse_writable(report, dir, &st);
        if (!others_can_write(&st)) /* else it depends on what it holds */
            g_ptr_array_add(walked, g_strdup(dir));
        if (strcmp(dir, "/") == 0)
            break;
        below = st;
        up = g_path_get_dirname(dir);
        g_free(dir);
        dir = up;
    }
    for (guint i = 0; i < walked->len; i++)
        g_hash_table_add(trust->sound, g_strdup(g_ptr_array_index(walked, i)));
    return DAVIT_OK;
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
static int32_t check_link(DavitTrust *trust, const char *path, const char *real,
                          DavitReport *report)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *target = g_path_get_dirname(real);
    const char *named = real_dir(trust, dir);
    g_autofree char *link = NULL;
    struct stat st;

    if (!named || strcmp(named, target) == 0)
        return DAVIT_OK;
    link = g_strdup_printf("%s/link", named);
    return lstat(path, &st) == 0 ? check_parents(trust, link, &st, report)
                                 : io_failed(report, path, errno);
}

int32_t davit_trust_check(DavitTrust *trust, const char *path, char **out_real,
                          struct stat *out_stat, DavitReport *report)
{
    struct stat st;
    g_autofree char *real = real_file(trust, path, &st);

    if (!real)
        return io_failed(report, path, errno);
    if (!S_ISREG(st.st_mode))
        return refuse(report, DAVIT_R_NOT_REGULAR, path, "a regular file",
                      S_ISDIR(st.st_mode)    ? "a directory"
                      : S_ISFIFO(st.st_mode) ? "a FIFO"
                      : S_ISSOCK(st.st_mode) ? "a socket"
                                             : "a device",
                      NULL);
    if (!is_below(real, trust->dirs)) {
        const int32_t file = check_file(real, &st, report);
        const int32_t parents = check_parents(trust, real, &st, report);
        const int32_t link = check_link(trust, path, real, report);

        if (file || parents || link)
            return davit_worse(file, davit_worse(parents, link));
    }
    *out_real = g_steal_pointer(&real);
    *out_stat = st;
    return DAVIT_OK;
}

bool davit_trust_privileged(void)
{
    return getauxval(AT_SECURE) != 0 || geteuid() != getuid() || getegid() != getgid();
}
