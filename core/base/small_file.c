/* SPDX-License-Identifier: Apache-2.0
 * Small files, read whole. */
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

static char *failed(GError **error, int number)
{
    g_set_error_literal(error, G_FILE_ERROR, (int)g_file_error_from_errno(number),
                        g_strerror(number));
    return NULL;
}

/* At most @n bytes; fewer if the file shrank meanwhile. Returns: their number, -1 = errno. */
static ssize_t read_up_to(int fd, char *out, size_t n)
{
    size_t have = 0;

    while (have < n) {
        const ssize_t got = read(fd, out + have, n - have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

static char *read_open(int fd, size_t max, size_t *out_len, GError **error)
{
    g_autofree char *text = NULL;
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) != 0)
        return failed(error, errno);
    if (S_ISDIR(st.st_mode))
        return failed(error, EISDIR);
    if (!S_ISREG(st.st_mode)) {
        g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "it is no regular file");
        return NULL;
    }
    if (st.st_size < 0 || (uint64_t)st.st_size > max) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "it is longer than %" G_GSIZE_FORMAT " bytes", max);
        return NULL;
    }
    text = g_malloc((size_t)st.st_size + 1);
    n = read_up_to(fd, text, (size_t)st.st_size);
    if (n < 0)
        return failed(error, errno);
    text[n] = '\0';
    *out_len = (size_t)n;
    return g_steal_pointer(&text);
}

char *davit_small_file_read(const char *path, size_t max, size_t *out_len, GError **error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text;

    if (fd < 0)
        return failed(error, errno);
    text = read_open(fd, max, out_len, error);
    close(fd);
    return text;
}
