/* SPDX-License-Identifier: Apache-2.0
 * O_DIRECT, probed. A flag set on the first descriptor would change it for everybody, so the
 * file is opened again. */
#include "source/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_DIRECT /* not everywhere: then nothing can be read so */
#define O_DIRECT 0
#endif

static bool same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static bool reads(int fd)
{
    void *block = NULL;
    ssize_t n;

    if (posix_memalign(&block, DAVIT_DIRECT_ALIGN, DAVIT_DIRECT_ALIGN) != 0)
        return false;
    do {
        n = pread(fd, block, DAVIT_DIRECT_ALIGN, DAVIT_DIRECT_ALIGN);
    } while (n < 0 && errno == EINTR);
    free(block);
    return n == (ssize_t)DAVIT_DIRECT_ALIGN;
}

int davit_source_open_direct(const DavitSource *source)
{
    int fd;

    if (davit_source_fd(source) < 0 || O_DIRECT == 0 ||
        davit_source_size(source) < 2ull * DAVIT_DIRECT_ALIGN)
        return -1;
    fd = open(davit_source_path(source), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && same_file(fd, davit_source_fd(source)) && reads(fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
